// What a view is written with: htm bound to Preact, hooks and signals, from one place.

import { useSignal } from "@preact/signals";
import htm from "htm";
import { h } from "preact";

export const html = htm.bind(h);
export { Fragment, render } from "preact";
export { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
export { batch, computed, effect, signal, useComputed, useSignal, useSignalEffect } from "@preact/signals";

/** Class names from strings and {name: whether}. */
export function classes(...parts) {
  const names = [];
  for (const part of parts) {
    if (!part) continue;
    if (typeof part === "string") names.push(part);
    else for (const [name, wanted] of Object.entries(part)) if (wanted) names.push(name);
  }
  return names.join(" ");
}

/**
 * [busy, fault, run]: an action that shows that it goes on and what became of it; `run(action)` never throws.
 * @returns {[import("@preact/signals").Signal<boolean>, import("@preact/signals").Signal<any>,
 *   (action: () => any) => Promise<any>]}
 */
export function useAction() {
  const busy = useSignal(false);
  const fault = useSignal(null);
  async function run(action) {
    if (busy.value) return undefined;
    busy.value = true;
    fault.value = null;
    try {
      return await action();
    } catch (error) {
      fault.value = error;
      return undefined;
    } finally {
      busy.value = false;
    }
  }
  return [busy, fault, run];
}
