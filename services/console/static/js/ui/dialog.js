// A question before something that cannot be undone. The browser gives the focus back when it closes.

import { h } from "../core/dom.js";
import { t } from "../core/text.js";

/** True when the person says yes; Escape and Cancel are no. */
export function confirm(title, text, yes) {
  return new Promise((resolve) => {
    const answer = (kind, value, label) =>
      h("button", { class: `button ${kind}`, type: "button", onclick: () => dialog.close(value) }, label);
    const cancel = answer("", "no", t("dialog.cancel"));
    const go = answer("danger", "yes", yes);
    const dialog = h(
      "dialog",
      { class: "dialog", "aria-labelledby": "dialog-title", "aria-describedby": "dialog-text" },
      h("h2", { id: "dialog-title" }, title),
      h("p", { id: "dialog-text" }, text),
      h("div", { class: "buttons" }, cancel, go),
    );
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
    cancel.focus();
  });
}
