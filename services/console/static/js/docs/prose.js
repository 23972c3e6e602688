// Sentences of the description: what stands between backticks is code.

import { h } from "./dom.js";

/** A text as nodes, for h's children. */
export const prose = (text) => text.split("`").map((part, at) => (at % 2 ? h("code", { class: "word" }, part) : part));
