# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains every model of train_ctr.py on the CPU and on a GPU, and compares the AUC.

  python -m embedding_variable.gpu run DIR -- python examples/compare_devices.py

Both devices use the same data, steps and seeds. They draw different initial rows and add
in different orders, so their AUCs differ as those of two seeds do. Each model is trained
with several seeds on both. The table has the mean AUC of each device, their difference,
and the standard deviation of the AUC between seeds.

The exit status is 1 if a difference exceeds --bound of its standard errors, or if a model
did not restore to the same bits.
"""

import collections
import math
import tempfile

from absl import app
from absl import flags
from absl.testing import flagsaver
import numpy as np
import tensorflow.compat.v1 as tf

import ctr_data
import models
import train_ctr

FLAGS = flags.FLAGS

flags.DEFINE_list("models", sorted(models.MODELS), "The models.")
flags.DEFINE_list("devices", ["cpu", "gpu"], "The two devices to compare.")
flags.DEFINE_integer("num_seeds", 3, "Trainings of each model on each device.",
                     lower_bound=2)
flags.DEFINE_float("bound", 4.0, "Largest difference, in its standard errors.")

# aucs: {device: list of float, one for each seed}; rates: {device: the same, samples/s}.
# same_bits: whether all models restored to the same bits.
Row = collections.namedtuple("Row", ["model", "aucs", "rates", "same_bits"])


def train(model, data):
  """Trains a model on each device with each seed. Returns a Row."""
  aucs, rates = collections.defaultdict(list), collections.defaultdict(list)
  same_bits = True
  for seed in range(1, FLAGS.num_seeds + 1):
    for device in FLAGS.devices:
      with tempfile.TemporaryDirectory() as folder:
        with flagsaver.flagsaver(model=model, device=device, seed=seed):
          result = train_ctr.run(data, folder)
      aucs[device].append(result.auc)
      rates[device].append(result.samples_per_second)
      same_bits &= result.same_bits
      print("%s on %s, seed %d: AUC %.6f, %d samples/s" % (
          model, device, seed, result.auc, result.samples_per_second), flush=True)
  return Row(model, dict(aucs), dict(rates), same_bits)


def spread(aucs):
  """Returns the standard deviation between seeds, pooled over the devices.

  Args:
    aucs: as in Row.
  """
  return math.sqrt(np.mean([np.var(x, ddof=1) for x in aucs.values()]))


def within_noise(aucs, devices, bound):
  """Returns whether the means differ by at most `bound` standard errors."""
  one, other = (np.mean(aucs[d]) for d in devices)
  seeds = len(aucs[devices[0]])
  return abs(other - one) <= bound * spread(aucs) * math.sqrt(2.0 / seeds)


def report(rows, devices, bound, best_auc):
  """Prints the table. Returns the exit status."""
  one, other = devices
  print("\n%d seeds; the best AUC that is possible on this data is %.6f" %
        (len(rows[0].aucs[one]), best_auc))
  print("| model | AUC on %s | on %s | difference | between seeds | samples/s on %s | "
        "on %s |" % (one, other, one, other))
  print("| --- | --- | --- | --- | --- | --- | --- |")
  wrong = []
  for row in rows:
    means = [np.mean(row.aucs[d]) for d in devices]
    print("| %s | %.6f | %.6f | %+.6f | %.6f | %d | %d |" % (
        (row.model,) + tuple(means) + (means[1] - means[0], spread(row.aucs)) +
        tuple(np.median(row.rates[d]) for d in devices)))
    if not within_noise(row.aucs, devices, bound):
      wrong.append("%s: the AUCs differ by more than %g standard errors" %
                   (row.model, bound))
    if not row.same_bits:
      wrong.append("%s: a checkpoint did not restore to the same bits" % row.model)
  for line in wrong:
    print("error: " + line)
  return 1 if wrong else 0


def main(argv):
  if len(argv) > 1:
    raise app.UsageError("unexpected arguments: %s" % " ".join(argv[1:]))
  if len(FLAGS.devices) != 2:
    raise app.UsageError("--devices takes two, got %s" % ",".join(FLAGS.devices))
  FLAGS.steps = FLAGS.steps or 300
  tf.logging.set_verbosity(tf.logging.ERROR)
  for device in FLAGS.devices:
    with flagsaver.flagsaver(device=device):
      train_ctr.check_device()
  with tempfile.TemporaryDirectory() as folder:
    samples = FLAGS.steps * FLAGS.batch_size
    print("generating %d samples in Criteo's format ..." % samples, flush=True)
    data = ctr_data.generate(folder, samples, FLAGS.eval_samples, FLAGS.seed)
    rows = [train(model, data) for model in FLAGS.models]
  return report(rows, FLAGS.devices, FLAGS.bound, data.best_auc)


if __name__ == "__main__":
  app.run(main)
