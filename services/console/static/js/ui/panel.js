// A panel: head with title and what stands at its right end, body. And the small things that views share.

import { faultText, t } from "../core/text.js";
import { classes, html } from "./html.js";

/** `id` names the section; `tight` leaves out the padding of the body. */
export function Panel({ id, title, meta, tight, className, children }) {
  return html`
    <section id=${id} class=${classes("panel", className)} aria-labelledby=${`${id}-title`} tabindex="-1">
      <header class="panel-head">
        <h2 id=${`${id}-title`}>${title}</h2>
        ${meta && html`<span class="meta">${meta}</span>`}
      </header>
      <div class=${tight ? "panel-body tight" : "panel-body"}>${children}</div>
    </section>
  `;
}

/** The outcome of an action: an error of the API or a sentence; read out when it comes. */
export function Notice({ error, text, kind = "bad" }) {
  const sentence = error ? faultText(error) : text;
  return sentence ? html`<p class=${`notice ${kind}`} role="alert">${sentence}</p>` : null;
}

/** What a run was started in spite of: sentences of the master, in English. */
export function Warnings({ sentences = [] }) {
  if (sentences.length === 0) return null;
  return html`
    <ul class="notice warn" role="status">
      ${sentences.map((sentence) => html`<li key=${sentence} lang="en">△ ${sentence}</li>`)}
    </ul>
  `;
}

/** What a view says while it has nothing to show: a sentence, what to do, and where the guide is. */
export function Empty({ text, more, children }) {
  return html`
    <div class="empty">
      <p>${text}</p>
      ${more && html`<p class="muted">${more}</p>`} ${children}
    </div>
  `;
}

/** Where to read more: `guide.<place>` names a file of MAHE's folder, and the part of it. */
export function Guide({ place = "file" }) {
  const [file, ...part] = t(`guide.${place}`).split(" · ");
  return html`<p class="muted guide">${t("empty.guide")}: <code>${file}</code>${part.map((one) => ` · ${one}`)}</p>`;
}

/** A word with a glyph before it, coloured: never colour alone. */
export function Mark({ glyph, kind, children }) {
  return html`<span class=${kind}><span aria-hidden="true">${glyph} </span>${children}</span>`;
}

/** Name and value of figures, as a list of terms. */
export function Figures({ items }) {
  return html`
    <dl class="figures">
      ${items.map(
        ({ key, label, value, unit, note }) => html`
          <div class="figure" key=${key}>
            <dt>${label}</dt>
            <dd>${value}${unit && html`<small>${unit}</small>`}</dd>
            ${note && html`<dd class="note">${note}</dd>`}
          </div>
        `,
      )}
    </dl>
  `;
}

/** Copy a text; the button says what became of it. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return t("copy.done");
  } catch {
    return t("copy.failed");
  }
}
