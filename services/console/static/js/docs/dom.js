// Elements made one by one: text is always text, whatever a worker's name or a log line holds.

const SVG = "http://www.w3.org/2000/svg";

/** An element. `props`: attributes; `on*` listeners; true = empty attribute; null, undefined and false are left out. */
export function h(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** The same for SVG. */
export function s(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else setAttribute(node, name, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

/** Set, or with null, undefined or false remove, an attribute; only if it changes. */
export function setAttribute(node, name, value) {
  if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else {
    const text = value === true ? "" : String(value);
    if (node.getAttribute(name) !== text) node.setAttribute(name, text);
  }
}

/** Replace the text of a node, only if it changes. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** A panel's head and body inside `root`; `meta` is the place at its right end. */
export function panel(root, title) {
  const id = `${root.id}-title`;
  const meta = h("span", { class: "meta" });
  const body = h("div", { class: "panel-body" });
  root.setAttribute("aria-labelledby", id);
  root.append(h("header", { class: "panel-head" }, h("h2", { id }, title), meta), body);
  return { meta, body };
}

/** A place for the outcome of an action: hidden while it says nothing, read out when it does. */
export function notice() {
  const node = h("p", { class: "notice", role: "alert", hidden: true });
  return {
    node,
    say(text, kind = "bad") {
      node.className = `notice ${kind}`;
      node.hidden = !text;
      setText(node, text || "");
    },
  };
}
