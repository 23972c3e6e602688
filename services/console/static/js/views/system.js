// The master's own lines in the left panel: what it found out at its start, and the latest warnings and errors.

import { time } from "../core/format.js";
import { href } from "../core/route.js";
import { has, t } from "../core/text.js";
import { html, useComputed } from "../ui/html.js";

const KINDS = ["INIT", "WARN", "ERROR"];
const SHOWN_MAX = 12;
const CLASSES = { INIT: "good", WARN: "warn", ERROR: "bad" };

export function SystemLines({ store }) {
  const lines = useComputed(() => {
    const found = [];
    const { lines: all } = store.log.value;
    for (let at = all.length - 1; at >= 0 && found.length < SHOWN_MAX; at -= 1) {
      if (KINDS.includes(all[at].kind)) found.push(all[at]);
    }
    return found.reverse();
  });
  return html`
    <section id="system" class="system" aria-labelledby="system-title">
      <h2 id="system-title">${t("system.title")}</h2>
      <ol>
        ${lines.value.map(
          (line) => html`
            <li key=${line.id} title=${time(line.time_ms)}>
              <span class=${CLASSES[line.kind]}>[${line.kind}]</span> ${sentenceOf(line)}
            </li>
          `,
        )}
      </ol>
      ${lines.value.length === 0 && html`<p class="muted">${t("system.empty")}</p>`}
      <a href=${href("logs")}>${t("system.all")}</a>
    </section>
  `;
}

/** In the language of the page where the line has a code, else as the master said it. */
export function sentenceOf({ text, data }) {
  const key = `init.${data?.code}`;
  return data?.code && has(key) ? t(key, data) : text;
}
