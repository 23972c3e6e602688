// JSON Schema in words: a type as a line with links to models, and the fields of a model as a list.

import { h } from "./dom.js";
import { prose } from "./prose.js";

const MODELS = "#/components/schemas/";
const BOUNDS = {
  minimum: (value) => `from ${value}`,
  exclusiveMinimum: (value) => `above ${value}`,
  maximum: (value) => `to ${value}`,
  exclusiveMaximum: (value) => `below ${value}`,
  minLength: (value) => `at least ${value} characters`,
  maxLength: (value) => `at most ${value} characters`,
  pattern: (value) => `like ${value}`,
};

export const modelName = (schema) => schema?.$ref?.slice(MODELS.length);

/** The type as nodes: `list of RunEntry or null`. */
export function type(schema) {
  const name = modelName(schema);
  if (name) return [h("a", { href: `#model-${name}` }, name)];
  const options = schema.anyOf || schema.oneOf;
  if (options) return options.flatMap((one, at) => (at ? [" or ", ...type(one)] : type(one)));
  if (schema.enum) return [schema.enum.map((one) => JSON.stringify(one)).join(" | ")];
  if (schema.const !== undefined) return [JSON.stringify(schema.const)];
  if (schema.type === "array") return ["list of ", ...type(schema.items || {})];
  if (schema.type === "object" && schema.additionalProperties?.type) {
    return ["object of ", ...type(schema.additionalProperties)];
  }
  return [schema.type || "anything", ...bounds(schema)];
}

function bounds(schema) {
  const said = Object.entries(BOUNDS).flatMap(([name, say]) => (name in schema ? [say(schema[name])] : []));
  return said.length ? [` ${said.join(" ")}`] : [];
}

/** One name with its type, what it is left out for, and its meaning. */
export function entry(name, schema, { required = false, description = schema.description } = {}) {
  const usual = schema.default === undefined ? "" : `default ${JSON.stringify(schema.default)}`;
  const note = required ? "required" : usual;
  return [
    h("dt", {}, h("code", {}, name), note ? h("span", { class: "note" }, note) : null),
    h("dd", {}, h("span", { class: "type" }, ...type(schema)), description ? h("p", {}, ...prose(description)) : null),
  ];
}

/** A model: its meaning and its fields. */
export function model(name, schema) {
  const required = new Set(schema.required || []);
  const fields = Object.entries(schema.properties || {});
  return h(
    "article",
    { id: `model-${name}`, class: "panel" },
    h("header", { class: "panel-head" }, h("h3", {}, name)),
    h(
      "div",
      { class: "panel-body" },
      schema.description ? h("p", {}, ...prose(schema.description)) : null,
      h("dl", {}, ...fields.flatMap(([field, one]) => entry(field, one, { required: required.has(field) }))),
    ),
  );
}
