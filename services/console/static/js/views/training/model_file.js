// Where the model is copied to: typed, or looked for by the system's dialog, or in the page where there is none.

import { t } from "../../core/text.js";
import { html, useAction, useSignal } from "../../ui/html.js";
import { Notice } from "../../ui/panel.js";
import { FolderDialog } from "./folders.js";
import { type, valueOf } from "./form.js";
import { fileIn, folderOf } from "./paths.js";
import { Setting } from "./setting.js";

const NO_DIALOG = "NO_DIALOG";

export function ModelFile({ api }) {
  const begin = useSignal(null); // the folder at which the page's own dialog opens; null: it is closed
  const [busy, fault, act] = useAction();
  const take = (folder) => type("model_path", fileIn(folder, valueOf("model_path")));

  async function browse() {
    try {
      const { path } = await api.pickFolder(folderOf(valueOf("model_path")));
      if (path) take(path);
    } catch (error) {
      if (error.code !== NO_DIALOG && ![404, 405].includes(error.status)) throw error;
      begin.value = await folders(api, folderOf(valueOf("model_path")));
    }
  }

  return html`
    <${Setting} name="model_path" hint=${t("start.model_path.hint", { n: valueOf("model_every") })}>
      <button class="button browse" type="button" aria-busy=${busy.value} onClick=${() => act(browse)}>
        ${t("start.browse")}
      </button>
      <${Notice} error=${fault.value} />
      ${begin.value &&
      html`
        <${FolderDialog}
          begin=${begin.value}
          read=${(path) => folders(api, path)}
          onTake=${take}
          onClose=${() => (begin.value = null)}
        />
      `}
    <//>
  `;
}

/** A folder, or where paths begin when there is no such folder (yet). */
async function folders(api, path) {
  try {
    return await api.folders(path);
  } catch (error) {
    if (error.status !== 404 && error.status !== 422) throw error;
    if (path) return folders(api, "");
    throw Object.assign(new Error(t("folders.none")), { code: "" });
  }
}
