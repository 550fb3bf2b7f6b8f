# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`generate`: writes random data at the paths that a configuration names."""

from hugectr.config import errors
from hugectr.config import model as models
from hugectr.data import synthetic
from hugectr.data import writing


def generate(path, samples, eval_samples, files, seed, out):
  """Writes training and evaluation data of a configuration's shape.

  Args:
    path: path of the JSON file.
    samples: int of at least 1, training samples. For a Raw file the configuration sets
      the number.
    eval_samples: int of at least 1, evaluation samples. For a Raw file as above.
    files: int of at least 1, training files.
    seed: int of at least 0.
    out: a file to print to.

  Raises:
    ConfigError: the file is not a configuration, or has no slot_size_array.
    ValueError: a number is too small.
    OSError: a file cannot be written.
  """
  for name, value, least in (("samples", samples, 1), ("eval_samples", eval_samples, 1),
                             ("files", files, 1), ("seed", seed, 0)):
    if value < least:
      raise ValueError("--%s: expected at least %d, got %d" % (name, least, value))
  model, configuration = models.read(path)
  data = model.data
  if not data.slot_sizes or min(data.slot_sizes) < 1:
    raise errors.ConfigError("%s: slot_size_array is missing in the layer of the data, or "
                             "has a slot without keys: keys are drawn from it" % path)
  is_whole = data.format == "Raw" and not data.clause.get("float_label_dense")
  planted = synthetic.Planted(data.slot_sizes, data.dense_dim, seed, is_whole,
                              data.label_dim)
  if data.format == "Raw":
    samples = data.clause["num_samples"]
    eval_samples = data.clause.get("eval_num_samples")
  key_type = configuration.get("solver", {}).get("input_key_type", "I32")
  for source, count, parts, number in ((data.source, samples, min(files, samples), 1),
                                       (data.eval_source, eval_samples, 1, 2)):
    if source is None:
      continue
    each = -(-count // parts)
    writing.write(source, data, key_type,
                  synthetic.chunks(planted, count, 2 * seed + number, min(each, 65536)), each)
    out.write("wrote %d samples, %s\n" % (count, source))
  labels, dense, keys = planted.samples(20000, 2 * seed + 3)
  labels = [labels] + list(planted.other_labels(dense, keys, 2 * seed + 3).T)
  highest = [synthetic.auc_of_probabilities(*pair)
             for pair in zip(labels, planted.probabilities_of_labels(dense, keys))]
  out.write("no model can have an AUC much above %s\n" % (
      "%.4f" % highest[0] if len(highest) == 1 else
      ", ".join("%.4f of label %d" % (auc, k) for k, auc in enumerate(highest, 1))))
