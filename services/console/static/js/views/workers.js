// Every worker with its state in words and its reason, three lamps, speed, share; and the way to send it away.

import { h, notice, panel, setAttribute, setText } from "../core/dom.js";
import { duration, integer, percent, rate } from "../core/format.js";
import { t } from "../core/text.js";
import { confirm } from "../ui/dialog.js";

const LAMPS = { good: "●", wait: "◐", bad: "▲", off: "○" };
const CLASSES = { good: "good", wait: "warn", bad: "bad", off: "muted" };
const LINKS = { LINKED: "good", SUSPECT: "wait", DETACHED: "bad", LOST: "bad" };
const WORKING = ["training", "waiting", "pulling", "sending", "uploading"];
const SLOW_MS = 6000;
const STUCK_MS = 15000;
const COLUMNS = ["name", "state", "lamps", "cores", "speed", "share", "done"];

/** The three lamps of a worker, `age_ms` after the master told: {link, agent, progress}. */
export function lampsOf(worker, age_ms = 0) {
  const link = LINKS[worker.link] || "off";
  if (link === "bad") return { link, agent: "off", progress: "off" };
  const agent = WORKING.includes(worker.agent) || worker.agent === "idle" ? "good" : "wait";
  if (worker.agent !== "training" || !Number.isFinite(worker.progress_age_ms)) return { link, agent, progress: "off" };
  const age = worker.progress_age_ms + age_ms;
  return { link, agent, progress: age < SLOW_MS ? "good" : age < STUCK_MS ? "wait" : "bad" };
}

export function mountWorkers(root, context) {
  const { store, say, api } = context;
  const { meta, body } = panel(root, t("workers.title"));
  const outcome = notice();
  const clear = h("button", { class: "button small", type: "button", onclick: removeAll }, t("workers.remove.all"));
  const empty = h("p", { class: "panel-body empty" }, t("workers.empty"));
  const rows = new Map();
  const tbody = h("tbody");
  const head = COLUMNS.map((key) => h("th", { scope: "col", class: numeric(key) }, heading(key)));
  const table = h("table", { class: "workers" }, h("thead", {}, h("tr", {}, head, h("td"))), tbody);
  const below = h("p", { class: "panel-body" }, clear);
  body.replaceWith(h("div", { class: "table-wrap" }, table), empty, below, outcome.node);

  function render({ snapshot, heardAt }) {
    const workers = (snapshot?.workers || []).toSorted(byName);
    empty.hidden = workers.length > 0 || !snapshot;
    table.hidden = workers.length === 0;
    below.hidden = workers.length < 2;
    const here = workers.filter(({ link }) => link === "LINKED");
    const cores = here.reduce((sum, worker) => sum + (worker.threads || worker.cores || 0), 0);
    setText(meta, workers.length ? t("workers.count", { here: here.length, all: workers.length, cores }) : "");
    const gone = new Set(rows.keys());
    workers.forEach((worker, at) => {
      gone.delete(worker.id);
      if (!rows.has(worker.id)) rows.set(worker.id, makeRow(context, outcome));
      const row = rows.get(worker.id);
      if (row.link && row.link !== "LOST" && worker.link === "LOST") say(t("workers.lost", { name: worker.name }));
      row.link = worker.link;
      row.show(worker, heardAt);
      if (tbody.children[at] !== row.node) tbody.insertBefore(row.node, tbody.children[at] || null);
    });
    for (const id of gone) {
      rows.get(id).node.remove();
      rows.delete(id);
    }
  }

  async function removeAll() {
    const title = t("workers.remove.all.title", { n: rows.size });
    if (!(await confirm(title, t("workers.remove.all.text"), t("workers.remove.yes")))) return;
    outcome.say("");
    try {
      await api.removeAllWorkers();
    } catch (error) {
      outcome.say(error.message);
    }
  }

  store.on(["workers", "link"], render);
  setInterval(() => {
    const { link, lostSince, heardAt } = store.state;
    if (document.hidden || link.state !== "live" || lostSince !== null) return; // what is stale does not age further
    for (const row of rows.values()) row.age(heardAt);
  }, 1000);
}

const byName = (a, b) => a.name.localeCompare(b.name, "en", { numeric: true }) || (a.id < b.id ? -1 : 1);

/** The head of a column; that of the lamps has a word above each. */
function heading(key) {
  if (key !== "lamps") return t(`workers.${key}`);
  const words = ["link", "agent", "progress"].map((lamp) => h("span", {}, t(`lamp.${lamp}`)));
  return h("span", { class: "lamp-row" }, words);
}

const numeric = (key) => (["cores", "speed", "share", "done"].includes(key) ? "number" : "");

function makeRow({ api }, outcome) {
  let worker = null;
  const cell = (key, ...parts) => h("td", { class: `${key} ${numeric(key)}`, "data-label": label(key) }, ...parts);
  const name = h("span");
  const platform = h("small");
  const word = h("span");
  const reason = h("small");
  const lamps = Object.fromEntries(["link", "agent", "progress"].map((key) => [key, h("span")]));
  const cores = h("span");
  const speed = h("span");
  const share = h("span");
  const bar = h("i");
  const work = h("small"); // local steps x batch of the newest round
  const rounds = h("span");
  const samples = h("small");
  const marks = { clipped: h("small", { class: "mark warn" }), mismatches: h("small", { class: "mark bad" }) };
  const remove = h("button", { class: "button icon", type: "button", onclick: () => ask() }, "✕");
  const node = h(
    "tr",
    {},
    cell("name", name, platform),
    cell("state", word, reason),
    cell("lamps", h("span", { class: "lamp-row" }, Object.values(lamps))),
    cell("cores", cores),
    cell("speed", speed),
    cell("share", share, h("span", { class: "share-bar", "aria-hidden": "true" }, bar), work),
    cell("done", rounds, samples, ...Object.values(marks)),
    h("td", { class: "act" }, remove),
  );

  function show(next, heardAt) {
    worker = next;
    setText(name, worker.name);
    setText(platform, worker.platform || "");
    setText(reason, worker.reason || "");
    const same = worker.threads === worker.cores;
    const counts = { threads: integer(worker.threads), cores: integer(worker.cores) };
    setText(cores, same ? counts.cores : t("workers.threads", counts));
    setText(speed, rate(worker.samples_per_s));
    setText(share, percent(worker.share, 0));
    const steps = { k: integer(worker.k_steps), batch: integer(worker.batch) };
    setText(work, worker.batch ? t("workers.work", steps) : "");
    bar.style.width = `${(worker.share || 0) * 100}%`;
    setText(rounds, integer(worker.accepted_rounds));
    setText(samples, t("workers.samples", { n: integer(worker.samples_total) }));
    mark("clipped", worker.clipped_rounds);
    mark("mismatches", worker.mismatches);
    setAttribute(remove, "aria-label", t("workers.remove", { name: worker.name }));
    age(heardAt);
  }

  /** A count that is shown when it is not 0, with a sentence that says what it means. */
  function mark(key, count) {
    const n = integer(count);
    marks[key].hidden = !count;
    setText(marks[key], count ? t(`workers.${key}`, { n }) : "");
    const sentence = count ? t(`workers.${key}.more`, { n }) : null;
    setAttribute(marks[key], "title", sentence);
    setAttribute(marks[key], "role", "img");
    setAttribute(marks[key], "aria-label", sentence);
  }

  /** What changes with time alone. */
  function age(heardAt) {
    const ms = performance.now() - (worker.told_at ?? heardAt);
    const found = lampsOf(worker, ms);
    for (const [key, lamp] of Object.entries(lamps)) {
      const sentence = `${t(`lamp.${key}`)}: ${t(`lamp.${found[key]}`)}`;
      setText(lamp, LAMPS[found[key]]);
      setAttribute(lamp, "class", CLASSES[found[key]]);
      setAttribute(lamp, "title", sentence);
      setAttribute(lamp, "role", "img");
      setAttribute(lamp, "aria-label", sentence);
    }
    const state = found.link !== "good" ? found.link : found.agent;
    setText(word, `${LAMPS[state]} ${wordOf(worker, ms)}`);
    setAttribute(word, "class", CLASSES[state]);
    node.classList.toggle("away", found.link === "bad");
  }

  async function ask() {
    const { id, name: called } = worker;
    const title = t("workers.remove.title", { name: called });
    if (!(await confirm(title, t("workers.remove.text"), t("workers.remove.yes")))) return;
    outcome.say("");
    try {
      await api.removeWorker(id);
    } catch (error) {
      outcome.say(error.message);
    }
  }

  return { node, show, age };
}

const label = (key) => (["name", "state"].includes(key) ? null : t(`workers.${key}`));

function wordOf(worker, ms) {
  if (worker.link !== "LINKED") {
    const known = Number.isFinite(worker.last_heard_ms_ago);
    const silent = known ? ` ${duration((worker.last_heard_ms_ago + ms) / 1000)}` : "";
    return `${worker.link}${silent}`;
  }
  const step = worker.agent === "training" && worker.steps_total ? ` ${worker.step}/${worker.steps_total}` : "";
  return `${worker.agent}${step}`;
}
