// The bar on top: how fresh everything on this page is, which master it is about, theme and language; and the banner.

import { integer, time } from "../core/format.js";
import { prefs } from "../core/prefs.js";
import { language, LANGUAGES, reasonOf, speak, t } from "../core/text.js";
import { html, useEffect, useState } from "../ui/html.js";

const GLYPHS = { live: "●", stale: "▲", connecting: "◌" };
const CLASSES = { live: "good", stale: "bad", connecting: "warn" };
const THEMES = { dark: "light", light: "dark" };

/** What the person must know about freshness: {state, word, banner}. */
export function freshness(store) {
  const lost = store.lost.value;
  if (lost?.rejected) return { state: "stale", word: t("link.stale", { time: "–" }), banner: t("banner.token") };
  if (lost) {
    const since = time(lost.since);
    return { state: "stale", word: t("link.console", { time: since }), banner: t("banner.console", { time: since }) };
  }
  const { state: word, since_ms: since, reason, reason_said: said } = store.link.value;
  if (word === "live") return { state: word, word: t("link.live"), banner: "" };
  const key = word === "stale" ? "stale" : "connecting";
  const facts = { time: time(since), reason: reasonOf(said, reason) };
  return { state: key, word: t(`link.${key}`, facts), banner: t(`banner.${key}`, facts) };
}

export function Bar({ store, fresh }) {
  const master = store.master.value;
  const { count, last } = store.refused.value ?? { count: 0, last: "" };
  return html`
    <header id="header" class="bar">
      <span class="brand">${t("app.name")}</span>
      <span class=${`chip ${CLASSES[fresh.state]}`}>
        <span aria-hidden="true">${GLYPHS[fresh.state]}</span>${fresh.word}
      </span>
      <span class="spacer"></span>
      ${count > 0 && html`<span class="chip warn" title=${last}>▲ ${t("header.refused", { n: integer(count) })}</span>`}
      ${master &&
      html`<span class="chip muted about">${t("header.master", { ...master, term: store.term.value })}</span>`}
      <${Clock} />
      <span class="choices">
        <label class="hidden" for="language">${t("app.language")}</label>
        <select id="language" value=${language.value} onChange=${(event) => choose(event.currentTarget.value)}>
          ${Object.entries(LANGUAGES).map(
            ([key, name]) => html`<option value=${key} lang=${key} selected=${key === language.value}>${name}</option>`,
          )}
        </select>
        <${Toggle} on=${prefs.theme.value === "light"} label=${t("app.light")} glyph="◑" onClick=${turnTheme} />
        <${Toggle} on=${prefs.calm.value} label=${t("app.calm")} glyph="≈" onClick=${turnCalm} />
      </span>
    </header>
  `;
}

export function Banner({ fresh, rejected }) {
  return html`
    <div id="banner" class="banner" role="alert" hidden=${!fresh.banner}>
      ${fresh.banner}${" "}
      ${rejected &&
      html`
        <button class="button small" type="button" onClick=${() => location.reload()}>${t("banner.reload")}</button>
      `}
    </div>
  `;
}

function Toggle({ on, label, glyph, onClick }) {
  return html`
    <button class="button icon" type="button" aria-pressed=${on} aria-label=${label} title=${label} onClick=${onClick}>
      <span aria-hidden="true">${glyph}</span>
    </button>
  `;
}

function Clock() {
  const [now, tick] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && tick(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return html`<time class="chip muted clock">${time(now)}</time>`;
}

function choose(wanted) {
  prefs.language.value = wanted;
  speak(wanted);
}

function turnTheme() {
  prefs.theme.value = THEMES[prefs.theme.value] ?? "dark";
}

function turnCalm() {
  prefs.calm.value = !prefs.calm.value;
}
