// The event stream over fetch (EventSource cannot send the token): reads, connects again, and notices silence.

const BACKOFF_MS = [300, 700, 1500, 3000, 6000, 10000];
const SILENT_BEATS = 2.4;
const BUFFER_MAX = 4 * 1024 * 1024;

/** Splits server-sent events out of text that comes in pieces (HTML standard 9.2). Returns a function to feed. */
export function parser(onEvent) {
  let rest = "";
  return (text) => {
    rest += text.replaceAll("\r", "");
    if (rest.length > BUFFER_MAX) throw new Error("an event without an end");
    let end;
    while ((end = rest.indexOf("\n\n")) >= 0) {
      const event = { name: "message", id: null, data: "", retry: null };
      for (const line of rest.slice(0, end).split("\n")) {
        const at = line.indexOf(":");
        const field = at < 0 ? line : line.slice(0, at);
        const value = at < 0 ? "" : line.slice(at + 1).replace(/^ /, "");
        if (field === "event") event.name = value;
        else if (field === "id") event.id = value;
        else if (field === "data") event.data += value;
        else if (field === "retry") event.retry = Number(value) || null;
      }
      rest = rest.slice(end + 2);
      if (event.data) onEvent(event);
    }
  };
}

/**
 * Keep a stream open for ever. `after()` gives the id to go on from; `onEvent({name, id, data})` gets each event;
 * `onOpen()`, `onLost(error)` tell how it stands. Returns what ends it.
 */
export function keepStream(api, { after, onEvent, onOpen, onLost }) {
  let attempt = 0;
  let heartbeatMs = 15000;
  let ended = false;
  let abort = new AbortController();

  async function once() {
    abort = new AbortController();
    let watchdog;
    const alive = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => abort.abort(), heartbeatMs * SILENT_BEATS);
    };
    let wait = null;
    try {
      alive();
      const id = after();
      const query = id ? `?after=${encodeURIComponent(id)}` : "";
      const response = await api.request("GET", `events${query}`, undefined, abort.signal);
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      const feed = parser((event) => {
        const data = JSON.parse(event.data);
        if (event.retry) wait = event.retry;
        if (event.name === "hello") {
          heartbeatMs = (data.heartbeat_s || 15) * 1000;
          attempt = 0;
          onOpen();
        }
        onEvent({ name: event.name, id: event.id, data });
      });
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        alive();
        feed(value);
      }
      if (!ended) onLost(null);
    } catch (error) {
      if (!ended) onLost(error);
    } finally {
      clearTimeout(watchdog);
      abort.abort();
    }
    return wait;
  }

  (async () => {
    while (!ended) {
      const wait = await once();
      if (ended) return;
      const pause = wait ?? BACKOFF_MS[Math.min(attempt, BACKOFF_MS.length - 1)];
      attempt += 1;
      await new Promise((resolve) => setTimeout(resolve, pause * (0.8 + 0.4 * Math.random())));
    }
  })();

  return () => {
    ended = true;
    abort.abort();
  };
}
