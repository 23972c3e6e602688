// What happens now, with its reason; progress, figures, and the buttons that fit the phase.

import { duration, integer, loss, percent, rate } from "../core/format.js";
import { href } from "../core/route.js";
import { canResume, etaOf, isActive, phaseOf, PHASES } from "../core/run.js";
import { reasonOf, t } from "../core/text.js";
import { confirm } from "../ui/dialog.js";
import { html, useAction, useEffect, useRef } from "../ui/html.js";
import { Figures, Notice, Panel } from "../ui/panel.js";

/** `brief`: beside the form and the queue, so without the way to them. */
export function RunNow({ store, api, say, brief }) {
  const run = store.run.value;
  const [busy, fault, act] = useAction();
  useMilestones(run, say);
  const name = phaseOf(run);
  const [glyph, kind] = PHASES[name] ?? PHASES.IDLE;
  const todo = (action) => act(() => api.runAction(run.id, action));
  const stop = async () => {
    const facts = { name: run.name, version: run.version };
    if (await confirm(t("run.stop.title"), t("run.stop.text", facts), t("run.stop"))) await todo("stop");
  };
  return html`
    <${Panel} id="run" title=${t("run.title")} meta=${run && about(run)}>
      <p class="run-line">
        <span class=${`phase ${kind}`}><span aria-hidden="true">${glyph} </span>${t(`phase.${name}`)}</span>
        <span class="reason">${run ? reasonOf(run.reason_said, run.reason) : nothing(store)}</span>
      </p>
      ${run && html`<${Progress} run=${run} />`}
      ${run && html`<${Figures} items=${figures(run)} />`}
      <div class="buttons run-buttons">
        ${isActive(run) &&
        run.phase !== "PAUSED" &&
        html`
          <button class="button" type="button" disabled=${busy} onClick=${() => todo("pause")}>
            ${t("run.pause")}
          </button>
        `}
        ${canResume(run) &&
        html`
          <button class="button primary" type="button" disabled=${busy} onClick=${() => todo("resume")}>
            ${t("run.resume")}
          </button>
        `}
        ${isActive(run) &&
        html`<button class="button danger" type="button" disabled=${busy} onClick=${stop}>${t("run.stop")}</button>`}
        ${!isActive(run) && !brief && html`<a class="button" href=${href("training")}>${t("run.start")}</a>`}
      </div>
      <${Notice} error=${fault.value} />
      ${!brief && html`<${Queue} queue=${store.queue.value} />`}
    <//>
  `;
}

function Progress({ run }) {
  const share = Math.min(1, run.version / Math.max(1, run.rounds_total));
  return html`
    <div
      class="progress"
      role="progressbar"
      aria-label=${t("run.progress")}
      aria-valuemin="0"
      aria-valuemax=${run.rounds_total}
      aria-valuenow=${run.version}
    >
      <div class="fill" style=${{ width: `${(share * 100).toFixed(2)}%` }}></div>
    </div>
  `;
}

function Queue({ queue }) {
  if (queue.length === 0) return null;
  const names = queue.map(({ name, id }) => name ?? id).join(", ");
  return html`<p class="muted">${t("run.queue", { n: queue.length, names })}</p>`;
}

const about = (run) => {
  const names = run.name === run.spec.dataset ? [run.name] : [run.name, run.spec.dataset];
  return [...names, t("run.parameters", { n: integer(run.n_parameters) })].join(" · ");
};

function nothing(store) {
  if (!store.known.value) return "";
  const here = store.workers.value.some((worker) => worker.link === "LINKED");
  return `${t("run.none")} ${t(here ? "run.none.more" : "run.none.workers")}`;
}

function figures(run) {
  const { last_eval: last, best_eval: best } = run;
  const bestOf = (value) => best && t("run.best", { value });
  const perMinute = run.phase === "RUNNING" ? run.rounds_per_minute : null;
  const of = (key, value, unit, note) => ({ key, label: t(`run.${key}`), value, unit, note });
  return [
    of("round", integer(run.version), t("run.of", { total: integer(run.rounds_total) })),
    of("loss", loss(last?.loss), "", bestOf(loss(best?.loss))),
    of("accuracy", percent(last?.accuracy), "", bestOf(percent(best?.accuracy))),
    of("eta", duration(etaOf(run))),
    of("speed", rate(perMinute), "", t("run.perMinute")),
  ];
}

/** Phases are read out when they change, not each round. */
function useMilestones(run, say) {
  const spoken = useRef("");
  const name = phaseOf(run);
  const now = run ? `${run.id} ${name}` : "";
  useEffect(() => {
    if (spoken.current && now && spoken.current !== now) {
      const reason = reasonOf(run.reason_said, run.reason);
      say(t("run.phaseNow", { name: run.name, phase: t(`phase.${name}`), reason }));
    }
    spoken.current = now;
  }, [now]);
}
