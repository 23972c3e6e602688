// The runs that wait for the one that goes on, in their order, each to be taken out.

import { integer } from "../../core/format.js";
import { t } from "../../core/text.js";
import { confirm } from "../../ui/dialog.js";
import { html, useAction } from "../../ui/html.js";
import { Empty, Notice, Panel } from "../../ui/panel.js";

export function QueuePanel({ store, api }) {
  const queue = store.queue.value;
  const [busy, fault, act] = useAction();
  const remove = async ({ id, name }) => {
    const sure = await confirm(t("queue.remove.title", { name }), t("queue.remove.text"), t("queue.remove.yes"));
    if (!sure) return;
    await act(() => api.runAction(id, "stop"));
    document.getElementById("queue")?.focus(); // the row goes away
  };
  return html`
    <${Panel} id="queue" title=${t("queue.title")} meta=${queue.length > 0 && integer(queue.length)}>
      ${queue.length === 0 && html`<${Empty} text=${t("queue.empty")} />`}
      <ol class="rows">
        ${queue.map(
          (one, at) => html`<${Waiting} key=${one.id} one=${named(one, at)} busy=${busy.value} onRemove=${remove} />`,
        )}
      </ol>
      <${Notice} error=${fault.value} />
    <//>
  `;
}

const named = (one, at) => ({ ...one, name: one.name ?? one.id, position: one.position ?? at + 1 });

function Waiting({ one, busy, onRemove }) {
  const { name, dataset, position, rounds_total: rounds } = one;
  const facts = [dataset !== name && dataset, rounds && t("queue.rounds", { n: integer(rounds) })].filter(Boolean);
  return html`
    <li>
      <span class="queue-place" aria-label=${t("queue.place", { n: position })}>${position}</span>
      <span class="grow">${name} <span class="muted">${facts.join(" · ")}</span></span>
      <button
        class="button icon"
        type="button"
        aria-busy=${busy}
        aria-label=${t("queue.remove", { name })}
        title=${t("queue.remove", { name })}
        onClick=${() => onRemove(one)}
      >
        ✕
      </button>
    </li>
  `;
}
