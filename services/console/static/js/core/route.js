// Which view is shown: the part after # in the address, so that links, Back and a reload work.

import { computed, signal } from "@preact/signals";

export const VIEWS = ["dashboard", "training", "runs", "cluster", "logs", "try", "deploy", "assistant"];

const parse = () => {
  const [view, ...rest] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  return VIEWS.includes(view) ? { view, rest } : { view: VIEWS[0], rest: [] };
};

export const route = signal(parse());
export const view = computed(() => route.value.view);

/** The address of a view. */
export const href = (name, ...rest) => `#/${[name, ...rest].map(encodeURIComponent).join("/")}`;

/** Go there. */
export function go(name, ...rest) {
  location.hash = href(name, ...rest);
}

/** Follow the address from now on. */
export function keepRoute() {
  addEventListener("hashchange", () => {
    route.value = parse();
  });
}
