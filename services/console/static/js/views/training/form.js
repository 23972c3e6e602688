// What the form of a new run holds. It lives as long as the page, so that leaving the view or an event takes nothing
// that was typed. No elements.

import { batch, computed, signal } from "@preact/signals";
import { t } from "../../core/text.js";
import { advised, advisedTexts, asIn, FROM_RUN, PRESET, weighsAlike } from "./choices.js";
import { read } from "./reading.js";

/** Data sets and presets as the console told them; `at`: when, in ms since the epoch; null: not yet. */
export const catalog = signal({ items: [], presets: [], rates: {}, at: null });
export const catalogBusy = signal(false);
export const catalogFault = signal(null);
export const datasetName = signal("");
export const presetId = signal(PRESET);
/** What was typed or chosen by hand, {field: text}: it goes over what preset and data set advise. */
export const typed = signal({});
/** What is wrong, {field: {text} or {say, values}}. */
export const faults = signal({});
export const advancedOpen = signal(false);
/** What became of the last Start: {error}, or {run, position, warnings}; null: nothing yet. */
export const outcome = signal(null);

export const dataset = computed(() => catalog.value.items.find(({ name }) => name === datasetName.value));
export const preset = computed(() => catalog.value.presets.find(({ id }) => id === presetId.value));
/** The run that the form was filled from, {id, spec}; null: none. */
export const source = signal(null);
/** What became of asking for one: {id, error}, error null while it is on its way; null: none is asked for. */
export const sought = signal(null);
/** The specification that fills the form in place of preset and data set's card; null: these do. */
const filling = computed(() => (presetId.value === FROM_RUN ? (source.value?.spec ?? null) : null));
export const texts = computed(() => {
  const values = filling.value ? asIn(filling.value) : advised(dataset.value, preset.value);
  return advisedTexts(values, catalog.value.rates, typed.value);
});

/** What a field shows. */
export const valueOf = (key) => typed.value[key] ?? texts.value[key];

/** Whether it is another value than the advised one. */
export const isChanged = (key) => key in typed.value && typed.value[key] !== texts.value[key];

/** The sentence about a field; "" when nothing is wrong with it. */
export function faultOf(key) {
  const fault = faults.value[key];
  return !fault ? "" : (fault.text ?? t(fault.say, fault.values));
}

/** {spec, faults} of the form as it is. */
export const reading = computed(() =>
  read({
    dataset: datasetName.value,
    preset: presetId.value,
    base: filling.value,
    typed: typed.value,
    texts: texts.value,
  }),
);

function without(object, ...keys) {
  const rest = { ...object };
  for (const key of keys) delete rest[key];
  return rest;
}

/** A value by hand. A learning rate is its optimizer's, so another optimizer comes with its own; shares likewise. */
export function type(key, value) {
  batch(() => {
    let next = { ...typed.value, [key]: value };
    if (value === texts.value[key]) next = without(next, key);
    if (key === "inner") next = without(next, "lr");
    if (key === "aggregator" && weighsAlike(value)) next = without(next, "balance");
    typed.value = next;
    faults.value = without(faults.value, key);
  });
}

/** Back to what is advised. */
export function restore(key) {
  type(key, texts.value[key]);
}

/** Everything by hand, but for the name, back to what is advised. */
export function restoreAll() {
  batch(() => {
    typed.value = "name" in typed.value ? { name: typed.value.name } : {};
    faults.value = {};
  });
}

export function choose(chosen, key) {
  batch(() => {
    chosen.value = key;
    faults.value = without(faults.value, chosen === presetId ? "preset" : "dataset");
  });
}

/** Fill the form from a run; what was typed before goes. */
export async function fillFrom(api, id) {
  sought.value = { id, error: null };
  try {
    const { spec } = await api.run(id);
    if (sought.value?.id !== id) return; // another one is asked for meanwhile, or none
    batch(() => {
      source.value = { id, spec };
      sought.value = null;
      datasetName.value = spec.dataset.replace(/^builtin:/, "");
      presetId.value = FROM_RUN;
      typed.value = {};
      faults.value = {};
      outcome.value = null;
    });
  } catch (error) {
    if (sought.value?.id === id) sought.value = { id, error };
  }
}

/** Back to the form that preset and data set fill; what was typed stays. */
export function leaveRun() {
  batch(() => {
    source.value = null;
    if (presetId.value === FROM_RUN) presetId.value = PRESET;
  });
}

/** Read data sets and presets, again or for the first time. What is chosen and typed stays. */
export async function readCatalog(api) {
  if (catalogBusy.value) return;
  catalogBusy.value = true;
  try {
    const [told, ways] = await Promise.all([api.datasets(), api.presets()]);
    batch(() => {
      catalog.value = { items: told.items, presets: ways.items, rates: ways.learning_rates ?? {}, at: Date.now() };
      catalogFault.value = null;
      if (!datasetName.value) datasetName.value = told.items[0]?.name ?? "";
    });
  } catch (error) {
    catalogFault.value = error;
  } finally {
    catalogBusy.value = false;
  }
}
