// What a worker's figures mean for a person: lamps, state, what helps, order. No elements, no sentences.

import { compareNames } from "./format.js";

export const GLYPHS = { good: "●", wait: "◐", bad: "▲", off: "○" };
export const KINDS = { good: "good", wait: "warn", bad: "bad", off: "muted" };
export const LAMPS = ["link", "agent", "progress"];
export const SORTS = ["name", "speed", "state"];
const LINKS = { LINKED: "good", SUSPECT: "wait", DETACHED: "bad", LOST: "bad" };
const AT_WORK = ["idle", "training", "waiting", "pulling", "uploading", "holding"];
const URGENCY = { bad: 0, wait: 1, off: 2, good: 3 };
const SLOW_MS = 6000;
const STUCK_MS = 15000;
const CLIPPED_OFTEN = 0.25; // of its rounds; now and then is normal

/** The three lamps of a worker, `age_ms` after the master told: {link, agent, progress}. */
export function lampsOf(worker, age_ms = 0) {
  const link = LINKS[worker.link] || "off";
  if (link === "bad") return { link, agent: "off", progress: "off" };
  const agent = AT_WORK.includes(worker.agent) ? "good" : "wait";
  if (worker.agent !== "training" || !Number.isFinite(worker.progress_age_ms)) return { link, agent, progress: "off" };
  const age = worker.progress_age_ms + age_ms;
  return { link, agent, progress: age < SLOW_MS ? "good" : age < STUCK_MS ? "wait" : "bad" };
}

/** {name, lamp, seconds, step}: the word of its state, how good that is, how long it is silent, its step. */
export function stateOf(worker, age_ms = 0) {
  const lamps = lampsOf(worker, age_ms);
  if (worker.link !== "LINKED") {
    const silent = Number.isFinite(worker.last_heard_ms_ago) ? (worker.last_heard_ms_ago + age_ms) / 1000 : null;
    return { name: worker.link, lamp: lamps.link, seconds: silent, step: "" };
  }
  if (worker.quarantined) return { name: "quarantined", lamp: "bad", seconds: null, step: "" };
  if (lamps.progress === "bad") {
    return { name: "stuck", lamp: "bad", seconds: (worker.progress_age_ms + age_ms) / 1000, step: "" };
  }
  const step = worker.agent === "training" && worker.steps_total ? `${worker.step}/${worker.steps_total}` : "";
  return { name: worker.agent, lamp: lamps.agent, seconds: null, step };
}

/** Which sentences help, the most urgent first; none for a worker that is well and at work. `trains`: a run goes on. */
export function adviceOf(worker, state, trains) {
  const found = [];
  if (["LOST", "DETACHED", "SUSPECT", "quarantined", "stuck", "paused"].includes(state.name)) found.push(state.name);
  else if (state.name === "idle") found.push(!trains ? "ready" : worker.reason ? "later" : "next");
  if (worker.mismatches > 0 && !worker.quarantined) found.push("mismatches");
  const clipped = worker.clipped_rounds || 0;
  if (clipped > 0 && clipped >= CLIPPED_OFTEN * worker.accepted_rounds) found.push("clipped");
  if (state.lamp === "good" && worker.measured === false) found.push("measured");
  return found;
}

const byName = (a, b) => compareNames(a.name, b.name) || (a.id < b.id ? -1 : 1);
const bySpeed = (a, b) => (b.samples_per_s ?? -1) - (a.samples_per_s ?? -1) || byName(a, b);
const urgency = (worker) => URGENCY[stateOf(worker).lamp];
const byState = (a, b) => urgency(a) - urgency(b) || byName(a, b);

/** In the order that was chosen; by state: what needs a person first. */
export const sorted = (workers, by) => workers.toSorted({ name: byName, speed: bySpeed, state: byState }[by] ?? byName);
