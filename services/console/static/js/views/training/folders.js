// The folders of the master's PC, to walk through and pick one: where no dialog of the system can be opened.

import { t } from "../../core/text.js";
import { html, useAction, useEffect, useRef, useSignal } from "../../ui/html.js";
import { Notice } from "../../ui/panel.js";

/**
 * `begin` and what `read(path)` gives: {path, parent, items: [{name, path}]}, parent null at the top.
 * `onTake(path)` with the folder that is picked, `onClose()` in the end.
 */
export function FolderDialog({ begin, read, onTake, onClose }) {
  const dialog = useRef(null);
  const place = useRef(null);
  const shown = useSignal(begin);
  const [busy, fault, act] = useAction();
  useEffect(() => dialog.current.showModal(), []);
  const { path, parent, items } = shown.value;

  const go = (to) =>
    act(async () => {
      shown.value = await read(to);
      place.current.focus(); // the button that was pressed is of the folder before
    });
  const end = (taken) => {
    dialog.current.close();
    if (taken) onTake(path);
    onClose();
  };
  return html`
    <dialog
      ref=${dialog}
      class="dialog folders"
      aria-labelledby="folders-title"
      onCancel=${(event) => {
        event.preventDefault();
        end(false);
      }}
    >
      <h2 id="folders-title">${t("folders.title")}</h2>
      <p ref=${place} class="folder-path" tabindex="-1">${path}</p>
      <ul class="folder-list" aria-label=${t("folders.list")} aria-busy=${busy.value}>
        ${parent !== null &&
        parent !== undefined &&
        html`
          <li key="..">
            <button type="button" onClick=${() => go(parent)}>
              <span aria-hidden="true">↑ </span>${t("folders.up")}
            </button>
          </li>
        `}
        ${items.map(
          (one) => html`
            <li key=${one.path}>
              <button type="button" onClick=${() => go(one.path)}>
                <span aria-hidden="true">▸ </span>${one.name}
              </button>
            </li>
          `,
        )}
        ${items.length === 0 && html`<li class="muted">${t("folders.empty")}</li>`}
      </ul>
      <${Notice} error=${fault.value} />
      <div class="buttons">
        <button class="button" type="button" onClick=${() => end(false)}>${t("dialog.cancel")}</button>
        <button class="button primary" type="button" onClick=${() => end(true)}>${t("folders.take")}</button>
      </div>
    </dialog>
  `;
}
