# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""How fast readers are, and what Session.train costs beside the step itself.

  bazel run //addons/hugectr/benchmark:speed -- --config=$PWD/addons/hugectr/example/dlrm.json

Data is generated in a temporary folder. Per format it prints the samples per second of the
reader, and beside it those of reading the same bytes: numpy.fromfile for Norm and Raw,
pyarrow.parquet alone for Parquet. Then the step: the same graph driven by hand on batches
that are ready, and Session.train, which reads them; and how often it waited for the reader.
"""

import json
import os
import tempfile
import time

from absl import app
from absl import flags
import numpy as np
import pyarrow.parquet as pq
import tensorflow as tf

import hugectr
from hugectr.config import model as models
from hugectr.data import batches
from hugectr.data import sources
from hugectr.data import synthetic
from hugectr.data import writing
from hugectr.training import graph as graphs
from hugectr.training import ranks

FLAGS = flags.FLAGS
flags.DEFINE_string("config", "addons/hugectr/example/dlrm.json", "A configuration.")
flags.DEFINE_integer("samples", 1000000, "Samples to read.", lower_bound=1)
flags.DEFINE_integer("batch_size", 16384, "Samples of a batch.", lower_bound=1)
flags.DEFINE_integer("steps", 40, "Steps of each way to train.", lower_bound=1)
flags.DEFINE_integer("keys", 100000, "Keys of each slot.", lower_bound=1)
flags.DEFINE_integer("threads", 1, "Threads of a reader.", lower_bound=1)


def _of_format(data, kind, folder):
  clause = dict(data.clause, num_samples=FLAGS.samples, float_label_dense=True,
                check="None")
  return data._replace(format=kind, source="%s/%s/data" % (folder, kind), clause=clause,
                       slot_sizes=[FLAGS.keys] * sum(s.slot_num for s in data.sparse),
                       num_workers=FLAGS.threads)


def _plain_read(kind, path):
  """Reads the files' bytes, or Parquet's columns; nothing is done with them."""
  if kind == "Raw":
    np.fromfile(path, np.uint8)
    return
  with open(path) as f:
    names = f.read().split()[1:]
  for name in names:
    if kind == "Norm":
      np.fromfile(name, np.uint8)
    else:
      pq.read_table(name, use_threads=FLAGS.threads > 1)


def _timed(function):
  begin = time.perf_counter()
  function()
  return time.perf_counter() - begin


def _read_all(data, layouts):
  read = sources.open_source(data.source, data, "I64", FLAGS.batch_size).reader(
      layouts, repeat=False)
  while read.next() is not None:
    pass
  read.close()


def measure_readers(data, layouts, folder):
  """Prints a line per format."""
  planted = synthetic.Planted([FLAGS.keys] * sum(s.slot_num for s in data.sparse),
                              data.dense_dim)
  for kind in ("Norm", "Raw", "Parquet"):
    here = _of_format(data, kind, folder)
    writing.write(here.source, here, "I64",
                  synthetic.chunks(planted, FLAGS.samples, 1), 250000)
    times = [min(_timed(f) for _ in range(3)) for f in (
        lambda: _read_all(here, layouts),  # pylint: disable=cell-var-from-loop
        lambda: _plain_read(kind, here.source))]  # pylint: disable=cell-var-from-loop
    print("%-8s reader %10.0f samples/s   plain read %10.0f samples/s" % (
        (kind,) + tuple(FLAGS.samples / t for t in times)))


def measure_steps(configuration, data, layouts, folder):
  """Prints the time of a step by hand and by Session.train."""
  here = _of_format(data, "Parquet", folder)
  layer = configuration["layers"][0]
  layer.update(format="Parquet", source=here.source, slot_size_array=here.slot_sizes)
  layer.pop("eval_source", None)
  path = os.path.join(folder, "model.json")
  with open(path, "w") as f:
    json.dump(configuration, f)
  read = sources.open_source(here.source, here, "I64", FLAGS.batch_size).reader(
      layouts, repeat=True)
  ready = [read.next() for _ in range(8)]
  read.close()
  model, _ = models.read(path)
  with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    graph = graphs.Graph(model, FLAGS.batch_size, ranks.start([[0]]))
    session.run(tf.compat.v1.global_variables_initializer())
    step = session.make_callable(list(graph.train), feed_list=graph.feeds)

    def by_hand():
      for k in range(FLAGS.steps):
        step(*graph.feeds_of(ready[k % len(ready)]))

    by_hand()
    hand = _timed(by_hand) / FLAGS.steps
  with hugectr.Session(hugectr.solver_parser_helper(
      batchsize=FLAGS.batch_size, repeat_dataset=True, i64_input_key=True), path) as trained:
    trained.start_data_reading()

    def by_session():
      for _ in range(FLAGS.steps):
        trained.train()

    by_session()
    waits = trained.get_data_reader_train().waits
    whole = _timed(by_session) / FLAGS.steps
    waits = trained.get_data_reader_train().waits - waits
  print("step     by hand %.2f ms   Session.train %.2f ms, waited for the reader %d times "
        "of %d" % (1e3 * hand, 1e3 * whole, waits, FLAGS.steps))


def main(unused_argv):
  with open(FLAGS.config) as f:
    configuration = json.load(f)
  model = models.parse(configuration, FLAGS.config)
  layouts = [batches.InputLayout(e.bottom.first_slot, e.bottom.slot_num,
                                 e.bottom.is_localized) for e in model.embeddings]
  with tempfile.TemporaryDirectory() as folder:
    measure_readers(model.data, layouts, folder)
    measure_steps(configuration, model.data, layouts, folder)


if __name__ == "__main__":
  app.run(main)
