// Loss and accuracy against rounds.

import { panel } from "../core/dom.js";
import { loss, percent } from "../core/format.js";
import { t } from "../core/text.js";
import { createChart } from "../ui/chart.js";

export function mountCharts(lossRoot, accuracyRoot, { store }) {
  const both = [
    place(lossRoot, {
      title: t("chart.loss"),
      series: [
        { key: "eval_loss", label: t("chart.eval"), kind: "eval" },
        { key: "train_loss", label: t("chart.train"), kind: "train" },
      ],
      format: loss,
      bounds: { low: 0, high: null },
    }),
    place(accuracyRoot, {
      title: t("chart.accuracy"),
      series: [{ key: "eval_accuracy", label: t("chart.eval"), kind: "eval" }],
      format: percent,
      bounds: { low: 0, high: 1 },
      axis: (value) => percent(value, 0),
    }),
  ];
  store.on(["history"], ({ snapshot }) => both.forEach((chart) => chart.update(snapshot?.history || [])));
}

function place(root, options) {
  const { meta, body } = panel(root, options.title);
  const chart = createChart(options);
  body.replaceWith(chart.node);
  meta.append(chart.readout, " ", chart.legend);
  return chart;
}
