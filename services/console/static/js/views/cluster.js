// The PCs that work for this master, who of them holds the others up, and how another one joins.

import { html } from "../ui/html.js";
import { Join } from "./cluster_join.js";
import { Lanes } from "./cluster_lanes.js";
import { Workers } from "./cluster_workers.js";

export function ClusterView({ store, api, say }) {
  const nobody = store.workers.value.length === 0;
  return html`
    <div class=${nobody ? "cluster nobody" : "cluster"}>
      <${Workers} store=${store} api=${api} say=${say} />
      ${!nobody && html`<${Lanes} store=${store} />`}
      <${Join} store=${store} api=${api} />
    </div>
  `;
}
