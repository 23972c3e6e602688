// What a chart of a run is drawn against: rounds, time or bytes, as the person last chose anywhere.

import { AXES } from "../core/curves.js";
import { bytes, duration, integer } from "../core/format.js";
import { prefs } from "../core/prefs.js";
import { t } from "../core/text.js";
import { html } from "../ui/html.js";

/** A place on the axis as it is chosen; there is no half round. */
export function formatX(value) {
  const axis = prefs.axis.value;
  if (axis === "time") return duration(value);
  if (axis === "bytes") return bytes(value);
  return Number.isInteger(value) ? t("chart.round", { round: integer(value) }) : "";
}

export function Axis() {
  return html`
    <label class="inline">
      ${t("chart.against")}${" "}
      <select id="axis" value=${prefs.axis.value} onChange=${(event) => (prefs.axis.value = event.currentTarget.value)}>
        ${AXES.map(
          (one) => html`<option value=${one} selected=${one === prefs.axis.value}>${t(`chart.axis.${one}`)}</option>`,
        )}
      </select>
    </label>
  `;
}
