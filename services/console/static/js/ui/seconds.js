// A signal that goes up once a second, as long as someone looks and the figures are fresh.

import { useEffect, useSignal } from "./html.js";

export function useSeconds(store) {
  const second = useSignal(0);
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden && store.isLive.value) second.value += 1; // what is stale does not age further
    }, 1000);
    return () => clearInterval(timer);
  }, []);
  return second;
}
