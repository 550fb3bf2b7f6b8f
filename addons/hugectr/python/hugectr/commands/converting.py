# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`convert`: converts data from one format to another."""

import os

from hugectr.commands import progress
from hugectr.config import model as models
from hugectr.data import batches
from hugectr.data import criteo_tsv
from hugectr.data import errors
from hugectr.data import sources
from hugectr.data import writing

FORMATS = {"norm": "Norm", "raw": "Raw", "parquet": "Parquet", "tsv": "TSV"}


def _read(kind, path, data, key_type):
  """Returns an iterator of Chunks whose keys have no offsets."""
  if kind == "TSV":
    return criteo_tsv.chunks(path, data)
  clause = dict(data.clause)
  if kind == "Raw":
    width = 4 * (data.label_dim + data.dense_dim + sum(s.slot_num for s in data.sparse))
    try:
      clause["num_samples"] = os.path.getsize(path) // width
    except OSError as e:
      raise errors.DataError("%s: cannot be read: %s" % (path, e))
  data = data._replace(format=kind, clause=clause)
  source = sources.open_source(path, data, key_type, batch_size=65536)
  return (writing.moved(chunk, -writing.offsets(data)) for chunk in source.chunks())


def convert(config, source, target, source_format, target_format, rows_per_file, out,
            terminal):
  """Converts data; the configuration describes the samples.

  Args:
    config: path of the JSON file.
    source: file list (norm, parquet) or file (raw, tsv) to read.
    target: file list or file to write.
    source_format: one of FORMATS.
    target_format: one of FORMATS except "tsv".
    rows_per_file: int of at least 1, samples per written file.
    out: a file to print to.
    terminal: a file; progress is shown on it if it is a terminal.

  Raises:
    ConfigError: the configuration is wrong.
    DataError: the data cannot be read, or the format cannot hold it.
    ValueError: rows_per_file is too small, or source and target are the same.
    OSError: a file cannot be written.
  """
  if rows_per_file < 1:
    raise ValueError("--rows_per_file: expected at least 1, got %d" % rows_per_file)
  folders = [os.path.realpath(p if f in ("raw", "tsv") else os.path.dirname(p) or ".")
             for p, f in ((source, source_format), (target, target_format))]
  if folders[0] == folders[1]:
    raise ValueError("source and target: expected different folders, got %s" % folders[0])
  model, configuration = models.read(config)
  key_type = configuration.get("solver", {}).get("input_key_type", "I32")
  bar = progress.Progress(terminal, 0)

  def shown(chunks):
    done = 0
    for chunk in chunks:
      yield chunk
      done += batches.size_of(chunk)
      bar.show(done, "samples")

  try:
    chunks = _read(FORMATS[source_format], source, model.data, key_type)
    total = writing.write(target, model.data._replace(format=FORMATS[target_format]),
                          key_type, shown(chunks), rows_per_file)
  finally:
    bar.clear()
  out.write("wrote %d samples, %s\n" % (total, target))
