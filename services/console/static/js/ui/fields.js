// A labelled field with its hint and its fault beside it.

import { h, setAttribute, setText } from "../core/dom.js";

/** {node, input, value, fault(text)}; `control` is the tag, `props` its attributes, `hint` a line below it. */
export function field(id, label, { control = "input", props = {}, hint = "", wide = false, options = [] } = {}) {
  const input = h(control, { id, name: id, autocomplete: "off", ...props }, options);
  const fault = h("span", { class: "fault", id: `${id}-fault`, hidden: true });
  const help = h("span", { class: "hint", id: `${id}-hint`, hidden: !hint }, hint);
  setAttribute(input, "aria-describedby", `${id}-fault ${id}-hint`);
  const node = h("div", { class: wide ? "field wide" : "field" }, h("label", { for: id }, label), input, fault, help);
  return {
    node,
    input,
    hint(text) {
      setText(help, text);
      help.hidden = !text;
    },
    fault(text) {
      setText(fault, text || "");
      fault.hidden = !text;
      setAttribute(input, "aria-invalid", text ? "true" : null);
    },
  };
}

/** Options of a select from [value, label] pairs. */
export const options = (pairs) => pairs.map(([value, label]) => h("option", { value }, label));
