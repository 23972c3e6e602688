// The bar on top: how fresh everything on this page is, and which master it is about; the banner when it is not.

import { h, setAttribute, setText } from "../core/dom.js";
import { integer, time } from "../core/format.js";
import { t } from "../core/text.js";

const GLYPHS = { live: "●", stale: "▲", connecting: "◌" };
const CLASSES = { live: "good", stale: "bad", connecting: "warn" };

/** What the person must know about freshness: {state, word, banner}. */
export function freshness(state) {
  if (state.tokenRejected) return { state: "stale", word: t("link.stale", { time: "–" }), banner: t("banner.token") };
  if (state.lostSince !== null) {
    const since = time(state.lostSince);
    return { state: "stale", word: t("link.console", { time: since }), banner: t("banner.console", { time: since }) };
  }
  const { state: word, since_ms: since, reason } = state.link;
  if (word === "live") return { state: word, word: t("link.live"), banner: "" };
  const key = word === "stale" ? "stale" : "connecting";
  return {
    state: key,
    word: t(`link.${key}`, { time: time(since) }),
    banner: t(`banner.${key}`, { time: time(since), reason }),
  };
}

export function mountHeader(root, banner, { store }) {
  const glyph = h("span", { "aria-hidden": "true" });
  const word = h("span");
  const link = h("span", { class: "chip" }, glyph, word);
  const master = h("span", { class: "chip muted" });
  const refused = h("span", { class: "chip warn", hidden: true });
  const clock = h("time", { class: "chip muted clock" });
  const bannerText = h("span");
  const again = { class: "button small", type: "button", onclick: () => location.reload() };
  const reload = h("button", again, t("banner.reload"));
  root.append(
    h("h1", { class: "brand" }, t("app.name")),
    link,
    h("span", { class: "spacer" }),
    refused,
    master,
    clock,
  );
  banner.append(bannerText, " ", reload);

  store.on(["link", "run"], (state) => {
    const fresh = freshness(state);
    setText(glyph, GLYPHS[fresh.state]);
    setText(word, fresh.word);
    setAttribute(link, "class", `chip ${CLASSES[fresh.state]}`);
    setText(bannerText, fresh.banner);
    banner.hidden = !fresh.banner;
    reload.hidden = !state.tokenRejected;
    document.body.classList.toggle("stale", fresh.state === "stale");
    showMaster(state.snapshot, state.link);
  });

  function showMaster(snapshot) {
    const about = snapshot?.master;
    setText(master, about ? t("header.master", { ...about, term: snapshot.term }) : "");
    const count = snapshot?.refused?.count || 0;
    refused.hidden = count === 0;
    setText(refused, `▲ ${t("header.refused", { n: integer(count) })}`);
    setAttribute(refused, "title", snapshot?.refused?.last || null);
  }

  const tick = () => setText(clock, time(Date.now()));
  tick();
  setInterval(tick, 1000);
}
