// `[KIND] message` lines. While it is scrolled up it holds still and counts what is new.

import { h, panel, setText } from "../core/dom.js";
import { integer, time } from "../core/format.js";
import { t } from "../core/text.js";

const SHOWN_MAX = 2000;
const AT_END_PX = 24;
const LOUD = { WARN: "k-warn", ERROR: "k-error", AUTH: "k-warn" };

export function mountLog(root, { store }) {
  const { meta, body } = panel(root, t("log.title"));
  const list = h("ol", { class: "log-lines", tabindex: "0", "aria-labelledby": `${root.id}-title` });
  const empty = h("p", { class: "panel-body empty" }, t("log.empty"));
  const more = h("button", { class: "button small log-new", type: "button", hidden: true, onclick: () => toEnd() });
  body.replaceWith(h("div", { class: "log-frame" }, list, empty, more));
  let taken = 0; // lines ever put into the list
  let unseen = 0;
  let following = true;

  list.addEventListener("scroll", () => {
    following = list.scrollHeight - list.scrollTop - list.clientHeight < AT_END_PX;
    if (following) seenAll();
  });

  store.on(["log"], ({ lines, linesDropped }) => {
    const all = linesDropped + lines.length;
    const fresh = lines.slice(Math.max(lines.length - SHOWN_MAX, taken - linesDropped, 0));
    if (fresh.length === 0) return;
    empty.hidden = true;
    list.append(...fresh.map(lineNode));
    if (following) {
      while (list.children.length > SHOWN_MAX) list.firstChild.remove();
      list.scrollTop = list.scrollHeight;
    } else {
      unseen += all - taken;
      more.hidden = false;
      setText(more, t("log.new", { n: integer(unseen) }));
      while (list.children.length > 2 * SHOWN_MAX) list.firstChild.remove();
    }
    taken = all;
    setText(meta, t("log.count", { n: integer(all) }));
  });

  function seenAll() {
    unseen = 0;
    more.hidden = true;
  }

  function toEnd() {
    following = true;
    list.scrollTop = list.scrollHeight;
    seenAll();
    list.focus({ preventScroll: true });
  }
}

function lineNode({ time_ms: at, kind, text }) {
  const message = h("span", {}, h("span", { class: "kind" }, `[${kind}]`), ` ${text}`);
  return h("li", { class: LOUD[kind] || "" }, h("time", {}, time(at)), message);
}
