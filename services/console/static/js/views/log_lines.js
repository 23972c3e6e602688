// The list of log lines. At its end it follows; scrolled up, or with a line in the keyboard's hands, it holds still and
// counts what is new.

import { integer, time } from "../core/format.js";
import { lineText, MORE, pick } from "../core/lines.js";
import { language, t } from "../core/text.js";
import { html, useLayoutEffect, useMemo, useRef, useSignal } from "../ui/html.js";
import { copyText } from "../ui/panel.js";
import { sentenceOf } from "./system.js";

export const KIND_CLASSES = { WARN: "k-warn", ERROR: "k-error", AUTH: "k-warn", INIT: "k-good" };
const AT_END_PX = 24;
const COPIED_MS = 1500;
const BLOCKS_ADDED_MAX = 40; // below what is held

/** `fits(line)`: the filter; whoever changes it makes this list anew. */
export function Lines({ store, fits, say }) {
  const list = useRef(null);
  const held = useSignal(null); // {blocks, earlier, last} that are not to be moved
  const grown = useRef(null); // the height before earlier lines were put above
  const log = store.log.value;
  const shown = held.value ? withNewer(held.value, log, fits) : pick(log, fits);

  useLayoutEffect(() => {
    const node = list.current;
    if (held.value === null) node.scrollTop = node.scrollHeight;
    else if (grown.current !== null) node.scrollTop += node.scrollHeight - grown.current;
    grown.current = null;
  });

  const hold = () => {
    held.value ??= { blocks: shown.blocks, earlier: shown.earlier, last: shown.last };
  };
  const follow = () => {
    held.value = null;
    list.current.focus({ preventScroll: true });
  };
  const onScroll = () => {
    const node = list.current;
    if (!node) return; // the view was left while it scrolled
    if (!isAtEnd(node)) hold();
    else if (!node.querySelector("button:focus-visible")) held.value = null;
  };
  const more = () => {
    grown.current = list.current.scrollHeight;
    const most = shown.blocks.reduce((sum, block) => sum + block.length, 0) + MORE;
    const { blocks, earlier, last } = pick(log, fits, { most });
    held.value = { blocks, earlier, last };
  };
  const copy = async (event) => {
    const button = event.target.closest("button[data-line]");
    if (!button) return;
    const line = shown.blocks.flat().find(({ id }) => id === button.dataset.line);
    say(await copyText(lineText(line, sentenceOf(line))));
    button.dataset.copied = "";
    setTimeout(() => delete button.dataset.copied, COPIED_MS);
  };
  return html`
    <div class="log-frame">
      <ol
        ref=${list}
        class="log-lines"
        tabindex="0"
        aria-labelledby="log-title"
        aria-describedby="log-help"
        onScroll=${onScroll}
        onClick=${copy}
        onKeyDown=${walk}
        onFocusIn=${(event) => event.target.matches("button:focus-visible") && hold()}
      >
        ${shown.earlier > 0 &&
        html`
          <li key="earlier" class="earlier">
            <button class="button small" type="button" onClick=${more}>
              ${t("log.earlier", { n: integer(Math.min(MORE, shown.earlier)) })}
            </button>
          </li>
        `}
        ${shown.blocks.map((block) => html`<${Block} key=${block[0].id} lines=${block} />`)}
      </ol>
      ${shown.blocks.length === 0 &&
      html`<p class="panel-body empty">${t(log.count === 0 ? "log.empty" : "log.none", { n: integer(log.count) })}</p>`}
      ${shown.fresh > 0 &&
      html`
        <button class="button small log-new" type="button" onClick=${follow}>
          ${t("log.new", { n: shown.fresh === 1 ? 1 : integer(shown.fresh) })}
        </button>
      `}
      <p id="log-help" class="hidden">${t("log.help")}</p>
    </div>
  `;
}

/** What is held, with what came since below it: that moves nothing. Only so much; the rest waits for the end. */
function withNewer(kept, log, fits) {
  const { blocks, total, last } = pick(log, fits, { from: kept.last, most: Infinity });
  return { blocks: [...kept.blocks, ...blocks.slice(0, BLOCKS_ADDED_MAX)], earlier: kept.earlier, fresh: total, last };
}

const isAtEnd = (node) => node.scrollHeight - node.scrollTop - node.clientHeight < AT_END_PX;

/** Up and Down go from line to line, from the list itself to the last or the first line that is seen. */
function walk(event) {
  const way = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (way === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
  const list = event.currentTarget;
  const buttons = [...list.querySelectorAll("button[data-line]")];
  const at = buttons.indexOf(document.activeElement);
  const next = at < 0 ? firstSeen(list, buttons, way) : buttons[at + way];
  if (!next) return;
  event.preventDefault();
  next.focus();
}

function firstSeen(list, buttons, way) {
  const frame = list.getBoundingClientRect();
  const seen = (button) => {
    const { top, bottom } = button.getBoundingClientRect();
    return top >= frame.top && bottom <= frame.bottom;
  };
  return way > 0 ? buttons.find(seen) : buttons.findLast(seen);
}

/** Drawn again only when it has grown or the language is another. */
function Block({ lines }) {
  const speech = language.value;
  return useMemo(() => lines.map((line) => html`<${Line} key=${line.id} line=${line} />`), [lines.length, speech]);
}

function Line({ line }) {
  const { id, kind, time_ms: at } = line;
  const sentence = sentenceOf(line);
  return html`
    <li class=${KIND_CLASSES[kind]}>
      <time>${time(at)}</time>
      <span class="message"><span class="kind">[${kind}]</span> ${sentence}</span>
      <button
        class="log-copy"
        type="button"
        tabindex="-1"
        data-line=${id}
        aria-label=${t("log.copyLine", { line: `[${kind}] ${sentence}` })}
      ></button>
    </li>
  `;
}
