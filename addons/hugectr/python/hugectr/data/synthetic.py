# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Random samples with a planted signal, and their Parquet files."""

import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


class Planted(object):
  """Samples whose label depends on their keys and dense features.

  Args:
    sizes: list of ints, keys of each slot.
    dense_dim: int.
    seed: int, of the planted weights.
  """

  def __init__(self, sizes, dense_dim, seed=0):
    random = np.random.RandomState(seed)
    self.sizes = list(sizes)
    self._rows = [random.randn(size) for size in sizes]
    self._dense = random.randn(dense_dim) * .5

  def samples(self, count, seed):
    """Returns (labels [N], dense [N, dense_dim], keys [N, slots]) of arrays."""
    random = np.random.RandomState(seed)
    dense = random.randn(count, len(self._dense)).astype(np.float32)
    # Small keys come more often.
    keys = np.stack([(size * random.rand(count) ** 2).astype(np.int64)
                     for size in self.sizes], axis=1)
    labels = random.rand(count) < self.probabilities(dense, keys)
    return labels.astype(np.float32), dense, keys

  def probabilities(self, dense, keys):
    """Returns the planted probability of each sample's label, `[N]`."""
    logit = dense @ self._dense + 2 / len(self.sizes) ** .5 * sum(
        rows[keys[:, s]] for s, rows in enumerate(self._rows))
    return 1 / (1 + np.exp(-logit))


def auc_of_probabilities(labels, probabilities):
  """Returns the AUC of predictions without ties."""
  ranks = np.empty(len(labels))
  ranks[np.argsort(probabilities, kind="stable")] = np.arange(1, len(labels) + 1)
  positives = labels.sum()
  above = ranks[labels > 0].sum() - positives * (positives + 1) / 2
  return above / (positives * (len(labels) - positives))


def write_parquet(folder, planted, files, samples, seed, list_name="_file_list.txt"):
  """Writes files, a file list and _metadata.json, as NVTabular does.

  Args:
    folder: string, made if it is not there.
    planted: Planted.
    files: int.
    samples: int, in all files together.
    seed: int, of the samples.
    list_name: string, the file list's name.

  Returns:
    The file list's path.
  """
  os.makedirs(folder, exist_ok=True)
  stats = []
  for k in range(files):
    count = samples // files + (1 if k < samples % files else 0)
    labels, dense, keys = planted.samples(count, seed * 1000 + k)
    columns = {"label": labels}
    columns.update(("I%d" % (d + 1), dense[:, d]) for d in range(dense.shape[1]))
    columns.update(("C%d" % (s + 1), keys[:, s]) for s in range(keys.shape[1]))
    name = "%d.parquet" % k
    pq.write_table(pa.table(columns), os.path.join(folder, name),
                   row_group_size=max(1, min(65536, count // 2)))
    stats.append({"file_name": name, "num_rows": count})
  names, dense_dim = list(columns), dense.shape[1]

  def described(first, end):
    return [{"col_name": n, "index": first + k} for k, n in enumerate(names[first:end])]

  with open(os.path.join(folder, "_metadata.json"), "w") as f:
    json.dump({"file_stats": stats, "labels": described(0, 1),
               "conts": described(1, 1 + dense_dim),
               "cats": described(1 + dense_dim, len(names))}, f)
  path = os.path.join(folder, list_name)
  with open(path, "w") as f:
    f.write("%d\n" % files)
    f.writelines(os.path.join(folder, s["file_name"]) + "\n" for s in stats)
  return path
