# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`generate`: random data where a configuration looks for its own."""

import os

from hugectr.config import errors
from hugectr.config import model as models
from hugectr.data import synthetic


def generate(path, samples, eval_samples, files, seed, out):
  """Writes training and evaluation data of a configuration's shape.

  Args:
    path: of the JSON file.
    samples: int of at least 1, to train on.
    eval_samples: int of at least 1, to evaluate on.
    files: int of at least 1, to train on.
    seed: int of at least 0.
    out: a file to print to.

  Raises:
    ConfigError: the file is no configuration, or has no slot_size_array.
    NotImplementedError: a format that is not here yet.
    ValueError: a number is too small.
    OSError: a file cannot be written.
  """
  for name, value, least in (("samples", samples, 1), ("eval_samples", eval_samples, 1),
                             ("files", files, 1), ("seed", seed, 0)):
    if value < least:
      raise ValueError("--%s must be at least %d, got %d" % (name, least, value))
  data = models.read(path)[0].data
  if data.format != "Parquet":
    raise NotImplementedError("generate: data format %s is not implemented in this "
                              "version; Parquet is" % data.format)
  if not data.slot_sizes or min(data.slot_sizes) < 1:
    raise errors.ConfigError("%s: slot_size_array is missing in the layer of the data, or "
                             "has a slot without keys: keys are drawn from it" % path)
  if data.label_dim != 1:
    raise NotImplementedError("generate: label_dim %d is not implemented in this version; "
                              "1 is" % data.label_dim)
  planted = synthetic.Planted(data.slot_sizes, data.dense_dim, seed)
  for source, count, parts, number in ((data.source, samples, min(files, samples), 1),
                                       (data.eval_source, eval_samples, 1, 2)):
    if source is None:
      continue
    folder = os.path.dirname(source) or "."
    synthetic.write_parquet(folder, planted, parts, count, 2 * seed + number,
                            os.path.basename(source))
    out.write("wrote %d samples in %d files, %s\n" % (count, parts, source))
  labels, dense, keys = planted.samples(20000, 2 * seed + 3)
  out.write("no model can have an AUC much above %.4f\n" %
            synthetic.auc_of_probabilities(labels, planted.probabilities(dense, keys)))
