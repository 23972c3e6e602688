// One worker as a row. It is made anew when that worker changes; what changes with time alone are small parts of it.

import { bytes, duration, integer, NONE, percent, rate } from "../core/format.js";
import { has, language, reasonOf, t } from "../core/text.js";
import { adviceOf, GLYPHS, KINDS, LAMPS, lampsOf, stateOf } from "../core/workers.js";
import { computed, html, useMemo } from "../ui/html.js";

/** `second`, `trains` and `samples` (of all workers) are signals. */
export function WorkerRow({ worker, store, second, trains, samples, remove }) {
  const away = ["DETACHED", "LOST"].includes(worker.link);
  return useMemo(
    () => html`
      <tr class=${away ? "away" : ""}>
        <td class="name">
          <span>${worker.name}</span>
          <small>${[worker.platform, memory(worker.memory_mib)].filter(Boolean).join(" · ")}</small>
        </td>
        <td class="state"><${State} worker=${worker} store=${store} second=${second} trains=${trains} /></td>
        <td class="lamps"><${Lamps} worker=${worker} store=${store} second=${second} /></td>
        <${Cell} name="cores" value=${cores(worker)} />
        <${Cell} name="speed" value=${rate(worker.samples_per_s)} note=${claimed(worker)} />
        <${Cell} name="link" value=${perSecond(worker.link_bytes_per_s)} />
        <${Cell} name="share" value=${percent(worker.share, 0)} note=${work(worker)} bar=${worker.share} />
        <td class="done number" data-label=${t("workers.done")}>
          ${t("workers.rounds", { n: counted(worker.accepted_rounds) })}
          <${Contribution} worker=${worker} samples=${samples} />
          <${Mark} name="clipped" glyph="△" kind="warn" count=${worker.clipped_rounds} />
          <${Mark} name="mismatches" glyph="▲" kind="bad" count=${worker.mismatches} />
        </td>
        <td class="act">
          <button
            class="button icon"
            type="button"
            aria-label=${t("workers.remove", { name: worker.name })}
            title=${t("workers.remove", { name: worker.name })}
            onClick=${() => remove(worker)}
          >
            ✕
          </button>
        </td>
      </tr>
    `,
    [worker, language.value],
  );
}

/** What `read(age_ms)` says of a worker now, as a text: as long as it is the same, nothing is shown anew. */
function useAged(worker, store, second, read) {
  const signal = () => computed(() => second.value >= 0 && JSON.stringify(read(store.ageOf(worker))));
  return JSON.parse(useMemo(signal, [worker]).value);
}

/** The word of its state, the reason that the master gives, and what helps. */
function State({ worker, store, second, trains }) {
  const [state, silent] = useAged(worker, store, second, (age_ms) => {
    const { seconds, ...rest } = stateOf(worker, age_ms);
    return [rest, seconds === null ? "" : duration(seconds)];
  });
  const key = `workers.state.${state.name}`;
  const word = [has(key) ? t(key) : state.name, state.step, silent].filter(Boolean).join(" ");
  return html`
    <span class=${KINDS[state.lamp]}><span aria-hidden="true">${GLYPHS[state.lamp]} </span>${word}</span>
    ${worker.reason && html`<small>${reasonOf(worker.reason_said, worker.reason)}</small>`}
    ${adviceOf(worker, state, trains.value).map(
      (one) => html`<small class="advice" key=${one}>→ ${t(`workers.advice.${one}`)}</small>`,
    )}
  `;
}

function Lamps({ worker, store, second }) {
  const lamps = useAged(worker, store, second, (age_ms) => lampsOf(worker, age_ms));
  return html`
    <span class="lamp-row">
      ${LAMPS.map((key) => {
        const word = t(`lamp.${key}`);
        const sentence = `${word}: ${t(`lamp.${lamps[key]}`)}`;
        return html`
          <span key=${key} class=${KINDS[lamps[key]]} title=${sentence} role="img" aria-label=${sentence}>
            ${GLYPHS[lamps[key]]}<small>${word}</small>
          </span>
        `;
      })}
    </span>
  `;
}

function Cell({ name, value, note, bar }) {
  return html`
    <td class=${`${name} number`} data-label=${t(`workers.${name}`)}>
      ${value}
      ${Number.isFinite(bar) &&
      html`<span class="share-bar" aria-hidden="true"><i style=${{ width: `${Math.min(1, bar) * 100}%` }}></i></span>`}
      ${note && html`<small>${note}</small>`}
    </td>
  `;
}

function Contribution({ worker, samples }) {
  const share = () => (samples.value > 0 ? partOf((worker.samples_total || 0) / samples.value) : NONE);
  const part = useMemo(() => computed(share), [worker]).value;
  return html`<small>${t("workers.samples", { n: integer(worker.samples_total), part })}</small>`;
}

/** A count that is shown when it is not 0, with a sentence that says what it means. */
function Mark({ name, glyph, kind, count }) {
  if (!count) return null;
  const n = counted(count);
  const sentence = t(`workers.${name}.more`, { n });
  return html`
    <small class=${`mark ${kind}`} title=${sentence} role="img" aria-label=${sentence}>
      ${glyph} ${t(`workers.${name}`, { n })}
    </small>
  `;
}

/** A number of things: 1 as it is, for the sentence that a language has for it. */
const counted = (n) => (n === 1 ? 1 : integer(n));

const partOf = (share) => percent(share, share < 0.095 ? 1 : 0); // of a hundred, too

const memory = (mib) => (mib > 0 ? bytes(mib * 2 ** 20) : "");

const claimed = ({ measured }) => (measured === false ? t("workers.claimed") : "");

const perSecond = (value) => (Number.isFinite(value) ? t("workers.perSecond", { bytes: bytes(value) }) : NONE);

const work = ({ k_steps: k, batch }) => (batch ? t("workers.work", { k: integer(k), batch: integer(batch) }) : "");

function cores({ threads, cores: all }) {
  if (threads === undefined || threads === all) return integer(all);
  return t("workers.threads", { threads: integer(threads), cores: integer(all) });
}
