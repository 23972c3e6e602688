// Files that the page hands over. The token travels as a header, so the page fetches a file first, then saves it.

const KEPT_MS = 60000; // how long the browser may take to begin

/** Save a blob under a name. */
export function save(blob, name) {
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), KEPT_MS);
}

/** Save a value as JSON. */
export function saveJson(value, name) {
  save(new Blob([JSON.stringify(value, null, 1)], { type: "application/json" }), name);
}

/** Save what came, under the name that the console gives it. */
export async function saveResponse(response, name) {
  const told = /filename="([\w.-]+)"/.exec(response.headers.get("content-disposition") || "");
  save(await response.blob(), told?.[1] ?? name);
}
