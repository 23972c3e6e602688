// Train again: the same specification, so the same seed; or with changes.

import { href } from "../core/route.js";
import { faultText, t } from "../core/text.js";
import { html, useAction, useSignal } from "../ui/html.js";
import { Warnings } from "../ui/panel.js";

export function Rerun({ store, api, run, small }) {
  const [busy, fault, act] = useAction();
  const started = useSignal(null);
  const name = run.name ?? run.spec?.name ?? run.id;
  const start = async () => {
    started.value = null;
    started.value = (await act(() => api.createRun(run.spec))) ?? null;
  };
  return html`
    <span class="rerun">
      <button
        class=${small ? "button small" : "button"}
        type="button"
        aria-label=${t("runs.rerun.label", { name, id: run.id })}
        disabled=${busy.value || !run.spec || !store.isLive.value}
        onClick=${start}
      >
        ${t("runs.rerun")}
      </button>
      ${run.spec &&
      html`
        <a
          class=${small ? "button small" : "button"}
          href=${href("training", run.id)}
          aria-label=${t("runs.change.label", { name, id: run.id })}
        >
          ${t(small ? "runs.change.short" : "runs.change")}
        </a>
      `}
      <span role="status">
        ${started.value &&
        html`
          <small class="good">
            <a href=${href("runs", started.value.run)}>
              ${t(started.value.position ? "runs.queued" : "runs.started", started.value)}
            </a>
          </small>
          <${Warnings} sentences=${started.value.warnings} />
        `}
        ${fault.value && html`<small class="bad">${faultText(fault.value)}</small>`}
      </span>
    </span>
  `;
}
