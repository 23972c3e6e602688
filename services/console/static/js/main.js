// Builds the page, takes the state once, then follows the stream; when events are missing it takes the state again.

import { createApi } from "./core/api.js";
import { keepPrefs } from "./core/prefs.js";
import { keepRoute } from "./core/route.js";
import { shareStream } from "./core/share.js";
import { createStore } from "./core/store.js";
import { language, speak } from "./core/text.js";
import { html, render } from "./ui/html.js";
import { App } from "./views/app.js";

const RETRY_MS = 2000;

/** Keep the store true. Events that come while the state is on its way wait for it. */
function follow(store, api) {
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
      if (!held.every(store.apply)) resync();
    } catch (error) {
      waiting = null;
      onLost(error);
      setTimeout(() => store.lost.value !== null && resync(), RETRY_MS);
    }
  }

  function onLost(error) {
    const { lost } = store;
    const rejected = error?.code === "TOKEN_REJECTED";
    if (lost.value === null || lost.value.rejected !== rejected) {
      lost.value = { since: lost.value?.since ?? Date.now(), rejected };
    }
  }

  function onEvent(event) {
    if (event.name === "hello") store.link.value = event.data.link;
    else if (event.name === "link") store.link.value = event.data;
    else if (event.name === "resync") resync();
    else if (event.name === "event") {
      if (waiting) waiting.push(event);
      else if (!store.apply(event)) resync();
    }
  }

  const onOpen = () => {
    store.lost.value = null;
  };
  // With no id known the stream answers from "now"; `0:0` asks for everything, which is answered with `resync`.
  shareStream(api, { after: () => store.id() ?? "0:0", onEvent, onOpen, onLost });
  resync(); // another tab may read the stream
}

async function start() {
  keepPrefs();
  keepRoute();
  const token = document.querySelector("meta[name=mahe-token]").getAttribute("content");
  const api = createApi(token);
  const store = createStore();
  await speak(language.value);
  render(html`<${App} store=${store} api=${api} />`, document.getElementById("page"));
  follow(store, api);
}

start();
