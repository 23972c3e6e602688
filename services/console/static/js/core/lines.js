// Which log lines are shown. Lines come in blocks, so that a view draws only the block that grows. No elements.

export const SHOWN_MAX = 500; // lines drawn at first: with 2,000 each new one costs a slow PC 25 ms
export const MORE = 2000; // drawn on request
const BLOCK = 100;

/**
 * The lines that fit, from the position `from` on (as they were counted since the page was opened), in blocks; the
 * newest `most` of them, by whole blocks. {blocks: [[line]], total, earlier: how many fit before them, last: position}
 */
export function pick({ lines, dropped }, fits, { from = 0, most = SHOWN_MAX } = {}) {
  const blocks = [];
  let number = -1;
  let total = 0;
  for (let at = Math.max(0, from - dropped); at < lines.length; at += 1) {
    if (!fits(lines[at])) continue;
    total += 1;
    const now = Math.floor((dropped + at) / BLOCK);
    if (now === number) blocks.at(-1).push(lines[at]);
    else blocks.push([lines[at]]);
    number = now;
  }
  let shown = 0;
  let first = blocks.length;
  while (first > 0 && shown < most) {
    first -= 1;
    shown += blocks[first].length;
  }
  return { blocks: blocks.slice(first), total, earlier: total - shown, last: dropped + lines.length };
}

/** How many lines there are of each kind, by name. */
export function kindsOf(lines) {
  const found = new Map();
  for (const { kind } of lines) found.set(kind, (found.get(kind) ?? 0) + 1);
  return [...found].sort(([a], [b]) => (a < b ? -1 : 1));
}

/** A line as it is copied: time in UTC, kind, sentence. */
export const lineText = ({ time_ms: at, kind }, sentence) =>
  `${Number.isFinite(at) ? new Date(at).toISOString() : "–"} [${kind}] ${sentence}`;
