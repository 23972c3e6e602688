// `[KIND] message` lines of master and workers: by kind and by text, to copy; and the file for whoever helps.

import { saveResponse } from "../core/download.js";
import { integer } from "../core/format.js";
import { kindsOf, lineText, pick } from "../core/lines.js";
import { has, t } from "../core/text.js";
import { html, signal, useAction, useComputed, useSignal } from "../ui/html.js";
import { Notice, Panel, copyText } from "../ui/panel.js";
import { KIND_CLASSES, Lines } from "./log_lines.js";
import { sentenceOf } from "./system.js";

// Kept while other views are shown.
const kinds = signal([]); // chosen; none: all
const words = signal("");

export function LogsView({ store, api, say }) {
  const fits = useComputed(() => fitting(kinds.value, words.value.trim().toLowerCase()));
  const { lines, dropped, count } = store.log.value;
  const numbers = { n: integer(count), kept: integer(lines.length) };
  const meta = count > 0 && t(dropped > 0 ? "log.countKept" : "log.count", numbers);
  return html`
    <${Panel} id="log" title=${t("log.title")} meta=${meta} tight className="log-panel">
      <${Tools} store=${store} fits=${fits} />
      <${Lines} key=${`${kinds.value} ${words.value}`} store=${store} fits=${fits.value} say=${say} />
    <//>
    <${Support} api=${api} />
  `;
}

function fitting(chosen, text) {
  if (chosen.length === 0 && text === "") return () => true;
  return (line) =>
    (chosen.length === 0 || chosen.includes(line.kind)) &&
    (text === "" || `[${line.kind}] ${sentenceOf(line)}`.toLowerCase().includes(text));
}

function Tools({ store, fits }) {
  const told = useSignal("");
  const copy = async () => {
    const { blocks } = pick(store.log.value, fits.value, { most: Infinity });
    const texts = blocks.flat().map((line) => lineText(line, sentenceOf(line)));
    told.value = await copyText(`${texts.join("\n")}\n`);
    setTimeout(() => (told.value = ""), 4000);
  };
  const total = useComputed(() => pick(store.log.value, fits.value).total);
  return html`
    <div class="log-tools">
      <${Kinds} store=${store} />
      <label class="inline search">
        ${t("log.search")}${" "}
        <input
          id="log-search"
          type="search"
          autocomplete="off"
          value=${words}
          onInput=${(event) => (words.value = event.currentTarget.value)}
        />
      </label>
      <button class="button small" type="button" disabled=${total.value === 0} onClick=${copy}>
        ${t("log.copy", { n: integer(total.value) })}
      </button>
      <span class="muted" role="status">${told}</span>
    </div>
  `;
}

function Kinds({ store }) {
  const found = useComputed(() => kindsOf(store.log.value.lines));
  const toggle = (kind) => {
    kinds.value = kinds.value.includes(kind) ? kinds.value.filter((one) => one !== kind) : [...kinds.value, kind];
  };
  return html`
    <div class="kinds" role="group" aria-label=${t("log.kinds")}>
      <button
        class="button small"
        type="button"
        aria-pressed=${kinds.value.length === 0}
        onClick=${() => (kinds.value = [])}
      >
        ${t("log.all")}
      </button>
      ${found.value.map(
        ([kind, n]) => html`
          <button
            key=${kind}
            class="button small"
            type="button"
            title=${wordOf(kind)}
            aria-pressed=${kinds.value.includes(kind)}
            onClick=${() => toggle(kind)}
          >
            <span class=${KIND_CLASSES[kind] ?? "k-plain"}>${kind}</span>${" "}
            <span class="muted">${integer(n)}</span><span class="hidden"> ${wordOf(kind)}</span>
          </button>
        `,
      )}
    </div>
  `;
}

/** What a kind of line is about; nothing for one that is not known here. */
const wordOf = (kind) => (has(`log.kind.${kind}`) ? t(`log.kind.${kind}`) : "");

function Support({ api }) {
  const [busy, fault, act] = useAction();
  const saved = useSignal("");
  const get = async () => {
    saved.value = "";
    await act(async () => {
      await saveResponse(await api.supportBundle(), "mahe-support.json");
      saved.value = t("support.saved");
    });
  };
  return html`
    <${Panel} id="support" title=${t("support.title")}>
      <p>${t("support.text")}</p>
      <div class="buttons run-buttons">
        <button class="button" type="button" disabled=${busy} onClick=${get}>${t("support.get")}</button>
      </div>
      <${Notice} error=${fault.value} text=${saved.value} kind=${fault.value ? "bad" : "good"} />
    <//>
  `;
}
