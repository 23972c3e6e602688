// One field of the form: what is advised or was typed, its fault, and the way back to what is advised.

import { t } from "../../core/text.js";
import { Field } from "../../ui/field.js";
import { classes, html } from "../../ui/html.js";
import { faultOf, isChanged, restore, texts, type, valueOf } from "./form.js";

const NUMERIC = { type: "number", required: true };
const SORTS = {
  rounds: NUMERIC,
  k_steps: NUMERIC,
  batch: NUMERIC,
  min_workers: NUMERIC,
  patience: NUMERIC,
  minutes_max: NUMERIC,
  model_every: NUMERIC,
  lr: NUMERIC,
  name: { maxlength: 64 },
  model_path: { maxlength: 1024, spellcheck: "false" },
  k_auto: { type: "check" },
};

export const idOf = (key) => `start-${key.replaceAll("_", "-")}`;

/** `choices`: the values of a select; `hint`: a sentence; `children`: what stands beside the field. */
export function Setting({ name, choices, hint, children }) {
  const changed = isChanged(name) && name !== "name";
  const picked = choices && { type: "select", options: choices.map((one) => [one, t(`start.${name}.${one}`)]) };
  return html`
    <div class=${classes("setting", { changed })}>
      <${Field}
        id=${idOf(name)}
        label=${t(`start.${name}`)}
        value=${valueOf(name)}
        onInput=${(value) => type(name, value)}
        fault=${faultOf(name)}
        hint=${hint}
        placeholder=${name === "name" ? t("start.name.empty") : undefined}
        ...${SORTS[name]}
        ...${picked}
      />
      ${changed && html`<${Back} name=${name} />`} ${children}
    </div>
  `;
}

/** The mark of a value by hand, and the button that takes it back. */
function Back({ name }) {
  const told = texts.value[name];
  const value = typeof told === "boolean" ? t(told ? "start.on" : "start.off") : told === "" ? "–" : told;
  const back = () => {
    document.getElementById(idOf(name)).focus(); // the button goes away
    restore(name);
  };
  return html`
    <button
      class="back"
      type="button"
      title=${t("start.back", { value })}
      aria-describedby=${idOf(name)}
      onClick=${back}
    >
      <span class="back-word">${t("start.changed")} · </span>
      <span aria-hidden="true">↺ ${value}</span><span class="hidden">${t("start.back", { value })}</span>
    </button>
  `;
}
