// How to train, as the form offers it: the choices, what preset and data set advise, what to warn of. No elements.

import { settingsOf } from "../../core/compare.js";
import { t } from "../../core/text.js";

export const PRESET = "standard";
export const FROM_RUN = "run"; // in place of a preset: the settings of a run that was
export const OWN = "own"; // an outer optimizer with other values than OUTER offers
export const INNER = ["sgd", "momentum", "adamw"];
export const ENCODINGS = ["fp32", "bf16", "int8", "int4", "topk"];
export const AGGREGATORS = ["clip", "mean", "trimmed", "median"];
export const BALANCES = ["proportional", "equal", "units"];
export const IN_FLIGHT = ["auto", "1", "2"];
export const OUTER = {
  fedavg: { name: "fedavg", lr: 1 },
  momentum: { name: "momentum", lr: 0.7, mu: 0.6 },
  nesterov: { name: "nesterov", lr: 0.7, mu: 0.6 },
  "nesterov-long": { name: "nesterov", lr: 0.7, mu: 0.9 },
  fedadam: { name: "fedadam" },
};
/** [least, most] of the numbers, as spec.py has them. All are whole but those of FRACTIONS. */
export const LIMITS = {
  rounds: [1, 1_000_000],
  k_steps: [1, 100_000],
  batch: [8, 65_536],
  min_workers: [1, 1000],
  patience: [0, 1000],
  minutes_max: [0, 100_000],
  model_every: [1, 1_000_000],
};
export const FRACTIONS = ["minutes_max"];

const ROUNDS_PER_MEMORY = 10; // as outer.py has it
const OF_THE_CARD = ["model", "inner", "outer", "rounds", "k_steps", "batch"]; // as presets.py has it
const PLAIN = ["rounds", "k_steps", "batch", "min_workers", "patience", "minutes_max", "model_every"];
const CHOSEN = ["encoding", "aggregator", "rounds_in_flight", "model_path"];
// As spec.py has them.
const DEFAULTS = {
  rounds: 30,
  k_steps: 50,
  k_auto: false,
  batch: 32,
  min_workers: 1,
  patience: 0,
  minutes_max: 0,
  model: { family: "mlp", hidden: [64, 64] },
  inner: { name: "sgd", lr: 0.1 },
  outer: { name: "fedavg" },
  encoding: "int8",
  aggregator: "clip",
  balance: "proportional",
  rounds_in_flight: "auto",
  model_path: "checkpoints/mahe_model.npz",
  model_every: 5,
};

/** The fields of a run as the console fills them in: the preset over the data set's card, that over the defaults. */
export function advised(dataset, preset) {
  const recommended = dataset?.recommended ?? {};
  const told = OF_THE_CARD.filter((key) => key in recommended);
  const card = Object.fromEntries(told.map((key) => [key, recommended[key]]));
  const inner = { ...(card.inner ?? DEFAULTS.inner), ...preset?.sets?.inner };
  return { ...DEFAULTS, ...card, ...preset?.sets, inner };
}

/** The fields of a run as its specification has them. */
export const asIn = (spec) => ({ ...DEFAULTS, ...spec });

/**
 * What each field shows while nothing is typed into it, as text: `values` of advised() or asIn(); `typed` {inner,
 * aggregator} lead others with them.
 */
export function advisedTexts(values, rates, typed) {
  const inner = typed.inner ?? values.inner.name;
  const lr = inner === values.inner.name ? (values.inner.lr ?? rates[inner]) : rates[inner];
  const texts = Object.fromEntries([...PLAIN, ...CHOSEN].map((key) => [key, String(values[key])]));
  return {
    ...texts,
    name: values.name ?? "",
    k_auto: values.k_auto,
    hidden: (values.model.hidden ?? []).join(", "),
    inner: values.inner.name,
    lr: String(lr ?? ""),
    outer: outerChoice(values.outer),
    balance: weighsAlike(typed.aggregator ?? values.aggregator) ? "equal" : values.balance,
  };
}

/** The choice of OUTER that an outer optimizer is; OWN: it has other values. */
export function outerChoice(outer) {
  const isIt = (offered) => Object.entries(outer).every(([key, value]) => offered[key] === value);
  return Object.keys(OUTER).find((key) => isIt(OUTER[key])) ?? OWN;
}

/** [name, text] of the settings that have no field in the form, and matter with the others as they are. */
export function withoutField(spec) {
  const { balance, aggregator, k_auto: isLonger, outer = {}, model = {} } = spec;
  const matters = {
    units: balance === "units",
    clip: aggregator === "clip",
    trim: aggregator === "trimmed",
    k_steps_max: isLonger,
    outer: outerChoice(outer) === OWN,
    "model.family": !["mlp", "softmax"].includes(model.family),
  };
  const others = ["name", "dataset", "balance", "k_auto", "inner.name", "inner.lr", "model.hidden"];
  const hasField = [...PLAIN, ...CHOSEN, ...others];
  return settingsOf(spec).filter(([path]) => {
    return !hasField.includes(path) && (matters[path] ?? matters[path.split(".")[0]] ?? true);
  });
}

/** Whether that aggregator weighs all workers alike, so that their shards must be equal. */
export const weighsAlike = (aggregator) => ["trimmed", "median"].includes(aggregator);

/** The sentence for an outer optimizer whose momentum is too long for so many rounds; "" when there is none. */
export function warningOf(choice, rounds) {
  const mu = OUTER[choice]?.mu || 0;
  const needed = (momentum) => Math.round(ROUNDS_PER_MEMORY / (1 - momentum));
  if (!mu || !Number.isInteger(rounds) || rounds < 1 || rounds >= needed(mu)) return "";
  const mild = OUTER.nesterov.mu;
  const advice = t(rounds >= needed(mild) ? "start.short.mild" : "start.short.plain", { mu: mild });
  return t("start.short", { mu, needed: needed(mu), rounds, advice });
}
