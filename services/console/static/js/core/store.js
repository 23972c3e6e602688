// The state of the page: the last snapshot with every later event applied (as mirror.py does), and the log lines.

const HISTORY_MAX = 1000;
export const LINES_MAX = 10000;

/** Compare two `term:seq` ids of one term: is `a` newer? Another term counts as newer. */
function newer(a, b) {
  if (!b) return true;
  const [termA, seqA] = a.split(":").map(Number);
  const [termB, seqB] = b.split(":").map(Number);
  return termA !== termB || seqA > seqB;
}

export function createStore() {
  const state = {
    id: null, // term:seq of the newest event in here
    link: { state: "connecting", since_ms: Date.now(), reason: "" },
    lostSince: null, // ms since the epoch when the console stopped answering
    tokenRejected: false,
    snapshot: null,
    heardAt: performance.now(), // when ages in the snapshot were true
    lines: [], // {id, time_ms, kind, text}, the newest LINES_MAX
    linesDropped: 0,
  };
  const listeners = [];
  const changed = new Set();
  let scheduled = false;

  function notify(...topics) {
    for (const topic of topics) changed.add(topic);
    if (scheduled) return;
    scheduled = true;
    const run = () => {
      scheduled = false;
      const now = new Set(changed);
      changed.clear();
      for (const { topics: wanted, listener } of listeners) {
        if (wanted.some((topic) => now.has(topic))) listener(state);
      }
    };
    if (document.hidden) setTimeout(run, 500);
    else requestAnimationFrame(run);
  }

  /** Call `listener(state)` once per frame in which one of `topics` changed. */
  function on(topics, listener) {
    listeners.push({ topics, listener });
    listener(state);
  }

  function addLine(line) {
    state.lines.push(line);
    if (state.lines.length > LINES_MAX + 500) {
      state.linesDropped += state.lines.length - LINES_MAX;
      state.lines.splice(0, state.lines.length - LINES_MAX);
    }
    notify("log");
  }

  /** Take the answer of GET /state. */
  function load(answer) {
    const last = state.lines.at(-1)?.id;
    for (const line of answer.recent) if (newer(line.id, last)) addLine(line);
    state.id = answer.id;
    state.link = answer.link;
    state.snapshot = answer.snapshot;
    state.heardAt = performance.now();
    notify("link", "run", "workers", "history", "log");
  }

  function setLink(link) {
    state.link = link;
    notify("link");
  }

  function setLost(since, tokenRejected = false) {
    if (state.lostSince === since && state.tokenRejected === tokenRejected) return;
    state.lostSince = since;
    state.tokenRejected = tokenRejected;
    notify("link");
  }

  /** Take one event {id, data: {kind, text, time_ms, data}}; one that is known already is left out. */
  function apply({ id, data: event }) {
    if (!state.snapshot || !newer(id, state.id)) return;
    state.id = id;
    CHANGES[event.kind]?.(state.snapshot, event.data, state);
    notify(...(TOPICS[event.kind] || []));
    if (event.text) addLine({ id, time_ms: event.time_ms, kind: event.kind, text: event.text });
  }

  return { state, on, notify, load, apply, setLink, setLost };
}

const TOPICS = {
  RUN: ["run", "history"],
  ROUND: ["history", "run"],
  WORKER: ["workers"],
  PROGRESS: ["workers"],
  AUTH: ["link"],
};

const CHANGES = {
  RUN(snapshot, data) {
    if (!data.id) return;
    if (snapshot.run?.id !== data.id) snapshot.history = [];
    snapshot.run = data;
  },
  ROUND(snapshot, data) {
    if (data.round === undefined) return;
    const history = snapshot.history;
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
