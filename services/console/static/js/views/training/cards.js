// Data set and preset, each picked among cards: radio buttons, so that arrow keys walk them.

import { integer, time } from "../../core/format.js";
import { has, t } from "../../core/text.js";
import { html } from "../../ui/html.js";
import { Notice } from "../../ui/panel.js";
import { advised, asIn, FROM_RUN } from "./choices.js";
import { catalog, catalogBusy, catalogFault, readCatalog } from "./form.js";
import { choose, dataset, datasetName, faultOf, presetId, source } from "./form.js";

/** The data sets, and Refresh, which takes nothing that was typed. */
export function DataSets({ api, live }) {
  const { items, at } = catalog.value;
  const gone = at !== null && datasetName.value && !dataset.value;
  return html`
    <div class="cards-part" role="radiogroup" aria-labelledby="start-dataset">
      <div class="cards-head">
        <span class="cards-name" id="start-dataset">${t("start.dataset")}</span>
        <span class="muted">${at === null ? "" : t("start.read", { n: items.length, time: time(at) })}</span>
        <button
          class="button small"
          type="button"
          aria-disabled=${catalogBusy.value || !live}
          onClick=${() => live && readCatalog(api)}
        >
          ${t("start.refresh")}
        </button>
      </div>
      ${at === null && html`<p class="muted">${t(live ? "start.loading" : "start.waiting")}</p>`}
      ${at !== null && items.length === 0 && html`<p class="muted">${t("start.dataset.none")}</p>`}
      <div class="cards data-cards">
        ${items.map(
          (item) => html`<${Card} key=${item.name} group="dataset" chosen=${datasetName} ...${about(item)} />`,
        )}
      </div>
      ${gone && html`<${Notice} kind="warn" text=${t("start.dataset.gone", { name: datasetName.value })} />`}
      <${CardFault} group="dataset" />
      <${Notice} error=${catalogFault.value} />
    </div>
  `;
}

export function Presets() {
  const { presets, at } = catalog.value;
  if (at === null) return null;
  return html`
    <div class="cards-part" role="radiogroup" aria-labelledby="start-preset">
      <div class="cards-head"><span class="cards-name" id="start-preset">${t("start.preset")}</span></div>
      <div class="cards preset-cards">
        ${source.value && html`<${Card} group="preset" chosen=${presetId} ...${thatRun(source.value)} />`}
        ${presets.map((one) => html`<${Card} key=${one.id} group="preset" chosen=${presetId} ...${way(one)} />`)}
      </div>
      <${CardFault} group="preset" />
    </div>
  `;
}

/** A radio button with a title, a sentence, [name, value] figures and a line of facts. */
function Card({ group, chosen, value, title, sentence, figures, fact }) {
  const id = `start-${group}-${value}`;
  const fault = faultOf(group);
  return html`
    <label class="card" for=${id}>
      <input
        type="radio"
        id=${id}
        name=${`start-${group}`}
        value=${value}
        checked=${chosen.value === value}
        aria-labelledby=${`${id}-title`}
        aria-describedby=${`${id}-more start-${group}-fault`}
        aria-invalid=${fault ? "true" : undefined}
        onChange=${() => choose(chosen, value)}
      />
      <span class="card-title" id=${`${id}-title`}>${title}</span>
      <span class="card-more" id=${`${id}-more`}>
        <span class="card-sentence">${sentence}</span>
        ${figures &&
        html`
          <span class="card-figures">
            ${figures.map(([name, figure]) => html`<span key=${name}><b>${figure}</b> ${name} </span>`)}
          </span>
        `}
        <span class="card-fact">${fact}</span>
      </span>
    </label>
  `;
}

function CardFault({ group }) {
  const fault = faultOf(group);
  return html`<p class="fault" id=${`start-${group}-fault`} hidden=${!fault}>${fault}</p>`;
}

/** In the language of the page where the data set is one of MAHE's own, else as its card says it. */
const told = (name, what, otherwise) => (has(`data.${name}.${what}`) ? t(`data.${name}.${what}`) : otherwise);

function about(item) {
  return {
    value: item.name,
    title: told(item.name, "title", item.title || item.name),
    sentence: told(item.name, "more", item.description),
    figures: [
      [t("start.dimensions"), integer(item.dimensions)],
      [t("start.classes"), integer(item.classes)],
      [t("start.samples"), `${integer(item.train)} + ${integer(item.test)}`],
    ],
    fact: t("start.recommended", recommendedOf(item)),
  };
}

function recommendedOf(item) {
  const { model, inner, rounds, k_steps, batch } = advised(item);
  const widths = model.hidden?.length ? ` ${model.hidden.join("-")}` : "";
  return { model: `${model.family}${widths}`, inner: inner.name, lr: inner.lr, rounds, k_steps, batch };
}

/** In place of a preset: as in the run that the form is filled from. */
function thatRun({ spec }) {
  const { rounds, k_steps, batch } = asIn(spec);
  return {
    value: FROM_RUN,
    title: t("start.preset.run"),
    sentence: t("start.preset.run.more", { name: spec.name }),
    fact: t("start.work", { rounds, k_steps, batch }),
  };
}

function way({ id, title, sentence }) {
  const { presets } = catalog.value;
  const { rounds, k_steps, batch } = advised(
    dataset.value,
    presets.find((one) => one.id === id),
  );
  return {
    value: id,
    title: has(`start.preset.${id}`) ? t(`start.preset.${id}`) : title,
    sentence: has(`start.preset.${id}.more`) ? t(`start.preset.${id}.more`) : sentence,
    fact: t("start.work", { rounds, k_steps, batch }),
  };
}
