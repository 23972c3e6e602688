// The place of the assistant: what it will do, and that nothing is sent anywhere now.

import { href } from "../core/route.js";
import { t } from "../core/text.js";
import { html } from "../ui/html.js";
import { Empty, Guide, Panel } from "../ui/panel.js";

const POINTS = ["key", "shown", "never"];

export function AssistantView() {
  return html`
    <${Panel} id="assistant" title=${t("assistant.title")}>
      <${Empty} text=${t("assistant.later")}>
        <ul class="dashes">
          ${POINTS.map((point) => html`<li key=${point}>${t(`assistant.${point}`)}</li>`)}
        </ul>
        <p>${t("assistant.now")} <a href=${href("logs")}>${t("support.title")}</a></p>
        <${Guide} place="messages" />
      <//>
    <//>
  `;
}
