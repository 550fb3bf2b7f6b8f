# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the scripts over data with a planted signal; their AUCs are above a bound."""

import contextlib
import io
import os
import re

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from hugectr import testing
from hugectr.commands import running
from hugectr.config import model as models
from hugectr.data import batches
from hugectr.data import synthetic
from hugectr.data import writing

_HERE = os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"],
                     "addons/hugectr/example/scripts")
_TRAIN, _EVALUATED = 20000, 4000


def _merged(chunk, counts):
  """Returns a chunk whose k-th slot has the keys of the next counts[k] slots.

  A sample has from 1 to all of these keys, by its first key.
  """
  slots, at = [], 0
  for count in counts:
    columns = np.stack([s.keys for s in chunk.slots[at:at + count]], axis=1)
    columns = columns + 20 * np.arange(at, at + count)
    kept = 1 + columns[:, :1] % count > np.arange(count)
    offsets = np.zeros([len(columns) + 1], np.int64)
    np.cumsum(kept.sum(axis=1), out=offsets[1:])
    slots.append(batches.Slot(columns[kept], offsets))
    at += count
  return chunk._replace(slots=slots)


class ScriptsTest(parameterized.TestCase):

  def write(self, kind, slots, dense, labels=1, counts=None):
    """Writes data of slots of 20 keys each; returns its folder."""
    folder = self.create_tempdir().full_path
    planted = testing.Planted([20] * (sum(counts) if counts else slots), dense,
                              label_dim=labels)
    has_offsets = kind == "Norm" and not counts
    data = models.Data(
        "data", kind, "", None, "label", labels, "dense", dense,
        [models.SparseInput("keys", False, 0, slots, None, None)],
        [20] * slots if has_offsets else None, 2, {"check": "Sum"})
    for name, rows, seed in (("train", _TRAIN, 1), ("val", _EVALUATED, 2)):
      chunks = synthetic.chunks(planted, rows, seed, 5000)
      if counts:
        chunks = (_merged(c, counts) for c in chunks)
      writing.write(os.path.join(folder, name, "_file_list.txt"), data,
                    "I32" if kind == "Norm" else "I64", chunks, 5000, group=5000)
    return folder

  # Bounds are below what a few hundred iterations reach, and far above 0.5, which random
  # weights have.
  @parameterized.parameters(
      ("dcn", ("Norm", 26, 13), ["--max_iter=150"], .7),
      ("deepfm", ("Parquet", 26, 13), ["--max_iter=150"], .7),
      ("dlrm", ("Parquet", 26, 13), ["--max_iter=250"], .7),
      ("dlrm", ("Parquet", 26, 13), ["--max_iter=250", "--collection"], .7),
      ("wdl", ("Norm", 28, 13), ["--max_iter=150"], .7),
      ("din", ("Parquet", 7, 0), ["--max_iter=250"], .65),
      ("mmoe", ("Parquet", 8, 0, 2), ["--max_iter=150"], .7),
      ("multi_hot", ("Norm", 4, 4, 1, [3, 1, 2, 3]), [], .65))
  def test_learns(self, name, data, arguments, bound):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
      running.run(os.path.join(_HERE, name + ".py"), [self.write(*data)] + arguments)
    found = re.findall(r"Evaluation, AUC: (.*)$", out.getvalue(), re.MULTILINE)
    print(name, found)
    for auc in found[-1].strip("{}").split(", "):
      self.assertGreater(float(auc), bound)


if __name__ == "__main__":
  absltest.main()
