// The form filled from a run that was: which one, what comes along from it without a field here, and the way back.

import { go, href } from "../../core/route.js";
import { t } from "../../core/text.js";
import { html, useEffect } from "../../ui/html.js";
import { Notice } from "../../ui/panel.js";
import { withoutField } from "./choices.js";
import { fillFrom, leaveRun, sought, source } from "./form.js";

/** Fill the form from the run of the address, once; whether that is still to come. */
export function useFromRun(api, live, id) {
  useEffect(() => {
    if (!id) sought.value = null;
    else if (live && source.value?.id !== id) fillFrom(api, id);
  }, [live, id]);
  return Boolean(id) && source.value?.id !== id && !sought.value?.error;
}

export function FromRun() {
  const { id: asked, error } = sought.value ?? {};
  return html`
    <div role="status">
      ${asked && !error && html`<p class="muted">${t("start.from.reading", { id: asked })}</p>`}
      ${source.value && html`<${Source} ...${source.value} />`}
    </div>
    ${error && html`<${Missing} id=${asked} error=${error} />`}
  `;
}

function Source({ id, spec }) {
  const others = withoutField(spec).map(([name, value]) => `${name} ${value}`);
  const leave = () => {
    leaveRun();
    go("training");
    document.getElementById("start").focus(); // the button goes away
  };
  return html`
    <div class="from-run">
      <p>
        ${t("start.from")}${" "}<a href=${href("runs", id)}>${spec.name}</a> <span class="muted">(${id})</span>.${" "}
        ${t("start.from.more")}
      </p>
      ${others.length > 0 && html`<p class="muted">${t("start.from.others")} <code>${others.join(" · ")}</code></p>`}
      <button class="button small" type="button" onClick=${leave}>${t("start.from.leave")}</button>
    </div>
  `;
}

/** There is no such run, or it cannot be read now. */
function Missing({ id, error }) {
  const unknown = [404, 422].includes(error.status); // 422: nothing that a run could be called
  return html`
    <${Notice} kind="warn" error=${unknown ? null : error} text=${`△ ${t("start.from.unknown", { id })}`} />
  `;
}
