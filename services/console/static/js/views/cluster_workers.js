// Every worker: in an order and with a filter that the person chose; sending one away, or all.

import { integer } from "../core/format.js";
import { href } from "../core/route.js";
import { isActive } from "../core/run.js";
import { reasonOf, t } from "../core/text.js";
import { sorted, SORTS, stateOf } from "../core/workers.js";
import { confirm } from "../ui/dialog.js";
import { classes, html, signal, useAction, useComputed, useEffect, useRef, useSignal } from "../ui/html.js";
import { Empty, Notice, Panel } from "../ui/panel.js";
import { useSeconds } from "../ui/seconds.js";
import { WorkerRow } from "./worker_row.js";

const FILTER_FROM = 13; // workers
const COLUMNS = ["name", "state", "lamps", "cores", "speed", "link", "share", "done"];
const NUMBERS = ["cores", "speed", "link", "share", "done"];
const sort = signal(SORTS[0]); // both as they were chosen, as long as the page is open
const filter = signal("");

export function Workers({ store, api, say }) {
  const [, fault, act] = useAction();
  const told = useSignal("");
  const second = useSeconds(store);
  useLost(store.workers.value, say);
  const workers = store.workers.value;
  const trains = useComputed(() => isActive(store.run.value));
  const samples = useComputed(() => store.workers.value.reduce((sum, one) => sum + (one.samples_total || 0), 0));
  const shown = sorted(workers.filter(matches), sort.value);

  const send = (question, work, outcome) => async () => {
    if (!(await confirm(question.title, question.text, t("workers.remove.yes")))) return;
    told.value = "";
    await act(async () => {
      await work();
      told.value = outcome;
    });
    document.getElementById("workers")?.focus(); // the button that was pressed may be gone
  };
  const remove = ({ id, name }) =>
    send(
      { title: t("workers.remove.title", { name }), text: t("workers.remove.text") },
      () => api.removeWorker(id),
      t("workers.removed", { name }),
    )();
  const removeAll = send(
    { title: t("workers.remove.all.title", { n: workers.length }), text: t("workers.remove.all.text") },
    () => api.removeAllWorkers(),
    t("workers.removed.all"),
  );
  return html`
    <${Panel} id="workers" title=${t("workers.title")} meta=${about(workers)} tight=${true} className="workers-panel">
      ${workers.length > 1 && html`<${Tools} n=${workers.length} shown=${shown.length} removeAll=${removeAll} />`}
      <${Notice} error=${fault.value} />
      <${Notice} text=${told.value} kind="good" />
      ${workers.length === 0
        ? html`<div class="panel-body"><${NoWorkers} known=${store.known.value} /></div>`
        : html`<${Table} ...${{ shown, store, second, trains, samples, remove }} />`}
      ${workers.length > 0 && shown.length === 0 && html`<p class="panel-body empty">${t("workers.filter.none")}</p>`}
    <//>
  `;
}

function Table({ shown, store, second, trains, samples, remove }) {
  const head = (key) => classes(key, { number: NUMBERS.includes(key) });
  return html`
    <table class="workers" hidden=${shown.length === 0}>
      <thead>
        <tr>
          ${COLUMNS.map((key) => html`<th scope="col" class=${head(key)}>${t(`workers.${key}`)}</th>`)}
          <th scope="col" class="act"><span class="hidden">${t("workers.act")}</span></th>
        </tr>
      </thead>
      <tbody>
        ${shown.map(
          (worker) => html`<${WorkerRow} key=${worker.id} ...${{ worker, store, second, trains, samples, remove }} />`,
        )}
      </tbody>
    </table>
  `;
}

function Tools({ n, shown, removeAll }) {
  const filtered = filter.value !== "";
  return html`
    <div class="workers-tools">
      <label class="inline">
        ${t("workers.sort")}
        <select id="workers-sort" value=${sort.value} onChange=${(event) => (sort.value = event.currentTarget.value)}>
          ${SORTS.map(
            (key) => html`<option value=${key} selected=${key === sort.value}>${t(`workers.sort.${key}`)}</option>`,
          )}
        </select>
      </label>
      ${(n >= FILTER_FROM || filtered) &&
      html`
        <label class="inline">
          ${t("workers.filter")}
          <input
            id="workers-filter"
            type="search"
            autocomplete="off"
            value=${filter.value}
            onInput=${(event) => (filter.value = event.currentTarget.value)}
          />
        </label>
        <span class="muted" role="status">${filtered ? t("workers.filter.shown", { shown, n }) : ""}</span>
      `}
      <button class="button small danger" type="button" onClick=${removeAll}>${t("workers.remove.all")}</button>
    </div>
  `;
}

/** What to do first. */
function NoWorkers({ known }) {
  if (!known) return html`<${Empty} text=${t("workers.unknown")} />`;
  return html`
    <${Empty} text=${t("workers.empty")}>
      <ol class="steps">
        <li>${t("workers.empty.1")}${" "}<a href=${href("deploy")}>${t("workers.empty.how")}</a></li>
        <li>${t("workers.empty.2")}</li>
        <li>${t("workers.empty.3")}</li>
      </ol>
      <p>${t("guide.where", { file: t("guide.file") })}</p>
    <//>
  `;
}

function about(workers) {
  if (workers.length === 0) return "";
  const here = workers.filter(({ link }) => link === "LINKED");
  const cores = here.reduce((sum, worker) => sum + (worker.threads || worker.cores || 0), 0);
  return t("workers.count", { here: integer(here.length), all: integer(workers.length), cores: integer(cores) });
}

function matches(worker) {
  const wanted = filter.value.trim().toLowerCase();
  if (!wanted) return true;
  const reason = reasonOf(worker.reason_said, worker.reason);
  const texts = [worker.name, worker.platform, reason, t(`workers.state.${stateOf(worker).name}`)];
  return texts.some((text) => (text || "").toLowerCase().includes(wanted));
}

/** A worker that is lost is read out when it happens. */
function useLost(workers, say) {
  const before = useRef(new Map());
  useEffect(() => {
    for (const { id, name, link } of workers) {
      const was = before.current.get(id);
      if (link === "LOST" && was !== undefined && was !== "LOST") say(t("workers.lost", { name }));
    }
    before.current = new Map(workers.map(({ id, link }) => [id, link]));
  }, [workers]);
}
