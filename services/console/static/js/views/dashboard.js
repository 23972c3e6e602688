// The first view: what happens now and why, the curves, what the cluster brings; and how to begin when nothing does.

import { bytes, integer, loss as lossText, percent, rate, short } from "../core/format.js";
import { bytesSaved, curve } from "../core/curves.js";
import { prefs } from "../core/prefs.js";
import { isActive, speedOf } from "../core/run.js";
import { t } from "../core/text.js";
import { Chart } from "../ui/chart.js";
import { html, useComputed } from "../ui/html.js";
import { Figures, Panel } from "../ui/panel.js";
import { Axis, formatX } from "./axis.js";
import { Begin } from "./begin.js";
import { RunNow } from "./run_now.js";

export function DashboardView({ store, api, say }) {
  const rows = useComputed(() => curve(store.history.value, prefs.axis.value));
  const run = store.run.value;
  return html`
    ${!isActive(run) && html`<${Begin} store=${store} api=${api} />`}
    <${RunNow} store=${store} api=${api} say=${say} />
    <div class="pair">
      <${Panel} id="loss" title=${t("chart.loss")} meta=${html`<${Axis} />`}>
        <${Chart}
          id="loss-chart"
          title=${t("chart.loss")}
          rows=${rows.value}
          series=${lossSeries()}
          format=${lossText}
          formatTick=${short}
          formatX=${formatX}
          axisX=${prefs.axis.value}
          bounds=${{ low: 0 }}
        />
      <//>
      <${Panel} id="accuracy" title=${t("chart.accuracy")} meta=${html`<${Smooth} />`}>
        <${Chart}
          id="accuracy-chart"
          title=${t("chart.accuracy")}
          rows=${rows.value}
          series=${accuracySeries()}
          format=${percent}
          formatTick=${(value) => percent(value, 0)}
          formatX=${formatX}
          axisX=${prefs.axis.value}
          bounds=${{ low: 0, high: 1 }}
        />
      <//>
    </div>
    <div class="pair">
      <${Savings} store=${store} />
      <${Speed} store=${store} />
    </div>
  `;
}

function lossSeries() {
  const raw = [
    { key: "eval", label: t("chart.eval"), color: "--accent" },
    { key: "train", label: t("chart.train"), color: "--muted", dash: "dashed" },
  ];
  const smooth = { key: "smooth", label: t("chart.smooth"), color: "--text", dash: "dotted" };
  return prefs.smooth.value ? [...raw, smooth] : raw;
}

function accuracySeries() {
  const raw = [{ key: "accuracy", label: t("chart.eval"), color: "--accent" }];
  const smooth = { key: "smoothAccuracy", label: t("chart.smooth"), color: "--text", dash: "dotted" };
  return prefs.smooth.value ? [...raw, smooth] : raw;
}

function Smooth() {
  return html`
    <label class="inline">
      <input
        id="smooth"
        type="checkbox"
        checked=${prefs.smooth.value}
        onChange=${(event) => (prefs.smooth.value = event.currentTarget.checked)}
      />
      ${" "}${t("chart.smooth")}
    </label>
  `;
}

function Savings({ store }) {
  const run = store.run.value;
  const found = bytesSaved(store.history.value, run);
  const facts = found && { n: integer(run.n_parameters), steps: integer(found.steps), all: bytes(found.perStep) };
  return html`
    <${Panel} id="savings" title=${t("savings.title")}>
      ${found
        ? html`
            <${Figures}
              items=${[
                { key: "ratio", label: t("savings.ratio"), value: `${rate(found.ratio)} ×` },
                { key: "sent", label: t("savings.sent"), value: bytes(found.sent) },
                { key: "step", label: t("savings.perStep"), value: bytes(found.perStep) },
              ]}
            />
            <p class="formula muted">
              ${t("savings.formula", facts)}
            </p>
          `
        : html`<p class="empty">${t("savings.empty")}</p>`}
    <//>
  `;
}

function Speed({ store }) {
  const found = speedOf(store.history.value, store.workers.value);
  const unit = t("speed.unit");
  return html`
    <${Panel} id="speed" title=${t("speed.title")}>
      ${found
        ? html`
            <${Figures}
              items=${[
                { key: "times", label: t("speed.times"), value: `${rate(found.times)} ×` },
                { key: "all", label: t("speed.all"), value: rate(found.samplesPerS), unit },
                { key: "best", label: t("speed.best"), value: rate(found.best), unit, note: found.name },
              ]}
            />
            <p class="formula muted">${t("speed.formula")}</p>
          `
        : html`<p class="empty">${t("speed.empty")}</p>`}
    <//>
  `;
}
