# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures the speed of readers, and the cost of Session.train beyond the step itself.

  bazel run //addons/hugectr/benchmark:speed -- --config=$PWD/addons/hugectr/example/dlrm.json

Data is generated in a temporary folder. For each format the program prints how many
samples the reader returns per second of wall time, and per second of CPU time over all
threads.

For Norm and Raw it also prints the bytes of the files read per second of CPU time.
Beside it are two limits for a reader that does not map files: memcpy of the same bytes,
and read() into a small buffer. memcpy copies from mapped to other memory, both of which
were touched before. For Parquet the other rate is that of pyarrow.parquet alone.

A reader is opened and returns some batches before the measurement, because a training
job opens a reader only once.

Then it measures steps: the graph of a Session driven by tf.Session.run on ready
batches, and Session.train, alternating. It also prints how often train waited for its
reader.

Alternatives are measured in alternation, and the best round of each counts, since
another program that runs for a while disturbs all of them.
"""

import json
import mmap
import os
import statistics
import tempfile
import time

from absl import app
from absl import flags
import numpy as np

import hugectr
from hugectr.config import model as models
from hugectr.data import arrow
from hugectr.data import batches
from hugectr.data import sources
from hugectr.data import synthetic
from hugectr.data import writing

FLAGS = flags.FLAGS
flags.DEFINE_string("config", "addons/hugectr/example/dlrm.json", "A configuration.")
flags.DEFINE_integer("samples", 1000000, "Samples to read.", lower_bound=1)
flags.DEFINE_integer("batch_size", 16384, "Samples per batch.", lower_bound=1)
flags.DEFINE_integer("steps", 10, "Steps per round of each way to train.", lower_bound=1)
flags.DEFINE_integer("rounds", 5, "Rounds of each way to read or train.", lower_bound=1)
flags.DEFINE_integer("keys", 100000, "Keys per slot.", lower_bound=1)
flags.DEFINE_integer("threads", 1, "Threads of a reader.", lower_bound=1)
flags.DEFINE_bool("readers", True, "Whether to measure readers.")
flags.DEFINE_bool("session", True, "Whether to measure steps.")

# Batches that a reader returns before the measurement, and passes over the data during
# it.
_WARM = 8
_PASSES = 3

# Bytes of the small buffer for read(), which fits the L2 cache.
_BUFFER = 1 << 19

# Name, format, further keys of the configuration.
_FORMATS = (
    ("Norm", "Norm", {"check": "None"}),
    ("Norm, checksums", "Norm", {"check": "Sum"}),
    ("Raw, float32", "Raw", {"float_label_dense": True}),
    ("Raw, int32", "Raw", {"float_label_dense": False}),
    ("Parquet", "Parquet", {}),
)


def _of_format(data, kind, clause, folder):
  source = "%s/%s_%s/data" % (folder, kind, "_".join(map(str, clause.values())))
  return data._replace(format=kind, source=source, num_workers=FLAGS.threads,
                       clause=dict(data.clause, num_samples=FLAGS.samples, **clause),
                       slot_sizes=[FLAGS.keys] * sum(s.slot_num for s in data.sparse))


def _files(data):
  if data.format == "Raw":
    return [data.source]
  with open(data.source) as f:
    return f.read().split("\n")[1:-1]


def _taken(function):
  """Returns seconds of wall time and of CPU time."""
  wall, cpu = time.perf_counter(), time.process_time()
  function()
  return time.perf_counter() - wall, time.process_time() - cpu


def _best(functions):
  """Returns the least (wall time, CPU time) of each function; the functions alternate.

  Args:
    functions: list of functions that return (wall time, CPU time).
  """
  rounds = [[f() for f in functions] for _ in range(FLAGS.rounds)]
  return [tuple(min(times) for times in zip(*turns)) for turns in zip(*rounds)]


def _read_once(data, layouts):
  """Returns (wall time, CPU time) of reading the samples once."""
  read = sources.open_source(data.source, data, "I64", FLAGS.batch_size).reader(
      layouts, repeat=True)
  for _ in range(_WARM):
    read.next()
  count = _PASSES * -(-FLAGS.samples // FLAGS.batch_size)

  def take():
    for _ in range(count):
      read.next()

  taken = _taken(take)
  read.close()
  return tuple(t * FLAGS.samples / (count * FLAGS.batch_size) for t in taken)


def _copies(paths):
  """Returns functions that copy files' bytes by memcpy and by read(), and their size."""
  sizes = [os.path.getsize(p) for p in paths]
  target = np.ones([max(sizes)], np.uint8)
  mapped = []
  for path in paths:
    with open(path, "rb") as f:
      mapped.append(np.frombuffer(mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ),
                                  np.uint8))
    mapped[-1][::4096].sum()

  def by_memcpy():
    for source in mapped:
      np.copyto(target[:source.size], source)

  def by_read():
    buffer = memoryview(target)[:_BUFFER]
    for path in paths:
      with open(path, "rb", buffering=0) as f:
        while f.readinto(buffer):
          pass

  return lambda: _taken(by_memcpy), lambda: _taken(by_read), sum(sizes)


def measure_readers(data, layouts, folder):
  """Prints a line per format."""
  sizes = [FLAGS.keys] * sum(s.slot_num for s in data.sparse)
  for name, kind, clause in _FORMATS:
    written = _of_format(data, kind, clause, folder)
    planted = synthetic.Planted(sizes, data.dense_dim, 0, name == "Raw, int32")
    writing.write(written.source, written, "I64", synthetic.chunks(planted, FLAGS.samples, 1),
                  250000)
    paths = _files(written)
    read = lambda: _read_once(written, layouts)  # pylint: disable=cell-var-from-loop
    if kind == "Parquet":
      def alone():
        for path in paths:  # pylint: disable=cell-var-from-loop
          arrow.pq.read_table(path, use_threads=FLAGS.threads > 1)

      mine, theirs = _best([read, lambda: _taken(alone)])
      text = "pyarrow alone %.2f wall, %.2f processor" % tuple(
          FLAGS.samples / t / 1e6 for t in theirs)
    else:
      by_memcpy, by_read, size = _copies(paths)
      mine, memcpy, plain = _best([read, by_memcpy, by_read])
      rates = [size / t[1] / 1e9 for t in (mine, memcpy, plain)]
      text = "%.2f GB/s, memcpy %.2f, read() %.2f: %.0f %% of memcpy, %.0f %% of read()" % (
          tuple(rates) + (100 * rates[0] / rates[1], 100 * rates[0] / rates[2]))
    print("%-16s M samples/s: %.2f wall, %.2f processor; %s" % (
        (name + ":",) + tuple(FLAGS.samples / t / 1e6 for t in mine) + (text,)))


def measure_steps(configuration, data, folder):
  """Prints the time of a step by hand and by Session.train."""
  written = _of_format(data, "Parquet", {}, folder)
  if not FLAGS.readers:
    planted = synthetic.Planted(written.slot_sizes, data.dense_dim)
    writing.write(written.source, written, "I64", synthetic.chunks(planted, FLAGS.samples, 1),
                  250000)
  layer = configuration["layers"][0]
  layer.update(format="Parquet", source=written.source, slot_size_array=written.slot_sizes)
  layer.pop("eval_source", None)
  path = os.path.join(folder, "model.json")
  with open(path, "w") as f:
    json.dump(configuration, f)
  solver = hugectr.solver_parser_helper(batchsize=FLAGS.batch_size, repeat_dataset=True,
                                        i64_input_key=True)
  with hugectr.Session(solver, path) as trained:
    graph = trained._graph  # pylint: disable=protected-access
    session = trained._session  # pylint: disable=protected-access
    read = sources.open_source(written.source, written, "I64", FLAGS.batch_size).reader(
        graph.layouts, repeat=True)
    # Arrays owned by NumPy, as in a script.
    ready = [[np.array(a) for a in graph.feeds_of(read.next())] for _ in range(8)]
    read.close()
    trained.start_data_reading()

    def by_hand():
      for k in range(FLAGS.steps):
        session.run(list(graph.train), dict(zip(graph.feeds, ready[k % len(ready)])))

    def by_session():
      for _ in range(FLAGS.steps):
        trained.train()

    # Afterwards all keys have rows, and the reader is ahead.
    by_hand()
    by_session()
    waits = trained.get_data_reader_train().waits
    pairs = [(_taken(by_hand)[0], _taken(by_session)[0]) for _ in range(FLAGS.rounds)]
    waits = trained.get_data_reader_train().waits - waits
  hand, whole = (1e3 * statistics.median(t) / FLAGS.steps for t in zip(*pairs))
  print("step: by hand %.2f ms, Session.train %.2f ms (medians of %d turns of %d steps), "
        "ratio %.3f (median of turns); train waited for its reader %d times in %d steps" % (
            hand, whole, FLAGS.rounds, FLAGS.steps,
            statistics.median(b / a for a, b in pairs), waits, FLAGS.rounds * FLAGS.steps))


def main(unused_argv):
  with open(FLAGS.config) as f:
    configuration = json.load(f)
  model = models.parse(configuration, FLAGS.config)
  layouts = [batches.InputLayout(e.bottom.first_slot, e.bottom.slot_num,
                                 e.bottom.is_localized) for e in model.embeddings]
  with tempfile.TemporaryDirectory() as folder:
    if FLAGS.readers:
      measure_readers(model.data, layouts, folder)
    if FLAGS.session:
      measure_steps(configuration, model.data, folder)


if __name__ == "__main__":
  app.run(main)
