// The form that starts a run: preset and data set fill it, and what is refused shows beside its field.

import { h, notice, panel, setText } from "../core/dom.js";
import { integer } from "../core/format.js";
import { t } from "../core/text.js";
import { field, options } from "../ui/fields.js";
import { advised, AGGREGATORS, BALANCES, ENCODINGS, INNER, OUTER, outerChoice, PRESET } from "./choices.js";
import { warningOf, weighsAlike } from "./choices.js";
import { estimateView } from "./estimate.js";
import { isActive } from "./run.js";

const NUMBERS = ["rounds", "k_steps", "batch", "min_workers", "patience", "minutes_max"];
const FILLED = ["rounds", "k_steps", "batch", "patience", "minutes_max", "encoding", "aggregator", "balance"];
const ADVANCED = ["encoding", "outer", "inner", "lr", "hidden", "aggregator", "balance", "patience", "minutes_max"];
const EXPLAINED = ["preset", "encoding", "outer", "inner", "aggregator", "balance"];
// Where a fault of the specification is shown, if not at the field of its own name.
const PLACES = { "inner.lr": "lr", model: "hidden", clip: "aggregator", trim: "aggregator" };

export function mountStart(root, { store, api }) {
  const { body } = panel(root, t("start.title"));
  const fields = makeFields();
  const submit = h("button", { class: "button primary", type: "submit" }, t("start.submit"));
  const why = h("span", { class: "muted" });
  const outcome = notice();
  const warning = h("p", { class: "notice warn", role: "status", hidden: true });
  const estimated = estimateView(api);
  fields.dataset.hint(t("start.loading"));
  const nodes = (keys) => h("div", { class: "fields" }, keys.map((key) => fields[key].node));
  const advanced = h("details", { class: "more" }, h("summary", {}, t("start.advanced")), nodes(ADVANCED));
  const form = h(
    "form",
    { novalidate: true, "aria-labelledby": `${root.id}-title` },
    nodes(Object.keys(fields).filter((key) => !ADVANCED.includes(key))),
    advanced,
    warning,
    estimated.node,
    h("div", { class: "buttons form-foot" }, submit, why),
    outcome.node,
  );
  body.append(form);
  let catalog = [];
  let presets = [];
  let rates = {};
  let reading = false;
  let busy = false;
  let present = "";

  const value = (key) => fields[key].input.value;
  const chosen = () => catalog.find(({ name }) => name === value("dataset"));
  for (const key of ["dataset", "preset"]) fields[key].input.addEventListener("change", recommend);
  fields.inner.input.addEventListener("change", () => {
    const { inner } = advised(chosen());
    fields.lr.input.value = inner.name === value("inner") ? inner.lr : rates[value("inner")];
  });
  fields.aggregator.input.addEventListener("change", () => {
    if (weighsAlike(value("aggregator"))) fields.balance.input.value = "equal";
  });
  form.addEventListener("input", explain);
  form.addEventListener("change", explain);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!submit.disabled) start();
  });
  store.on(["run", "link"], showState);
  store.on(["link"], ({ link }) => {
    if (link.state === "live" && catalog.length === 0 && !reading) readCatalog();
  });

  store.on(["workers"], ({ snapshot }) => {
    const ready = (snapshot?.workers || []).filter(({ link, agent }) => link === "LINKED" && agent !== "paused");
    const ids = ready.map(({ id }) => id).join();
    if (ids === present) return;
    present = ids;
    reckon();
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
      const [told, ways] = await Promise.all([api.datasets(), api.presets()]);
      [catalog, presets, rates] = [told, ways.items, ways.learning_rates];
      fields.dataset.input.replaceChildren(...options(catalog.map(({ name, title }) => [name, title || name])));
      fields.preset.input.replaceChildren(...options(presets.map(({ id }) => [id, t(`start.preset.${id}`)])));
      fields.preset.input.value = PRESET;
      outcome.say("");
      recommend();
    } catch (error) {
      outcome.say(error.message);
    } finally {
      reading = false;
    }
  }

  function recommend() {
    const dataset = chosen();
    if (!dataset) return;
    const values = advised(dataset, presets.find(({ id }) => id === value("preset")));
    for (const key of FILLED) fields[key].input.value = values[key];
    fields.hidden.input.value = (values.model.hidden || []).join(", ");
    fields.inner.input.value = values.inner.name;
    fields.lr.input.value = values.inner.lr;
    fields.outer.input.value = outerChoice(values.outer);
    for (const one of Object.values(fields)) one.fault("");
    const sizes = ["dimensions", "classes", "train", "test"].map((key) => [key, integer(dataset[key])]);
    const facts = t("start.facts", Object.fromEntries(sizes));
    fields.dataset.hint([dataset.description, facts].filter(Boolean).join(" · "));
    explain();
  }

  /** A sentence for each choice, and a warning where choices do not go together. */
  function explain() {
    for (const key of EXPLAINED) fields[key].hint(value(key) && t(`start.${key}.${value(key)}.more`));
    const sentence = warningOf(value("outer"), Number(value("rounds")));
    setText(warning, sentence && `△ ${sentence}`);
    warning.hidden = !sentence;
    reckon();
  }

  /** The estimate of what the form holds; nothing while that is no specification. */
  function reckon() {
    estimated.ask(chosen() ? read(() => {}) : null);
  }

  /** The specification; null, and `complain(key, text)`, when a field holds something that is not even a number. */
  function read(complain) {
    let good = true;
    const number = (key) => {
      const text = value(key).trim();
      const found = Number(text);
      if (text === "" || !Number.isFinite(found)) {
        complain(key, t("start.number"));
        good = false;
      }
      return found;
    };
    const parts = value("hidden").split(/[\s,;]+/).filter(Boolean);
    if (parts.some((part) => !/^\d+$/.test(part))) {
      complain("hidden", t("start.widths"));
      good = false;
    }
    const spec = {
      preset: value("preset"),
      dataset: value("dataset"),
      name: value("name").trim() || value("dataset"),
      ...Object.fromEntries(NUMBERS.map((key) => [key, number(key)])),
      model: parts.length ? { family: "mlp", hidden: parts.map(Number) } : { family: "softmax" },
      inner: { name: value("inner"), lr: number("lr") },
      outer: OUTER[value("outer")],
      ...Object.fromEntries(["encoding", "aggregator", "balance"].map((key) => [key, value(key)])),
    };
    return good ? spec : null;
  }

  async function start() {
    outcome.say("");
    for (const one of Object.values(fields)) one.fault("");
    const spec = read((key, text) => fields[key].fault(text));
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
    let placed = 0;
    for (const { field: path, message } of error.errors) {
      const head = path.split(".")[0];
      const place = fields[PLACES[path] || PLACES[head] || head];
      place?.fault(message);
      placed += place ? 1 : 0;
    }
    if (placed === 0 || placed < error.errors.length) outcome.say(error.message);
    focusFault();
  }

  function focusFault() {
    const faulty = form.querySelector("[aria-invalid]");
    if (faulty && advanced.contains(faulty)) advanced.open = true;
    faulty?.focus();
  }
}

function makeFields() {
  const number = { inputmode: "numeric", required: true };
  const label = (key) => t(`start.${key}`);
  const named = { maxlength: 64, placeholder: label("name.empty") };
  const one = (key, props, wide = false) => field(`start-${key.replace("_", "-")}`, label(key), { props, wide });
  const pick = (key, values = []) => {
    const pairs = values.map((each) => [each, t(`start.${key}.${each}`)]);
    return field(`start-${key}`, label(key), { control: "select", options: options(pairs), wide: true });
  };
  return {
    dataset: pick("dataset"),
    preset: pick("preset"),
    name: one("name", named, true),
    rounds: one("rounds", number),
    k_steps: one("k_steps", number),
    batch: one("batch", number),
    min_workers: one("min_workers", { ...number, value: 1 }),
    encoding: pick("encoding", ENCODINGS),
    outer: pick("outer", Object.keys(OUTER)),
    inner: pick("inner", INNER),
    lr: one("lr", { inputmode: "decimal", required: true }),
    hidden: field("start-hidden", label("hidden"), { hint: t("start.hidden.hint") }),
    aggregator: pick("aggregator", AGGREGATORS),
    balance: pick("balance", BALANCES),
    patience: field("start-patience", label("patience"), { props: number, hint: t("start.patience.hint") }),
    minutes_max: field("start-minutes-max", label("minutes_max"), {
      props: { inputmode: "decimal", required: true },
      hint: t("start.minutes_max.hint"),
    }),
  };
}
