// The checkpoints kept for the current run, each to download.

import { h, notice, panel, setAttribute, setText } from "../core/dom.js";
import { bytes } from "../core/format.js";
import { t } from "../core/text.js";

const REFRESH_MS = 3000; // at most this often while rounds close

export function mountCheckpoints(root, { store, api }) {
  const { body } = panel(root, t("checkpoints.title"));
  const empty = h("p", { class: "empty" }, t("checkpoints.empty"));
  const rows = h("ul", { class: "rows" });
  const outcome = notice();
  body.append(empty, rows, outcome.node);
  let run = null;
  let seen = "";
  let timer = null;
  const busy = new Map(); // "run round" -> text of its button

  store.on(["run", "history", "link"], ({ snapshot, link }) => {
    run = snapshot?.run || null;
    const now = run && link.state === "live" ? `${run.id} ${run.version}` : "";
    if (!run) show([]);
    if (!now || now === seen) return;
    const first = !seen.startsWith(`${run.id} `);
    seen = now;
    if (first) read();
    else timer ??= setTimeout(read, REFRESH_MS);
  });

  async function read() {
    clearTimeout(timer);
    timer = null;
    const { id } = run;
    try {
      const items = await api.checkpoints(id);
      if (run?.id === id) show(items);
    } catch (error) {
      outcome.say(error.message);
    }
  }

  function show(items) {
    empty.hidden = items.length > 0;
    rows.replaceChildren(...items.toSorted((a, b) => b.round - a.round).map(row));
  }

  function row(item) {
    const button = h("button", { class: "button small", type: "button", onclick: () => get(run.id, item, button) });
    setAttribute(button, "aria-label", t("checkpoints.getLong", { round: item.round }));
    setText(button, busy.get(`${run.id} ${item.round}`) || t("checkpoints.get"));
    const best = item.best ? h("span", { class: "good" }, t("checkpoints.best")) : null;
    const name = h("span", { class: "grow" }, t("checkpoints.row", { round: item.round }), " ", best);
    return h("li", {}, name, h("span", { class: "muted" }, bytes(item.bytes)), button);
  }

  /** The token travels as a header, so the page fetches the file and then hands it over under its name. */
  async function get(runId, { round }, button) {
    const key = `${runId} ${round}`;
    if (busy.has(key)) return;
    busy.set(key, "…");
    setText(button, "…");
    outcome.say("");
    try {
      const response = await api.checkpoint(runId, round);
      const url = URL.createObjectURL(await response.blob());
      h("a", { href: url, download: `ckpt-${round}.npz` }).click();
      setTimeout(() => URL.revokeObjectURL(url), 60000);
    } catch (error) {
      if (error.status === 404) await read(); // pruned since the list was read: show what there is now
      outcome.say(error.message);
    }
    busy.delete(key);
    setText(button, t("checkpoints.get"));
  }
}
