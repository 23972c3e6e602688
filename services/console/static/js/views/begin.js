// How to begin: machines first, then the first curve by one press. Shown while nothing trains.

import { prefs } from "../core/prefs.js";
import { go, href } from "../core/route.js";
import { t } from "../core/text.js";
import { html, useAction } from "../ui/html.js";
import { Notice, Panel } from "../ui/panel.js";

const TRIAL = { preset: "quick", dataset: "digits", name: "first try", min_workers: 1 };

export function Begin({ store, api }) {
  const here = store.workers.value.filter((worker) => worker.link === "LINKED").length;
  if (!store.known.value) return null;
  if (here === 0) return html`<${Machines} store=${store} />`;
  return html`<${FirstTry} store=${store} api=${api} here=${here} />`;
}

function Machines() {
  if (prefs.panel.value === "later") return null;
  return html`
    <${Panel} id="begin" title=${t("begin.title")} className="begin">
      <p>${t("begin.text")}</p>
      <div class="buttons">
        <a class="button primary" href=${href("cluster")}>${t("begin.add")}</a>
        <a class="button" href=${href("deploy")}>${t("begin.scripts")}</a>
        <button class="button" type="button" onClick=${() => (prefs.panel.value = "later")}>${t("begin.later")}</button>
      </div>
    <//>
  `;
}

function FirstTry({ store, api, here }) {
  const [busy, fault, act] = useAction();
  const start = () => act(() => api.createRun(TRIAL));
  return html`
    <${Panel} id="begin" title=${t("begin.try.title")} className="begin">
      <p>${t("begin.try.text", { n: here })}</p>
      <div class="buttons">
        <button class="button primary" type="button" disabled=${busy.value || !store.isLive.value} onClick=${start}>
          ${t("begin.try")}
        </button>
        <button class="button" type="button" onClick=${() => go("training")}>${t("begin.choose")}</button>
      </div>
      <${Notice} error=${fault.value} />
    <//>
  `;
}
