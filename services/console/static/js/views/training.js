// Training: data, preset and settings of a new run, what it would amount to; beside it what goes on and what is kept.

import { html } from "../ui/html.js";
import { RunNow } from "./run_now.js";
import { CheckpointsPanel } from "./training/checkpoints.js";
import { QueuePanel } from "./training/queue.js";
import { StartPanel } from "./training/start.js";

export function TrainingView({ store, api, rest, say }) {
  return html`
    <div class="training">
      <${StartPanel} store=${store} api=${api} from=${rest[0]} />
      <div class="training-side">
        <${RunNow} store=${store} api=${api} say=${say} brief />
        <${QueuePanel} store=${store} api=${api} />
        <${CheckpointsPanel} store=${store} api=${api} />
      </div>
    </div>
  `;
}
