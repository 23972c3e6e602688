// Train the same again: the same specification, so the same seed.

import { href } from "../core/route.js";
import { faultText, t } from "../core/text.js";
import { html, useAction, useSignal } from "../ui/html.js";

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
      <span role="status">
        ${started.value &&
        html`
          <small class="good">
            <a href=${href("runs", started.value.run)}>
              ${t(started.value.position ? "runs.queued" : "runs.started", started.value)}
            </a>
          </small>
        `}
        ${fault.value && html`<small class="bad">${faultText(fault.value)}</small>`}
      </span>
    </span>
  `;
}
