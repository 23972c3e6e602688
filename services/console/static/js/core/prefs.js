// What a person chose on this page, kept in the browser: theme, language, calm, axes. Nothing else is kept there.

import { effect, signal } from "@preact/signals";

const KEY = "mahe.page";
const DEFAULTS = { theme: "dark", language: "", calm: false, axis: "round", smooth: true, panel: "" };

function read() {
  try {
    return { ...DEFAULTS, ...JSON.parse(localStorage.getItem(KEY) || "{}") };
  } catch {
    return { ...DEFAULTS }; // a browser that keeps nothing, or something else's value
  }
}

const start = read();

export const prefs = Object.fromEntries(Object.keys(DEFAULTS).map((key) => [key, signal(start[key])]));

/** Keep what changes, and put theme and calm on the document. */
export function keepPrefs() {
  effect(() => {
    const now = Object.fromEntries(Object.entries(prefs).map(([key, one]) => [key, one.value]));
    document.documentElement.dataset.theme = now.theme;
    document.documentElement.classList.toggle("calm", now.calm);
    try {
      localStorage.setItem(KEY, JSON.stringify(now));
    } catch {
      // without storage the choices last as long as the page
    }
  });
}

/** Whether nothing should move: the person said so here or to the system. */
export const isStill = () => prefs.calm.value || matchMedia("(prefers-reduced-motion: reduce)").matches;
