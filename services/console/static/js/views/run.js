// What happens now, with its reason; progress, figures, and the buttons that fit the phase.

import { h, notice, panel, setAttribute, setText } from "../core/dom.js";
import { duration, integer, loss, percent, rate } from "../core/format.js";
import { t } from "../core/text.js";
import { confirm } from "../ui/dialog.js";

const PHASES = {
  IDLE: ["○", "muted"],
  RUNNING: ["▸", "good"],
  WAITING: ["◌", "warn"],
  PAUSED: ["‖", "warn"],
  STOPPED: ["■", "muted"],
  FAILED: ["×", "bad"],
  FINISHED: ["✓", "good"],
};
const ACTIVE = ["RUNNING", "WAITING", "PAUSED"];

/** Whether a run goes on, so that no other can start. */
export const isActive = (run) => Boolean(run) && !run.finished && ACTIVE.includes(run.phase);

const phaseOf = (run) => (run.finished ? "FINISHED" : run.phase);

export function mountRun(root, { store, api, say }) {
  const { meta, body } = panel(root, t("run.title"));
  const phase = h("span", { class: "phase" });
  const reason = h("span", { class: "reason" });
  const fill = h("div", { class: "fill" });
  const progress = h("div", { class: "progress", role: "progressbar", "aria-label": t("run.progress") }, fill);
  const figures = Object.fromEntries(["round", "loss", "accuracy", "eta", "speed"].map((key) => [key, figure(key)]));
  const list = h("dl", { class: "figures" }, Object.values(figures).map(({ node }) => node));
  const outcome = notice();
  const buttons = {
    start: button("start", () => toStart(), "primary"),
    pause: button("pause", () => act("pause")),
    resume: button("resume", () => act("resume"), "primary"),
    stop: button("stop", () => stop(), "danger"),
  };
  const foot = h("div", { class: "run-foot" }, list, h("div", { class: "buttons" }, Object.values(buttons)));
  body.append(h("p", { class: "run-line" }, phase, reason), progress, foot, outcome.node);
  let run = null;
  let spoken = "";

  store.on(["run", "history", "link", "workers"], ({ snapshot }) => {
    run = snapshot?.run || null;
    if (run) showRun();
    else showNone(snapshot);
    showButtons();
  });

  function showRun() {
    const name = phaseOf(run);
    const [glyph, kind] = PHASES[name] || PHASES.IDLE;
    setText(phase, `${glyph} ${t(`phase.${name}`)}`);
    setAttribute(phase, "class", `phase ${kind}`);
    setText(reason, run.reason || "");
    const names = run.name === run.spec.dataset ? [run.name] : [run.name, run.spec.dataset];
    setText(meta, [...names, t("run.parameters", { n: integer(run.n_parameters) })].join(" · "));
    const now = `${run.id} ${name}`;
    const facts = { name: run.name, phase: t(`phase.${name}`), reason: run.reason };
    if (spoken && spoken !== now) say(t("run.phaseNow", facts));
    spoken = now;
    const share = Math.min(1, run.version / Math.max(1, run.rounds_total));
    fill.style.width = `${(share * 100).toFixed(2)}%`;
    setAttribute(progress, "aria-valuemax", run.rounds_total);
    setAttribute(progress, "aria-valuenow", run.version);
    figures.round.show(integer(run.version), t("run.of", { total: integer(run.rounds_total) }), "");
    const { last_eval: last, best_eval: best } = run;
    figures.loss.show(loss(last?.loss), "", best && t("run.best", { value: loss(best.loss) }));
    figures.accuracy.show(percent(last?.accuracy), "", best && t("run.best", { value: percent(best.accuracy) }));
    const perMinute = run.phase === "RUNNING" ? run.rounds_per_minute : null;
    figures.eta.show(perMinute ? duration(((run.rounds_total - run.version) / perMinute) * 60) : "–", "", "");
    figures.speed.show(rate(perMinute), "", t("run.perMinute"));
  }

  function showNone(snapshot) {
    setText(phase, `○ ${t("phase.IDLE")}`);
    setAttribute(phase, "class", "phase muted");
    const here = snapshot?.workers.some((worker) => worker.link === "LINKED");
    const next = snapshot ? t(here ? "run.none.more" : "run.none.workers") : "";
    setText(reason, `${t("run.none")} ${next}`);
    setText(meta, "");
  }

  function showButtons() {
    const active = isActive(run);
    list.hidden = progress.hidden = !run;
    buttons.start.hidden = active;
    buttons.pause.hidden = !active || run.phase === "PAUSED";
    const goesOn = run?.phase === "PAUSED" || (run?.phase === "FAILED" && run.n_parameters > 0);
    buttons.resume.hidden = !goesOn;
    buttons.stop.hidden = !active;
  }

  function toStart() {
    const form = document.getElementById("start");
    form.scrollIntoView({ block: "nearest" });
    form.querySelector("select, input")?.focus();
  }

  async function stop() {
    const text = t("run.stop.text", { name: run.name, version: run.version });
    if (await confirm(t("run.stop.title"), text, t("run.stop"))) await act("stop");
  }

  async function act(action) {
    outcome.say("");
    try {
      await api.runAction(run.id, action);
    } catch (error) {
      outcome.say(error.message);
    }
  }
}

function button(key, onclick, kind = "") {
  return h("button", { class: `button ${kind}`, type: "button", onclick }, t(`run.${key}`));
}

function figure(key) {
  const value = h("span");
  const unit = h("small");
  const note = h("span", { class: "note" });
  return {
    node: h("div", { class: "figure" }, h("dt", {}, t(`run.${key}`)), h("dd", {}, value, unit), note),
    show(text, unitText, noteText) {
      setText(value, text);
      setText(unit, unitText);
      setText(note, noteText || "");
    },
  };
}
