// Add a machine: make a join string, copy the one line to paste there, and take a string back.

import { h, notice, panel, setText } from "../core/dom.js";
import { date, integer } from "../core/format.js";
import { t } from "../core/text.js";
import { confirm } from "../ui/dialog.js";
import { field, options } from "../ui/fields.js";

const TIMES = [
  ["3600", t("join.hour")],
  ["86400", t("join.day")],
  ["604800", t("join.week")],
];
const COPIED_MS = 2000;

export function mountJoin(root, { store, api }) {
  const { body } = panel(root, t("join.title"));
  const label = field("join-label", t("join.label"), { props: { maxlength: 64, value: "page" }, wide: true });
  const expires = field("join-expires", t("join.expires"), { control: "select", options: options(TIMES) });
  const uses = field("join-uses", t("join.uses"), { props: { inputmode: "numeric", value: "20" } });
  const create = h("button", { class: "button", type: "submit" }, t("join.create"));
  const command = h("code", { class: "command", tabindex: "0" });
  const until = h("span", { class: "muted" });
  const copy = h("button", { class: "button small", type: "button", onclick: () => copyLine() }, t("join.copy"));
  const made = h("div", { hidden: true }, command, h("div", { class: "buttons form-row" }, copy, until));
  const rows = h("ul", { class: "rows spaced", hidden: true });
  const outcome = notice();
  const form = h(
    "form",
    { novalidate: true, "aria-labelledby": `${root.id}-title` },
    h("p", { class: "muted form-text" }, t("join.text")),
    h("div", { class: "fields" }, label.node, expires.node, uses.node),
    h("div", { class: "buttons form-foot" }, create),
  );
  body.append(form, made, outcome.node, rows);
  let known = false;

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    make();
  });
  store.on(["link"], ({ link }) => {
    if (link.state === "live" && !known) list();
  });

  async function make() {
    for (const one of [label, expires, uses]) one.fault("");
    await act(async () => {
      const wanted = {
        label: label.input.value.trim() || "page",
        expires_s: Number(expires.input.value),
        uses: Number(uses.input.value),
      };
      const answer = await api.createJoinString(wanted);
      setText(command, `mahe join ${answer.join_string}`);
      setText(until, t("join.until", { time: date(answer.expires_at_ms) }));
      made.hidden = false;
      await list();
    });
  }

  async function list() {
    await act(async () => {
      const items = await api.joinStrings();
      known = true;
      rows.hidden = items.length === 0;
      rows.replaceChildren(...items.map(row));
    });
  }

  function row(item) {
    const props = { class: "button small danger", type: "button", onclick: () => take(item) };
    const revoke = h("button", props, t("join.revoke"));
    const text = h("span", { class: "grow" }, `${item.label} `, h("span", { class: "muted" }, factsOf(item)));
    return h("li", {}, text, revoke);
  }

  function factsOf(item) {
    if (item.state && item.state !== "valid") return t("join.ended");
    const left = item.uses_left;
    const uses = Number.isFinite(left) ? t("join.uses.left", { n: integer(left) }) : t("join.uses.any");
    const ends = item.expires_at_ms;
    return t("join.row", { uses, until: ends ? t("join.until", { time: date(ends) }) : t("join.always") });
  }

  async function take(item) {
    const title = t("join.revoke.title", { label: item.label });
    if (!(await confirm(title, t("join.revoke.text"), t("join.revoke")))) return;
    await act(async () => {
      await api.revokeJoinString(item.id);
      await list();
    });
  }

  async function act(work) {
    outcome.say("");
    try {
      await work();
    } catch (error) {
      const places = { label, expires_s: expires, uses };
      for (const fault of error.errors || []) places[fault.field]?.fault(fault.message);
      outcome.say(error.message);
    }
  }

  async function copyLine() {
    try {
      await navigator.clipboard.writeText(command.textContent);
      setText(copy, t("join.copied"));
      setTimeout(() => setText(copy, t("join.copy")), COPIED_MS);
    } catch {
      outcome.say(t("join.copyFailed"));
      getSelection().selectAllChildren(command);
    }
  }
}
