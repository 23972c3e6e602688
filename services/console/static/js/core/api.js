// Requests to /api/v1: the token on each, JSON both ways, a problem (RFC 9457) as an error with its code and fields.

import { t } from "./text.js";

export const API = "api/v1";

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

  async function request(method, path, body, signal) {
    const options = { method, headers: { ...headers }, signal, cache: "no-store", redirect: "error" };
    if (body !== undefined) {
      options.headers["Content-Type"] = "application/json";
      options.body = JSON.stringify(body);
    }
    let response;
    try {
      response = await fetch(`${API}/${path}`, options);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ApiError(0, { code: "OFFLINE", detail: t("error.offline", { detail: error.message }) });
    }
    if (!response.ok) throw new ApiError(response.status, await response.json().catch(() => ({})));
    return response;
  }

  const json = async (...args) => (await request(...args)).json();
  const id = encodeURIComponent;

  return {
    request,
    state: () => json("GET", "state"),
    datasets: () => json("GET", "datasets"),
    presets: () => json("GET", "presets"),
    estimate: (spec, signal) => json("POST", "estimate", spec, signal),
    createRun: (spec) => json("POST", "runs", spec),
    runAction: (run, action) => json("POST", `runs/${id(run)}/${action}`, {}),
    checkpoints: (run) => json("GET", `runs/${id(run)}/checkpoints`),
    checkpoint: (run, round) => request("GET", `runs/${id(run)}/checkpoints/${id(round)}`),
    removeAllWorkers: () => json("DELETE", "workers"),
    removeWorker: (worker) => json("DELETE", `workers/${id(worker)}`),
    joinStrings: () => json("GET", "join-strings"),
    createJoinString: (wanted) => json("POST", "join-strings", wanted),
    revokeJoinString: (number) => json("DELETE", `join-strings/${id(number)}`),
  };
}
