// Requests to /api/v1: the token on each, JSON both ways, a problem (RFC 9457) as an error with its code and fields.

export const API = "api/v1";
const PAGE_ITEMS = 500; // the most that a list gives at once
const UNANSWERED = ["OFFLINE", "MASTER_UNREACHABLE"]; // what was asked may be done all the same

export class ApiError extends Error {
  constructor(status, problem) {
    super(problem.detail || problem.title || String(status));
    this.status = status;
    this.code = problem.code || "HTTP";
    this.errors = problem.errors || [];
  }
}

export function createApi(token) {
  const headers = { "X-MAHE-Token": token };

  async function request(method, path, body, signal, key) {
    /** @type {RequestInit} */
    const options = { method, headers: { ...headers }, signal, cache: "no-store", redirect: "error" };
    if (key) options.headers["Idempotency-Key"] = key;
    if (body !== undefined) {
      options.headers["Content-Type"] = "application/json";
      options.body = JSON.stringify(body);
    }
    let response;
    try {
      response = await fetch(`${API}/${path}`, options);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ApiError(0, { code: "OFFLINE", detail: error.message });
    }
    if (!response.ok) throw new ApiError(response.status, await response.json().catch(() => ({})));
    return response;
  }

  const json = async (...args) => (await request(...args)).json();
  const id = encodeURIComponent;

  const unanswered = new Map(); // path -> [body, key] of what was asked last, while its outcome is not known

  /** POST what must not be done twice: asked again for want of an answer, it has the same key. */
  async function once(path, body) {
    const text = JSON.stringify(body);
    const [before, kept] = unanswered.get(path) || [];
    const key = before === text ? kept : crypto.getRandomValues(new Uint32Array(4)).join("-");
    unanswered.set(path, [text, key]);
    try {
      const answer = await json("POST", path, body, undefined, key);
      unanswered.delete(path);
      return answer;
    } catch (error) {
      if (!UNANSWERED.includes(error.code)) unanswered.delete(path);
      throw error;
    }
  }

  return {
    request,
    uiReady: () => json("POST", "ui-ready", {}),
    state: () => json("GET", "state"),
    datasets: () => json("GET", `datasets?limit=${PAGE_ITEMS}`),
    presets: () => json("GET", "presets"),
    estimate: (spec, signal) => json("POST", "estimate", spec, signal),
    /** {path, parent, items: [{name, path}]} of a folder of the master's PC; "": where relative paths begin. */
    folders: async (path) => folderOf(await json("GET", `folders?path=${id(path)}`)),
    /** {path} by the system's dialog, which begins in the folder `from` if that is a whole path; null: cancelled. */
    pickFolder: (from) => json("POST", "folders/pick", { path: from }),
    createRun: (spec) => once("runs", spec),
    runAction: (run, action) => json("POST", `runs/${id(run)}/${action}`, {}),
    runs: (page) => json("GET", `runs?${page}`),
    run: (run) => json("GET", `runs/${id(run)}`),
    rounds: (run, page) => json("GET", `runs/${id(run)}/rounds?${page}`),
    checkpoints: (run) => json("GET", `runs/${id(run)}/checkpoints?limit=${PAGE_ITEMS}`),
    checkpoint: (run, round) => request("GET", `runs/${id(run)}/checkpoints/${id(round)}`),
    removeAllWorkers: () => json("DELETE", "workers"),
    removeWorker: (worker) => json("DELETE", `workers/${id(worker)}`),
    joinStrings: () => json("GET", "join-strings"),
    createJoinString: (wanted) => once("join-strings", wanted),
    supportBundle: () => request("GET", "support-bundle"),
    revokeJoinString: (number) => json("DELETE", `join-strings/${id(number)}`),
  };
}

/** The answer of GET /folders with the whole path of each folder in it. */
function folderOf({ path, parent, folders }) {
  const separator = path.startsWith("/") ? "/" : "\\";
  const head = path.endsWith(separator) ? path : path + separator;
  return { path, parent, items: folders.map((name) => ({ name, path: head + name })) };
}
