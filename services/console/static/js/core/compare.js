// Runs beside each other: their settings and their curves. No elements.

import { curve } from "./curves.js";

export const COMPARED_MAX = 5;
const POINTS_MAX = 1000; // of a curve

/** A specification as a flat list of [name, text]: `inner.lr`, `model.hidden`. */
export function settingsOf(spec, under = "") {
  const found = [];
  for (const [name, value] of Object.entries(spec ?? {})) {
    const path = under + name;
    const isGroup = value !== null && typeof value === "object" && !Array.isArray(value);
    if (isGroup) found.push(...settingsOf(value, `${path}.`));
    else found.push([path, Array.isArray(value) ? value.join(", ") : String(value ?? "")]);
  }
  return found;
}

/** {rows: [{name, values}], same}: the settings in which specifications differ, and how many are the same in all. */
export function differences(specs) {
  const tables = specs.map((spec) => new Map(settingsOf(spec)));
  const names = [...new Set(tables.flatMap((table) => [...table.keys()]))];
  const rows = names.map((name) => ({ name, values: tables.map((table) => table.get(name) ?? null) }));
  const differ = rows.filter(({ values }) => values.some((value) => value !== values[0]));
  return { rows: differ, same: rows.length - differ.length };
}

/** At most POINTS_MAX of some rows, evenly, with the last. */
export function thinned(rows, points = POINTS_MAX) {
  if (rows.length <= points) return rows;
  const step = (rows.length - 1) / (points - 1);
  return Array.from({ length: points }, (_, at) => rows[Math.round(at * step)]);
}

/** One table of several curves: [{x, s0, s1, ...}] by x; `key` is "eval" or "accuracy" of curve(). */
export function overlaid(histories, axis, key) {
  const places = new Map();
  histories.forEach((history, at) => {
    for (const row of thinned(curve(history, axis))) {
      const value = row[key] ?? (key === "eval" ? row.train : null);
      if (!Number.isFinite(value)) continue;
      if (!places.has(row.x)) places.set(row.x, { x: row.x });
      places.get(row.x)[`s${at}`] = value;
    }
  });
  return [...places.values()].sort((a, b) => a.x - b.x);
}
