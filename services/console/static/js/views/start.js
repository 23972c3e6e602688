// The form that starts a run: the data set's recommended values fill it, and what is refused shows beside its field.

import { h, notice, panel, setText } from "../core/dom.js";
import { integer } from "../core/format.js";
import { t } from "../core/text.js";
import { field, options } from "../ui/fields.js";
import { isActive } from "./run.js";

const OPTIMIZERS = ["sgd", "momentum", "adamw"];
const NUMBERS = ["rounds", "k_steps", "batch", "min_workers"];
const DEFAULTS = {
  rounds: 30,
  k_steps: 50,
  batch: 32,
  min_workers: 1,
  model: { family: "mlp", hidden: [64, 64] },
  inner: { name: "sgd", lr: 0.1 },
};
// Where a fault of the specification is shown; the first that its path or sentence names.
const PLACES = [
  [/lr|learning/, "lr"],
  [/hidden|model/, "hidden"],
  [/inner|optimizer|momentum|beta|decay/, "inner"],
  [/k_steps/, "k_steps"],
  [/min_workers/, "min_workers"],
  [/batch/, "batch"],
  [/rounds/, "rounds"],
  [/dataset/, "dataset"],
  [/^name/, "name"],
];

export function mountStart(root, { store, api }) {
  const { body } = panel(root, t("start.title"));
  const fields = makeFields();
  const submit = h("button", { class: "button primary", type: "submit" }, t("start.submit"));
  const why = h("span", { class: "muted" });
  const outcome = notice();
  fields.dataset.hint(t("start.loading"));
  const form = h(
    "form",
    { novalidate: true, "aria-labelledby": `${root.id}-title` },
    h("div", { class: "fields" }, Object.values(fields).map(({ node }) => node)),
    h("div", { class: "buttons form-foot" }, submit, why),
    outcome.node,
  );
  body.append(form);
  let catalog = [];
  let reading = false;
  let busy = false;

  fields.dataset.input.addEventListener("change", () => recommend(chosen()));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!submit.disabled) start();
  });
  store.on(["run", "link"], showState);
  store.on(["link"], ({ link }) => {
    if (link.state === "live" && catalog.length === 0 && !reading) readCatalog();
  });

  function showState({ link, snapshot, lostSince }) {
    const offline = link.state !== "live" || lostSince !== null;
    const reason = offline ? t("start.offline") : isActive(snapshot?.run) ? t("start.active") : "";
    submit.disabled = busy || Boolean(reason);
    setText(why, reason);
  }

  /** Once: a second answer would take back what was chosen and typed since the first. */
  async function readCatalog() {
    reading = true;
    try {
      catalog = (await api.datasets()).items;
      fields.dataset.input.replaceChildren(...options(catalog.map(({ name, title }) => [name, title || name])));
      outcome.say("");
      recommend(chosen());
    } catch (error) {
      outcome.say(error.message);
    } finally {
      reading = false;
    }
  }

  const chosen = () => catalog.find(({ name }) => name === fields.dataset.input.value);

  function recommend(dataset) {
    if (!dataset) return;
    const kept = { min_workers: fields.min_workers.input.value || DEFAULTS.min_workers };
    const values = { ...DEFAULTS, ...kept, ...dataset.recommended };
    for (const key of NUMBERS) fields[key].input.value = values[key];
    fields.hidden.input.value = (values.model.hidden || []).join(", ");
    fields.inner.input.value = values.inner.name;
    fields.lr.input.value = values.inner.lr;
    for (const one of Object.values(fields)) one.fault("");
    const sizes = ["dimensions", "classes", "train", "test"].map((key) => [key, integer(dataset[key])]);
    const facts = t("start.facts", Object.fromEntries(sizes));
    fields.dataset.hint([dataset.description, facts].filter(Boolean).join(" · "));
  }

  /** The recommended values of the inner optimizer that have no field here, while it is the one recommended. */
  function advised() {
    const inner = chosen()?.recommended?.inner;
    return inner?.name === fields.inner.input.value ? inner : {};
  }

  /** The specification; null when a field holds something that is not even a number. */
  function read() {
    let good = true;
    const number = (key) => {
      const text = fields[key].input.value.trim();
      const value = Number(text);
      if (text === "" || !Number.isFinite(value)) {
        fields[key].fault(t("start.number"));
        good = false;
      }
      return value;
    };
    const parts = fields.hidden.input.value.split(/[\s,;]+/).filter(Boolean);
    if (parts.some((part) => !/^\d+$/.test(part))) {
      fields.hidden.fault(t("start.widths"));
      good = false;
    }
    const spec = {
      dataset: fields.dataset.input.value,
      name: fields.name.input.value.trim() || fields.dataset.input.value,
      ...Object.fromEntries(NUMBERS.map((key) => [key, number(key)])),
      model: parts.length ? { family: "mlp", hidden: parts.map(Number) } : { family: "softmax" },
      inner: { ...advised(), name: fields.inner.input.value, lr: number("lr") },
    };
    return good ? spec : null;
  }

  async function start() {
    outcome.say("");
    for (const one of Object.values(fields)) one.fault("");
    const spec = read();
    if (!spec) return focusFault();
    busy = true;
    showState(store.state);
    try {
      const { run } = await api.createRun(spec);
      outcome.say(t("start.sent", { run }), "good");
    } catch (error) {
      showFaults(error);
    }
    busy = false;
    showState(store.state);
  }

  function showFaults(error) {
    const faults = error.errors.slice();
    if (faults.length === 0 && error.status === 422) faults.push({ field: "", message: error.message });
    let placed = 0;
    for (const { field: path, message } of faults) {
      const text = path || message.slice(0, 40);
      const place = PLACES.find(([pattern]) => pattern.test(text));
      if (!place) continue;
      fields[place[1]].fault(message);
      placed += 1;
    }
    if (placed === 0 || placed < faults.length) outcome.say(error.message);
    focusFault();
  }

  function focusFault() {
    form.querySelector("[aria-invalid]")?.focus();
  }
}

const names = (list) => options(list.map((one) => [one, one]));

function makeFields() {
  const number = { inputmode: "numeric", required: true };
  const label = (key) => t(`start.${key}`);
  const named = { maxlength: 64, placeholder: label("name.empty") };
  return {
    dataset: field("start-dataset", label("dataset"), { control: "select", wide: true }),
    name: field("start-name", label("name"), { props: named, wide: true }),
    rounds: field("start-rounds", label("rounds"), { props: number }),
    k_steps: field("start-k-steps", label("k_steps"), { props: number }),
    batch: field("start-batch", label("batch"), { props: number }),
    min_workers: field("start-min-workers", label("min_workers"), { props: number }),
    inner: field("start-inner", label("inner"), { control: "select", options: names(OPTIMIZERS) }),
    lr: field("start-lr", label("lr"), { props: { inputmode: "decimal", required: true } }),
    hidden: field("start-hidden", label("hidden"), { hint: t("start.hidden.hint"), wide: true }),
  };
}
