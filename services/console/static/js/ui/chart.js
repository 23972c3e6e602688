// A line chart against rounds, in SVG at the size it is shown: crisp, with a cursor for mouse and arrow keys.

import { h, s, setText } from "../core/dom.js";
import { t } from "../core/text.js";
import { decimals, ticks } from "./scale.js";

const MARGIN = { top: 12, right: 14, bottom: 34, left: 54 };
const DOTS_MAX = 40;

/**
 * series: [{key, label, kind: "eval" | "train"}], the first is the main one; format(value) for the readout;
 * bounds: {low, high} that are always shown, either may be null. Returns {node, legend, readout, update(rows)}.
 */
export function createChart({ title, series, format, bounds = {}, axis = (value, digits) => value.toFixed(digits) }) {
  const image = s("svg", { "aria-hidden": "true" });
  const empty = h("div", { class: "void" }, h("span", {}, t("chart.empty")));
  const summary = h("figcaption", { class: "hidden" });
  const spoken = h("span", { class: "hidden", "aria-live": "polite" });
  const node = h(
    "figure",
    { class: "chart", tabindex: "0", role: "group", "aria-label": `${title}. ${t("chart.help")}` },
    image,
    empty,
    summary,
    spoken,
  );
  const readout = h("span");
  let rows = [];
  let frame = null; // the scales last drawn
  let cursor = null; // index into rows

  function draw() {
    const width = node.clientWidth - 8;
    const height = node.clientHeight - 8;
    const shown = rows.filter((row) => series.some(({ key }) => Number.isFinite(row[key])));
    empty.hidden = shown.length > 0;
    if (width < 60 || height < 60) return;
    image.setAttribute("viewBox", `0 0 ${width} ${height}`);
    frame = scales(shown, width, height);
    const lines = shown.length ? series.toReversed().flatMap((one) => line(one, frame)) : [];
    image.replaceChildren(...grid(frame, shown.length ? axis : () => ""), ...lines, ...pointer());
    describe();
  }

  function scales(shown, width, height) {
    const values = shown.flatMap((row) => series.map(({ key }) => row[key])).filter(Number.isFinite);
    const last = shown.length ? shown.at(-1).round : 10;
    const first = shown.length ? shown[0].round : 0;
    const xs = ticks(first <= 10 ? 0 : first, Math.max(last, 1), Math.max(2, Math.min(12, Math.floor(width / 70))), 1);
    const low = Math.min(bounds.low ?? Infinity, ...values);
    const high = Math.max(bounds.high ?? -Infinity, ...values);
    const [bottom, top] = [Number.isFinite(low) ? low : 0, Number.isFinite(high) ? high : 1];
    const ys = ticks(bottom, top, Math.max(2, Math.min(6, Math.floor(height / 42))));
    const x0 = MARGIN.left;
    const x1 = width - MARGIN.right;
    const y0 = height - MARGIN.bottom;
    const y1 = MARGIN.top;
    const xMax = Math.max(last, xs[0] + 1);
    return {
      shown,
      xs: xs.filter((one) => one <= xMax),
      ys,
      x0,
      x1,
      y0,
      y1,
      width,
      height,
      x: (round) => x0 + ((round - xs[0]) / (xMax - xs[0])) * (x1 - x0),
      y: (value) => y0 - ((value - ys[0]) / (ys.at(-1) - ys[0])) * (y0 - y1),
    };
  }

  function pointer() {
    const row = frame.shown[cursor];
    setText(readout, row ? spokenValues(row) : "");
    if (!row) return [];
    const x = Math.round(frame.x(row.round)) + 0.5;
    const dots = series
      .filter(({ key }) => Number.isFinite(row[key]))
      .map(({ key, kind }) => s("circle", { class: `dot s-${kind}`, cx: x, cy: frame.y(row[key]), r: 4 }));
    return [s("line", { class: "cursor", x1: x, x2: x, y1: frame.y1, y2: frame.y0 }), ...dots];
  }

  function spokenValues(row) {
    const values = series.map(({ key, label }) => `${series.length > 1 ? `${label} ` : ""}${format(row[key])}`);
    return `${t("chart.readout", { round: row.round })}: ${values.join(" · ")}`;
  }

  function describe() {
    const { key, label } = series[0];
    const row = rows.findLast((one) => Number.isFinite(one[key]));
    const facts = row && { title, label, value: format(row[key]), round: row.round, n: rows.length };
    setText(summary, facts ? t("chart.summary", facts) : `${title}: ${t("chart.empty")}`);
  }

  function move(event) {
    if (!frame || !frame.shown.length) return;
    const x = event.clientX - image.getBoundingClientRect().left;
    let best = 0;
    frame.shown.forEach((row, at) => {
      if (Math.abs(frame.x(row.round) - x) < Math.abs(frame.x(frame.shown[best].round) - x)) best = at;
    });
    if (best !== cursor) {
      cursor = best;
      draw();
    }
  }

  function step(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (event.key === "Escape") leave();
    if (by === undefined || !frame?.shown.length) return;
    event.preventDefault();
    const last = frame.shown.length - 1;
    cursor = Math.max(0, Math.min(last, (cursor ?? last + (by > 0 ? 0 : 1)) + by));
    draw();
    setText(spoken, spokenValues(frame.shown[cursor]));
  }

  function leave() {
    cursor = null;
    draw();
  }

  node.addEventListener("pointermove", move);
  node.addEventListener("pointerleave", leave);
  node.addEventListener("blur", leave);
  node.addEventListener("keydown", step);
  new ResizeObserver(draw).observe(node);

  return {
    node,
    readout,
    legend: h("span", { class: "legend" }, series.length > 1 ? series.map(key) : []),
    update(next) {
      rows = next;
      draw();
    },
  };
}

function grid(frame, axis) {
  const { xs, ys, x, y, x0, x1, y0, width, height } = frame;
  const digits = decimals(ys);
  const half = (value) => Math.round(value) + 0.5;
  return [
    ...ys.map((one) => s("line", { class: "rule", x1: x0, x2: x1, y1: half(y(one)), y2: half(y(one)) })),
    ...ys.map((one) => s("text", { x: x0 - 8, y: y(one) + 4, "text-anchor": "end" }, axis(one, digits))),
    s("line", { class: "axis", x1: x0, x2: x1, y1: half(y0), y2: half(y0) }),
    ...xs.map((one) => s("line", { class: "axis", x1: half(x(one)), x2: half(x(one)), y1: y0, y2: y0 + 4 })),
    ...xs.map((one) => s("text", { x: x(one), y: y0 + 17, "text-anchor": "middle" }, String(one))),
    s("text", { x: width - 14, y: height - 2, "text-anchor": "end" }, t("chart.x")),
  ];
}

function line({ key, kind }, frame) {
  const points = frame.shown.filter((row) => Number.isFinite(row[key]));
  const places = points.map((row) => `${frame.x(row.round).toFixed(1)},${frame.y(row[key]).toFixed(1)}`);
  const dots = points.length <= DOTS_MAX && (kind === "eval" || points.length === 1) ? points : [];
  return [
    s("polyline", { class: `line s-${kind}`, points: places.join(" ") }),
    ...dots.map((row) =>
      s("circle", { class: `dot s-${kind}`, cx: frame.x(row.round), cy: frame.y(row[key]), r: 2.25 }),
    ),
  ];
}

function key({ label, kind }) {
  const sample = s("svg", { "aria-hidden": "true", class: "chart-key", viewBox: "0 0 22 8" });
  sample.append(s("line", { class: `line s-${kind}`, x1: 0, x2: 22, y1: 4, y2: 4 }));
  return h("span", {}, sample, label);
}
