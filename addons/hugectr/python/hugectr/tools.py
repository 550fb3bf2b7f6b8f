# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""DataGenerator: files of random samples, as a script's data.

  from hugectr.tools import DataGenerator, DataGeneratorParams

Labels do not depend on keys. For data from which a model can learn, use `python -m
hugectr generate` with the JSON of `Model.graph_to_json`.
"""

import numbers
import os

import numpy as np

from hugectr.api import enums
from hugectr.api import printing
from hugectr.config import model as models
from hugectr.data import batches
from hugectr.data import writing

_WHERE = "hugectr.tools.DataGeneratorParams"

# Exponents of the distribution.
_ALPHAS = {"Long": 0.9, "Medium": 1.1, "Short": 1.3}

_CHUNK = 65536


class DataGeneratorParams(object):
  """Shape and number of the samples that DataGenerator writes.

  The arguments are attributes too, so that a script can give them to DataReaderParams.

  Args:
    format: member of DataReaderType_t: Norm, Parquet or Raw.
    label_dim: int.
    dense_dim: int.
    num_slot: int.
    i64_input_key: bool, whether keys have 64 bits.
    source: path of the file list to write (Norm, Parquet: in a folder of its own), or of
      the file (Raw).
    eval_source: the same, for evaluation.
    slot_size_array: list of the number of keys per slot.
    nnz_array: list of ints, keys per slot and sample; empty: 1. Norm has exactly as many,
      Parquet from 1 to as many.
    check_type: member of Check_t, of Norm.
    dist_type: member of Distribution_t, of the keys.
    power_law_type: member of PowerLaw_t: Long, Medium and Short are alpha 0.9, 1.1, 1.3.
    alpha: number above 0 and not 1, with PowerLaw_t.Specific.
    num_files: int, training files of Norm and Parquet.
    eval_num_files: int.
    num_samples_per_file: int.
    num_samples: int, samples of Raw.
    eval_num_samples: int.
    float_label_dense: bool, whether labels and dense features of Raw are float32.
    num_threads: int, without effect, which is reported once.
    seed: int, an argument of this package; None: a random one.

  Raises:
    TypeError, ValueError: an argument is invalid.
  """

  def __init__(self, format, label_dim, dense_dim, num_slot, i64_input_key, source,  # pylint: disable=redefined-builtin
               eval_source, slot_size_array, nnz_array=(), check_type=enums.Check_t.Sum,
               dist_type=enums.Distribution_t.PowerLaw,
               power_law_type=enums.PowerLaw_t.Specific, alpha=1.2, num_files=128,
               eval_num_files=32, num_samples_per_file=40960, num_samples=5242880,
               eval_num_samples=1310720, float_label_dense=False, num_threads=1, seed=None):
    vars(self).update((k, v) for k, v in locals().items() if k != "self")
    self.slot_size_array, self.nnz_array = list(slot_size_array), list(nnz_array)
    printing.without_effect(_WHERE, {"num_threads": (num_threads, 1)})
    self.file_format = enums.check(_WHERE, "format", format, enums.DataReaderType_t)
    if self.file_format == "RawAsync":
      raise ValueError("%s: format: expected Norm, Parquet or Raw, got RawAsync" % _WHERE)
    enums.check(_WHERE, "check_type", check_type, enums.Check_t)
    kind = enums.check(_WHERE, "dist_type", dist_type, enums.Distribution_t)
    law = enums.check(_WHERE, "power_law_type", power_law_type, enums.PowerLaw_t)
    self.sizes = self.slot_size_array
    self.counts = self.nnz_array or [1] * num_slot
    for name, values in (("slot_size_array", self.sizes), ("nnz_array", self.counts)):
      if len(values) != num_slot:
        raise ValueError("%s: %s: expected %d numbers, one per slot, got %d" %
                         (_WHERE, name, num_slot, len(values)))
      if not all(isinstance(v, numbers.Integral) and v >= 1 for v in values):
        raise ValueError("%s: %s: expected integers of at least 1, got %r" %
                         (_WHERE, name, values))
    if self.file_format == "Raw" and max(self.counts) > 1:
      raise ValueError("%s: nnz_array: Raw files have one key per slot" % _WHERE)
    exponent = _ALPHAS.get(law, alpha)
    if not exponent > 0 or exponent == 1:
      raise ValueError("%s: alpha: expected a number above 0 and not 1, got %r" % (_WHERE, alpha))
    self.exponent = exponent if kind == "PowerLaw" else None
    each = num_samples_per_file
    is_raw = self.file_format == "Raw"
    self.parts = [(source, num_samples if is_raw else num_files * each, each),
                  (eval_source, eval_num_samples if is_raw else eval_num_files * each, each)]
    for path, rows, _ in self.parts:
      if rows < 1 or not path:
        raise ValueError("%s: expected a path and at least 1 sample, got %r and %d" %
                         (_WHERE, path, rows))
    self.is_whole = is_raw and not float_label_dense
    self.key_type = "I64" if i64_input_key else "I32"
    self.data = models.Data(
        "data", self.file_format, "", None, "label", label_dim, "dense", dense_dim,
        [models.SparseInput("keys", False, 0, num_slot, None, None)], self.sizes, 1,
        {"check": "Sum" if check_type == enums.Check_t.Sum else "None",
         "float_label_dense": float_label_dense})


class DataGenerator(object):
  """Writes the files of DataGeneratorParams."""

  def __init__(self, data_generator_params):
    if not isinstance(data_generator_params, DataGeneratorParams):
      raise TypeError("hugectr.tools.DataGenerator: expected a DataGeneratorParams, got %r" %
                      (data_generator_params,))
    self._params = data_generator_params

  def generate(self):
    """Writes training and evaluation data.

    Labels and dense features are uniform in [0, 1); those of a Raw file of integers are
    0 and 1, and integers.

    Raises:
      OSError: a file cannot be written.
    """
    params = self._params
    random = np.random.RandomState(params.seed)
    for path, rows, each in params.parts:
      writing.write(os.path.abspath(path), params.data, params.key_type,
                    self._chunks(random, rows), each)

  def _chunks(self, random, rows):
    data = self._params.data
    for first in range(0, rows, _CHUNK):
      count = min(_CHUNK, rows - first)
      labels = random.rand(count, data.label_dim).astype(np.float32)
      dense = random.rand(count, data.dense_dim).astype(np.float32)
      if self._params.is_whole:
        labels = np.repeat((first + np.arange(count))[:, None] % 2, data.label_dim,
                           axis=1).astype(np.float32)
        # The file has integers x; a feature is log(x + 1).
        dense = np.log1p(np.floor(100 * dense)).astype(np.float32)
      yield batches.Chunk(labels, dense, [
          self._slot(random, count, size, most)
          for size, most in zip(self._params.sizes, self._params.counts)])

  def _slot(self, random, count, size, most):
    """Returns a Slot of `count` samples with up to `most` keys below `size`."""
    if most == 1:
      return batches.Slot(self._keys(random, count, size), None)
    lengths = np.full([count], most) if self._params.file_format == "Norm" else (
        random.randint(1, most + 1, count))
    offsets = np.zeros([count + 1], np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return batches.Slot(self._keys(random, int(offsets[-1]), size), offsets)

  def _keys(self, random, count, size):
    """Returns keys; with a power law key k has a density of (k + 1)^-alpha."""
    alpha, drawn = self._params.exponent, random.rand(count)
    if alpha is None:
      return (drawn * size).astype(np.int64)
    # The inverse of the distribution function of x^-alpha over [1, size + 1).
    power = 1. - alpha
    x = (1. + drawn * ((size + 1.) ** power - 1.)) ** (1. / power)
    return np.minimum(x.astype(np.int64) - 1, size - 1)
