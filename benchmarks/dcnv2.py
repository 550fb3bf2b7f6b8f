# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Times DLRM-DCNv2 with the settings of HugeCTR's MLPerf entries, scaled to one GPU.

  python -m embedding_variable.gpu run DIR -- python benchmarks/dcnv2.py

The model has 26 tables of dim 128 with the sizes of Criteo's columns. A sample has 214
ids (1 to 100 per table), which are pooled by sum. 13 numbers go through an MLP of
512-256-128, then come three cross layers of rank 512 and an MLP of 1024-1024-512-256-1.
All variables use Adagrad. In the MLPerf entry 8 GPUs process 55,296 samples per step and
the largest tables have 40 million rows; one eighth of it is 6,912 samples and 5 million
rows. HugeCTR computes in mixed precision. This benchmark computes in float32, in TF32
with NVIDIA_TF32_OVERRIDE=1, or in float16 (--dtype).

The first id of a sample and table is drawn by Zipf's law from the table's rows; the
others are a function of it, as in MLPerf's data. --one_id leaves them out. All rows
exist before the clock starts, and the ids are in CPU memory, where an input pipeline
leaves them. The program prints one line of JSON for each graph:

  whole    lookups, model, gradients, update
  dense    the same with the pooled rows replaced by constants
  sparse   lookups and their update; the loss is the sum of the outputs

--variant=stock uses TensorFlow's own variables and tf.nn.embedding_lookup_sparse, with at
most --stock_rows rows per table so that they fit.
"""

import json
import os
import time
import warnings

from absl import app
from absl import flags
import numpy as np

warnings.simplefilter("ignore", FutureWarning)

import tensorflow as tf  # pylint: disable=g-import-not-at-top

import defaults
import ids as id_lib
import mixed_precision

FLAGS = flags.FLAGS

# Ids per sample and rows of each table, from the MLPerf benchmark.
HOTNESS = (3, 2, 1, 2, 6, 1, 1, 1, 1, 7, 3, 8, 1, 6, 9, 5, 1, 1, 1, 12, 100, 27, 10, 3, 1,
           1)
ROWS = (40000000, 39060, 17295, 7424, 20265, 3, 7122, 1543, 63, 40000000, 3067956, 405282,
        10, 2209, 11938, 155, 4, 976, 14, 40000000, 40000000, 40000000, 590152, 12973, 108,
        36)

WHOLE, DENSE, SPARSE = GRAPHS = ("whole", "dense", "sparse")
EV, STOCK = VARIANTS = ("ev", "stock")

flags.DEFINE_enum("variant", EV, VARIANTS, "Whose tables.")
flags.DEFINE_list("graphs", list(GRAPHS), "Which graphs to time.")
flags.DEFINE_string("device", "/gpu:0", "Device of tables, model and optimizer.")
flags.DEFINE_enum("storage", "hbm", ["hbm", "hbm_dram", "dram"], "Storage of the rows.")
flags.DEFINE_float("gpu_gib", 16., "With hbm_dram: GiB of GPU memory for the rows of "
                                   "all tables.")
flags.DEFINE_integer("batch", 6912, "Samples per step.", lower_bound=1)
flags.DEFINE_integer("dim", 128, "Floats per row.", lower_bound=1)
flags.DEFINE_integer("max_rows", 5000000, "Maximum rows of a table.", lower_bound=1)
flags.DEFINE_integer("stock_rows", 2000000, "Maximum rows of a table with "
                                            "--variant=stock.",
                     lower_bound=1)
flags.DEFINE_enum("distribution", "zipf", defaults.DISTRIBUTIONS, "Of the ids.")
flags.DEFINE_bool("one_id", False, "One id per sample and table, instead of 1 to 100.")
flags.DEFINE_float("exponent", defaults.ZIPF_EXPONENT, "Of Zipf's law.")
flags.DEFINE_bool("fill", True, "Whether all rows exist before the clock starts.")
flags.DEFINE_integer("steps", 30, "Measured steps.", lower_bound=1)
flags.DEFINE_integer("warmup_steps", 15, "Steps before the clock starts.")
flags.DEFINE_integer("threads", 0, "Threads that one op may use; 0: TensorFlow's "
                                   "default.")
flags.DEFINE_list("bottom", ["512", "256"], "Widths of the bottom MLP, before the dim.")
flags.DEFINE_list("top", ["1024", "1024", "512", "256"],
                  "Widths of the top MLP, before 1.")
flags.DEFINE_integer("cross_layers", 3, "How many.")
flags.DEFINE_integer("cross_rank", 512, "Rank of the cross layers' matrices.")
flags.DEFINE_string("trace", "", "File for a Chrome trace of one step of the last graph.")

_NUMBERS = 13
_NUM_BATCHES = 4
_FILL_ROWS = 200 * 1000

# Collection of the variables that hold the model's input.
_DATA = "benchmark_data"


def rows_of_tables():
  """Returns the number of rows of each table, from the flags."""
  most = FLAGS.stock_rows if FLAGS.variant == STOCK else FLAGS.max_rows
  return [min(n, most) for n in ROWS]


def ids_of_tables():
  """Returns the number of ids of a sample in each table, from the flags."""
  return [1] * len(HOTNESS) if FLAGS.one_id else list(HOTNESS)


def _mlp(x, widths, name, last_is_linear=False):
  for i, width in enumerate(widths):
    x = tf.compat.v1.layers.dense(
        x, width, name="%s_%d" % (name, i),
        activation=None if last_is_linear and i + 1 == len(widths) else tf.nn.relu)
  return x


def dcnv2(numbers, vectors):
  """Returns the logits `[B]` for numbers `[B, 13]` and a list of vectors `[B, D]`."""
  dim = vectors[0].shape.as_list()[1]
  bottom = _mlp(numbers, [int(w) for w in FLAGS.bottom] + [dim], "bottom")
  x0 = tf.concat([bottom] + vectors, axis=1)
  x, width = x0, x0.shape.as_list()[1]
  for i in range(FLAGS.cross_layers):
    low = tf.compat.v1.layers.dense(x, FLAGS.cross_rank, use_bias=False,
                                    name="cross_down_%d" % i)
    x = x0 * tf.compat.v1.layers.dense(low, width, name="cross_up_%d" % i) + x
  top = _mlp(x, [int(w) for w in FLAGS.top] + [1], "top", last_is_linear=True)
  return tf.reshape(top, [-1])


def _data(name, initializer, shape=None):
  """Returns a variable that is not part of the model."""
  return tf.compat.v1.get_variable(
      name, shape, initializer=initializer, trainable=False, use_resource=True,
      collections=[_DATA])


def _tables():
  if FLAGS.variant == STOCK:
    return [
        tf.compat.v1.get_variable("table_%02d" % t, [rows, FLAGS.dim],
                                  initializer=mixed_precision.initial_rows(rows, 1 + t))
        for t, rows in enumerate(rows_of_tables())
    ]
  import embedding_variable  # pylint: disable=unused-import,g-import-not-at-top
  from embedding_variable.variables import config_pb2  # pylint: disable=g-import-not-at-top
  in_all = float(sum(rows_of_tables()))

  def option(rows):
    size = None
    if FLAGS.storage == "hbm_dram":
      # Bytes of a value and a slot, for at least 64 rows.
      size = [max(64 * 8 * FLAGS.dim, int(FLAGS.gpu_gib * 2**30 * rows / in_all))]
    return tf.EmbeddingVariableOption(storage_option=tf.StorageOption(
        storage_type=config_pb2.StorageType.Value(FLAGS.storage.upper()),
        storage_size=size))

  return [
      tf.get_embedding_variable("table_%02d" % t, embedding_dim=FLAGS.dim,
                                initializer=mixed_precision.initial_rows(rows, 1 + t),
                                ev_option=option(rows))
      for t, rows in enumerate(rows_of_tables())
  ]


def _features(batch_of):
  """Returns RaggedTensors of the step's ids, and the placeholders that load them."""
  features, feeds = [], {}
  for t, (rows, hotness) in enumerate(zip(rows_of_tables(), ids_of_tables())):
    size = FLAGS.batch * hotness
    given = tf.compat.v1.placeholder(tf.int64, [_NUM_BATCHES, size])
    kept = _data("ids_%d" % t, given)
    splits = tf.constant(np.arange(FLAGS.batch + 1) * hotness, tf.int64)
    # A slice of the first dimension is not copied.
    ids = tf.convert_to_tensor(kept)[batch_of]
    ids.set_shape([size])
    features.append(tf.RaggedTensor.from_row_splits(ids, splits, validate=False))
    values = id_lib.aligned([_NUM_BATCHES, size], np.int64)
    first = id_lib.draw(np.random.RandomState(t), FLAGS.distribution, rows,
                        [_NUM_BATCHES, FLAGS.batch], FLAGS.exponent)
    values[:] = id_lib.more_of_each(first, hotness, rows, t).reshape(values.shape)
    feeds[given] = values
  return features, feeds


def _lookup(tables, features):
  if FLAGS.variant == STOCK:
    with tf.device("/cpu:0"):
      features = [x.to_sparse() for x in features]
    return [tf.nn.embedding_lookup_sparse(t, x, None, combiner="sum")
            for t, x in zip(tables, features)]
  from sparse_operation_kit import experiment as sok  # pylint: disable=g-import-not-at-top
  sok.init()
  return sok.lookup_sparse(tables, features, combiners=["sum"] * len(tables),
                           **mixed_precision.lookup_options())


class StepGraph(object):
  """One of GRAPHS in the default graph.

  Attributes:
    train, loss: ops.
    batch_of: placeholder of the batch's number.
  """

  def __init__(self, graph_name):
    self._fills = []
    self._feeds = {}
    with tf.device("/cpu:0"):
      self.batch_of = tf.compat.v1.placeholder(tf.int32, [])
      if graph_name != DENSE:
        features, self._feeds = _features(self.batch_of)
    with tf.device(FLAGS.device):
      optimizer = mixed_precision.adagrad()
      if graph_name == DENSE:
        outputs = [
            tf.cast(_data("pooled_%d" % t, tf.random_uniform_initializer(-.1, .1),
                          [FLAGS.batch, FLAGS.dim]), FLAGS.dtype)
            for t in range(len(ROWS))
        ]
      else:
        tables = _tables()
        outputs = _lookup(tables, features)
        for output in outputs:
          output.set_shape([FLAGS.batch, FLAGS.dim])
      if graph_name == SPARSE:
        self.loss = tf.add_n([tf.reduce_sum(tf.cast(x, tf.float32)) for x in outputs])
      else:
        numbers = _data("numbers", tf.random_uniform_initializer(0., 1.),
                        [FLAGS.batch, _NUMBERS])
        labels = _data("labels", tf.constant(np.arange(FLAGS.batch) % 2, tf.float32))
        self.loss = mixed_precision.loss(
            labels, mixed_precision.logits(dcnv2, numbers, outputs))
      self.train = optimizer.minimize(mixed_precision.scaled(self.loss))
      if graph_name != DENSE and FLAGS.variant == EV and FLAGS.fill:
        self._make_fill(optimizer, tables)

  def _make_fill(self, optimizer, tables):
    """Builds an update with zero gradients: it inserts keys and changes nothing else."""
    for table, rows in zip(tables, rows_of_tables()):
      keys = tf.compat.v1.placeholder(tf.int64, [None])
      zeros = tf.zeros([tf.size(keys), FLAGS.dim])
      fill = optimizer.apply_gradients([(tf.IndexedSlices(zeros, keys), table)])
      self._fills.append((fill, keys, rows))

  def prepare(self, session):
    """Initializes, loads the ids and creates all rows. Returns seconds."""
    start = time.perf_counter()
    session.run(tf.compat.v1.global_variables_initializer())
    session.run(tf.compat.v1.variables_initializer(
        tf.compat.v1.get_collection(_DATA)), self._feeds)
    for fill, keys, rows in self._fills:
      order = np.random.RandomState(0).permutation(rows)
      for begin in range(0, rows, _FILL_ROWS):
        session.run(fill, {keys: order[begin:begin + _FILL_ROWS]})
    return time.perf_counter() - start


def measure(graph_name):
  """Returns a dict: ms per step, samples per second, the loss before and after."""
  with tf.Graph().as_default():
    tf.compat.v1.set_random_seed(3)
    graph = StepGraph(graph_name)
    config = tf.compat.v1.ConfigProto(
        # Parts of stock lookups have no GPU kernels.
        allow_soft_placement=FLAGS.variant == STOCK,
        intra_op_parallelism_threads=FLAGS.threads)
    config.gpu_options.allow_growth = True
    with tf.compat.v1.Session(config=config) as session:
      prepared = graph.prepare(session)
      feeds = [{graph.batch_of: n} for n in range(_NUM_BATCHES)]
      first = session.run(graph.loss, feeds[0])
      times = []
      for n in range(FLAGS.warmup_steps + FLAGS.steps):
        begin = time.perf_counter()
        # Fetches the loss, to wait for the GPU; enqueueing work alone takes no time.
        session.run([graph.train, graph.loss], feeds[n % _NUM_BATCHES])
        times.append(1000. * (time.perf_counter() - begin))
      last = session.run(graph.loss, feeds[0])
      if FLAGS.trace:
        _write_trace(session, graph.train, feeds[0])
  mixed_precision.check_finite([float(first), float(last)], graph_name)
  ms = float(np.median(times[FLAGS.warmup_steps:]))
  return {"graph": graph_name, "variant": FLAGS.variant, "storage": FLAGS.storage,
          "batch": FLAGS.batch, "rows": sum(rows_of_tables()), "step_ms": round(ms, 3),
          "quartiles_ms": [round(float(q), 3) for q in
                           np.percentile(times[FLAGS.warmup_steps:], [25, 75])],
          "samples_per_second": round(FLAGS.batch / ms * 1000.),
          "dtype": FLAGS.dtype, "ids_per_sample": sum(ids_of_tables()),
          "ids_per_second": round(FLAGS.batch * sum(ids_of_tables()) / ms * 1000.),
          "prepared_s": round(prepared, 1), "tf32": os.environ.get(
              "NVIDIA_TF32_OVERRIDE") == "1", "loss": [float(first), float(last)]}


def _write_trace(session, train, feed):
  from tensorflow.python.client import timeline  # pylint: disable=g-import-not-at-top
  metadata = tf.compat.v1.RunMetadata()
  session.run(train, feed, run_metadata=metadata, options=tf.compat.v1.RunOptions(
      trace_level=tf.compat.v1.RunOptions.FULL_TRACE))
  with open(FLAGS.trace, "w") as f:
    f.write(timeline.Timeline(metadata.step_stats).generate_chrome_trace_format())


def main(argv):
  if len(argv) > 1:
    raise app.UsageError("unexpected arguments: %s" % " ".join(argv[1:]))
  unknown = [g for g in FLAGS.graphs if g not in GRAPHS]
  if unknown:
    raise app.UsageError("--graphs: %s is none of %s" % (unknown, ", ".join(GRAPHS)))
  for graph_name in FLAGS.graphs:
    print(json.dumps(measure(graph_name)), flush=True)


if __name__ == "__main__":
  app.run(main)
