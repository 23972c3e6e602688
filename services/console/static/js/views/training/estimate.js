// What the run in the form would amount to: asked of the console a moment after the last change.

import { bytes, duration, rate } from "../../core/format.js";
import { t } from "../../core/text.js";
import { html, useEffect, useSignal } from "../../ui/html.js";
import { reading } from "./form.js";

const PAUSE_MS = 400;
const NAMES_MAX = 3; // as worth.py has it
const NOT_RECKONED = ["name", "model_path", "model_every"];

export function Estimate({ store, api }) {
  const found = useSignal(null);
  const { spec, faults } = reading.value;
  const asked = spec.dataset && Object.keys(faults).length === 0 ? JSON.stringify(spec, reckoned) : "";
  const ready = readyIds(store);
  useEffect(() => {
    if (!asked || !store.isLive.value) {
      found.value = null;
      return undefined;
    }
    const abort = new AbortController();
    const timer = setTimeout(async () => {
      const answer = await api.estimate(JSON.parse(asked), abort.signal).catch(() => null);
      if (!abort.signal.aborted) found.value = answer; // null: what is wrong is said when the form is sent
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [asked, ready, store.isLive.value]);
  return html`<div class="estimate" role="status">${found.value && html`<${Found} found=${found.value} />`}</div>`;
}

function reckoned(key, value) {
  return NOT_RECKONED.includes(key) ? undefined : value;
}

/** The workers that a run would have: when they change, so does the estimate. */
function readyIds(store) {
  const ready = store.workers.value.filter(({ link, agent }) => link === "LINKED" && agent !== "paused");
  return ready.map(({ id }) => id).join();
}

function Found({ found }) {
  const values = facts(found);
  const time = t(found.minutes === null ? "estimate.noTime" : "estimate.time", values);
  const left = found.verdict.leave_out.slice(0, NAMES_MAX);
  const reasons = left.map(({ code, name }) => t(`estimate.leave.${code}`, { name }));
  const notes = found.hints.map(({ code }) => `△ ${t(`estimate.hint.${code}`, values)}`);
  return html`
    <p class="estimate-numbers">${[time, t("estimate.epochs", values), t("estimate.bytes", values)].join(" · ")}</p>
    <p>${t(`estimate.verdict.${found.verdict.code}`, values)}</p>
    <ul>
      ${[...reasons, ...notes].map((text) => html`<li key=${text}>${text}</li>`)}
    </ul>
  `;
}

const atLeast1s = (seconds) => duration(seconds === null ? null : Math.max(1, seconds));

/** The parameters of the sentences. */
function facts({ minutes, epochs, workers, verdict, bytes_per_round, bytes_total }) {
  const { alone_s, speedups, best_workers, leave_out } = verdict;
  const names = leave_out.slice(0, NAMES_MAX).map(({ name }) => name);
  if (leave_out.length > NAMES_MAX) names.push("…");
  return {
    time: atLeast1s(minutes === null ? null : minutes * 60),
    epochs: rate(epochs),
    round: bytes(bytes_per_round),
    total: bytes(bytes_total),
    workers,
    here: speedups.length,
    alone: atLeast1s(alone_s),
    speedup: rate(speedups.at(-1)),
    names: names.join(", "),
    gain: rate(speedups[best_workers - 1] / speedups.at(-1)),
  };
}
