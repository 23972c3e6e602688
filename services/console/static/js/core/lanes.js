// Who holds the round up: what each worker does in the newest rounds, for how long yet, and the slowest. No elements.

import { lampsOf } from "./workers.js";

export const DOING = ["compute", "transfer", "wait", "away"];
const LATELY_MS = 30000; // weight of what is so old: 1/e
const LATELY_LEAST_MS = 10000; // less than that says nothing
const AHEAD_S = 1; // so much longer than half of the others is slow
const AHEAD_SHARE = 0.15; // so much busier than half of the others is slow
const DONE = ["idle", "waiting", "holding"];
const BYTES_A_VALUE = { fp32: 4, bf16: 2, int8: 1, int4: 0.5, topk: 0.25 };

/** Its bar: {id, name, round, doing, done, share, step, total, left_s, stuck}; null when it has no part in a round. */
export function laneOf(worker, run, age_ms = 0) {
  const found = newest(run, worker.id);
  if (!found) return null;
  const { round, lease } = found;
  const done = lease.state === "ACCEPTED";
  const doing = doingOf(worker, lease);
  const total = worker.steps_total || lease.k_steps || 0;
  const step = doing === "compute" ? Math.min(worker.step || 0, total) : 0;
  const trained = done || lease.state === "UPLOADING" || ["uploading", "waiting", "holding"].includes(worker.agent);
  const share = trained ? 1 : doing === "compute" && total > 0 ? step / total : 0;
  const { progress } = lampsOf(worker, age_ms);
  const left_s = done || doing === "away" ? 0 : secondsLeft(worker, lease, run, share);
  const stuck = doing === "compute" && progress === "bad";
  return { id: worker.id, name: worker.name, round, doing, done, share, step, total, left_s, stuck };
}

/** What it does for the round, as far as lease and agent tell. */
function doingOf(worker, lease) {
  if (["LOST", "DETACHED"].includes(worker.link) || worker.agent === "paused" || lease.state === "LOST") return "away";
  if (lease.state === "ACCEPTED") return "wait";
  if (lease.state === "UPLOADING" || ["uploading", "pulling"].includes(worker.agent)) return "transfer";
  return DONE.includes(worker.agent) ? "wait" : "compute";
}

/** Its piece of work in the earliest open round that it has not done, else in the last one. */
function newest(run, worker) {
  let last = null;
  for (const { round, leases } of run?.rounds_open ?? []) {
    for (const lease of leases ?? []) {
      if (lease.worker !== worker) continue;
      if (!["ACCEPTED", "LOST"].includes(lease.state)) return { round, lease };
      last = { round, lease };
    }
  }
  return last;
}

function secondsLeft(worker, lease, run, share) {
  const samples = (1 - share) * (lease.k_steps || 0) * (lease.batch || 0);
  const bytes = (run.n_parameters || 0) * (BYTES_A_VALUE[run.encoding] ?? 4);
  const sending = worker.link_bytes_per_s > 0 ? bytes / worker.link_bytes_per_s : 0;
  return (worker.samples_per_s > 0 ? samples / worker.samples_per_s : 0) + sending;
}

/** Remembers what each worker did lately, in shares of the time: `note` with each change, `of(id)` to read. */
export function createLately() {
  const known = new Map(); // id -> {at, doing, ms: {compute, transfer, wait, away}}

  return {
    note(lanes, now) {
      for (const { id, doing } of lanes) {
        const one = known.get(id) ?? { at: now, doing, ms: Object.fromEntries(DOING.map((key) => [key, 0])) };
        const fade = Math.exp(-(now - one.at) / LATELY_MS);
        for (const key of DOING) one.ms[key] *= fade;
        one.ms[one.doing] += LATELY_MS * (1 - fade);
        known.set(id, Object.assign(one, { at: now, doing }));
      }
    },
    /** Nothing is going on: time that passes now is nobody's. */
    pause() {
      known.clear();
    },
    of(id) {
      const ms = known.get(id)?.ms;
      const sum = ms ? DOING.reduce((all, key) => all + ms[key], 0) : 0;
      if (sum < LATELY_MS * (1 - Math.exp(-LATELY_LEAST_MS / LATELY_MS))) return null;
      return Object.fromEntries(DOING.map((key) => [key, ms[key] / sum]));
    },
  };
}

/** The lane that the others wait for, else null: one that is stuck, or the busiest lately, or that with most left. */
export function slowestOf(lanes, latelyOf) {
  const here = lanes.filter(({ doing }) => doing !== "away");
  const stuck = here.find((lane) => lane.stuck);
  if (stuck || here.length < 2) return stuck ?? null;
  const lately = here.map(({ id }) => latelyOf(id));
  if (!lately.every(Boolean)) return standsOut(here, here.map(({ left_s }) => left_s), AHEAD_S);
  const busy = lately.map(({ compute, transfer }) => compute + transfer);
  return standsOut(here, busy, AHEAD_SHARE);
}

/** The one with the largest value, when that is `by` more than the median of the others. */
function standsOut(lanes, values, by) {
  const at = values.indexOf(Math.max(...values));
  const others = values.toSpliced(at, 1).toSorted((a, b) => a - b);
  return values[at] - others[Math.floor(others.length / 2)] >= by ? lanes[at] : null;
}

/** Which sentence helps with the slowest. */
export function slowAdviceOf(lane, lately, worker, run) {
  if (lane.stuck) return "stuck";
  if (lately ? lately.transfer > lately.compute : lane.doing === "transfer") return "link";
  if (worker.measured === false) return "measured";
  return run.spec?.balance === "equal" ? "equal" : "speed";
}
