// Requests to /api/v1: the token on each, JSON both ways, a problem (RFC 9457) as an error with its code and fields.

import { explain } from "./text.js";

export const API = "api/v1";
const PAGE_ITEMS = 500; // the most that a list gives at once
const UNANSWERED = ["OFFLINE", "MASTER_UNREACHABLE"]; // what was asked may be done all the same

export class ApiError extends Error {
  constructor(status, problem) {
    const code = problem.code || "HTTP";
    super(explain(code, problem.detail || problem.title || String(status)));
    this.status = status;
    this.code = code;
    this.errors = problem.errors || [];
  }
}

export function createApi(token) {
  const headers = { "X-MAHE-Token": token };

  async function request(method, path, body, signal, key) {
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

  /** All items of a list, page by page. */
  async function all(path) {
    const items = [];
    let cursor = "";
    do {
      const page = await json("GET", `${path}?limit=${PAGE_ITEMS}${cursor && `&cursor=${id(cursor)}`}`);
      items.push(...page.items);
      cursor = page.next_cursor;
    } while (cursor);
    return items;
  }

  return {
    request,
    state: () => json("GET", "state"),
    datasets: () => all("datasets"),
    presets: () => json("GET", "presets"),
    estimate: (spec, signal) => json("POST", "estimate", spec, signal),
    createRun: (spec) => once("runs", spec),
    runAction: (run, action) => json("POST", `runs/${id(run)}/${action}`, {}),
    checkpoints: (run) => all(`runs/${id(run)}/checkpoints`),
    checkpoint: (run, round) => request("GET", `runs/${id(run)}/checkpoints/${id(round)}`),
    removeAllWorkers: () => json("DELETE", "workers"),
    removeWorker: (worker) => json("DELETE", `workers/${id(worker)}`),
    joinStrings: () => all("join-strings"),
    createJoinString: (wanted) => once("join-strings", wanted),
    revokeJoinString: (number) => json("DELETE", `join-strings/${id(number)}`),
  };
}
