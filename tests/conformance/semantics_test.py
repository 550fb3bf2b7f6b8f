# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compares random sequences of operations with the plain-Python model of a table."""

import os

from absl.testing import absltest
from absl.testing import parameterized
import hypothesis
from hypothesis import strategies as st
import numpy as np
import tensorflow as tf

import embedding_variable as ev
from embedding_variable.ops import checkpoint_ops
from embedding_variable.ops import row_ops
import semantics_model

_RATE, _INITIAL, _DIM = 0.5, 0.1, 2
_DEFAULTS = np.array([[1.0, -1.0], [0.5, 2.0], [-3.0, 0.25]], np.float32)
_KEYS = list(range(-6, 7)) + [-2**63, 2**63 - 1, 2**31, 999, 1000]


class _OwnAdagrad(tf.train.AdagradOptimizer):
  """An optimizer without a fused update; it takes the generic path."""


def _option(strategy=None, evict=None, **storage):
  return ev.EmbeddingVariableOption(
      filter_option=strategy, evict_option=evict,
      storage_option=ev.StorageOption(**storage),
      init_option=ev.InitializerOption(default_value_no_permission=7.5))


def _bloom(freq):
  return ev.CBFFilter(freq, max_element_size=1000,
                      false_positive_probability=1e-9, counter_type=tf.uint32)


# A variable with any of these options restores checkpoints of any other.
_OPTIONS = {
    "plain": lambda: _option(),
    "counter": lambda: _option(ev.CounterFilter(3)),
    "higher": lambda: _option(ev.CounterFilter(5), ev.GlobalStepEvict(6)),
    "bloom": lambda: _option(_bloom(3)),
    "evict": lambda: _option(None, ev.GlobalStepEvict(4)),
    "weak": lambda: _option(ev.CounterFilter(2), ev.L2WeightEvict(0.9)),
    "lru": lambda: _option(max_capacity=6, cache_strategy=0),
    "fifo": lambda: _option(max_capacity=6, cache_strategy=2),
    "lfu": lambda: _option(ev.CounterFilter(2), max_capacity=6, cache_strategy=1),
}


class _Table(object):
  """A variable in its own session, with its model."""

  def __init__(self, option, optimizer):
    self._graph = tf.Graph()
    with self._graph.as_default():
      self._step = tf.train.get_or_create_global_step()
      os.environ["TF_RECORD_FREQ"] = os.environ["TF_RECORD_VERSION"] = "1"
      try:
        option.init.default_value_dim = len(_DEFAULTS)
        variable = tf.get_embedding_variable(
            "v", _DIM, ev_option=option,
            initializer=lambda shape, dtype: tf.constant(_DEFAULTS))
      finally:
        del os.environ["TF_RECORD_FREQ"], os.environ["TF_RECORD_VERSION"]
      self._ids = tf.placeholder(tf.int64, [None])
      self._number = tf.placeholder(tf.float32, [])
      self._rows = tf.nn.embedding_lookup(variable, self._ids)
      self._train = optimizer(
          _RATE, initial_accumulator_value=_INITIAL).minimize(
              tf.reduce_sum(self._rows) * self._number, global_step=self._step)
      self._skip = tf.assign_add(self._step, tf.cast(self._number, tf.int64))
      self._stale = [variable.evict(steps_to_live=n) for n in range(1, 5)]
      self._weak = variable.evict(l2_weight_threshold=1.2)
      self._erase = variable.erase(self._ids)
      self._meta = [variable.get_frequency(_KEYS), variable.get_version(_KEYS)]
      self._export = checkpoint_ops.export_table(variable.handle, ["Adagrad"])
      self._evicted = variable.evicted_count()
      self._ensure = row_ops.read_rows(
          variable.handle, tf.zeros([0], tf.int64), ["Adagrad"], [_INITIAL])[0]
      self._saver = tf.train.Saver(max_to_keep=0, incremental_save_restore=True)
      self._init = tf.global_variables_initializer()
    self._policy = variable.policy
    self._session = tf.Session(
        graph=self._graph, config=tf.ConfigProto(
            intra_op_parallelism_threads=2, inter_op_parallelism_threads=2))

  def start(self):
    self._session.run(self._init)
    self._session.run(self._ensure)
    self._chain = None
    self._evicted_before = self._session.run(self._evicted)
    self.model = semantics_model.Model(self._policy, _DEFAULTS, _RATE, _INITIAL)

  def _now(self):
    return int(self._session.run(self._step))

  def train(self, ids, grad):
    self.model.train(ids, grad, self._now())
    self._session.run(self._train, {self._ids: ids, self._number: grad})

  def skip(self, steps):
    self._session.run(self._skip, {self._number: steps})

  def evict_stale(self, steps_to_live):
    self.model.evict_stale(self._now(), steps_to_live)
    self._session.run(self._stale[steps_to_live - 1])

  def evict_weak(self):
    self.model.evict_weak(1.2)
    self._session.run(self._weak)

  def erase(self, ids):
    self.model.erase(ids)
    self._session.run(self._erase, {self._ids: ids})

  def save(self, path):
    """Returns (path, contents of the checkpoint and its deltas according to the
    model)."""
    saved = self.model.save(self._now())
    path = self._saver.save(self._session, path, write_meta_graph=False)
    self._chain = path, [saved]
    return self._chain

  def save_delta(self):
    """Like `save`, but saves a delta; returns None without a full checkpoint."""
    if self._chain is None:
      return None
    path, chain = self._chain
    ev.save_incremental(self._saver, self._session, os.path.dirname(path))
    self._chain = path, chain + [self.model.content()]
    return self._chain

  def restore(self, path, chain):
    self.model.restore_chain(chain)
    self._saver.restore(self._session, path)
    self._session.run(self._ensure)

  def check(self):
    """Compares all observable state."""
    model = self.model
    looked, (freqs, versions), table, evicted = self._session.run(
        [self._rows, self._meta, self._export, self._evicted],
        {self._ids: _KEYS})
    order = lambda keys: sorted(keys, key=lambda k: (k % 1000, k))
    keys = order(model.rows)
    np.testing.assert_array_equal(table.keys, keys)
    rows = [model.rows[k] for k in keys]
    close = dict(rtol=2e-6, atol=1e-6)
    np.testing.assert_allclose(
        table.values, np.reshape([r.value for r in rows], [-1, _DIM]), **close)
    np.testing.assert_allclose(
        table.slots[0], np.reshape([r.slot for r in rows], [-1, _DIM]), **close)
    np.testing.assert_array_equal(table.frequencies, [r.freq for r in rows])
    np.testing.assert_array_equal(table.versions, [r.version for r in rows])
    counted = order(model.counted)
    np.testing.assert_array_equal(table.filtered.keys, counted)
    np.testing.assert_array_equal(
        table.filtered.frequencies, [model.counted[k].count for k in counted])
    np.testing.assert_array_equal(
        table.filtered.versions, [model.counted[k].version for k in counted])
    np.testing.assert_allclose(looked, [model.look(k) for k in _KEYS], **close)
    np.testing.assert_array_equal(freqs, [model.frequency(k) for k in _KEYS])
    np.testing.assert_array_equal(versions, [model.version(k) for k in _KEYS])
    assert evicted - self._evicted_before == model.evicted


_IDS = st.lists(st.sampled_from(_KEYS), min_size=1, max_size=12)
_OPERATION = st.one_of(
    st.tuples(st.just("train"), _IDS, st.sampled_from([1.0, -0.5])),
    st.tuples(st.just("train"), _IDS, st.sampled_from([1.0, -0.5])),
    st.tuples(st.just("skip"), st.integers(1, 3)),
    st.tuples(st.just("evict_stale"), st.integers(1, 4)),
    st.tuples(st.just("evict_weak")),
    st.tuples(st.just("erase"), _IDS),
    st.tuples(st.just("save")),
    st.tuples(st.just("delta")),
    st.tuples(st.just("delta")),
    st.tuples(st.just("restore")))


class SemanticsTest(parameterized.TestCase):

  @parameterized.parameters(
      ("fused", tf.train.AdagradOptimizer), ("generic", _OwnAdagrad))
  def test_any_sequence_equals_the_model(self, unused_way, optimizer):
    tables = {name: _Table(option(), optimizer)
              for name, option in sorted(_OPTIONS.items())}
    directory = self.create_tempdir().full_path

    @hypothesis.settings(max_examples=120, deadline=None, database=None,
                         derandomize=True)
    @hypothesis.given(
        st.sampled_from(sorted(tables)), st.sampled_from(sorted(tables)),
        st.lists(_OPERATION, min_size=3, max_size=14))
    def run(first, second, operations):
      # 'restore' switches to the other variable.
      names = [first, second]
      for name in names:
        tables[name].start()
      table, saved = tables[first], None
      for i, (operation, *arguments) in enumerate(operations):
        if operation == "save":
          saved = table.save(os.path.join(directory, "m%d" % i))
        elif operation == "delta":
          saved = table.save_delta() or saved
        elif operation == "restore":
          if saved is not None:
            names.reverse()
            table = tables[names[0]]
            table.restore(*saved)
        else:
          getattr(table, operation)(*arguments)
        table.check()

    run()


if __name__ == "__main__":
  absltest.main()
