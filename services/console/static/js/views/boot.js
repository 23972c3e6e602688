// The subtitles at the start, once a session, skipped by any key; and in every case `ui_ready` after them.

import { isStill } from "../core/prefs.js";
import { t } from "../core/text.js";
import { html, useEffect, useState } from "../ui/html.js";

const KEY = "mahe.booted";
const LINES = 5;
const LINE_MS = 420;
const RETRY_MS = 2000;

export function Boot({ api }) {
  const [shown, show] = useState(wasSeen() || isStill() ? LINES + 1 : 0);
  const over = shown > LINES;
  useEffect(() => {
    if (over) return undefined;
    const timer = setInterval(() => show((now) => now + 1), LINE_MS);
    const skip = () => show(LINES + 1);
    addEventListener("keydown", skip);
    addEventListener("pointerdown", skip);
    return () => {
      clearInterval(timer);
      removeEventListener("keydown", skip);
      removeEventListener("pointerdown", skip);
    };
  }, [over]);
  useEffect(() => {
    if (!over) return;
    remember();
    sayReady(api);
  }, [over]);
  if (over) return null;
  return html`
    <div id="boot" class="boot" role="status" aria-label=${t("boot.label")}>
      <p class="boot-name" aria-hidden="true">${t("app.name")}</p>
      <ol>
        ${Array.from({ length: shown }, (_, at) => html`<li key=${at}>${t(`boot.${at + 1}`)}</li>`)}
      </ol>
      <p class="muted">${t("boot.skip")}</p>
    </div>
  `;
}

/** The console hears that somebody looks; again until it answers. */
async function sayReady(api) {
  try {
    await api.uiReady();
  } catch (error) {
    if (error.status === 0 || error.status >= 500) setTimeout(() => sayReady(api), RETRY_MS);
  }
}

function wasSeen() {
  try {
    return sessionStorage.getItem(KEY) === "1";
  } catch {
    return false;
  }
}

function remember() {
  try {
    sessionStorage.setItem(KEY, "1");
  } catch {
    // then the subtitles come with each reload
  }
}
