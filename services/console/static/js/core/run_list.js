// The list of all runs, newest first, page after page; kept while other views are shown.

import { signal } from "@preact/signals";

const PAGE = 50;

export const runList = signal({ items: [], next: null, state: "wait", error: null });
export const compared = signal([]); // ids of the runs that are chosen to be compared

/** Read the newest page, and keep the older runs that were read before. */
export async function readRuns(api) {
  await read(api, "", (items, before) => {
    const known = new Set(items.map(({ id }) => id));
    const older = before.items.filter(({ id }) => !known.has(id));
    return { items: [...items, ...older], keepNext: older.length > 0 };
  });
}

/** Read the page after those that are known. */
export async function readOlder(api) {
  const { next } = runList.peek();
  if (next === null) return;
  await read(api, next, (items, before) => {
    const known = new Set(before.items.map(({ id }) => id));
    return { items: [...before.items, ...items.filter(({ id }) => !known.has(id))], keepNext: false };
  });
}

async function read(api, next, join) {
  try {
    const answer = await api.runs(`limit=${PAGE}${next}`);
    const before = runList.peek();
    const { items, keepNext } = join(answer.items, before);
    runList.value = { items, next: keepNext ? before.next : nextOf(answer), state: "ready", error: null };
  } catch (error) {
    runList.value = { ...runList.peek(), state: "failed", error };
  }
}

function nextOf({ items, next_cursor: cursor }) {
  if (cursor !== undefined) return cursor === null ? null : `&cursor=${encodeURIComponent(cursor)}`;
  return items.length === PAGE ? `&before=${items.at(-1).number}` : null;
}

/** Choose a run to be compared, or not. */
export function toggleCompared(id, wanted) {
  compared.value = wanted ? [...compared.value, id] : compared.value.filter((one) => one !== id);
}
