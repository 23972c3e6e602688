// The checkpoints kept for a run, each to download. While its rounds close the list is read again, not too often.

import { saveResponse } from "../core/download.js";
import { bytes } from "../core/format.js";
import { t } from "../core/text.js";
import { html, useEffect, useRef, useSignal } from "../ui/html.js";
import { Notice, Panel } from "../ui/panel.js";

const REFRESH_MS = 3000;

export function Checkpoints({ store, api, run, title = t("checkpoints.title"), children }) {
  const items = useSignal(null);
  const fault = useSignal(null);
  const busy = useSignal([]); // versions on their way
  const timer = useRef(null);
  const { id } = run;

  async function read() {
    timer.current = null;
    try {
      items.value = (await api.checkpoints(id)).items.toSorted((a, b) => b.round - a.round);
    } catch (error) {
      fault.value = error;
    }
  }

  const version = store.run.value?.id === id ? store.run.value.version : null;
  const live = store.isLive.value;
  useEffect(() => {
    if (!live) return;
    if (items.value === null) read();
    else timer.current ??= setTimeout(read, REFRESH_MS);
  }, [version, live]);
  useEffect(() => () => clearTimeout(timer.current), []);

  async function get(wanted) {
    if (busy.value.includes(wanted)) return;
    busy.value = [...busy.value, wanted];
    fault.value = null;
    try {
      await saveResponse(await api.checkpoint(id, wanted), `ckpt-${wanted}.npz`);
    } catch (error) {
      if (error.status === 404) await read(); // pruned since the list was read: show what there is now
      fault.value = error;
    }
    busy.value = busy.value.filter((one) => one !== wanted);
  }

  const known = items.value ?? [];
  return html`
    <${Panel} id="checkpoints" title=${title}>
      ${items.value === null && !fault.value && html`<p class="muted">${t("runs.loading")}</p>`}
      ${items.value?.length === 0 && html`<p class="empty">${t("checkpoints.empty")}</p>`}
      ${known.length > 0 && html`<${Named} hasBest=${known.some(({ best }) => best)} get=${get} />`}
      <ul class="rows">
        ${known.map((item, at) => {
          const loads = busy.value.includes(item.round);
          return html`<${Row} key=${item.round} item=${item} latest=${at === 0} busy=${loads} get=${get} />`;
        })}
      </ul>
      <${Notice} error=${fault.value} />
      ${children}
    <//>
  `;
}

/** Those that have a name. */
function Named({ hasBest, get }) {
  return html`
    <div class="buttons">
      ${hasBest &&
      html`
        <button class="button primary" type="button" onClick=${() => get("best")}>${t("checkpoints.getBest")}</button>
      `}
      <button class="button" type="button" onClick=${() => get("latest")}>${t("checkpoints.getLatest")}</button>
    </div>
  `;
}

function Row({ item, latest, busy, get }) {
  const { round, best, bytes: size } = item;
  return html`
    <li>
      <span class="grow">
        ${t("checkpoints.row", { round })}${" "}${best && html`<span class="good">${t("checkpoints.best")} </span>`}
        ${latest && html`<span class="muted">${t("checkpoints.latest")}</span>`}
      </span>
      <span class="muted">${bytes(size)}</span>
      <button
        class="button small"
        type="button"
        aria-label=${t("checkpoints.getLong", { round })}
        onClick=${() => get(round)}
      >
        ${busy ? "…" : t("checkpoints.get")}
      </button>
    </li>
  `;
}
