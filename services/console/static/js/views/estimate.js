// What the run in the form would amount to: asked of the console a moment after the last change, shown below the form.

import { h, setText } from "../core/dom.js";
import { bytes, duration, rate } from "../core/format.js";
import { t } from "../core/text.js";

const PAUSE_MS = 400;
const NAMES_MAX = 3; // as worth.py has it

/** {node, ask(spec)}: `ask` may come with every keystroke; null: there is nothing to ask for. */
export function estimateView(api) {
  const numbers = h("p", {});
  const verdict = h("p", {});
  const hints = h("ul", {});
  const node = h("div", { class: "notice estimate", role: "status", hidden: true }, numbers, verdict, hints);
  let timer = 0;
  let waiting = new AbortController();

  function ask(spec) {
    clearTimeout(timer);
    waiting.abort();
    if (!spec) {
      node.hidden = true;
      return;
    }
    waiting = new AbortController();
    const { signal } = waiting;
    timer = setTimeout(() => answer(spec, signal), PAUSE_MS);
  }

  async function answer(spec, signal) {
    try {
      const found = await api.estimate(spec, signal);
      if (!signal.aborted) show(found);
    } catch {
      if (!signal.aborted) node.hidden = true; // what is wrong with the form is said when it is sent
    }
  }

  function show(found) {
    const values = facts(found);
    const time = t(found.minutes === null ? "estimate.noTime" : "estimate.time", values);
    setText(numbers, [time, t("estimate.epochs", values), t("estimate.bytes", values)].join(" · "));
    setText(verdict, t(`estimate.verdict.${found.verdict.code}`, values));
    const left = found.verdict.leave_out.slice(0, NAMES_MAX);
    const reasons = left.map(({ code, name }) => t(`estimate.leave.${code}`, { name }));
    const notes = found.hints.map(({ code }) => `△ ${t(`estimate.hint.${code}`, values)}`);
    hints.replaceChildren(...[...reasons, ...notes].map((text) => h("li", {}, text)));
    node.hidden = false;
  }

  return { node, ask };
}

const atLeast1s = (seconds) => duration(seconds === null ? null : Math.max(1, seconds));

/** The parameters of the sentences. */
function facts({ minutes, epochs, workers, verdict, bytes_per_round, bytes_total }) {
  const { alone_s, speedups, best_workers, leave_out } = verdict;
  const names = leave_out.slice(0, NAMES_MAX).map(({ name }) => name);
  if (leave_out.length > NAMES_MAX) names.push("…");
  return {
    time: atLeast1s(minutes === null ? null : minutes * 60),
    epochs: epochs < 10 ? epochs.toFixed(1) : rate(epochs),
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
