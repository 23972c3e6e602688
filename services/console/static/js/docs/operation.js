// One operation: what it does, what it takes, what it answers, and a line for the shell that does it.

import { h } from "./dom.js";
import { prose } from "./prose.js";
import { entry, modelName, type } from "./schema.js";

const JSON_TYPE = "application/json";
const PROBLEM_TYPE = "application/problem+json";

export const operationAnchor = ({ about }) => about.operationId;

/** The panel of one operation of `api`. */
export function operation(one, api) {
  const { method, path, about } = one;
  return h(
    "article",
    { id: operationAnchor(one), class: "panel" },
    h(
      "header",
      { class: "panel-head" },
      h("h3", {}, h("span", { class: `method ${method.toLowerCase()}` }, method), " ", h("code", {}, path)),
      h("span", { class: "meta muted" }, about.operationId),
    ),
    h(
      "div",
      { class: "panel-body" },
      h("p", { class: "summary" }, ...prose(about.summary)),
      ...about.description.split(/\n\n+/).map((text) => h("p", {}, ...prose(text))),
      ...parameters(about),
      ...body(about),
      ...answers(about),
      ...shell(curl(one, api)),
    ),
  );
}

function parameters({ parameters: given = [] }) {
  if (!given.length) return [];
  const rows = given.flatMap(({ name, in: place, required, schema, description }) => {
    const [term, meaning] = entry(name, schema, { required, description });
    term.append(h("span", { class: "note" }, `in the ${place}`));
    return [term, meaning];
  });
  return [h("h4", {}, "Parameters"), h("dl", {}, ...rows)];
}

function body({ requestBody }) {
  if (!requestBody) return [];
  return [h("h4", {}, "Body"), h("p", {}, `${JSON_TYPE}: `, ...type(requestBody.content[JSON_TYPE].schema))];
}

/** Each answer; refusals have a line of their own together, for they are all alike. */
function answers({ responses }) {
  const all = Object.entries(responses);
  const refusals = all.filter(([, { content }]) => PROBLEM_TYPE in content);
  const others = all.filter((one) => !refusals.includes(one));
  const schema = refusals[0]?.[1].content[PROBLEM_TYPE].schema;
  return [
    h("h4", {}, "Answers"),
    h("dl", { class: "answers" }, ...others.flatMap(answer)),
    h("h4", {}, "Refusals"),
    h("p", {}, `${PROBLEM_TYPE}: `, ...(schema ? type(schema) : [])),
    h("ul", { class: "refusals" }, ...refusals.map(refusal)),
  ];
}

function answer([status, { description, content }]) {
  const types = Object.entries(content).flatMap(([mediaType, { schema }]) => [`${mediaType}: `, ...type(schema)]);
  return [
    h("dt", {}, h("code", { class: "good" }, status)),
    h("dd", {}, h("span", { class: "type" }, ...types), h("p", {}, ...prose(description))),
  ];
}

function refusal([status, { description }]) {
  return h("li", {}, h("code", {}, status), ` ${description}`);
}

/** A command for sh. `$TOKEN` and the names in the path are for the reader to fill in. */
export function curl({ method, path, about }, api) {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name) => `$${name.toUpperCase()}`);
  const parts = ["curl"];
  if (about.security) parts.push('-H "X-MAHE-Token: $TOKEN"');
  const success = Object.entries(about.responses).find(([status]) => status < "300")[1];
  if ("text/event-stream" in success.content) parts.push("-N");
  if ("application/octet-stream" in success.content) parts.push("-OJ");
  if (about.requestBody) {
    const schema = api.components.schemas[modelName(about.requestBody.content[JSON_TYPE].schema)];
    parts.push(`-H 'Content-Type: ${JSON_TYPE}' -d '${JSON.stringify(schema.examples?.[0] || {})}'`);
  } else if (method !== "GET") parts.push(`-X ${method}`);
  return `${parts.join(" ")} "${location.origin}${filled}"`;
}

function shell(line) {
  const copy = h("button", { class: "button small", type: "button", onclick: () => void toClipboard() }, "Copy");
  async function toClipboard() {
    await navigator.clipboard.writeText(line);
    copy.textContent = "Copied";
    setTimeout(() => (copy.textContent = "Copy"), 2000);
  }
  return [h("h4", {}, "In the shell"), h("div", { class: "shell" }, h("pre", {}, h("code", {}, line)), copy)];
}
