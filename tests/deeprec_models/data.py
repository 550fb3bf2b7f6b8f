# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes generated data for the models: features, two labels and two histories."""

import os

import numpy as np

from embedding_variable.tools import arrow

import parts
import zoo


def _columns(rows, seed):
  """Returns a dict of columns; a click depends on C1 and H1, a purchase on a click."""
  numbers = np.random.RandomState(seed)
  columns = {name: np.round(numbers.rand(rows), 3).astype(np.float32)
             for name in zoo.DENSE}
  keys = {name: numbers.zipf(1.3, rows) % 300 for name in zoo.SPARSE}
  columns.update({name: ["%s_%d" % (name, k) for k in values]
                  for name, values in keys.items()})
  lengths = numbers.randint(1, 7, rows)
  likes = np.zeros(rows)
  for name in parts.HISTORIES:
    histories = [numbers.zipf(1.3, n) % 300 for n in lengths]
    likes += [np.mean(h % 3 == 0) for h in histories]
    # The items of H1 are those of C1.
    prefix = "C1" if name == "H1" else name
    columns[name] = ["|".join("%s_%d" % (prefix, k) for k in h) for h in histories]
  chance = .1 + .4 * (keys["C1"] % 3 == 0) + .2 * likes
  clicks = numbers.rand(rows) < chance
  bought = clicks & (numbers.rand(rows) < .3 + .4 * (keys["C2"] % 2))
  for name, values in zip(parts.TASKS, (clicks, bought)):
    columns[name] = values.astype(np.float32)
  return columns


def write(folder, rows, inputs, seed=1):
  """Writes train and eval files with an Inputs' columns to a folder.

  Returns:
    The columns of the eval files: a dict of lists or arrays.
  """
  pa = arrow.load()
  os.makedirs(folder)
  for name, count, own_seed in (("train", rows, seed), ("eval", rows // 4, seed + 1)):
    columns = _columns(count, own_seed)
    order = inputs.labels + inputs.dense + inputs.strings
    pa.parquet.write_table(pa.table({k: columns[k] for k in order}),
                           os.path.join(folder, name + ".parquet"))
    with open(os.path.join(folder, name + ".csv"), "w") as f:
      for row in zip(*[columns[k] for k in order]):
        f.write(",".join(str(v) for v in row) + "\n")
  return columns
