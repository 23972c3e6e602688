// The frame of every view: bar, banner, navigation with the master's own lines, and the view of the address.

import { computed } from "@preact/signals";
import { go, href, route, view, VIEWS } from "../core/route.js";
import { t } from "../core/text.js";
import { Dialog } from "../ui/dialog.js";
import { html, useEffect, useSignal } from "../ui/html.js";
import { AssistantView } from "./assistant.js";
import { Bar, Banner, freshness } from "./bar.js";
import { Boot } from "./boot.js";
import { ClusterView } from "./cluster.js";
import { DashboardView } from "./dashboard.js";
import { DeployView } from "./deploy.js";
import { LogsView } from "./logs.js";
import { RunsView } from "./runs.js";
import { SystemLines } from "./system.js";
import { TrainingView } from "./training.js";
import { TryView } from "./try.js";

const SHOWN = {
  dashboard: DashboardView,
  training: TrainingView,
  runs: RunsView,
  cluster: ClusterView,
  logs: LogsView,
  try: TryView,
  deploy: DeployView,
  assistant: AssistantView,
};

export function App({ store, api }) {
  const fresh = computed(() => freshness(store));
  const said = useSignal(""); // the one place that is read out: milestones of the run and the workers
  useEffect(() => listenForDigits(), []);
  const { rest } = route.value;
  const View = SHOWN[view.value];
  const context = { store, api, rest, say: (sentence) => (said.value = sentence) };
  return html`
    <${Boot} api=${api} />
    <a
      class="skip"
      href="#main"
      onClick=${(event) => {
        event.preventDefault();
        document.getElementById("main").focus();
      }}
    >
      ${t("app.skip")}
    </a>
    <${Bar} store=${store} fresh=${fresh.value} />
    <${Banner} fresh=${fresh.value} rejected=${store.lost.value?.rejected} />
    <div class=${`frame ${fresh.value.state === "stale" ? "stale" : ""}`}>
      <div class="side">
        <${Navigation} />
        <${SystemLines} store=${store} />
      </div>
      <main id="main" tabindex="-1" class=${`view view-${view.value}`}>
        <h1 class="hidden">${t(`view.${view.value}`)}</h1>
        <${View} ...${context} />
      </main>
    </div>
    <${Dialog} />
    <p id="status" class="hidden" role="status">${said}</p>
  `;
}

function Navigation() {
  return html`
    <nav aria-label=${t("app.views")}>
      <ul class="nav">
        ${VIEWS.map(
          (name, at) => html`
            <li key=${name}>
              <a href=${href(name)} aria-current=${view.value === name ? "page" : undefined}>
                <span class="nav-key" aria-hidden="true">${at + 1}</span>${t(`view.${name}`)}
              </a>
            </li>
          `,
        )}
      </ul>
    </nav>
  `;
}

/** Keys 1 to 8 go to a view, unless something is being typed. */
function listenForDigits() {
  const onKey = (event) => {
    const { target } = event;
    if (event.ctrlKey || event.altKey || event.metaKey || document.querySelector("dialog[open]")) return;
    if (target instanceof HTMLElement && target.closest("input, select, textarea, [role=application]")) return;
    const name = VIEWS[Number(event.key) - 1];
    if (name) go(name);
  };
  addEventListener("keydown", onKey);
  return () => removeEventListener("keydown", onKey);
}
