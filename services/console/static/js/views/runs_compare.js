// Up to five runs beside each other: their curves in one chart, their results, and the settings in which they differ.

import { differences, overlaid } from "../core/compare.js";
import { bytes, duration, integer, loss, NONE, percent, short } from "../core/format.js";
import { prefs } from "../core/prefs.js";
import { resultsOf } from "../core/rounds.js";
import { href } from "../core/route.js";
import { phaseOf } from "../core/run.js";
import { t } from "../core/text.js";
import { Chart, DASHES } from "../ui/chart.js";
import { html, useEffect, useSignal } from "../ui/html.js";
import { Empty, Notice, Panel } from "../ui/panel.js";
import { Axis, formatX } from "./axis.js";
import { useNow, useRounds } from "./runs_table.js";

const LOOKS = [
  { color: "--accent", dash: "solid" },
  { color: "--text", dash: "dashed" },
  { color: "--series-3", dash: "dotted" },
  { color: "--series-4", dash: "long" },
  { color: "--series-5", dash: "dashdot" },
];

export function RunsCompare({ store, api, ids }) {
  const runs = useSignal({}); // id -> run as the console tells it
  const failed = useSignal(null);
  useEffect(() => {
    for (const id of ids) read(id);
  }, [ids.join("/")]);

  async function read(id) {
    try {
      const run = await api.run(id);
      runs.value = { ...runs.value, [id]: run };
    } catch (error) {
      failed.value = error;
    }
  }

  const found = ids.map((id) => runs.value[id]).filter(Boolean);
  return html`
    <p><a href=${href("runs")}>← ${t("runs.all")}</a></p>
    <${Notice} error=${failed.value} />
    ${found.length >= 2
      ? html`<${Beside} key=${found.map(({ id }) => id).join("/")} store=${store} api=${api} told=${found} />`
      : html`<${Panel} id="runs" title=${t("runs.compare.title")}><${Empty} text=${t("runs.compare.empty")} /><//>`}
  `;
}

/** Each run with its rounds. The number of runs does not change while this is mounted: hooks count. */
function Beside({ store, api, told }) {
  const metric = useSignal("eval");
  const runs = told.map((run) => useNow(store, run));
  const rounds = runs.map((run) => useRounds(store, api, run));
  const results = rounds.map(({ rows }) => resultsOf(rows));
  return html`
    <${Panel}
      id="compare-curves"
      title=${t("runs.compare.curves")}
      meta=${html`<${Metric} metric=${metric} /> <${Axis} />`}
    >
      <${Chart}
        id="compare-chart"
        title=${t(metric.value === "eval" ? "chart.loss" : "chart.accuracy")}
        rows=${overlaid(rounds.map(({ rows }) => rows), prefs.axis.value, metric.value)}
        series=${runs.map((run, at) => ({ key: `s${at}`, label: nameOf(run), ...LOOKS[at] }))}
        format=${metric.value === "eval" ? loss : percent}
        formatTick=${metric.value === "eval" ? short : (value) => percent(value, 0)}
        formatX=${formatX}
        axisX=${prefs.axis.value + metric.value}
        bounds=${metric.value === "eval" ? { low: 0 } : { low: 0, high: 1 }}
      />
      ${rounds.some(({ state }) => state === "failed") && html`<${Notice} text=${t("runs.noRounds")} kind="warn" />`}
      ${rounds.some(({ cut }) => cut) && html`<p class="muted">${t("runs.cut")}</p>`}
    <//>
    <${Panel} id="compare-results" title=${t("runs.compare.results")} tight>
      <${Table} runs=${runs} rows=${resultRows(runs, results)} />
    <//>
    <${Settings} runs=${runs} />
  `;
}

function Metric({ metric }) {
  return html`
    <label class="inline">
      <span class="hidden">${t("runs.metric")}</span>
      <select id="metric" value=${metric.value} onChange=${(event) => (metric.value = event.currentTarget.value)}>
        <option value="eval" selected=${metric.value === "eval"}>${t("chart.loss")}</option>
        <option value="accuracy" selected=${metric.value === "accuracy"}>${t("chart.accuracy")}</option>
      </select>
    </label>
  `;
}

function Settings({ runs }) {
  const { rows, same } = differences(runs.map(({ spec }) => spec));
  const told = rows.map(({ name, values }) => ({ name, code: true, values: values.map((value) => value ?? NONE) }));
  return html`
    <${Panel}
      id="compare-settings"
      title=${t("runs.compare.settings")}
      meta=${t("runs.compare.same", { n: same })}
      tight
    >
      ${rows.length > 0
        ? html`<${Table} runs=${runs} rows=${told} />`
        : html`<p class="panel-rest muted">${t("runs.compare.noDifference")}</p>`}
    <//>
  `;
}

function Table({ runs, rows }) {
  return html`
    <div class="table-wrap" tabindex="0" role="group" aria-label=${t("runs.compare.title")}>
      <table class="beside" style=${{ minWidth: `${8 + 8 * runs.length}em` }}>
        <thead>
          <tr>
            <td></td>
            ${runs.map(
              (run, at) => html`
                <th key=${run.id} scope="col">
                  <${Swatch} ...${LOOKS[at]} /><a href=${href("runs", run.id)}>${nameOf(run)}</a>
                </th>
              `,
            )}
          </tr>
        </thead>
        <tbody>
          ${rows.map(
            ({ name, code, values, best }) => html`
              <tr key=${name}>
                <th scope="row">${code ? html`<code>${name}</code>` : name}</th>
                ${values.map(
                  (value, at) => html`
                    <td key=${at}>
                      ${value}${best === at && html`<small class="good"> ★ ${t("runs.compare.best")}</small>`}
                    </td>
                  `,
                )}
              </tr>
            `,
          )}
        </tbody>
      </table>
    </div>
  `;
}

function Swatch({ color, dash }) {
  return html`
    <svg class="swatch" viewBox="0 0 22 8" aria-hidden="true">
      <line x1="0" x2="22" y1="4" y2="4" stroke=${`var(${color})`} stroke-dasharray=${DASHES[dash]?.join(" ")} />
    </svg>
  `;
}

/** Two runs may have one name: with its id a run is told from the others. */
const nameOf = (run) => {
  const name = run.name ?? run.spec?.name ?? run.id;
  return name === run.id ? name : `${name} (${run.id})`;
};

function resultRows(runs, results) {
  const row = (key, values, best) => ({ name: t(`runs.${key}`), values, best });
  const of = (pick) => results.map(pick);
  return [
    row("state", runs.map((run) => t(`phase.${phaseOf(run)}`))),
    row("rounds", of(({ closed }) => integer(closed))),
    row("loss.best", of(({ best }) => loss(best?.loss)), leading(of(({ best }) => best?.loss), -1)),
    row("loss.last", of(({ last }) => loss(last?.loss))),
    row("accuracy.best", of(({ best }) => percent(best?.accuracy)), leading(of(({ best }) => best?.accuracy), 1)),
    row("accuracy.last", of(({ last }) => percent(last?.accuracy))),
    row("time", of(({ seconds }) => duration(seconds))),
    row("bytes", of((one) => bytes(one.bytes))),
    row("samples", of(({ samples }) => integer(samples))),
  ];
}

/** Where the largest value times `sign` stands; null when two share it or none is known. */
function leading(values, sign) {
  const known = values.filter(Number.isFinite);
  if (known.length < 2) return null;
  const best = sign * Math.max(...known.map((value) => sign * value));
  return values.filter((value) => value === best).length === 1 ? values.indexOf(best) : null;
}
