// One formatter per kind of value, in the language of the page. What is not known is a dash, never NaN.

import { computed } from "@preact/signals";
import { language, t } from "./text.js";

export const NONE = "–";

const numbers = (options) => computed(() => new Intl.NumberFormat(language.value, options));
const dates = (options) => computed(() => new Intl.DateTimeFormat(REGIONS[language.value], options));
const REGIONS = { en: "en-GB", "zh-CN": "zh-CN" }; // both with 24 hours

const whole = numbers({ maximumFractionDigits: 0 });
const tenths = numbers({ maximumFractionDigits: 1 });
const digits = numbers({ maximumSignificantDigits: 3 });
const fixed = [0, 1, 2, 3, 4].map((count) => numbers({ minimumFractionDigits: count, maximumFractionDigits: count }));
const twoDigits = numbers({ minimumIntegerDigits: 2 });
const clock = dates({ hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = dates({ day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
const names = computed(() => new Intl.Collator(language.value, { numeric: true }));

const known = (value) => typeof value === "number" && Number.isFinite(value);

export const integer = (value) => (known(value) ? whole.value.format(value) : NONE);

/** A rate: no decimals from 100 on. */
export const rate = (value) => (known(value) ? (value >= 100 ? whole : tenths).value.format(value) : NONE);

/** A loss with four decimals, less when it is large. */
export const loss = (value) =>
  known(value) ? fixed[value >= 100 ? 1 : value >= 10 ? 2 : 4].value.format(value) : NONE;

/** Up to three digits, for the ends of an axis. */
export const short = (value) => (known(value) ? digits.value.format(value) : NONE);

/** 0..1 as percent. */
export const percent = (value, decimals = 1) =>
  known(value) ? t("unit.percent", { n: fixed[decimals].value.format(value * 100) }) : NONE;

export function bytes(value) {
  if (!known(value)) return NONE;
  const units = ["B", "KiB", "MiB", "GiB"];
  let at = 0;
  while (value >= 1024 && at < units.length - 1) {
    value /= 1024;
    at += 1;
  }
  return `${at === 0 ? integer(value) : fixed[1].value.format(value)} ${units[at]}`;
}

/** Seconds as 42 s, 3:07 min or 2:05 h. */
export function duration(seconds) {
  if (!known(seconds)) return NONE;
  const all = Math.max(0, Math.round(seconds));
  if (all < 60) return t("unit.s", { s: all });
  const two = (number) => twoDigits.value.format(number);
  if (all < 3600) return t("unit.min", { min: Math.floor(all / 60), s: two(all % 60) });
  return t("unit.h", { h: integer(Math.floor(all / 3600)), min: two(Math.floor((all % 3600) / 60)) });
}

/** A time of day from ms since the epoch. */
export const time = (ms) => (known(ms) ? clock.value.format(ms) : NONE);

/** A date with time, from ms since the epoch. */
export const date = (ms) => (known(ms) ? day.value.format(ms) : NONE);

/** The order of two names, as people of that language look for them; numbers in them by their value. */
export const compareNames = (a, b) => names.value.compare(a, b);
