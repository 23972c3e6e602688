// A small curve without axes, for a row of a table.

import { thinned } from "../core/compare.js";
import { html } from "./html.js";

const WIDTH = 120;
const HEIGHT = 28;
const EDGE = 2;
const POINTS_MAX = 60;

/** `values`: numbers in order, others are left out; `label`: what it shows, in words. */
export function Spark({ values, label }) {
  const known = thinned(values.filter(Number.isFinite), POINTS_MAX);
  if (known.length < 2) return html`<span class="muted" aria-label=${label} role="img">–</span>`;
  const low = Math.min(...known);
  const span = Math.max(...known) - low || 1;
  const x = (at) => EDGE + (at / (known.length - 1)) * (WIDTH - 2 * EDGE);
  const y = (value) => HEIGHT - EDGE - ((value - low) / span) * (HEIGHT - 2 * EDGE);
  const points = known.map((value, at) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  return html`
    <svg class="spark" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label=${label}>
      <polyline points=${points} />
      <circle cx=${x(known.length - 1)} cy=${y(known.at(-1))} r="2" />
    </svg>
  `;
}
