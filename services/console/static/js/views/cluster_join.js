// Another machine: a join string is made and shown once, as lines to paste; those that stand are listed and revoked.

import { date } from "../core/format.js";
import { t } from "../core/text.js";
import { Command } from "../ui/command.js";
import { confirm } from "../ui/dialog.js";
import { Field } from "../ui/field.js";
import { html, signal, useAction, useComputed, useEffect, useSignal } from "../ui/html.js";
import { Notice, Panel } from "../ui/panel.js";
import { Tabs } from "../ui/tabs.js";
import { addressOf } from "./deploy_lines.js";
import { joinLine, made, shell, SHELLS } from "./join_lines.js";

const TIMES = { 3600: "hour", 86400: "day", 604800: "week" };
const PAGES_MAX = 20; // of the list
const wanted = signal({ label: "page", expires_s: "3600", uses: "20" }); // as typed, as long as the page is open

export function Join({ store, api }) {
  const items = useSignal(null); // null: not known
  const [busy, fault, act] = useAction();
  const present = useComputed(() => store.workers.value.map(({ id }) => id).join()); // who joins uses one up
  const live = store.isLive.value;
  const list = async () => {
    items.value = await read(api);
  };
  useEffect(() => {
    if (live) list().catch((error) => (fault.value = error.status === 404 ? null : error));
  }, [live, present.value]);

  const make = (event) => {
    event.preventDefault();
    return act(async () => {
      const { label, expires_s, uses } = wanted.value;
      made.value = await api.createJoinString({
        label: label.trim() || "page",
        expires_s: Number(expires_s),
        uses: Number(uses),
      });
      await list();
    });
  };
  const revoke = (item) =>
    act(async () => {
      await api.revokeJoinString(item.id);
      if (made.value?.id === item.id) made.value = null;
      await list();
    });
  return html`
    <${Panel} id="join" title=${t("join.title")}>
      <${Form} make=${make} busy=${busy.value} faults=${fault.value?.errors ?? []} />
      <${Notice} error=${fault.value} />
      ${made.value && html`<${Made} ...${made.value} />`}
      ${items.value?.length > 0 && html`<${Standing} items=${items.value} revoke=${revoke} />`}
    <//>
  `;
}

function Form({ make, busy, faults }) {
  const field = (key, name, rest) => html`
    <${Field}
      id=${`join-${name}`}
      label=${t(`join.${name}`)}
      value=${wanted.value[key]}
      fault=${faults.find((one) => one.field === key)?.message}
      onInput=${(value) => (wanted.value = { ...wanted.value, [key]: value })}
      ...${rest}
    />
  `;
  const times = Object.entries(TIMES).map(([key, word]) => [key, t(`join.${word}`)]);
  return html`
    <form novalidate aria-labelledby="join-title" onSubmit=${make}>
      <p class="muted form-text">${t("join.text")}</p>
      <div class="fields">
        ${field("label", "label", { maxlength: 64, wide: true })}
        ${field("expires_s", "expires", { type: "select", options: times })}
        ${field("uses", "uses", { type: "number" })}
      </div>
      <div class="buttons form-foot">
        <button class="button primary" type="submit" disabled=${busy}>${t("join.create")}</button>
      </div>
    </form>
  `;
}

/** The new join string as lines to paste. It is not shown again after this page is closed. */
function Made({ join_string: text, expires_at_ms: ends, uses, endpoints }) {
  const tabs = SHELLS.map((key) => [key, t(`join.shell.${key}`)]);
  const counts = Number.isFinite(uses) ? t("join.uses.left", { n: uses }) : "";
  return html`
    <div class="join-made">
      <${Tabs} id="join-line" label=${t("join.shells")} tabs=${tabs} chosen=${shell}>
        <p class="muted join-where">${t(`join.where.${shell.value.startsWith("docker") ? "docker" : "checkout"}`)}</p>
        <${Command} text=${joinLine(shell.value, text)} name=${t(`join.shell.${shell.value}`)} />
      <//>
      <p class="muted">${[counts, t("join.until", { time: date(ends) })].filter(Boolean).join(" · ")}</p>
      <p>
        <span class="warn"><span aria-hidden="true">△ </span>${t("join.secret")}</span>${" "}${t("join.secret.more")}
      </p>
      ${isLocal(endpoints) && html`<p class="notice warn"><span aria-hidden="true">△ </span>${t("join.onlyHere")}</p>`}
    </div>
  `;
}

/** Whether it leads to this PC alone. */
const isLocal = (endpoints) => endpoints?.length > 0 && addressOf(endpoints) === null;

function Standing({ items, revoke }) {
  const ask = async (item) => {
    const valid = isValid(item);
    const title = t("join.revoke.title", { label: item.label });
    if (!valid || (await confirm(title, t("join.revoke.text"), t("join.revoke")))) await revoke(item);
  };
  return html`
    <h3 class="join-standing">${t("join.standing")}</h3>
    <ul class="rows">
      ${items.map((item) => {
        const word = t(isValid(item) ? "join.revoke" : "join.forget");
        return html`
          <li key=${item.id}>
            <span class="grow">${item.label} <span class="muted">${factsOf(item)}</span></span>
            <button
              class="button small danger"
              type="button"
              aria-label=${`${word}: ${item.label}`}
              onClick=${() => ask(item)}
            >
              ${word}
            </button>
          </li>
        `;
      })}
    </ul>
  `;
}

const isValid = (item) => !item.state || item.state === "valid";

function factsOf(item) {
  if (!isValid(item)) return t(item.state === "used up" ? "join.usedUp" : "join.ended");
  const left = item.uses_left;
  const uses = Number.isFinite(left) ? t("join.uses.left", { n: left }) : t("join.uses.any");
  const ends = item.expires_at_ms;
  const until = ends ? t("join.until", { time: date(ends) }) : t("join.always");
  return [item.local && t("join.local"), uses, until].filter(Boolean).join(" · ");
}

/** All that stand, those that still work first and the newest of them on top. */
async function read(api) {
  const items = [];
  let cursor = null;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const query = cursor ? `?cursor=${encodeURIComponent(cursor)}` : "";
    const answer = await (await api.request("GET", `join-strings${query}`)).json();
    items.push(...answer.items);
    cursor = answer.next_cursor;
    if (!cursor) break;
  }
  return items.toSorted((a, b) => Number(isValid(b)) - Number(isValid(a)) || b.id - a.id);
}
