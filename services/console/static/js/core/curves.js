// Rows of a chart out of a run's history: against rounds, time or bytes, raw and smoothed. No elements.

export const AXES = ["round", "time", "bytes"];
const SMOOTHING = 0.6; // weight of what came before, per round

/** [{x, round, train, eval, smooth, accuracy}] in order; `smooth` follows `eval`. */
export function curve(history, axis) {
  let seconds = 0;
  let bytes = 0;
  let smooth = null;
  let smoothAccuracy = null;
  return history.map((row) => {
    seconds += row.seconds || 0;
    bytes += row.bytes || 0;
    smooth = follow(smooth, row.eval_loss);
    smoothAccuracy = follow(smoothAccuracy, row.eval_accuracy);
    return {
      x: { round: row.round, time: seconds, bytes }[axis],
      round: row.round,
      train: row.train_loss,
      eval: row.eval_loss,
      smooth: Number.isFinite(row.eval_loss) ? smooth : null,
      accuracy: row.eval_accuracy,
      smoothAccuracy: Number.isFinite(row.eval_accuracy) ? smoothAccuracy : null,
    };
  });
}

function follow(before, value) {
  if (!Number.isFinite(value)) return before;
  return before === null ? value : SMOOTHING * before + (1 - SMOOTHING) * value;
}

/**
 * Bytes that per-step synchronisation would have sent for the same local steps: every step each worker sends a gradient
 * and gets one back, 4 bytes a value: 2 x 4 x parameters x steps of all workers. {sent, perStep, ratio, steps}
 */
export function bytesSaved(history, run) {
  if (!run || !run.n_parameters || history.length === 0) return null;
  const batch = run.spec.batch || 1;
  const steps = history.reduce((sum, row) => sum + (row.samples || 0) / batch, 0);
  const sent = history.reduce((sum, row) => sum + (row.bytes || 0), 0);
  const perStep = 8 * run.n_parameters * steps;
  return sent > 0 ? { sent, perStep, ratio: perStep / sent, steps } : null;
}
