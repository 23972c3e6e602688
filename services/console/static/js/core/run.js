// What a run's state means for a view. No elements.

export const PHASES = {
  IDLE: ["○", "muted"],
  QUEUED: ["…", "muted"],
  RUNNING: ["▸", "good"],
  WAITING: ["◌", "warn"],
  PAUSED: ["‖", "warn"],
  STOPPED: ["■", "muted"],
  FAILED: ["×", "bad"],
  FINISHED: ["✓", "good"],
};
const ACTIVE = ["RUNNING", "WAITING", "PAUSED"];
const ROUNDS_FOR_SPEED = 5;

/** Whether a run goes on. */
export const isActive = (run) => Boolean(run) && !run.finished && ACTIVE.includes(run.phase);

/** The word of PHASES that a run's phase is. */
export const phaseOf = (run) => (!run ? "IDLE" : run.finished ? "FINISHED" : run.phase);

/** Whether it can be resumed. */
export const canResume = (run) => run?.phase === "PAUSED" || (run?.phase === "FAILED" && run.n_parameters > 0);

/** Seconds until its last round at the pace of the latest ones; null when that is not known. */
export function etaOf(run) {
  const perMinute = run?.phase === "RUNNING" ? run.rounds_per_minute : null;
  return perMinute ? ((run.rounds_total - run.version) / perMinute) * 60 : null;
}

/** {samplesPerS, best, name, times}: the cluster's samples/s in the latest rounds, and times those of its best PC. */
export function speedOf(history, workers) {
  const rows = history.slice(-ROUNDS_FOR_SPEED);
  const seconds = rows.reduce((sum, row) => sum + (row.seconds || 0), 0);
  const samples = rows.reduce((sum, row) => sum + (row.samples || 0), 0);
  if (rows.length < ROUNDS_FOR_SPEED || seconds <= 0) return null;
  const measured = workers.filter((worker) => worker.measured && worker.samples_per_s > 0);
  if (measured.length === 0) return null;
  const best = measured.reduce((a, b) => (a.samples_per_s >= b.samples_per_s ? a : b));
  const samplesPerS = samples / seconds;
  return { samplesPerS, best: best.samples_per_s, name: best.name, times: samplesPerS / best.samples_per_s };
}
