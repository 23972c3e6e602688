// Numbers of a chart's axes: round steps that cover what is shown.

/** A step of 1, 2 or 5 times a power of ten that gives at most `count` of them in `span`. */
export function niceStep(span, count) {
  const rough = span / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = [1, 2, 5, 10].find((one) => rough <= one * power * 1.000001) ?? 10;
  return factor * power;
}

/** Ticks from below `low` to above `high`. */
export function ticks(low, high, count, minStep = 0) {
  const span = high - low || Math.abs(high) || 1;
  const step = Math.max(niceStep(span, count), minStep);
  const first = Math.floor(low / step + 1e-9) * step;
  const list = [];
  for (let at = first; ; at += step) {
    list.push(Number(at.toPrecision(12)));
    if (at >= high - step * 1e-9) return list;
  }
}

/** How many decimals the labels of these ticks need. */
export function decimals(list) {
  const step = list.length > 1 ? list[1] - list[0] : 1;
  return Math.max(0, Math.min(6, -Math.floor(Math.log10(step) + 1e-9)));
}
