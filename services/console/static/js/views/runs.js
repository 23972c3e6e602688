// The runs that were: a table of all, one of them in detail, some of them beside each other.

import { integer } from "../core/format.js";
import { href } from "../core/route.js";
import { phaseOf } from "../core/run.js";
import { COMPARED_MAX } from "../core/compare.js";
import { compared, readOlder, readRuns, runList } from "../core/run_list.js";
import { t } from "../core/text.js";
import { html, useAction, useEffect } from "../ui/html.js";
import { Empty, Guide, Notice, Panel } from "../ui/panel.js";
import { RunDetail } from "./run_detail.js";
import { RunsCompare } from "./runs_compare.js";
import { RunsTable } from "./runs_table.js";

const COMPARE = "compare"; // no run has this id: theirs end with a number

export function RunsView({ store, api, rest }) {
  const [first, ...others] = rest;
  if (first === COMPARE) return html`<${RunsCompare} store=${store} api=${api} ids=${others.slice(0, COMPARED_MAX)} />`;
  if (first) return html`<${RunDetail} key=${first} store=${store} api=${api} id=${first} />`;
  return html`<${History} store=${store} api=${api} />`;
}

function History({ store, api }) {
  useRunList(store, api);
  const [busy, , act] = useAction();
  const { items, next, state, error } = runList.value;
  const meta = items.length > 0 && t(next === null ? "runs.count" : "runs.countMore", { n: integer(items.length) });
  return html`
    <${Panel} id="runs" title=${t("runs.title")} meta=${meta} tight className="runs-panel">
      ${items.length > 0 && html`<${Choice} />`}
      ${items.length > 0 && html`<${RunsTable} store=${store} api=${api} runs=${items} />`}
      <div class="panel-rest">
        ${state === "wait" && html`<p class="muted">${t("runs.loading")}</p>`}
        ${state === "ready" &&
        items.length === 0 &&
        html`
          <${Empty} text=${t("runs.empty")} more=${t("runs.empty.more")}>
            <p><a class="button" href=${href("training")}>${t("run.start")}</a></p>
            <${Guide} place="run" />
          <//>
        `}
        ${next !== null &&
        html`
          <button class="button" type="button" disabled=${busy} onClick=${() => act(() => readOlder(api))}>
            ${t("runs.older")}
          </button>
        `}
        <${Notice} error=${error} />
      </div>
    <//>
  `;
}

/** What is chosen to be compared; it stays while other views are shown. */
function Choice() {
  const ids = compared.value;
  const ready = ids.length >= 2;
  return html`
    <div class="choice-bar">
      <span class="muted">${t("runs.choose", { n: ids.length, max: COMPARED_MAX })}</span>
      <span class="buttons">
        ${ready
          ? html`<a id="compare" class="button small" href=${href("runs", COMPARE, ...ids)}>${t("runs.compare")}</a>`
          : html`<button id="compare" class="button small" type="button" disabled>${t("runs.compare")}</button>`}
        <button
          class="button small"
          type="button"
          disabled=${ids.length === 0}
          onClick=${() => (compared.value = [])}
        >
          ${t("runs.clear")}
        </button>
      </span>
    </div>
  `;
}

/** Keep the list true: read it again when a run begins, ends or queues, and once the master is back. */
export function useRunList(store, api) {
  const run = store.run.value;
  const queue = store.queue.value.map(({ id }) => id).join();
  const now = store.isLive.value ? `${run?.id} ${phaseOf(run)} ${queue}` : "";
  useEffect(() => {
    if (now) readRuns(api);
  }, [now]);
}
