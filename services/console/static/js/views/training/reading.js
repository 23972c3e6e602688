// From what stands in the form to a specification, and from faults to the fields where they are shown. No elements.

import { integer } from "../../core/format.js";
import { FRACTIONS, LIMITS, OUTER, weighsAlike } from "./choices.js";

const WORDS = ["encoding", "aggregator", "balance"];
const OWN = ["preset", "dataset", "name", "inner", "outer", "lr", "hidden", "model_path", "k_auto", "rounds_in_flight"];
// The field of the form where the fault of a field of the specification is shown.
const PLACES = {
  ...Object.fromEntries([...Object.keys(LIMITS), ...WORDS, ...OWN].map((key) => [key, key])),
  k_steps_max: "k_auto",
  units: "balance",
  clip: "aggregator",
  trim: "aggregator",
  model: "hidden",
  mu: "outer",
};
const NAMED = /[a-z_]+(?:\.[a-z_]+)*/g; // a field or the path of one, in a sentence

/** A number as people type it, also by a Chinese keyboard; NaN when it is none. */
const numberOf = (text) => (text.trim() === "" ? NaN : Number(text.normalize("NFKC").trim()));

/**
 * {spec, faults}: the request for what the form holds. It names what was typed and no more, so that the console fills
 * in the rest; with `base`, the specification of a run, it is that one with what was typed. `faults` {field: {say,
 * values}} has what is not even a number.
 */
export function read({ dataset, preset, base, typed, texts }) {
  const faults = {};
  const spec = { ...(base ?? { preset }), dataset, name: (typed.name ?? texts.name).trim() || dataset };
  const has = (key) => key in typed;
  for (const [key, [low, high]] of Object.entries(LIMITS)) {
    if (!has(key)) continue;
    spec[key] = numberOf(typed[key]);
    const fits = FRACTIONS.includes(key) ? Number.isFinite(spec[key]) : Number.isInteger(spec[key]);
    if (fits && spec[key] >= low && spec[key] <= high) continue;
    const say = FRACTIONS.includes(key) ? "start.range" : "start.whole";
    faults[key] = { say, values: { low: integer(low), high: integer(high) } };
  }
  for (const key of WORDS) if (has(key)) spec[key] = typed[key];
  if (weighsAlike(typed.aggregator ?? texts.aggregator)) spec.balance = typed.balance ?? texts.balance;
  if (has("k_auto")) spec.k_auto = typed.k_auto;
  if (has("rounds_in_flight")) spec.rounds_in_flight = Number(typed.rounds_in_flight) || typed.rounds_in_flight;
  if (has("model_path")) spec.model_path = typed.model_path.trim();
  if (has("outer")) spec.outer = OUTER[typed.outer];
  if (has("hidden")) readWidths(typed.hidden, spec, faults);
  if (has("inner") || has("lr")) {
    const name = typed.inner ?? texts.inner;
    spec.inner = { ...ofTheBase(base?.inner, name), name, lr: numberOf(typed.lr ?? texts.lr) };
    if (!Number.isFinite(spec.inner.lr)) faults.lr = { say: "start.number" };
  }
  return { spec, faults };
}

/** What goes along from a run's inner optimizer: all of the same one, else its schedule (as presets.py has it). */
function ofTheBase(inner = {}, name) {
  return inner.name === name ? inner : { schedule: inner.schedule, warmup: inner.warmup };
}

function readWidths(text, spec, faults) {
  const parts = text.normalize("NFKC").split(/[\s,;、]+/).filter(Boolean);
  if (parts.some((part) => !/^\d+$/.test(part))) faults.hidden = { say: "start.widths" };
  const rest = spec.model?.family === "mlp" ? spec.model : {};
  spec.model = parts.length ? { ...rest, family: "mlp", hidden: parts.map(Number) } : { family: "softmax" };
}

/** The field that a path, or else the first name in a sentence, stands for; undefined: none. */
export function placeOf(text) {
  for (const [path] of text.matchAll(NAMED)) {
    const parts = path.split(".");
    const place = PLACES[parts.at(-1)] ?? PLACES[parts[0]];
    if (place) return place;
  }
  return undefined;
}

/** {faults, whole}: an error of the API as {field: {text}}, and whether something of it belongs to no field. */
export function placed(error) {
  const told = [...(error.errors ?? [])];
  if (told.length === 0 && error.status === 422) told.push({ field: "", message: error.message });
  const faults = {};
  let whole = told.length === 0;
  for (const { field, message } of told) {
    const place = placeOf(field) ?? placeOf(message);
    if (!place) whole = true;
    else faults[place] ??= { text: message.replace(/^Value error, /, "") };
  }
  return { faults, whole };
}
