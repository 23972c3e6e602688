// The API's description as a page: operations by their tag, then the models. It asks for one file, and needs no token.

import { h, setText } from "./dom.js";
import { operation, operationAnchor } from "./operation.js";
import { prose } from "./prose.js";
import { model } from "./schema.js";

const DESCRIPTION = "docs/openapi.json";

async function load() {
  const response = await fetch(DESCRIPTION, { redirect: "error" });
  if (!response.ok) throw new Error(`${DESCRIPTION}: ${response.status}`);
  return response.json();
}

/** [{name, description, operations: [{method, path, about}]}], in the order of the tags: each under its last one. */
function grouped(api) {
  const all = Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, about]) => ({ method: method.toUpperCase(), path, about })),
  );
  return api.tags.map((tag) => ({ ...tag, operations: all.filter(({ about }) => about.tags.at(-1) === tag.name) }));
}

function show(api) {
  const groups = grouped(api);
  setText(document.querySelector("#version"), `version ${api.info.version}`);
  document.querySelector("#about").append(...prose(api.info.description));
  const models = Object.entries(api.components.schemas);
  document.querySelector("#index").append(
    ...groups.flatMap(({ name, operations }) => [
      h("h2", {}, name),
      h("ul", {}, ...operations.map((one) => h("li", {}, indexLink(one)))),
    ]),
    h("h2", {}, "models"),
    h("ul", {}, h("li", {}, h("a", { href: "#models" }, "What goes in and comes out"))),
  );
  document.querySelector("#operations").append(
    ...groups.map(({ name, description, operations }) =>
      h(
        "section",
        {},
        h("h2", { class: "group" }, name),
        h("p", { class: "muted" }, description),
        ...operations.map((one) => operation(one, api)),
      ),
    ),
    h(
      "section",
      { id: "models" },
      h("h2", { class: "group" }, "models"),
      ...models.map(([name, schema]) => model(name, schema)),
    ),
  );
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

function indexLink(one) {
  return h("a", { href: `#${operationAnchor(one)}` }, ...prose(one.about.summary));
}

load()
  .then(show)
  .catch((error) => {
    const fault = document.querySelector("#fault");
    fault.removeAttribute("hidden");
    setText(fault, `The description could not be read (${error.message}). Is the console running? Then reload.`);
  });
