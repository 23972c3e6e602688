// One stream for all tabs of a browser: the tab that holds a lock reads it and hands every event to the others.
// Six streams would use up a browser's connections to one host, and the seventh tab would hang (freenet-core#5213).

import { keepStream } from "./stream.js";

const LOCK = "mahe.stream";
const CHANNEL = "mahe.events";
const ALIVE_MS = 10000;
const SILENT_MS = 32000; // of a reading tab: then another takes its place

/** Keep `handlers` ({after, onEvent, onOpen, onLost}) told, by a stream of this tab or of another. */
export function shareStream(api, handlers) {
  if (!navigator.locks || !window.BroadcastChannel) {
    keepStream(api, handlers);
    return;
  }
  const channel = new BroadcastChannel(CHANNEL);
  let leads = false;
  let heardAt = Date.now();

  const tell = (kind, value) => {
    HEARD[kind](handlers, value);
    channel.postMessage({ kind, value });
  };
  channel.onmessage = ({ data: { kind, value } }) => {
    heardAt = Date.now();
    if (!leads) HEARD[kind]?.(handlers, value);
  };

  /** Until the lock is taken away; then wait for it like the others. */
  async function lead(options) {
    try {
      await navigator.locks.request(LOCK, options, () => {
        leads = true;
        return new Promise(() => reading());
      });
    } catch {
      // stolen: this tab was silent for too long
    }
    stop?.();
    stop = null;
    leads = false;
    lead({});
  }

  let stop = null;
  function reading() {
    stop = keepStream(api, {
      after: handlers.after,
      onEvent: (event) => tell("event", event),
      onOpen: () => tell("open"),
      onLost: (error) => tell("lost", error ? { code: error.code, message: error.message } : null),
    });
  }

  setInterval(() => {
    if (leads) channel.postMessage({ kind: "alive" });
    else if (!document.hidden && Date.now() - heardAt > SILENT_MS) {
      heardAt = Date.now();
      lead({ steal: true });
    }
  }, ALIVE_MS);
  lead({});
}

const HEARD = {
  event: ({ onEvent }, event) => onEvent(event),
  open: ({ onOpen }) => onOpen(),
  lost: ({ onLost }, error) => onLost(error),
  alive: () => {},
};
