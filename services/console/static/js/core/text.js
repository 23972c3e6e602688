// Sentences by key, in the language of the page. The tables are i18n/<language>.json, with the same keys in each.

import { signal } from "@preact/signals";
import { prefs } from "./prefs.js";

export const LANGUAGES = { en: "English", "zh-CN": "简体中文" };

/** The language of the page: as chosen, else the browser's where there is a table for it. */
export const language = signal(
  LANGUAGES[prefs.language.value] ? prefs.language.value : ofTheBrowser(),
);

function ofTheBrowser() {
  return navigator.language.toLowerCase().startsWith("zh") ? "zh-CN" : "en";
}

const table = signal({});

/** Read the table of a language and show the page in it. */
export async function speak(wanted) {
  const response = await fetch(`static/i18n/${wanted}.json`);
  if (!response.ok) throw new Error(`i18n/${wanted}.json: ${response.status}`);
  table.value = await response.json();
  language.value = wanted;
  document.documentElement.lang = wanted;
}

/** The sentence of a key with its {parameters} filled in. With `n`, `key.one` is taken where the language has it. */
export function t(key, parameters = {}) {
  const known = table.value;
  const plural = parameters.n === 1 ? known[`${key}.one`] : undefined;
  const sentence = plural ?? known[key];
  if (sentence === undefined) return key;
  return sentence.replace(/\{(\w+)\}/g, (_, name) => shown(parameters[name]));
}

/** Whether there is a sentence for a key. */
export const has = (key) => table.value[key] !== undefined;

/** What went wrong, in the language of the page, with what the console says of it. */
export function faultText(error) {
  if (!error) return "";
  const key = `error.${error.code}`;
  const detail = error.message || "";
  if (!error.code || !has(key)) return detail;
  return detail && detail !== error.code ? `${t(key)} ${detail}` : t(key);
}

/** Why something is so: by code and values where there is a sentence, else the English that came with it. */
export const reasonOf = (said, text) => sentenceOf(said) ?? text ?? "";

/** Values may be reasons themselves. Undefined when one of them is of another version, and not known here. */
function sentenceOf(said) {
  if (!said || !has(`reason.${said.code}`)) return undefined;
  const values = {};
  for (const [name, value] of Object.entries(said.values ?? {})) {
    values[name] = value !== null && typeof value === "object" ? sentenceOf(value) : value;
    if (values[name] === undefined) return undefined;
  }
  return t(`reason.${said.code}`, values);
}

const shown = (value) => (Array.isArray(value) ? value.join(", ") : String(value ?? "–"));
