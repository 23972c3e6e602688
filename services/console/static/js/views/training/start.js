// The form that starts a run: preset and data set fill it, each value can be overridden, faults stand at their field.

import { isActive } from "../../core/run.js";
import { t } from "../../core/text.js";
import { batch, classes, html, useAction, useEffect, useRef, useSignal } from "../../ui/html.js";
import { Notice, Panel, Warnings } from "../../ui/panel.js";
import { DataSets, Presets } from "./cards.js";
import { AGGREGATORS, BALANCES, ENCODINGS, IN_FLIGHT, INNER, OUTER, OWN, warningOf } from "./choices.js";
import { Estimate } from "./estimate.js";
import { advancedOpen, catalog, dataset, faults, isChanged, outcome, reading, readCatalog } from "./form.js";
import { restoreAll, texts, typed, valueOf } from "./form.js";
import { FromRun, useFromRun } from "./from_run.js";
import { ModelFile } from "./model_file.js";
import { placed } from "./reading.js";
import { Setting } from "./setting.js";

const CHOICES = {
  encoding: ENCODINGS,
  outer: Object.keys(OUTER),
  inner: INNER,
  aggregator: AGGREGATORS,
  balance: BALANCES,
  rounds_in_flight: IN_FLIGHT,
};
const MAIN = ["rounds", "k_steps", "batch", "min_workers"];
const ADVANCED = [
  ...["encoding", "outer", "inner", "lr", "hidden", "aggregator", "balance", "rounds_in_flight"],
  ...["patience", "minutes_max", "model_every", "k_auto"],
];
const HINTED = ["hidden", "patience", "minutes_max", "model_every", "k_auto"];

export function StartPanel({ store, api, from }) {
  const live = store.isLive.value;
  const filling = useFromRun(api, live, from);
  const form = useRef(null);
  const toFault = useSignal(0);
  const [busy, , act] = useAction();
  useEffect(() => {
    if (live && catalog.value.at === null) readCatalog(api);
  }, [live]);
  useEffect(() => {
    if (toFault.value) form.current.querySelector("[aria-invalid=true]")?.focus();
  }, [toFault.value]);

  function show(found, result) {
    batch(() => {
      faults.value = found;
      outcome.value = result;
      if (Object.keys(found).length === 0) return;
      if (ADVANCED.some((key) => key in found)) advancedOpen.value = true;
      toFault.value += 1;
    });
  }

  async function start() {
    const { spec, faults: found } = reading.value;
    if (!dataset.value) found.dataset = { say: "start.dataset.choose" };
    if (Object.keys(found).length > 0) {
      show(found, null);
      return;
    }
    show({}, null);
    try {
      show({}, await api.createRun(spec));
    } catch (error) {
      const { faults: told, whole } = placed(error);
      show(told, whole ? { error } : null);
    }
  }

  const submit = (event) => {
    event.preventDefault();
    if (live && !filling) act(start);
  };
  return html`
    <${Panel} id="start" title=${t("start.title")} meta=${html`<${Changes} />`}>
      <form ref=${form} class="start-form" novalidate aria-labelledby="start-title" onSubmit=${submit}>
        <${FromRun} />
        <${DataSets} api=${api} live=${live} />
        <${Presets} />
        <${Settings} api=${api} />
        <${Warning} />
        <${Estimate} store=${store} api=${api} />
        <div class="buttons form-foot">
          <button class="button primary" type="submit" disabled=${!live || filling} aria-busy=${busy.value}>
            ${t("start.submit")}
          </button>
          <span class="muted">${live ? html`<${Turn} store=${store} />` : t("start.offline")}</span>
        </div>
        <${Outcome} />
      </form>
    <//>
  `;
}

function Settings({ api }) {
  return html`
    <div class="fields">${MAIN.map((name) => html`<${Setting} key=${name} name=${name} />`)}</div>
    <div class="fields roomy">
      <${Setting} name="name" />
      <${ModelFile} api=${api} />
    </div>
    <details
      class="more"
      open=${advancedOpen.value}
      onToggle=${(event) => (advancedOpen.value = event.currentTarget.open)}
    >
      <summary>${t("start.advanced")}</summary>
      <div class="fields roomy">
        ${ADVANCED.map(
          (name) => html`<${Setting} key=${name} name=${name} choices=${choicesOf(name)} hint=${hintOf(name)} />`,
        )}
      </div>
    </details>
  `;
}

/** The choices of a field; those of the outer optimizer have its own values where it has other ones. */
function choicesOf(name) {
  return name === "outer" && texts.value.outer === OWN ? [OWN, ...CHOICES.outer] : CHOICES[name];
}

function hintOf(name) {
  if (CHOICES[name]) return valueOf(name) ? t(`start.${name}.${valueOf(name)}.more`) : "";
  return HINTED.includes(name) ? t(`start.${name}.hint`) : "";
}

/** How many values are by hand, and the way back for all of them. */
function Changes() {
  const n = Object.keys(typed.value).filter((key) => key !== "name" && isChanged(key)).length;
  if (n === 0) return null;
  return html`
    ${t("start.changes", { n })}${" "}
    <button class="button small" type="button" onClick=${restoreAll}>${t("start.backAll")}</button>
  `;
}

/** Momentum that is too long for so few rounds. */
function Warning() {
  const sentence = warningOf(valueOf("outer"), Number(valueOf("rounds")));
  return html`<div role="status">${sentence && html`<p class="notice warn">△ ${sentence}</p>`}</div>`;
}

/** When the run would begin. A part of its own, so that events do not draw the form anew. */
function Turn({ store }) {
  const waiting = store.queue.value.length;
  return isActive(store.run.value) || waiting ? t("start.queues", { n: waiting + 1 }) : null;
}

function Outcome() {
  const told = outcome.value;
  if (!told) return null;
  if (told.error) return html`<${Notice} error=${told.error} />`;
  const { run, position } = told;
  const text = position ? t("start.queued", { run, position }) : t("start.sent", { run });
  return html`
    <p class=${classes("notice", position ? "muted" : "good")} role="status">✓ ${text}</p>
    <${Warnings} sentences=${told.warnings} />
  `;
}
