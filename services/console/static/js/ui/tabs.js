// Tabs with arrow keys (WAI-ARIA APG: one stop of Tab, the arrows choose).

import { html } from "./html.js";

/** `tabs`: [key, word] pairs; `chosen`: a signal of the key; the children are what the chosen one shows. */
export function Tabs({ id, label, tabs, chosen, children }) {
  const keys = tabs.map(([key]) => key);
  const onKey = (event) => {
    const at = keys.indexOf(chosen.value);
    const last = keys.length - 1;
    const right = at === last ? 0 : at + 1;
    const left = at === 0 ? last : at - 1;
    const to = { ArrowRight: right, ArrowLeft: left, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    chosen.value = keys[to];
    document.getElementById(`${id}-tab-${keys[to]}`)?.focus();
  };
  return html`
    <div class="tabs" role="tablist" aria-label=${label} onKeyDown=${onKey}>
      ${tabs.map(
        ([key, word]) => html`
          <button
            key=${key}
            id=${`${id}-tab-${key}`}
            class="tab"
            type="button"
            role="tab"
            aria-selected=${key === chosen.value ? "true" : "false"}
            aria-controls=${`${id}-part`}
            tabindex=${key === chosen.value ? 0 : -1}
            onClick=${() => (chosen.value = key)}
          >
            ${word}
          </button>
        `,
      )}
    </div>
    <div id=${`${id}-part`} role="tabpanel" aria-labelledby=${`${id}-tab-${chosen.value}`}>${children}</div>
  `;
}
