// Builds the page, takes the state once, then follows the stream; after `resync` it takes the state again.

import { createApi } from "./core/api.js";
import { setText } from "./core/dom.js";
import { createStore } from "./core/store.js";
import { keepStream } from "./core/stream.js";
import { LANGUAGE } from "./core/text.js";
import { mountCharts } from "./views/charts.js";
import { mountCheckpoints } from "./views/checkpoints.js";
import { mountHeader } from "./views/header.js";
import { mountJoin } from "./views/join.js";
import { mountLog } from "./views/log.js";
import { mountRun } from "./views/run.js";
import { mountStart } from "./views/start.js";
import { mountWorkers } from "./views/workers.js";

const byId = (id) => document.getElementById(id);

function mount() {
  document.documentElement.lang = LANGUAGE;
  const token = document.querySelector("meta[name=mahe-token]").content;
  const api = createApi(token);
  const store = createStore();
  const say = (sentence) => setText(byId("status"), sentence);
  const context = { store, api, say };
  mountHeader(byId("header"), byId("banner"), context);
  mountRun(byId("run"), context);
  mountCharts(byId("loss"), byId("accuracy"), context);
  mountWorkers(byId("workers"), context);
  mountStart(byId("start"), context);
  mountJoin(byId("join"), context);
  mountCheckpoints(byId("checkpoints"), context);
  mountLog(byId("log"), context);
  return context;
}

/** Keep the store true. Events that come while the state is on its way wait for it. */
function follow({ store, api }) {
  let waiting = null; // events held back while the state is read; null: none is being read
  let again = false; // the state on its way may be older than the latest `resync`

  async function resync() {
    again = true;
    if (waiting) return;
    waiting = [];
    try {
      while (again) {
        again = false;
        store.load(await api.state());
      }
      const held = waiting;
      waiting = null;
      held.forEach(store.apply);
    } catch (error) {
      waiting = null;
      lost(error);
      setTimeout(() => store.state.lostSince !== null && resync(), 2000);
    }
  }

  function lost(error) {
    const rejected = error?.code === "TOKEN_REJECTED";
    store.setLost(store.state.lostSince ?? Date.now(), rejected);
  }

  function onEvent(event) {
    if (event.name === "hello") store.setLink(event.data.link);
    else if (event.name === "link") store.setLink(event.data);
    else if (event.name === "resync") resync();
    else if (event.name === "event") {
      if (waiting) waiting.push(event);
      else store.apply(event);
    }
  }

  // With no id known the stream answers from "now"; `0:0` asks for everything, which is answered with `resync`.
  keepStream(api, { after: () => store.state.id ?? "0:0", onEvent, onOpen: () => store.setLost(null), onLost: lost });
}

follow(mount());
