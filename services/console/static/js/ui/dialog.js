// A question before something that cannot be undone. The browser gives the focus back when it closes.

import { signal } from "@preact/signals";
import { t } from "../core/text.js";
import { html, useEffect, useRef } from "./html.js";

const asked = signal(null); // {title, text, yes, resolve}

/** True when the person says yes; Escape and Cancel are no. */
export function confirm(title, text, yes) {
  asked.value?.resolve(false);
  return new Promise((resolve) => {
    asked.value = { title, text, yes, resolve };
  });
}

/** The place of the dialog, once in the page. */
export function Dialog() {
  const question = asked.value;
  const node = useRef(null);
  useEffect(() => {
    if (question) node.current?.showModal();
  }, [question]);
  if (!question) return null;
  const answer = (is) => {
    node.current?.close();
    asked.value = null;
    question.resolve(is);
  };
  return html`
    <dialog
      ref=${node}
      class="dialog"
      aria-labelledby="dialog-title"
      aria-describedby="dialog-text"
      onCancel=${(event) => {
        event.preventDefault();
        answer(false);
      }}
    >
      <h2 id="dialog-title">${question.title}</h2>
      <p id="dialog-text">${question.text}</p>
      <div class="buttons">
        <button class="button" type="button" autofocus onClick=${() => answer(false)}>${t("dialog.cancel")}</button>
        <button class="button danger" type="button" onClick=${() => answer(true)}>${question.yes}</button>
      </div>
    </dialog>
  `;
}
