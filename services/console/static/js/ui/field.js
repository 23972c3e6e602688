// A labelled field with its hint and its fault beside it.

import { html } from "./html.js";

/**
 * `type`: "text" (default), "number", "select", "check"; `options`: [value, label] pairs of a select;
 * `onInput(value)` with every change.
 */
export function Field({ id, label, value, onInput, type = "text", options, hint, fault, wide, ...rest }) {
  const described = `${id}-fault ${id}-hint`;
  const common = {
    id,
    name: id,
    autocomplete: "off",
    "aria-describedby": described,
    "aria-invalid": fault ? "true" : undefined,
    ...rest,
  };
  const take = (event) => onInput(type === "check" ? event.currentTarget.checked : event.currentTarget.value);
  return html`
    <div class=${`field${wide ? " wide" : ""}${type === "check" ? " check" : ""}`}>
      <label for=${id}>${label}</label>
      ${control(type, common, value, take, options)}
      <span class="fault" id=${`${id}-fault`} hidden=${!fault}>${fault}</span>
      <span class="hint" id=${`${id}-hint`} hidden=${!hint}>${hint}</span>
    </div>
  `;
}

function control(type, common, value, take, options) {
  if (type === "select") {
    return html`
      <select ...${common} value=${value} onChange=${take}>
        ${options.map(
          ([key, label]) => html`<option key=${key} value=${key} selected=${key === value}>${label}</option>`,
        )}
      </select>
    `;
  }
  if (type === "check") return html`<input ...${common} type="checkbox" checked=${value} onChange=${take} />`;
  const mode = type === "number" ? "decimal" : undefined;
  return html`<input ...${common} inputmode=${mode} value=${value} onInput=${take} />`;
}
