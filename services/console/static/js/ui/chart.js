// A line chart by uPlot (canvas), made readable without seeing it: a sentence, a cursor by arrow keys, a table.

import uPlot from "uplot";
import { prefs } from "../core/prefs.js";
import { language, t } from "../core/text.js";
import { html, useEffect, useRef, useSignal, useState } from "./html.js";

const TABLE_ROWS = 50;
const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000]; // between ticks, where x counts rounds
export const DASHES = { dashed: [5, 4], dotted: [2, 3], long: [12, 4], dashdot: [9, 3, 2, 3] }; // others are solid

/**
 * `series`: [{key, label, color (a CSS variable), dash, width}], the first is the main one; `rows`: objects with `x`
 * and the keys; `format(value)`, `formatTick(value)` at the axis, `formatX(value)`; `bounds`: {low, high} that are
 * always shown, either may be null. A part that the person has zoomed to is held until "follow" is pressed: new rows
 * never move it.
 */
export function Chart({ id, title, series, rows, format, formatTick = format, formatX, axisX, bounds = {} }) {
  const holder = useRef(null);
  const plot = useRef(null);
  const held = useSignal(false);
  const cursor = useSignal(null);
  const [tableOpen, openTable] = useState(false);
  const theme = prefs.theme.value;
  const kind = `${id} ${theme} ${language.value} ${axisX} ${series.map(({ key, label }) => key + label).join()}`;

  useEffect(() => {
    const node = holder.current;
    const options = optionsOf({ node, series, formatTick, formatX, whole: axisX === "round", bounds, held, cursor });
    plot.current = new uPlot(options, columns(rows, series), node);
    const resized = new ResizeObserver(() => plot.current?.setSize(sizeOf(node)));
    resized.observe(node);
    return () => {
      resized.disconnect();
      plot.current.destroy();
      plot.current = null;
    };
  }, [kind]);
  useEffect(() => plot.current?.setData(columns(rows, series), !held.value), [rows]);

  const follow = () => {
    held.value = false;
    plot.current.setData(columns(rows, series), true);
  };
  const walk = (event) => {
    const last = rows.length - 1;
    const at = cursor.value ?? last + 1;
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last }[event.key];
    if (to === undefined || last < 0) return;
    event.preventDefault();
    cursor.value = Math.max(0, Math.min(last, to));
    const x = plot.current.valToPos(rows[cursor.value].x, "x");
    plot.current.setCursor({ left: x, top: 10 }, false);
  };
  const row = rows[cursor.value ?? -1];
  return html`
    <figure id=${id} class="chart" aria-label=${title}>
      <div class="chart-bar">
        <span class="legend" aria-hidden="true">${series.map((one) => html`<${Key} ...${one} />`)}</span>
        <span class="readout">${row ? readout(row, series, format, formatX) : ""}</span>
        ${held.value &&
        html`<button class="button small" type="button" onClick=${follow}>${t("chart.follow")}</button>`}
      </div>
      <div
        class="plot"
        ref=${holder}
        tabindex="0"
        role="application"
        aria-label=${`${title}. ${t("chart.help")}`}
        onKeyDown=${walk}
      ></div>
      ${rows.length === 0 && html`<p class="void"><span>${t("chart.empty")}</span></p>`}
      <figcaption class="hidden">${caption(title, series[0], rows, format, formatX)}</figcaption>
      <span class="hidden" aria-live="polite">${row ? readout(row, series, format, formatX) : ""}</span>
      <details class="chart-table" onToggle=${(event) => openTable(event.currentTarget.open)}>
        <summary>${t("chart.table")}</summary>
        ${tableOpen && html`<${Table} rows=${rows} series=${series} format=${format} formatX=${formatX} />`}
      </details>
    </figure>
  `;
}

function Key({ label, color, dash }) {
  return html`
    <span>
      <svg viewBox="0 0 22 8">
        <line x1="0" x2="22" y1="4" y2="4" stroke=${`var(${color})`} stroke-dasharray=${DASHES[dash]?.join(" ")} />
      </svg>
      ${label}
    </span>
  `;
}

function Table({ rows, series, format, formatX }) {
  return html`
    <table class="plain">
      <thead>
        <tr>
          <th scope="col">${t("chart.x")}</th>
          ${series.map(({ label }) => html`<th scope="col">${label}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows.slice(-TABLE_ROWS).map(
          (row) => html`
            <tr key=${row.x}>
              <th scope="row">${formatX(row.x)}</th>
              ${series.map(({ key }) => html`<td>${format(row[key])}</td>`)}
            </tr>
          `,
        )}
      </tbody>
    </table>
  `;
}

const columns = (rows, series) => [
  rows.map(({ x }) => x),
  ...series.map(({ key }) => rows.map((row) => row[key] ?? null)),
];

const sizeOf = (node) => ({ width: Math.max(60, node.clientWidth), height: Math.max(60, node.clientHeight) });

const readout = (row, series, format, formatX) =>
  `${formatX(row.x)}: ${series.map(({ key, label }) => `${label} ${format(row[key])}`).join(" · ")}`;

function caption(title, { key, label }, rows, format, formatX) {
  const row = rows.findLast((one) => Number.isFinite(one[key]));
  if (!row) return `${title}: ${t("chart.empty")}`;
  return t("chart.summary", { title, label, value: format(row[key]), at: formatX(row.x), n: rows.length });
}

/** @returns {import("uplot").Options} */
function optionsOf({ node, series, formatTick, formatX, whole, bounds, held, cursor }) {
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(name).trim();
  const font = `12px ${color("--mono")}`;
  const incrs = whole ? WHOLE : undefined;
  const axis = { stroke: color("--muted"), font, grid: { stroke: color("--line"), width: 1 }, ticks: { show: false } };
  return {
    ...sizeOf(node),
    legend: { show: false },
    padding: [10, 14, (plot) => (plot.data?.[0].length ? 0 : 10), 0], // without rows there is no axis below
    cursor: { y: false, points: { size: 7 }, drag: { x: true, y: false } },
    scales: {
      x: { time: false },
      y: { range: (_, low, high) => padded(low, high, bounds) },
    },
    axes: [
      {
        ...axis,
        values: (_, ticks) => ticks.map((one) => formatX(one)),
        space: whole ? 70 : 96,
        size: 30,
        gap: 6,
        incrs,
      },
      { ...axis, values: (_, ticks) => ticks.map((one) => formatTick(one)), size: 56, gap: 8 },
    ],
    series: [
      {},
      ...series.map(({ label, color: name, dash, width = 1.75 }) => ({
        label,
        stroke: color(name),
        width,
        dash: DASHES[dash],
        spanGaps: true,
        points: { show: false },
      })),
    ],
    hooks: {
      setSelect: [
        (plot) => {
          if (plot.select.width > 0) held.value = true;
        },
      ],
      setCursor: [
        (plot) => {
          cursor.value = plot.cursor.idx ?? null;
        },
      ],
    },
  };
}

/**
 * From the lowest to the highest value, with a little room, and `bounds` always inside.
 * @returns {[number, number]}
 */
function padded(low, high, bounds) {
  const bottom = Math.min(low ?? Infinity, bounds.low ?? Infinity);
  const top = Math.max(high ?? -Infinity, bounds.high ?? -Infinity);
  if (!Number.isFinite(bottom) || !Number.isFinite(top)) return [bounds.low ?? 0, bounds.high ?? 1];
  const room = (top - bottom || Math.abs(top) || 1) * 0.05;
  return [bottom === bounds.low ? bottom : bottom - room, top === bounds.high ? top : top + room];
}
