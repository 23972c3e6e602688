// Lines for a terminal, with a button that copies them; where the browser refuses, they are selected instead.

import { t } from "../core/text.js";
import { html, useEffect, useRef, useSignal } from "./html.js";
import { copyText, Notice } from "./panel.js";

const SHOWN_MS = 2000;

/** `name`: what the lines are for, in the button's name. */
export function Command({ text, name }) {
  const code = useRef(null);
  const said = useSignal("");
  useEffect(() => {
    said.value = "";
  }, [text]);
  const copy = async () => {
    said.value = await copyText(text);
    if (said.value === t("copy.done")) setTimeout(() => (said.value = ""), SHOWN_MS);
    else getSelection().selectAllChildren(code.current);
  };
  const done = said.value === t("copy.done");
  const label = `${done ? said.value : t("copy.do")}: ${name}`;
  return html`
    <div class="command-box">
      <code class="command" tabindex="0" ref=${code}>${text}</code>
      <button class="button small" type="button" aria-label=${label} onClick=${copy}>
        ${done ? `✓ ${said.value}` : t("copy.do")}
      </button>
    </div>
    <${Notice} text=${done ? "" : said.value} kind="warn" />
  `;
}
