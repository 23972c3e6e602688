// The table of runs: a row knows its own rounds, so that news of one run touch no other row.

import { COMPARED_MAX } from "../core/compare.js";
import { date, duration, integer, loss, NONE, percent } from "../core/format.js";
import { joined, resultsOf, roundsOf } from "../core/rounds.js";
import { href } from "../core/route.js";
import { phaseOf, PHASES } from "../core/run.js";
import { compared, toggleCompared } from "../core/run_list.js";
import { reasonOf, t } from "../core/text.js";
import { html, useComputed, useEffect, useRef, useState } from "../ui/html.js";
import { Mark } from "../ui/panel.js";
import { Spark } from "../ui/spark.js";
import { Rerun } from "./rerun.js";

const COLUMNS = ["name", "state", "rounds", "loss", "accuracy", "curve", "when"];
const NUMBERS = new Set(["rounds", "loss", "accuracy"]);

export function RunsTable({ store, api, runs }) {
  return html`
    <div class="table-wrap">
      <table class="runs">
        <thead>
          <tr>
            <th scope="col"><span class="hidden">${t("runs.compare")}</span></th>
            ${COLUMNS.map(
              (key) => html`<th key=${key} scope="col" class=${NUMBERS.has(key) && "number"}>${t(`runs.${key}`)}</th>`,
            )}
            <th scope="col"><span class="hidden">${t("runs.actions")}</span></th>
          </tr>
        </thead>
        <tbody>
          ${runs.map((run) => html`<${Row} key=${run.id} store=${store} api=${api} told=${run} />`)}
        </tbody>
      </table>
    </div>
  `;
}

function Row({ store, api, told }) {
  const place = useRef(null);
  const seen = useSeen(place);
  const run = useNow(store, told);
  const { rows, state } = useRounds(store, api, run, seen);
  const name = run.name ?? run.spec?.name ?? run.id;
  const { closed, best, last, seconds } = resultsOf(rows);
  const chosen = compared.value.includes(run.id);
  const phase = phaseOf(run);
  const [glyph, kind] = PHASES[phase] ?? PHASES.IDLE;
  const wait = state === "wait" ? "…" : NONE;
  const reason = reasonOf(run.reason_said, run.reason);
  return html`
    <tr ref=${place} class=${chosen && "chosen"}>
      <td class="pick">
        <input
          type="checkbox"
          aria-label=${t("runs.pick", { name, id: run.id })}
          checked=${chosen}
          disabled=${!chosen && compared.value.length >= COMPARED_MAX}
          onChange=${(event) => toggleCompared(run.id, event.currentTarget.checked)}
        />
      </td>
      <th scope="row" class="name">
        <a href=${href("runs", run.id)}>${name}</a>
        <small>${run.spec?.dataset} · ${run.id}</small>
      </th>
      <td class="state">
        <${Mark} glyph=${glyph} kind=${kind}>${t(`phase.${phase}`)}<//>
        <small class="clamp" title=${reason}>${reason}</small>
      </td>
      <td class="number" data-label=${t("runs.rounds")}>
        ${state === "wait" && closed === 0 ? "…" : integer(run.version ?? closed)}
        <small>${t("runs.of", { total: integer(run.rounds_total ?? run.spec?.rounds) })}</small>
      </td>
      <td class="number" data-label=${t("runs.loss")}>
        ${best ? loss(best.loss) : wait} <small>${last && t("runs.last", { value: loss(last.loss) })}</small>
      </td>
      <td class="number" data-label=${t("runs.accuracy")}>
        ${best ? percent(best.accuracy) : wait}${" "}
        <small>${last && t("runs.last", { value: percent(last.accuracy) })}</small>
      </td>
      <td class="curve" data-label=${t("runs.curve")}><${Curve} rows=${rows} state=${state} /></td>
      <td class="when" data-label=${t("runs.when")}>
        ${date(run.created_at_ms)} <small>${rows.length > 0 && t("runs.took", { time: duration(seconds) })}</small>
      </td>
      <td class="act"><${Rerun} store=${store} api=${api} run=${run} small /></td>
    </tr>
  `;
}

function Curve({ rows, state }) {
  if (state === "wait" && rows.length === 0) return html`<span class="muted">…</span>`;
  if (state === "failed" && rows.length === 0) return html`<span class="muted">${t("runs.noRounds")}</span>`;
  const evaluated = rows.map((row) => row.eval_loss).filter(Number.isFinite);
  const values = evaluated.length > 1 ? evaluated : rows.map((row) => row.train_loss).filter(Number.isFinite);
  const label = t("runs.curve.label", { from: loss(values[0]), to: loss(values.at(-1)), n: rows.length });
  return html`<${Spark} values=${values} label=${label} />`;
}

/** The run as it is now: that of the list, with what the store knows of the one that goes on. */
export function useNow(store, told) {
  const now = useComputed(() => (store.run.value?.id === told.id ? store.run.value : null)).value;
  return now ? { ...told, ...now } : told;
}

/** {rows, state, cut} of a run; fetched once `wanted`, or not at all where the store has them all. */
export function useRounds(store, api, run, wanted = true) {
  const isCurrent = useComputed(() => store.run.value?.id === run.id);
  const history = useComputed(() => (isCurrent.value ? store.history.value : null)).value;
  const hasAll = history !== null && (history.length === 0 || history[0].round === 1);
  if (hasAll) return { rows: history, state: "ready", cut: false };
  if (!wanted) return { rows: history ?? [], state: "wait", cut: false };
  const found = roundsOf(api, run).value;
  return history === null ? found : { ...found, rows: joined(found.rows, history) };
}

/** Whether an element was ever near the part of the page that is seen. */
function useSeen(place) {
  const [seen, see] = useState(false);
  useEffect(() => {
    if (seen) return undefined;
    const watcher = new IntersectionObserver((entries) => entries.some((one) => one.isIntersecting) && see(true), {
      rootMargin: "300px",
    });
    watcher.observe(place.current);
    return () => watcher.disconnect();
  }, [seen]);
  return seen;
}
