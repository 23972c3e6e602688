// One run: what it was and how it went, its curves, evaluations, settings and checkpoints; to train again, to export.

import { settingsOf } from "../core/compare.js";
import { curve } from "../core/curves.js";
import { saveJson } from "../core/download.js";
import { bytes, date, duration, integer, loss, percent, short } from "../core/format.js";
import { prefs } from "../core/prefs.js";
import { forgetRounds, resultsOf } from "../core/rounds.js";
import { href } from "../core/route.js";
import { phaseOf, PHASES } from "../core/run.js";
import { reasonOf, t } from "../core/text.js";
import { Chart } from "../ui/chart.js";
import { html, useEffect, useMemo, useSignal } from "../ui/html.js";
import { Figures, Guide, Mark, Notice, Panel } from "../ui/panel.js";
import { Axis, formatX } from "./axis.js";
import { Checkpoints } from "./checkpoints.js";
import { Rerun } from "./rerun.js";
import { useNow, useRounds } from "./runs_table.js";

const EVALUATIONS_MAX = 100; // shown, the latest; all are in the export

export function RunDetail({ store, api, id }) {
  const told = useSignal(null);
  const failed = useSignal(null);
  const isCurrent = store.run.value?.id === id;
  useEffect(() => {
    api.run(id).then(
      (run) => (told.value = run),
      (error) => (failed.value = error),
    );
  }, [id, isCurrent]);
  const run = told.value ?? (isCurrent ? store.run.value : null);
  return html`
    <p><a href=${href("runs")}>← ${t("runs.all")}</a></p>
    ${run
      ? html`<${Detail} store=${store} api=${api} told=${run} />`
      : html`
          <${Panel} id="run-detail" title=${id}>
            <${Notice} error=${failed.value} />${!failed.value && html`<p class="muted">${t("runs.loading")}</p>`}
          <//>
        `}
  `;
}

function Detail({ store, api, told }) {
  const run = useNow(store, told);
  const again = useSignal(0);
  const found = useRounds(store, api, run);
  const { rows } = found;
  const points = useMemo(() => curve(rows, prefs.axis.value), [rows, prefs.axis.value]);
  const results = useMemo(() => resultsOf(rows), [rows]);
  const phase = phaseOf(run);
  const [glyph, kind] = PHASES[phase] ?? PHASES.IDLE;
  const retry = () => {
    forgetRounds(run);
    again.value += 1;
  };
  const exported = () => saveJson({ run, rounds: rows }, `mahe-${run.id}.json`);
  return html`
    <${Panel} id="run-detail" title=${run.name ?? run.spec?.name ?? run.id} meta=${`${run.spec?.dataset} · ${run.id}`}>
      <p class="run-line">
        <span class="phase"><${Mark} glyph=${glyph} kind=${kind}>${t(`phase.${phase}`)}<//></span>
        <span class="reason">${reasonOf(run.reason_said, run.reason)}</span>
      </p>
      <${Figures} items=${figures(run, results)} />
      ${found.cut && html`<p class="muted">${t("runs.cut")}</p>`}
      ${found.state === "failed" &&
      html`
        <p class="notice warn" data-again=${again.value}>
          ${t("runs.noRounds")} <button class="button small" type="button" onClick=${retry}>${t("runs.retry")}</button>
        </p>
      `}
      <div class="buttons run-buttons">
        <${Rerun} store=${store} api=${api} run=${run} />
        <button class="button" type="button" disabled=${found.state !== "ready"} onClick=${exported}>
          ${t("runs.export")}
        </button>
      </div>
    <//>
    <${Curves} points=${points} />
    <div class="pair">
      <${Evaluations} rows=${rows} best=${results.best} />
      <${Settings} spec=${run.spec} />
    </div>
    <div class="pair">
      <${Checkpoints} store=${store} api=${api} run=${run} />
      <${Panel} id="confusion" title=${t("runs.confusion")}>
        <p class="muted">${t("runs.confusion.later")}</p>
        <${Guide} />
      <//>
    </div>
  `;
}

function figures(run, { closed, best, last, seconds, bytes: sent }) {
  const of = (key, value, unit, note) => ({ key, label: t(`runs.${key}`), value, unit, note });
  const lastOf = (value) => last && t("runs.last", { value });
  return [
    of("rounds", integer(run.version ?? closed), t("run.of", { total: integer(run.rounds_total ?? run.spec?.rounds) })),
    of("loss.best", loss(best?.loss), "", lastOf(loss(last?.loss))),
    of("accuracy.best", percent(best?.accuracy), "", lastOf(percent(last?.accuracy))),
    of("time", duration(seconds), "", t("runs.begun", { date: date(run.created_at_ms) })),
    of("bytes", bytes(sent)),
  ];
}

function Curves({ points }) {
  const lossSeries = [
    { key: "eval", label: t("chart.eval"), color: "--accent" },
    { key: "train", label: t("chart.train"), color: "--muted", dash: "dashed" },
  ];
  const common = { rows: points, formatX, axisX: prefs.axis.value };
  return html`
    <div class="pair">
      <${Panel} id="run-loss" title=${t("chart.loss")} meta=${html`<${Axis} />`}>
        <${Chart}
          id="run-loss-chart"
          title=${t("chart.loss")}
          series=${lossSeries}
          format=${loss}
          formatTick=${short}
          bounds=${{ low: 0 }}
          ...${common}
        />
      <//>
      <${Panel} id="run-accuracy" title=${t("chart.accuracy")}>
        <${Chart}
          id="run-accuracy-chart"
          title=${t("chart.accuracy")}
          series=${[{ key: "accuracy", label: t("chart.eval"), color: "--accent" }]}
          format=${percent}
          formatTick=${(value) => percent(value, 0)}
          bounds=${{ low: 0, high: 1 }}
          ...${common}
        />
      <//>
    </div>
  `;
}

function Evaluations({ rows, best }) {
  const all = rows.filter((row) => Number.isFinite(row.eval_loss));
  const shown = all.slice(-EVALUATIONS_MAX).reverse();
  const meta = all.length > 0 && t("runs.evaluations.count", { n: integer(all.length) });
  return html`
    <${Panel} id="evaluations" title=${t("runs.evaluations")} meta=${meta} tight>
      ${all.length === 0 && html`<p class="panel-rest muted">${t("runs.evaluations.empty")}</p>`}
      ${all.length > 0 &&
      html`
        <div class="scroll-table" tabindex="0" role="group" aria-label=${t("runs.evaluations")}>
          <table class="plain">
            <thead>
              <tr>
                ${["round", "loss", "accuracy"].map((key) => html`<th key=${key} scope="col">${t(`run.${key}`)}</th>`)}
              </tr>
            </thead>
            <tbody>
              ${shown.map(
                (row) => html`
                  <tr key=${row.round} class=${row.round === best?.round && "best"}>
                    <th scope="row">
                      ${integer(row.round)}${" "}
                      ${row.round === best?.round && html`<span class="good">${t("checkpoints.best")}</span>`}
                    </th>
                    <td>${loss(row.eval_loss)}</td>
                    <td>${percent(row.eval_accuracy)}</td>
                  </tr>
                `,
              )}
            </tbody>
          </table>
        </div>
      `}
    <//>
  `;
}

function Settings({ spec }) {
  return html`
    <${Panel} id="run-settings" title=${t("runs.settings")} tight>
      <div class="scroll-table" tabindex="0" role="group" aria-label=${t("runs.settings")}>
        <table class="plain settings">
          <tbody>
            ${settingsOf(spec).map(
              ([name, value]) => html`
                <tr key=${name}>
                  <th scope="row"><code>${name}</code></th>
                  <td>${value}</td>
                </tr>
              `,
            )}
          </tbody>
        </table>
      </div>
    <//>
  `;
}
