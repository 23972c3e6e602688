// What the page knows: the last snapshot with every later event applied (as mirror.py does), and the log lines.
// Events change plain values at once; signals follow once a frame, so that a burst costs one rendering.

import { batch, computed, signal } from "@preact/signals";

const HISTORY_MAX = 1000;
export const LINES_MAX = 10000;
const HISTORY_MS = 500; // between two drawings of the curves: a fast run closes many rounds a second
const HIDDEN_MS = 500; // how often a page that nobody sees follows

/** Compare two `term:seq` ids: is `a` newer than `b`? Another term counts as newer. */
export function newer(a, b) {
  if (!b) return true;
  const [termA, seqA] = a.split(":").map(Number);
  const [termB, seqB] = b.split(":").map(Number);
  return termA !== termB || seqA > seqB;
}

/** Whether events are missing between `before` and `id`, both `term:seq`. */
export function gapBefore(id, before) {
  if (!before) return false;
  const [term, seq] = id.split(":").map(Number);
  const [termBefore, seqBefore] = before.split(":").map(Number);
  return term !== termBefore || seq > seqBefore + 1;
}

export function createStore() {
  const shown = {
    known: signal(false), // whether the master has told anything yet
    link: signal({ state: "connecting", since_ms: Date.now(), reason: "" }),
    lost: signal(null), // {since, rejected} while the console does not answer
    master: signal(null),
    term: signal(0),
    refused: signal({ count: 0, last: "" }),
    init: signal(null), // what the master found out about itself at its start
    queue: signal([]), // runs that wait for the one that goes on
    run: signal(null),
    workers: signal([]),
    history: signal([]),
    log: signal({ lines: [], dropped: 0, count: 0 }),
  };
  const now = { id: null, snapshot: null, heardAt: performance.now(), lines: [], dropped: 0 };
  const dirty = new Set();
  let scheduled = false;

  function flush() {
    scheduled = false;
    const keys = [...dirty];
    dirty.clear();
    batch(() => {
      for (const key of keys) shown[key].value = value(key);
    });
  }

  function value(key) {
    const { snapshot } = now;
    if (key === "known") return snapshot !== null;
    if (key === "log") return { lines: now.lines, dropped: now.dropped, count: now.dropped + now.lines.length };
    if (snapshot === null) return shown[key].value;
    if (key === "workers" || key === "history" || key === "queue") return [...(snapshot[key] || [])];
    return snapshot[key] ?? null;
  }

  let historyAt = -Infinity;
  function mark(...keys) {
    for (const key of keys) {
      if (key === "history" && performance.now() < historyAt + HISTORY_MS) later();
      else dirty.add(key);
    }
    if (dirty.has("history")) historyAt = performance.now();
    if (dirty.size === 0) return;
    if (scheduled) return;
    scheduled = true;
    if (document.hidden) setTimeout(flush, HIDDEN_MS);
    else requestAnimationFrame(flush);
  }

  let waiting = 0;
  function later() {
    waiting ||= setTimeout(() => {
      waiting = 0;
      mark("history");
    }, HISTORY_MS);
  }

  function addLine(line) {
    now.lines.push(line);
    if (now.lines.length > LINES_MAX + 500) {
      now.dropped += now.lines.length - LINES_MAX;
      now.lines.splice(0, now.lines.length - LINES_MAX);
    }
    mark("log");
  }

  /** Take the answer of GET /state. */
  function load(answer) {
    const last = now.lines.at(-1)?.id;
    for (const line of answer.recent) if (newer(line.id, last)) addLine(line);
    now.id = answer.id;
    now.snapshot = answer.snapshot;
    now.heardAt = performance.now();
    shown.link.value = answer.link;
    mark(...Object.keys(shown).filter((key) => !["link", "lost"].includes(key)));
  }

  /** Take one event {id, data: {kind, text, time_ms, data}}; one that is known is left out. False: some are missing. */
  function apply({ id, data: event }) {
    if (!now.snapshot || !newer(id, now.id)) return true;
    if (gapBefore(id, now.id)) return false;
    now.id = id;
    CHANGES[event.kind]?.(now.snapshot, event.data);
    if (event.data?.init && typeof event.data.init === "object") {
      now.snapshot.init = event.data.init; // of whatever kind it is: a warning of the master's checks, too
      mark("init");
    }
    mark(...(TOPICS[event.kind] || []));
    if (event.text) addLine({ id, time_ms: event.time_ms, kind: event.kind, text: event.text, data: event.data });
    return true;
  }

  return {
    ...shown,
    load,
    apply,
    id: () => now.id,
    /** Milliseconds since what a worker's ages count from. */
    ageOf: (worker) => performance.now() - (worker.told_at ?? now.heardAt),
    isLive: computed(() => shown.lost.value === null && shown.link.value.state === "live"),
  };
}

const TOPICS = {
  RUN: ["run", "history"],
  ROUND: ["history", "run"],
  QUEUE: ["queue"],
  WORKER: ["workers"],
  PROGRESS: ["workers"],
  AUTH: ["refused"],
};

const CHANGES = {
  RUN(snapshot, data) {
    if (!data.id) return;
    if (snapshot.run?.id !== data.id) snapshot.history = [];
    snapshot.run = data;
  },
  QUEUE(snapshot, data) {
    if (Array.isArray(data.queue)) snapshot.queue = data.queue;
  },
  ROUND(snapshot, data) {
    if (data.round === undefined) return;
    const { history } = snapshot;
    let at = history.length - 1;
    while (at >= 0 && history[at].round > data.round) at -= 1;
    if (at >= 0 && history[at].round === data.round) history[at] = { ...history[at], ...data };
    else history.splice(at + 1, 0, data);
    if (history.length > HISTORY_MAX) history.splice(0, history.length - HISTORY_MAX);
  },
  WORKER(snapshot, data) {
    const at = snapshot.workers.findIndex((worker) => worker.id === data.id);
    const worker = { ...(at < 0 ? {} : snapshot.workers[at]), ...data, told_at: performance.now() };
    if (data.gone) {
      if (at >= 0) snapshot.workers.splice(at, 1);
    } else if (at >= 0) snapshot.workers[at] = worker;
    else if (data.id !== undefined) {
      snapshot.workers.push(worker);
      snapshot.workers.sort((a, b) => (a.id < b.id ? -1 : 1));
    }
  },
  PROGRESS(snapshot, data) {
    const places = new Map(snapshot.workers.map((worker, at) => [worker.id, at]));
    for (const part of data.workers || []) {
      const at = places.get(part.id);
      if (at === undefined) continue;
      snapshot.workers[at] = { ...snapshot.workers[at], ...part, told_at: performance.now() };
    }
  },
  AUTH(snapshot, data) {
    if (data.refused && typeof data.refused === "object") snapshot.refused = data.refused;
  },
};
