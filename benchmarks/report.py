# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes the results of a training benchmark as a page and a chart."""

import collections
import statistics
import textwrap

import defaults

# Target speedup of sok.lookup_sparse over stock TensorFlow.
GOALS = {"zipf": 3.0, "uniform": 2.0}

_COLUMNS = 118  # width of the page

_LABELS = {
    defaults.STOCK: "stock",
    defaults.RESOURCE: "stock, resource variables",
    defaults.EV_SOK: "sok.lookup_sparse",
    defaults.EV_NN: "tf.nn.embedding_lookup_sparse on EVs",
}


def _goal(workload):
  if workload.endswith(defaults.DLRM_TOWER):
    return None
  return GOALS[workload.split("_")[0]]


def combine(runs):
  """Returns medians over rounds.

  Args:
    runs: list of results of stock_vs_ev.measure; the same variant of the same
      workload may occur once for each round.

  Returns:
    OrderedDict of workload to OrderedDict of variant to a dict: step_ms, net_ms,
    forward_ms (medians over rounds), spread (slowest by fastest round, of step_ms),
    and "runs".
  """
  groups = collections.OrderedDict()
  for run in runs:
    groups.setdefault(run["workload"], collections.OrderedDict()).setdefault(
        run["variant"], []).append(run)
  table = collections.OrderedDict()
  for workload, variants in groups.items():
    table[workload] = collections.OrderedDict()
    for variant, results in variants.items():
      steps = [r["step"]["median_ms"] for r in results]
      table[workload][variant] = {
          "step_ms": statistics.median(steps),
          "net_ms": statistics.median(r["net_ms"] for r in results),
          "forward_ms": statistics.median(
              r["forward"]["median_ms"] for r in results),
          "spread": max(steps) / min(steps),
          "runs": results,
      }
  return table


def ratio(variants, variant, key="net_ms"):
  """Returns the speedup of `variant` over stock; None if either is missing."""
  if defaults.STOCK not in variants or variant not in variants:
    return None
  return variants[defaults.STOCK][key] / variants[variant][key]


def _format(value, pattern="%.1f", missing="-"):
  return missing if value is None else pattern % value


def _verdict(goal, reached):
  if goal is None or reached is None:
    return "-"
  if reached >= goal:
    return "reached (%.1fx)" % goal
  return "%.0f %% short of %.1fx" % (100 * (1 - reached / goal), goal)


def _results_table(table):
  lines = [
      "| workload | unique ids per table | stock ms | sok ms | tf.nn on EVs ms | "
      "sok / stock | tf.nn / stock | sok / stock, with input | project's goal |",
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
  ]
  for workload, variants in table.items():
    def net(variant):
      return variants[variant]["net_ms"] if variant in variants else None
    first = next(iter(variants.values()))["runs"][0]
    reached = ratio(variants, defaults.EV_SOK)
    lines.append("| %s | %d | %s | %s | %s | **%s** | %s | %s | %s |" % (
        workload, first["unique_ids_per_table"],
        _format(net(defaults.STOCK)), _format(net(defaults.EV_SOK)),
        _format(net(defaults.EV_NN)),
        _format(reached, "%.2fx"),
        _format(ratio(variants, defaults.EV_NN), "%.2fx"),
        _format(ratio(variants, defaults.EV_SOK, "step_ms"), "%.2fx"),
        _verdict(_goal(workload), reached)))
  return lines


def _time_table(table):
  lines = [
      "| workload | variant | forward ms | whole step ms | processor time ms | "
      "rounds differ by | "
      "peak memory GB | ops that take most of the time (ms) |",
      "| --- | --- | --- | --- | --- | --- | --- | --- |",
  ]
  for workload, variants in table.items():
    for variant, result in variants.items():
      run = result["runs"][-1]
      ops = sorted(run["op_ms"].items(), key=lambda item: -item[1])[:5]
      lines.append("| %s | %s | %.1f | %.1f | %.1f | %.0f %% | %.1f | %s |" % (
          workload, _LABELS[variant], result["forward_ms"], result["step_ms"],
          run["step"]["cpu_ms"],
          100 * (result["spread"] - 1), run["peak_rss_gb"],
          ", ".join("%s %.1f" % item for item in ops)))
  return lines


def page(table, machine, command):
  """Returns the page as Markdown.

  Args:
    table: from `combine`.
    machine: from `machine.describe`.
    command: string, the command line.

  Returns:
    string.
  """
  first = next(iter(next(iter(table.values())).values()))["runs"][0]
  about = (
      "%d tables, batch %d, Adagrad, sum pooling. Zipf %.2f over %d rows a table; "
      "uniform over %d rows a table at dim 16 and a quarter of that at dim 64 (the "
      "same bytes; four times that does not fit this memory). Every row exists "
      "before the clock starts. Each figure is the median step of a process of its "
      "own, and the median of these over rounds in alternating order. Unless a "
      "column is named otherwise, times leave out the cost of taking a batch of ids, "
      "which is the same on both sides. Workloads named dlrm have DLRM's dense layers; "
      "the others sum the outputs, so that almost only the embeddings are measured." %
      (first["tables"], first["batch"], defaults.ZIPF_EXPONENT, defaults.ZIPF_ROWS,
       defaults.UNIFORM_ROWS_AT_DIM_16))
  lines = [
      "# One training step: dense variables against embedding variables",
      "",
      textwrap.fill(about, _COLUMNS, break_on_hyphens=False),
      "",
      "Stock is `tf.Variable` and `tf.nn.embedding_lookup_sparse`, TensorFlow "
      "%s." % machine.get("tensorflow", "1.15"),
      "",
  ]
  lines += _results_table(table)
  lines += ["", "![ratios](training.png)", "", "## Where the time goes", "",
            "Op times are of one traced step; ops that run in parallel add up to "
            "more than the step takes.", ""]
  lines += _time_table(table)
  lines += ["", "## Machine", ""]
  lines += ["- %s: %s" % (k, machine[k]) for k in sorted(machine)]
  lines += ["- command: `%s`" % command, ""]
  return "\n".join(lines)


def chart(table, path):
  """Draws each variant's speedup over stock by workload, as a PNG."""
  # pylint: disable=g-import-not-at-top
  import matplotlib
  matplotlib.use("Agg")
  from matplotlib import pyplot

  workloads = [w for w in table if defaults.STOCK in table[w]]
  figure, axes = pyplot.subplots(figsize=(11, 4.5))
  shown = (defaults.EV_SOK, defaults.EV_NN)
  width = 0.8 / len(shown)
  for i, variant in enumerate(shown):
    heights = [ratio(table[w], variant) or 0 for w in workloads]
    places = [x + (i - 0.5) * width for x in range(len(workloads))]
    bars = axes.bar(places, heights, width, label=_LABELS[variant])
    for bar, height in zip(bars, heights):
      if height:
        axes.text(bar.get_x() + width / 2, height, "%.1f" % height, ha="center",
                  va="bottom", fontsize=8)
  axes.axhline(1, color="black", linewidth=1)
  for x, workload in enumerate(workloads):
    goal = _goal(workload)
    if goal:
      axes.hlines(goal, x - 0.45, x + 0.45, colors="red", linestyles="dashed",
                  label="goal" if x == 0 else None)
  axes.set_xticks(range(len(workloads)))
  axes.set_xticklabels([w.replace("_", "\n") for w in workloads], fontsize=8)
  axes.set_ylabel("speed, stock TensorFlow = 1")
  axes.set_title("One training step, 26 tables, batch 4096, Adagrad")
  axes.legend()
  figure.tight_layout()
  figure.savefig(path, dpi=120)
  pyplot.close(figure)
