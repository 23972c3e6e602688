// The straggler lane: one bar per worker for the newest round, what it did lately, and the slowest with what helps.

import { duration, integer, percent } from "../core/format.js";
import { createLately, DOING, laneOf, slowAdviceOf, slowestOf } from "../core/lanes.js";
import { isActive } from "../core/run.js";
import { t } from "../core/text.js";
import { sorted } from "../core/workers.js";
import { effect, html, useSignal } from "../ui/html.js";
import { Panel } from "../ui/panel.js";
import { useSeconds } from "../ui/seconds.js";

const SHOWN = 12;
const remembered = new WeakMap(); // store -> what its workers did lately, from the first look on

/** Goes on while another view is shown, so that what is remembered has no holes. */
function rememberer(store) {
  if (!remembered.has(store)) {
    const lately = createLately();
    remembered.set(store, lately);
    effect(() => {
      const lanes = lanesOf(store);
      if (lanes.length > 0 && store.isLive.value) lately.note(lanes, performance.now());
      else lately.pause();
    });
  }
  return remembered.get(store);
}

function lanesOf(store) {
  const run = store.run.value;
  if (!isActive(run) || !run.rounds_open?.length) return [];
  return sorted(store.workers.value, "name")
    .map((worker) => laneOf(worker, run, store.ageOf(worker)))
    .filter(Boolean);
}

export function Lanes({ store }) {
  const lately = rememberer(store);
  const all = useSignal(false);
  useSeconds(store).value; // a worker that does nothing sends nothing either
  const lanes = lanesOf(store);
  const slowest = slowestOf(lanes, lately.of);
  const ranked = lanes.length > SHOWN && !all.value ? worstFirst(lanes, slowest).slice(0, SHOWN) : lanes;
  const numbers = [...new Set(lanes.map(({ round }) => round))].toSorted((a, b) => a - b).join(", ");
  const row = (lane) => {
    const slow = lane.id === slowest?.id;
    return html`<${Lane} key=${lane.id} ...${lane} slow=${slow} lately=${lately.of(lane.id)} />`;
  };
  return html`
    <${Panel} id="lanes" title=${t("lanes.title")} meta=${numbers && t("lanes.rounds", { rounds: numbers })}>
      ${lanes.length === 0
        ? html`<p class="empty">${t("lanes.empty")}</p>`
        : html`
            <${Verdict} store=${store} slowest=${slowest} lately=${lately} />
            <ul class="lanes">${ranked.map(row)}</ul>
            ${lanes.length > SHOWN &&
            html`
              <button class="button small" type="button" aria-expanded=${all} onClick=${() => (all.value = !all.value)}>
                ${all.value ? t("lanes.fewer") : t("lanes.all", { n: integer(lanes.length) })}
              </button>
            `}
            <${Legend} />
          `}
    <//>
  `;
}

const worstFirst = (lanes, slowest) =>
  lanes.toSorted((a, b) => Number(b.id === slowest?.id) - Number(a.id === slowest?.id) || b.left_s - a.left_s);

function Verdict({ store, slowest, lately }) {
  if (!slowest) return html`<p class="lanes-verdict muted">${t("lanes.even")}</p>`;
  const worker = store.workers.value.find(({ id }) => id === slowest.id);
  const advice = slowAdviceOf(slowest, lately.of(slowest.id), worker, store.run.value);
  return html`
    <p class="lanes-verdict">
      <span class="warn"><span aria-hidden="true">▲ </span>${t("lanes.slowest", { name: slowest.name })}</span>${" "}
      ${t(`lanes.advice.${advice}`)}
    </p>
  `;
}

/** A bar for the eye, and the same in words. */
function Lane({ name, round, doing, done, share, step, total, left_s, slow, lately }) {
  const word = done ? t("lanes.done") : t(`lanes.${doing}`);
  const parts = [
    t("lanes.round", { round }),
    doing === "compute" && total > 0 ? t("lanes.step", { word, step: integer(step), total: integer(total) }) : word,
    !done && left_s >= 1 && t("lanes.left", { time: duration(left_s) }),
  ];
  return html`
    <li class=${slow ? "lane slow" : "lane"}>
      <span class="lane-name">
        ${slow && html`<span class="warn"><span aria-hidden="true">▲ </span>${t("lanes.slow")}: </span>`}${name}
      </span>
      <span class="lane-bars" aria-hidden="true">
        <span class=${`lane-now ${done ? "wait" : doing}`}><i style=${{ width: percentOf(share) }}></i></span>
        <span class="lane-lately">
          ${lately &&
          DOING.map((key) => html`<i key=${key} class=${key} style=${{ width: percentOf(lately[key]) }}></i>`)}
        </span>
      </span>
      <span class="lane-text">
        <span>${parts.filter(Boolean).join(" · ")}</span>
        ${lately && html`<span class="muted">${t("lanes.lately", { parts: inWords(lately) })}</span>`}
      </span>
    </li>
  `;
}

function Legend() {
  return html`
    <p class="lanes-legend muted" aria-hidden="true">
      ${DOING.map((key) => html`<span key=${key}><i class=${`swatch ${key}`}></i>${t(`lanes.${key}`)}</span>`)}
    </p>
    <p class="muted lanes-legend">${t("lanes.how")}</p>
  `;
}

const inWords = (lately) =>
  DOING.filter((key) => lately[key] >= 0.005)
    .map((key) => `${t(`lanes.${key}`)} ${percent(lately[key], 0)}`)
    .join(", ");

const percentOf = (share) => `${Math.round(Math.max(0, Math.min(1, share)) * 1000) / 10}%`;
