// Rounds of any run: fetched once, a few runs at a time, and kept. Those of the run that goes on come from the store.

import { signal } from "@preact/signals";
import { isActive, phaseOf } from "./run.js";

const PAGE = 500;
const PAGES_MAX = 20; // 10,000 rounds
const AT_ONCE = 2; // a browser has six connections to one host, and the stream uses one
const NOTHING = { rows: [], state: "wait", cut: false };

const kept = new Map(); // run id -> {as, found}
const queue = [];
let reading = 0;

/** A run's rounds as far as known, a signal of {rows, state: "wait" | "ready" | "failed", cut}; fetched when new. */
export function roundsOf(api, run) {
  const as = isActive(run) ? "active" : phaseOf(run); // a failed run may go on and have more rounds then
  const before = kept.get(run.id);
  if (before?.as === as) return before.found;
  const found = signal(before ? { ...before.found.peek(), state: "wait" } : NOTHING);
  kept.set(run.id, { as, found });
  queue.push({ api, id: run.id, found });
  work();
  return found;
}

/** Ask again after a failure. */
export function forgetRounds(run) {
  kept.delete(run.id);
}

async function work() {
  if (reading >= AT_ONCE || queue.length === 0) return;
  reading += 1;
  const { api, id, found } = queue.shift();
  try {
    found.value = { ...(await readAll(api, id)), state: "ready" };
  } catch {
    found.value = { ...found.peek(), state: "failed" };
  }
  reading -= 1;
  work();
}

async function readAll(api, id) {
  const rows = [];
  let next = "";
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const answer = await api.rounds(id, `limit=${PAGE}${next}`);
    rows.push(...answer.items);
    if (answer.next_cursor) next = `&cursor=${encodeURIComponent(answer.next_cursor)}`;
    else if (answer.next) next = `&after=${answer.next}`;
    else return { rows, cut: false };
  }
  return { rows, cut: true };
}

/** Fetched rows with the newer ones of the store's history, by round. */
export function joined(rows, history) {
  if (history.length === 0) return rows;
  const first = history[0].round;
  const before = rows.filter(({ round }) => round < first);
  return [...before, ...history];
}

/** {closed, best, last, seconds, bytes, samples} of rounds; best by loss, null where nothing was evaluated. */
export function resultsOf(rows) {
  const found = { closed: rows.at(-1)?.round ?? 0, best: null, last: null, seconds: 0, bytes: 0, samples: 0 };
  for (const row of rows) {
    found.seconds += row.seconds || 0;
    found.bytes += row.bytes || 0;
    found.samples += row.samples || 0;
    if (!Number.isFinite(row.eval_loss)) continue;
    found.last = { round: row.round, loss: row.eval_loss, accuracy: row.eval_accuracy };
    if (found.best === null || row.eval_loss < found.best.loss) found.best = found.last;
  }
  return found;
}
