// Elements made one by one: text is always text, whatever a worker's name or a log line holds.

/** An element. `props`: attributes; `on*` listeners; true = empty attribute; null, undefined and false are left out. */
export function h(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
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
function setAttribute(node, name, value) {
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
