// How to train, as the form offers it: presets, encodings, optimizers, aggregators; and what to warn of. No elements.

import { t } from "../core/text.js";

export const PRESET = "standard";
export const INNER = ["sgd", "momentum", "adamw"];
export const ENCODINGS = ["fp32", "bf16", "int8", "int4", "topk"];
export const AGGREGATORS = ["clip", "mean", "trimmed", "median"];
export const BALANCES = ["proportional", "equal", "units"];
export const OUTER = {
  fedavg: { name: "fedavg", lr: 1 },
  momentum: { name: "momentum", lr: 0.7, mu: 0.6 },
  nesterov: { name: "nesterov", lr: 0.7, mu: 0.6 },
  "nesterov-long": { name: "nesterov", lr: 0.7, mu: 0.9 },
  fedadam: { name: "fedadam" },
};
const ROUNDS_PER_MEMORY = 10; // as outer.py has it
const DEFAULTS = {
  rounds: 30,
  k_steps: 50,
  batch: 32,
  patience: 0,
  minutes_max: 0,
  model: { family: "mlp", hidden: [64, 64] },
  inner: { name: "sgd", lr: 0.1 },
  outer: { name: "fedavg" },
  encoding: "int8",
  aggregator: "clip",
  balance: "proportional",
};

/** What the form shows: the preset over what the data set recommends, that over the defaults. */
export function advised(dataset, preset) {
  const values = { ...DEFAULTS, ...dataset?.recommended, ...preset?.sets };
  return { ...values, inner: { ...DEFAULTS.inner, ...dataset?.recommended?.inner } };
}

/** The choice of OUTER that an outer optimizer is. */
export function outerChoice({ name, mu }) {
  return name === "nesterov" && mu >= OUTER["nesterov-long"].mu ? "nesterov-long" : name;
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
