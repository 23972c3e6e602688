// The lines that let another PC work for this master, by the shell that they are for. No elements.

import { signal } from "@preact/signals";

export const SHELLS = ["sh", "powershell", "docker", "docker-powershell"];
const COMPOSE = "docker compose -f deploy/compose.worker.yaml up --detach --wait";
const BASE32 = /^mahe1\.[a-z2-7]+$/i;

/** The shell whose line is shown, and the join string that was made last: {join_string, expires_at_ms, uses}. */
export const shell = signal(navigator.platform.startsWith("Win") ? "powershell" : "sh");
export const made = signal(null);

/** One line; without a join string it has a place for one. What is no join string never gets into a line to paste. */
export function joinLine(kind, joinString) {
  const text = BASE32.test(joinString || "") ? joinString : "mahe1.…";
  return {
    sh: `.venv/bin/mahe join '${text}'`,
    powershell: `.venv\\Scripts\\mahe join '${text}'`,
    docker: `MAHE_JOIN='${text}' MAHE_WORKER_NAME="$(hostname)" ${COMPOSE}`,
    "docker-powershell": `$env:MAHE_JOIN='${text}'; $env:MAHE_WORKER_NAME=$env:COMPUTERNAME; ${COMPOSE}`,
  }[kind];
}
