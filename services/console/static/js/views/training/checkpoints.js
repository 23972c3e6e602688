// The checkpoints kept for the current run, each to download; and where the model is copied to.

import { reasonOf, t } from "../../core/text.js";
import { html } from "../../ui/html.js";
import { Empty, Panel } from "../../ui/panel.js";
import { Checkpoints } from "../checkpoints.js";

export function CheckpointsPanel({ store, api }) {
  const run = store.run.value;
  if (!run) {
    return html`
      <${Panel} id="checkpoints" title=${t("checkpoints.title")}><${Empty} text=${t("checkpoints.none")} /><//>
    `;
  }
  return html`
    <${Checkpoints} key=${run.id} store=${store} api=${api} run=${run}><${Copied} run=${run} /><//>
  `;
}

/** Where the copy is, or why there is none; nothing where the master tells nothing of it. */
function Copied({ run }) {
  const { model_file: file, model_version: version, model_path: path } = run;
  const reason = reasonOf(run.model_reason_said, run.model_reason);
  if (!path) return null;
  return html`
    <p class="copied muted">
      ${file ? t("checkpoints.copied", { version, file }) : t("checkpoints.willCopy", { file: path })}
    </p>
    ${reason && html`<p class="notice warn">△ ${reason}</p>`}
  `;
}
