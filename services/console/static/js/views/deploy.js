// Scripts by hand: what to do on this PC once, and step by step on another one, by its system.

import { go } from "../core/route.js";
import { t } from "../core/text.js";
import { Command } from "../ui/command.js";
import { html, signal } from "../ui/html.js";
import { Panel } from "../ui/panel.js";
import { Tabs } from "../ui/tabs.js";
import { addressOf, firewallLine, FIREWALLS, portOf, stepsFor, SYSTEMS } from "./deploy_lines.js";
import { made } from "./join_lines.js";

const system = signal(SYSTEMS[0]); // both as chosen, as long as the page is open
const firewall = signal(navigator.platform.startsWith("Win") ? "windows" : FIREWALLS[0]);

export function DeployView({ store }) {
  const endpoints = store.master.value?.endpoints;
  return html`
    <${Panel} id="deploy" title=${t("deploy.title")} className="deploy">
      <p>${t("deploy.text")}</p>
      <p class="muted">${t("deploy.later")}</p>
    <//>
    <div class="deploy-pair">
      <${OtherPc} endpoints=${endpoints} />
      <div class="deploy-side">
        <${ThisPc} endpoints=${endpoints} />
        <${Guide} />
        <${Programs} />
      </div>
    </div>
  `;
}

/** What the PC that leads needs once: a port that the others reach. */
function ThisPc({ endpoints }) {
  const port = portOf(endpoints);
  const kind = firewall.value;
  const line = firewallLine(kind, port);
  const address = addressOf(endpoints);
  return html`
    <${Panel} id="deploy-here" title=${t("deploy.here")}>
      <p>
        ${address
          ? t("deploy.here.reached", { at: `${address.host}:${address.port}` })
          : html`<span class="warn"><span aria-hidden="true">△ </span>${t("deploy.here.alone")}</span>`}
      </p>
      <p class="deploy-note">${t("deploy.here.port", { port })}</p>
      <${Tabs}
        id="deploy-firewall"
        label=${t("deploy.firewall")}
        tabs=${words(FIREWALLS, "deploy.firewall")}
        chosen=${firewall}
      >
        <p class="muted deploy-note">${t(`deploy.firewall.${kind}.more`)}</p>
        ${line && html`<${Command} text=${line} name=${t(`deploy.firewall.${kind}`)} />`}
      <//>
    <//>
  `;
}

function OtherPc({ endpoints }) {
  const name = system.value;
  const steps = stepsFor(name, { address: addressOf(endpoints), joinString: made.value?.join_string });
  const step = (key, ...lines) => html`
    <li key=${key}>
      <h3>${t(`deploy.${key}`)}</h3>
      <p class="muted">${t(`deploy.${key}.${name}`)}</p>
      ${lines}
    </li>
  `;
  const line = (text, key) => html`<${Command} text=${text} name=${t(`deploy.${key}`)} />`;
  return html`
    <${Panel} id="deploy-other" title=${t("deploy.other")}>
      <${Tabs} id="deploy-system" label=${t("deploy.system")} tabs=${words(SYSTEMS, "deploy.system")} chosen=${system}>
        <ol class="deploy-steps">
          ${step("get")} ${step("install", line(steps.install, "install"))} ${step("reach", line(steps.reach, "reach"))}
          ${step(
            "join",
            ...steps.join.map(
              ([shell, text]) => html`
                ${steps.join.length > 1 && html`<p class="muted deploy-shell">${t(`join.shell.${shell}`)}</p>`}
                <${Command} text=${text} name=${t(`join.shell.${shell}`)} />
              `,
            ),
            made.value
              ? html`<p class="muted">${t("deploy.join.made")}</p>`
              : html`<button class="button" type="button" onClick=${toJoin}>${t("deploy.join.make")}</button>`,
          )}
          ${step("again", line(steps.again, "again"))}
        </ol>
      <//>
    <//>
  `;
}

function Guide() {
  return html`
    <${Panel} id="deploy-guide" title=${t("deploy.guide")}>
      <p>${t("deploy.guide.text")}</p>
      <ul class="rows spaced">
        ${["guide.file", "guide.messages", "guide.containers"].map(
          (key) => html`<li key=${key}><code>${t(key)}</code><span class="muted grow">${t(`${key}.more`)}</span></li>`,
        )}
      </ul>
    <//>
  `;
}

/** What the console offers to programs, on pages of its own. */
function Programs() {
  return html`
    <${Panel} id="deploy-programs" title=${t("deploy.programs")}>
      <p>${t("deploy.programs.text")}</p>
      <ul class="rows spaced">
        ${["docs", "metrics"].map(
          (path) => html`
            <li key=${path}>
              <a href=${path}>/${path}</a><span class="muted grow">${t(`deploy.programs.${path}`)}</span>
            </li>
          `,
        )}
      </ul>
    <//>
  `;
}

const words = (keys, prefix) => keys.map((key) => [key, t(`${prefix}.${key}`)]);

function toJoin() {
  go("cluster");
  requestAnimationFrame(() => setTimeout(() => document.getElementById("join-label")?.focus()));
}
