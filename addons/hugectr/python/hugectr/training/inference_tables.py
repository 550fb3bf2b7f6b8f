# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes tables to a folder that the inference parameter server loads, with its JSON.

  <folder>/<table>/key          int64
  <folder>/<table>/emb_vector   float32, a row per key
  <folder>/<table>/hps_sums     sizes and checksums of both
  <folder>/<model>.json         names the tables' folders, their widths and the rest

The format is that of HugeCTR's hierarchical parameter server, version 24.06.
"""

import json
import os
import re

import numpy as np

import embedding_variable

from hugectr.training import sparse_files

_MODEL = re.compile(r"^[A-Za-z0-9_-]{1,120}$")

# The server's GPU cache settings. With this threshold it fetches missing rows before it
# answers, so that answers do not depend on previous requests.
_CACHE = {"gpucache": True, "gpucacheper": 0.2, "hit_rate_threshold": 1.0}


class Table(object):
  """One table of a model.

  Attributes:
    full_name: string, the layer's name, and a suffix if it has a table per slot.
    name: string, the full name with "_" for all but letters, digits, _ and -.
    rows: sparse_files.Rows without slots.
    floats: int, floats per row.
    max_keys: int, largest number of keys per sample.
  """

  def __init__(self, full_name, rows, floats, max_keys):
    self.full_name, self.rows = full_name, rows
    self.floats, self.max_keys = floats, max_keys
    self.name = re.sub(r"[^A-Za-z0-9_-]", "_", full_name)


def _tables_of(embedding, rows, by_slot):
  """Returns the Tables of an embedding layer; raises ValueError."""
  bottom = embedding.bottom
  if rows.slots is None or not by_slot:
    doubled = np.flatnonzero(np.diff(np.sort(rows.keys)) == 0)
    if len(doubled):
      raise ValueError(
          "hugectr.Session.export_inference_tables: key %d of embedding '%s' is in several "
          "slots: give by_slot=True, or slot_size_array in the configuration" %
          (np.sort(rows.keys)[doubled[0]], embedding.name))
    found = [Table(embedding.name, rows._replace(slots=None), embedding.vec_size, bottom.max_keys)]
  else:
    found = []
    for slot in range(bottom.slot_num):
      mine = rows.slots == slot
      found.append(Table(
          "%s_slot_%d" % (embedding.name, slot),
          sparse_files.Rows(rows.keys[mine], None, [a[mine] for a in rows.arrays]),
          embedding.vec_size, bottom.max_nnz or bottom.max_keys))
  for table in found:
    if not len(table.rows.keys):
      raise ValueError("hugectr.Session.export_inference_tables: table '%s' has no rows, "
                       "and the server takes none without: train first" % table.name)
  return found


def tables(embeddings, by_slot):
  """Returns the Tables of a model.

  Args:
    embeddings: list of (config's Embedding, its Rows).
    by_slot: bool, whether a layer with a table per slot is written as one table per
      slot.

  Raises:
    ValueError: a table has no rows, two tables have one name, or a key is in several
      slots and by_slot is False.
  """
  found, names = [], set()
  for embedding, rows in embeddings:
    for table in _tables_of(embedding, rows, by_slot):
      if table.name in names:
        raise ValueError("hugectr.Session.export_inference_tables: two tables would be "
                         "called '%s': give their layers other names" % table.name)
      names.add(table.name)
      found.append(table)
  return found


def check_model_name(model):
  """Raises ValueError for a name that the server does not accept."""
  if not isinstance(model, str) or not _MODEL.match(model):
    raise ValueError("hugectr.Session.export_inference_tables: model: expected 1 to 120 "
                     "letters, digits, _ or -, got %r" % (model,))


def write(folder, model, found, batch_size):
  """Writes the tables, then the JSON that names them.

  Args:
    folder: path; created if necessary.
    model: string, the model's name.
    found: list of Table.
    batch_size: int, largest number of samples per request.

  Returns:
    The path of the JSON file.

  Raises:
    OSError: a file cannot be written.
    ValueError: a folder has the files of another table.
  """
  folder = os.path.abspath(folder)
  embedding_variable.durable.make_folder(folder)
  for table in found:
    embedding_variable.table_directories.write_pieces(
        os.path.join(folder, table.name), [(table.rows.keys, table.rows.arrays[0])],
        table.full_name)
  clause = dict({
      "model": model,
      "sparse_files": [os.path.join(folder, t.name) for t in found],
      "embedding_table_names": [t.name for t in found],
      "embedding_vecsize_per_table": [t.floats for t in found],
      "maxnum_catfeature_query_per_table_per_sample": [t.max_keys for t in found],
      # Evaluation reads the default row for a key without a row. The server has one
      # number for all such elements: the mean of the default rows.
      "default_value_for_each_table": [0.0 for _ in found],
      "deployed_device_list": [0],
      "max_batch_size": batch_size,
  }, **_CACHE)
  path = os.path.join(folder, model + ".json")
  text = json.dumps({"supportlonglong": True, "models": [clause]}, indent=2) + "\n"
  sparse_files.write_bytes(path, text.encode())
  return path
