# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Training data: generated, or a user's files, which are checked first."""

import collections
import os

import auc as auc_lib
import criteo
import criteo_parquet

# Number of lines of a text file that are checked before training starts.
_CHECKED_LINES = 1000

_SHOWN = 60

# train, evaluation: arguments of criteo_input.dataset. best_auc: float or None.
Data = collections.namedtuple(
    "Data", ["train", "evaluation", "train_samples", "best_auc"])


def generate(folder, train_samples, eval_samples, seed):
  """Writes train.txt and eval.txt with labels drawn from a planted model. Returns
  Data."""
  model = criteo.PlantedModel(seed)
  train_path = os.path.join(folder, "train.txt")
  eval_path = os.path.join(folder, "eval.txt")
  criteo.write(train_path, train_samples, model, seed=2 * seed)
  probability, label = criteo.write(
      eval_path, eval_samples, model, seed=2 * seed + 1)
  return Data(
      train={"path": train_path},
      evaluation={"path": eval_path},
      train_samples=train_samples,
      best_auc=auc_lib.auc(label, probability))


def estimate_lines(path):
  """Estimates the number of lines of a file from its size and its first lines."""
  with open(path, "rb") as f:
    head = f.read(1 << 20)
  return max(1, os.path.getsize(path) * max(1, head.count(b"\n")) // len(head))


def _is_number(text):
  try:
    float(text)
  except ValueError:
    return False
  return True


def _mistake(line):
  """Returns what is wrong with a line of Criteo's text, or None."""
  fields = line.rstrip(b"\r\n").split(b"\t")
  shown = ascii(line[:_SHOWN].decode("utf-8", "replace").rstrip("\r\n"))
  if len(fields) != criteo.NUM_FIELDS:
    mistake = ("expected %d fields separated by tabs (a label, %d integers, %d "
               "categories), got %d: %s" % (
                   criteo.NUM_FIELDS, criteo.NUM_NUMERIC, criteo.NUM_CATEGORICAL,
                   len(fields), shown))
    if len(fields) == 1 and line.count(b",") + 1 == criteo.NUM_FIELDS:
      mistake += ". The fields are separated by commas; make tabs of them: tr ',' '\\t'"
    return mistake
  if not _is_number(fields[0]):
    return "expected a number as the label, got %s. A header line must be removed" % shown
  for i, field in enumerate(fields[1:1 + criteo.NUM_NUMERIC]):
    if field and not _is_number(field):
      return "expected a number in field %d, got %s" % (
          i + 2, ascii(field[:_SHOWN].decode("utf-8", "replace")))
  return None


def check(path, lines=None):
  """Raises DataError for the first mistake in the data of a path. Skips empty lines.

  Args:
    path: a text file, a Parquet file, or a folder of Parquet files.
    lines: number of lines of a text file to check; of a Parquet file only the columns are
      checked then. None: all lines or rows.
  """
  try:
    if criteo_parquet.is_parquet(path):
      criteo_parquet.check(path)
      if lines is None:
        for _ in criteo_parquet.chunks(path):
          pass
      return
    found = False
    with open(path, "rb") as f:
      for number, line in enumerate(f, 1):
        if lines is not None and number > lines:
          break
        if not line.rstrip(b"\r\n"):
          continue
        found = True
        mistake = _mistake(line)
        if mistake:
          raise criteo.DataError("%s: line %d: %s" % (path, number, mistake))
    if not found:
      raise criteo.DataError("%s: the file is empty" % path)
  except OSError as e:
    raise criteo.DataError("%s: %s" % (path, e.strerror or e))


def samples(path):
  """Returns the number of samples: exact for Parquet files, estimated for text."""
  if criteo_parquet.is_parquet(path):
    return criteo_parquet.check(path).rows
  return estimate_lines(path)


def of_files(path, eval_path, eval_samples):
  """Returns the Data of a user's files.

  Args:
    path: data to train on, as in `check`.
    eval_path: data to evaluate on; "" uses the first samples of `path`.
    eval_samples: number of samples to evaluate on.

  Raises:
    DataError: a file cannot be read, has another format, or has too few samples.
  """
  for each in filter(None, [path, eval_path]):
    check(each, _CHECKED_LINES)
  number = samples(path)
  if eval_path:
    kinds = [criteo_parquet.is_parquet(p) and criteo_parquet.check(p).ids
             for p in (path, eval_path)]
    # Text files and Parquet strings are hashed to the same ids.
    if kinds[0] != kinds[1]:
      raise criteo.DataError("%s and %s must both have categories of text, or both integers" %
                             (path, eval_path))
    return Data({"path": path}, {"path": eval_path, "take": eval_samples}, number, None)
  if number <= eval_samples:
    raise criteo.DataError(
        "%s has about %d samples, and the first --eval_samples=%d are kept for "
        "evaluation: nothing is left to train on" % (path, number, eval_samples))
  return Data({"path": path, "skip": eval_samples}, {"path": path, "take": eval_samples},
              number - eval_samples, None)
