// The lines of each step on another PC, by its system, and of the firewall on this one. No elements, no sentences.

import { joinLine } from "./join_lines.js";

export const SYSTEMS = ["linux", "macos", "windows", "docker"];
export const FIREWALLS = ["ufw", "firewalld", "windows", "macos"];
const PORT = 47820;
const SAFE = /^[\w.-]+$|^\[[\da-f:.]+\]$/i; // a host that can be pasted into a shell
const HERE = /^(127\.|localhost$|\[::1\]$|0\.0\.0\.0$)/;

/** {host, port} under which the others reach the master; the first that is not this PC alone, else null. */
export function addressOf(endpoints) {
  for (const endpoint of endpoints ?? []) {
    const [, host, port] = /^tcp:\/\/(.+):(\d+)$/.exec(endpoint) ?? [];
    if (host && SAFE.test(host) && !HERE.test(host)) return { host, port: Number(port) };
  }
  return null;
}

/** The port that other PCs must reach. */
export const portOf = (endpoints) => Number(/:(\d+)$/.exec(endpoints?.[0] ?? "")?.[1]) || PORT;

/** How the firewall of the PC that leads lets the others in. */
export function firewallLine(kind, port) {
  return {
    ufw: `sudo ufw allow ${port}/tcp`,
    firewalld: `sudo firewall-cmd --permanent --add-port=${port}/tcp && sudo firewall-cmd --reload`,
    windows: `New-NetFirewallRule -DisplayName MAHE -Direction Inbound -Protocol TCP -LocalPort ${port} -Action Allow`,
    macos: "",
  }[kind];
}

/** {reach, install, join, again}: lines of each step; empty where the step has none. `join`: [shell, line] pairs. */
export function stepsFor(system, { address, joinString }) {
  const { host, port } = address ?? { host: "192.168.1.20", port: PORT };
  const join = (...shells) => shells.map((shell) => [shell, joinLine(shell, joinString)]);
  const netcat = `nc -vz ${host.replace(/[[\]]/g, "")} ${port}`;
  const windows = `Test-NetConnection ${host.replace(/[[\]]/g, "")} -Port ${port}`;
  return {
    linux: {
      reach: netcat,
      install: "sudo apt install python3 python3-venv make git\nmake setup\n.venv/bin/mahe doctor",
      join: join("sh"),
      again: ".venv/bin/mahe worker",
    },
    macos: {
      reach: netcat,
      install: "xcode-select --install\nmake setup\n.venv/bin/mahe doctor",
      join: join("sh"),
      again: ".venv/bin/mahe worker",
    },
    windows: {
      reach: windows,
      install: [
        "py -3.12 -m venv .venv",
        ".venv\\Scripts\\Activate.ps1",
        "python -m pip install --require-hashes -r requirements/console.txt -r requirements/build.txt",
        "python -m pip install --require-hashes -r requirements/compiler.txt",
        "python -m pip install --no-deps --no-build-isolation --editable .",
        'mahe kernels --build --compiler "zig cc"',
        "mahe doctor",
      ].join("\n"),
      join: join("powershell"),
      again: ".venv\\Scripts\\mahe worker",
    },
    docker: {
      reach: netcat,
      install: "docker compose version",
      join: join("docker", "docker-powershell"),
      again: "docker compose -f deploy/compose.worker.yaml up --detach",
    },
  }[system];
}
