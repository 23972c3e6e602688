// To try the model will be here. Until then: which checkpoints there are, and how to load one.

import { runList } from "../core/run_list.js";
import { href } from "../core/route.js";
import { t } from "../core/text.js";
import { html, useSignal } from "../ui/html.js";
import { copyText, Empty, Guide, Panel } from "../ui/panel.js";
import { Checkpoints } from "./checkpoints.js";
import { useRunList } from "./runs.js";

const CODE = `import json, numpy
file = numpy.load("ckpt-12.npz", allow_pickle=False)
parameters, meta = file["parameters"], json.loads(file["meta"].tobytes())`;
const HOWS = ["draw", "drop", "row"];

export function TryView({ store, api }) {
  useRunList(store, api);
  const { items, state } = runList.value;
  const run = store.run.value ?? items[0] ?? null;
  return html`
    <${Panel} id="try" title=${t("try.title")}>
      <${Empty} text=${t("try.later")}>
        <ul class="dashes">
          ${HOWS.map((how) => html`<li key=${how}>${t(`try.${how}`)}</li>`)}
        </ul>
        <${Guide} place="checkpoints" />
      <//>
    <//>
    <div class="pair">
      ${run
        ? html`
            <${Checkpoints}
              key=${run.id}
              store=${store}
              api=${api}
              run=${run}
              title=${t("try.checkpoints", { name: run.name ?? run.spec?.name ?? run.id })}
            />
          `
        : html`
            <${Panel} id="checkpoints" title=${t("checkpoints.title")}>
              <${Empty} text=${state === "wait" ? t("runs.loading") : t("try.noRun")}>
                <p><a class="button" href=${href("training")}>${t("run.start")}</a></p>
              <//>
            <//>
          `}
      <${Code} />
    </div>
  `;
}

function Code() {
  const told = useSignal("");
  const copy = async () => {
    told.value = await copyText(`${CODE}\n`);
  };
  return html`
    <${Panel} id="load" title=${t("try.load")}>
      <p>${t("try.load.text")}</p>
      <pre class="command" tabindex="0" aria-label=${t("try.load")}>${CODE}</pre>
      <div class="buttons">
        <button class="button small" type="button" onClick=${copy}>${t("try.copy")}</button>
        <span class="muted" role="status">${told}</span>
      </div>
      <${Guide} place="checkpoints" />
      <p class="muted"><a href=${href("runs")}>${t("try.others")}</a></p>
    <//>
  `;
}
