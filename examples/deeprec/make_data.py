# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes generated data for the models of this folder, as Parquet and as CSV.

  make_data.py DIR [--rows=N]
"""

import argparse
import os

import numpy as np

from embedding_variable.tools import arrow

import zoo


def _columns(rows, seed):
  """Returns a dict of columns; clicks depend on C1, C2 and I1."""
  numbers = np.random.RandomState(seed)
  columns = {name: np.round(numbers.rand(rows), 3).astype(np.float32)
             for name in zoo.DENSE}
  keys = {name: numbers.zipf(1.3, rows) % 500 for name in zoo.SPARSE}
  chance = .1 + .5 * (keys["C1"] % 3 == 0) + .3 * (keys["C2"] % 2) * columns["I1"]
  columns[zoo.LABEL] = (numbers.rand(rows) < chance).astype(np.float32)
  columns.update({name: ["%s_%d" % (name, k) for k in values]
                  for name, values in keys.items()})
  return columns


def write(folder, rows, seed=1):
  """Writes train and eval files to a folder."""
  pa = arrow.load()
  os.makedirs(folder, exist_ok=True)
  for name, count, own_seed in (("train", rows, seed), ("eval", rows // 4, seed + 1)):
    columns = _columns(count, own_seed)
    order = [zoo.LABEL] + zoo.DENSE + zoo.SPARSE
    pa.parquet.write_table(pa.table({k: columns[k] for k in order}),
                           os.path.join(folder, name + ".parquet"))
    with open(os.path.join(folder, name + ".csv"), "w") as f:
      for row in zip(*[columns[k] for k in order]):
        f.write(",".join(str(v) for v in row) + "\n")


def main():
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("folder")
  parser.add_argument("--rows", type=int, default=100000)
  args = parser.parse_args()
  write(args.folder, args.rows)


if __name__ == "__main__":
  main()
