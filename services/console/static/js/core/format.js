// One formatter per kind of value. What is not known is a dash, never NaN.

export const NONE = "–";

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

const known = (value) => typeof value === "number" && Number.isFinite(value);

export const integer = (value) => (known(value) ? whole.format(value) : NONE);

/** A rate: no decimals from 100 on. */
export const rate = (value) => (known(value) ? (value >= 100 ? whole : tenths).format(value) : NONE);

/** A loss with four decimals, less when it is large. */
export const loss = (value) => (known(value) ? value.toFixed(value >= 100 ? 1 : value >= 10 ? 2 : 4) : NONE);

/** Up to three digits, for the ends of an axis. */
export const short = (value) => (known(value) ? String(Number(value.toPrecision(3))) : NONE);

/** 0..1 as percent. */
export const percent = (value, digits = 1) => (known(value) ? `${(value * 100).toFixed(digits)} %` : NONE);

export function bytes(value) {
  if (!known(value)) return NONE;
  const units = ["B", "KiB", "MiB", "GiB"];
  let at = 0;
  while (value >= 1024 && at < units.length - 1) {
    value /= 1024;
    at += 1;
  }
  return `${at === 0 ? value : value.toFixed(1)} ${units[at]}`;
}

/** Seconds as 42 s, 3:07 min or 2:05 h. */
export function duration(seconds) {
  if (!known(seconds)) return NONE;
  const all = Math.max(0, Math.round(seconds));
  if (all < 60) return `${all} s`;
  const two = (number) => String(number).padStart(2, "0");
  if (all < 3600) return `${Math.floor(all / 60)}:${two(all % 60)} min`;
  return `${Math.floor(all / 3600)}:${two(Math.floor((all % 3600) / 60))} h`;
}

/** A time of day from ms since the epoch. */
export const time = (ms) => (known(ms) ? clock.format(ms) : NONE);

/** A date with time, from ms since the epoch. */
export const date = (ms) => (known(ms) ? day.format(ms) : NONE);
