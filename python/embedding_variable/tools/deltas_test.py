# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The tools read incremental checkpoints as `Saver.restore` does."""

import contextlib
import io
import os
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import embedding_variable as ev
from embedding_variable.checkpoint import leftovers
from embedding_variable.checkpoint_format import checkpoint_tables
from embedding_variable.checkpoint_format import delta_chain
from embedding_variable.checkpoint_format import errors
from embedding_variable.checkpoint_format import tensor_names
from embedding_variable.tools import main
from embedding_variable.tools import testing

_DIM = 2


class _Model(object):
  """Trains table `v` in a graph of its own."""

  def __init__(self, parts=None, counter=0, key_dtype=tf.int64, value_dtype=tf.float32):
    self.graph = tf.Graph()
    os.environ["TF_RECORD_FREQ"] = os.environ["TF_RECORD_VERSION"] = "1"
    with self.graph.as_default():
      step = tf.train.get_or_create_global_step()
      option = ev.EmbeddingVariableOption(
          filter_option=ev.CounterFilter(counter) if counter else None)
      v = tf.get_embedding_variable(
          "v", _DIM, key_dtype=key_dtype, value_dtype=value_dtype, ev_option=option,
          initializer=tf.random_normal_initializer(seed=7),
          partitioner=parts and tf.fixed_size_partitioner(parts))
      dense = tf.get_variable("dense", [_DIM])
      self.ids = tf.placeholder(key_dtype, [None])
      rows = tf.nn.embedding_lookup(v, self.ids)
      self.train = tf.train.AdamOptimizer(0.1).minimize(
          tf.reduce_sum(tf.square(rows * dense - 1.)), global_step=step)
      pieces = list(v) if parts else [v]
      self.erase = [p.erase(self.ids) for p in pieces]
      self.anew = [p.initializer for p in pieces]
      self.saver = tf.train.Saver(incremental_save_restore=True)
      self.whole_saver = tf.train.Saver()
      self.init = tf.global_variables_initializer()
    del os.environ["TF_RECORD_FREQ"], os.environ["TF_RECORD_VERSION"]
    self.session = tf.Session(graph=self.graph)

  def run(self, batches):
    for batch in batches:
      self.session.run(self.train, {self.ids: batch})


class DeltasTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.directory = self.create_tempdir().full_path
    self.other = self.create_tempdir().full_path
    self.prefix = os.path.join(self.directory, "m")

  def run_tool(self, *args, status=0):
    """Returns (standard output, standard error) of a command that exits with `status`."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
      found = main.main(list(args))
    self.assertEqual(found, status, err.getvalue())
    return out.getvalue(), err.getvalue()

  def delta(self, model, step):
    return ev.save_incremental(model.saver, model.session, self.directory, step)

  def trained(self, **kwargs):
    """Saves a full checkpoint and two deltas.

    Returns:
      (model, prefix of a full checkpoint of the last state in another folder).
    """
    model = _Model(**kwargs)
    model.session.run(model.init)
    model.run([[1, 2, 3, -4], [1, 2, 5, 1003], [7, 7, 2001]])
    model.saver.save(model.session, self.prefix)
    model.run([[1, 9], [1, 9, 20, 5]])
    model.session.run(model.erase, {model.ids: [2, 2001]})
    self.delta(model, 5)
    model.run([[30, 3, 9], [2, 30]])
    model.session.run(model.erase, {model.ids: [20, 5]})
    self.delta(model, 140)
    last = model.whole_saver.save(model.session, os.path.join(self.other, "last"))
    return model, last

  @parameterized.parameters(
      {}, {"counter": 2, "parts": 3}, {"key_dtype": tf.int32},
      {"value_dtype": tf.float16, "parts": 2})
  def test_every_column_is_that_of_a_full_checkpoint_of_the_last_state(self, **kwargs):
    _, last = self.trained(**kwargs)
    out, err = self.run_tool("diff", self.prefix, last)
    self.assertEqual(out, "")
    self.assertEqual(err, "reading %s and its deltas to 140\n" % self.prefix)
    # Compares order, offsets, counts and default rows too, not only rows by key.
    checkpoint = checkpoint_tables.Checkpoint(self.prefix)
    self.assertNoCommonElements(
        checkpoint.others, [t for t in testing.read(last) if t.startswith("v")])
    table = checkpoint.table("v")
    expected = testing.read(last)
    for piece in table.pieces:
      for prefix in piece.prefixes():
        for column in tensor_names.COLUMNS:
          name = tensor_names.tensor(prefix, column.name)
          got = piece.read(prefix, column.name)
          np.testing.assert_array_equal(got, expected[name], name)
          self.assertEqual(got.dtype, expected[name].dtype, name)
      for tensor in tensor_names.table_tensors(kwargs.get("value_dtype", tf.float32)):
        np.testing.assert_array_equal(
            piece.table_tensor(tensor), expected[piece.tensor(tensor.name)])
    whole = checkpoint_tables.Checkpoint(last).table("v")
    self.assertEqual((table.rows, table.filtered), (whole.rows, whole.filtered))

  def test_full_only_and_an_older_checkpoint(self):
    model, last = self.trained()
    full = testing.read(self.prefix)
    checkpoint = checkpoint_tables.Checkpoint(self.prefix, full_only=True)
    self.assertEqual(checkpoint.name, self.prefix)
    piece = checkpoint.table("v").pieces[0]
    np.testing.assert_array_equal(piece.read(piece.prefix, "values"),
                                  full[piece.tensor("values")])
    self.assertEqual(checkpoint.read("dense").tolist(), full["dense"].tolist())
    self.run_tool("diff", self.prefix, last, "--full-only", status=1)
    # Like a restore, it applies deltas only to the newest full checkpoint.
    model.saver.save(model.session, os.path.join(self.directory, "n"))
    self.assertEqual(checkpoint_tables.Checkpoint(self.prefix).num_deltas, 0)

  def test_commands_name_the_last_delta_and_read_its_rows(self):
    self.trained()
    end = "%s and its deltas to 140" % self.prefix
    out, err = self.run_tool("inspect", self.directory)
    self.assertStartsWith(out, end + ", global step 7\n")
    self.assertEqual(err, "reading %s\n" % end)
    out, err = self.run_tool("lookup", self.prefix, "v", "30", "20")
    self.assertIn("v[30]: frequency 2, version 6\n", out)
    self.assertIn("v[20]: absent", out)
    self.assertIn(end, err)
    path = os.path.join(self.other, "v.npz")
    out, err = self.run_tool("export", self.prefix, "v", "--to", "npz", "--out", path,
                             "--slots")
    self.assertIn("wrote 8 rows", out)
    self.assertIn(end, err)
    self.assertEqual(sorted(np.load(path)["keys"].tolist()),
                     [-4, 1, 2, 3, 7, 9, 30, 1003])
    out, _ = self.run_tool("lookup", self.prefix, "v", "30", "20", "--full-only")
    self.assertIn("v[30]: absent", out)

  @parameterized.parameters({}, {"counter": 2, "parts": 2})
  def test_shrink_merges_the_deltas_into_a_full_checkpoint(self, **kwargs):
    model, last = self.trained(**kwargs)
    out = os.path.join(self.other, "small")
    text, err = self.run_tool("shrink", self.prefix, "--evict-older-than", "1000",
                              "--out", out)
    self.assertIn("v: 0 of ", text)
    self.assertIn("deltas to 140", err)
    got, expected = testing.read(out), testing.read(last)
    self.assertEqual(sorted(got), sorted(expected))
    for name in expected:
      np.testing.assert_array_equal(got[name], expected[name], name)
    self.run_tool("shrink", self.prefix, "--evict-older-than", "2", "--out", out + "er")
    model.whole_saver.restore(model.session, out + "er")
    keys = np.concatenate([t for n, t in testing.read(out + "er").items()
                           if n.startswith("v") and n.endswith("-keys")])
    self.assertContainsSubset({9, 30}, set(keys.tolist()))
    self.assertNotIn(7, keys.tolist())

  def test_a_table_that_was_initialized_anew_is_replaced(self):
    model, _ = self.trained()
    model.session.run(model.anew)
    model.run([[77, 1]])
    self.delta(model, None)
    last = model.whole_saver.save(model.session, os.path.join(self.other, "anew"))
    self.assertEqual(self.run_tool("diff", self.prefix, last),
                     ("", "reading %s and its 3 deltas\n" % self.prefix))
    table = checkpoint_tables.Checkpoint(self.prefix).table("v")
    self.assertEqual(sorted(table.column("keys").tolist()), [1, 77])

  def test_damaged_deltas_are_the_error_of_a_restore(self):
    model, _ = self.trained()
    first = delta_chain.find(self.prefix)[0].prefix

    def both_refuse(message):
      with self.assertRaises(tf.errors.DataLossError) as restoring:
        model.saver.restore(model.session, self.prefix)
      self.assertIn(message, str(restoring.exception))
      for command in (["inspect"], ["lookup", "v", "1"], ["shrink", "--drop-filtered"]):
        _, err = self.run_tool(command[0], self.prefix, *command[1:], status=2)
        self.assertIn(restoring.exception.message, err)
        self.assertIn("--full-only", err)
      self.run_tool("inspect", self.prefix, "--full-only")

    with open(first + ".index", "rb") as f:
      index = f.read()
    os.rename(first + ".index", first + ".away")
    both_refuse("is missing")
    with open(first + ".index", "wb") as f:
      f.write(index[:-5] + b"12345")
    both_refuse("cannot be read")
    # A delta of another chain, with the name of one of this chain.
    with open(first + ".index", "wb") as f:
      f.write(index)
    second = first[:-1] + "2"
    for path in (".index", ".data-00000-of-00001"):
      os.replace(second + path, first + path)
    both_refuse("continues something else")

  def test_a_number_of_six_digits_is_no_other_file(self):
    self.trained()
    first, second = [link.prefix for link in delta_chain.find(self.prefix)]
    last = second[:-5] + "100000"
    for end in (".index", ".data-00000-of-00001"):
      os.rename(second + end, last + end)
    self.assertEqual(delta_chain.count(self.prefix), 2)
    with self.assertRaisesRegex(tf.errors.DataLossError,
                                "%s is missing, but %s continues it" % (second, last)):
      delta_chain.find(self.prefix)
    removed = []
    with mock.patch.object(leftovers, "delete", removed.append):
      leftovers.remove_deltas(self.prefix)
    self.assertEqual(removed, [prefix + end for prefix in (last, first)
                               for end in (".index", ".data-00000-of-00001")])
    leftovers.remove_deltas(self.prefix)
    self.assertEqual(delta_chain.find(self.prefix), [])

  def test_a_checkpoint_that_is_saved_again_has_other_deltas(self):
    model, _ = self.trained()
    links = delta_chain.find(self.prefix)
    kept = {path: open(link.prefix + path, "rb").read()
            for link in links for path in (".index", ".data-00000-of-00001")}
    model.run([[50]])
    model.saver.save(model.session, self.prefix)
    for path, content in kept.items():
      with open(links[-1].prefix + path, "wb") as f:
        f.write(content)
    self.assertEqual(checkpoint_tables.Checkpoint(self.prefix).num_deltas, 0)

  def test_an_interrupted_replacement_of_a_delta_is_left_as_it_is(self):
    self.trained()
    first = delta_chain.find(self.prefix)[0].prefix
    for path in (".index", ".data-00000-of-00001"):
      os.rename(first + path, first + ".commit" + path)
    with open(first + ".index", "wb") as f:
      f.write(b"old")
    before = testing.files(self.directory)
    self.assertEqual(checkpoint_tables.Checkpoint(self.prefix).num_deltas, 2)
    self.assertEqual(testing.files(self.directory), before)


class RanksTest(parameterized.TestCase):
  """Tables saved by several ranks: keys by a placement, not by floormod 1000."""

  def setUp(self):
    super().setUp()
    self.prefix = os.path.join(self.create_tempdir().full_path, "m")

  def restored(self):
    """Returns {key: row} after `Saver.restore` in one process."""
    with tf.Graph().as_default(), tf.Session() as session:
      v = tf.get_embedding_variable("v", _DIM)
      saver = tf.train.Saver()
      saver.restore(session, self.prefix)
      keys, values = session.run(v.export()[:2])
    return dict(zip(keys.tolist(), values.tolist()))

  def read(self):
    """Returns {key: row} as the tools read them."""
    table = checkpoint_tables.Checkpoint(self.prefix).table("v")
    keys = table.column("keys").tolist()
    self.assertEqual(len(set(keys)), len(keys))
    return dict(zip(keys, table.column("values").tolist()))

  @parameterized.parameters(False, True)
  def test_ranks_parts(self, replaces):
    row = lambda *numbers: [[float(x)] * _DIM for x in numbers]
    # Key k is on rank [0, 1, 1][k % 3].
    testing.write_chain(self.prefix, "v", [
        [dict(keys=[0, 3, 6], values=row(0, 3, 6)),
         dict(keys=[1, 2, 1001], values=row(1, 2, 1001))],
        [dict(keys=[3, 9], values=row(33, 9), erased=[0]),
         # Keys 6 and 12 belong to rank 0: rows of rank 1 for keys that it does not own.
         dict(keys=[2, 6, 12], values=row(22, 66, 12), erased=[9], replaces=replaces)],
        [dict(keys=[0], values=row(100)), dict(keys=[], values=[], erased=[2])],
    ], [0, 1, 1])
    expected = {0: 100., 3: 33., 6: 6., 9: 9.}
    if not replaces:
      expected.update({1: 1., 1001: 1001.})
    expected = {k: [x] * _DIM for k, x in expected.items()}
    self.assertEqual(self.restored(), expected)
    self.assertEqual(self.read(), expected)

  def test_a_delta_without_the_table_or_of_other_lengths(self):
    whole = dict(keys=[0], values=[[1., 1.]])
    testing.write_chain(self.prefix, "v", [[whole], [whole]], [0])
    delta = delta_chain.find(self.prefix)[0].prefix
    tensors = testing.read(delta)
    for change, message in (
        (lambda t: t.pop("v/part_0-sparse_incr_keys"), "has no tensors 'v/part_0-"),
        (lambda t: t.update({"v/part_0-sparse_incr_values": np.zeros([1, 3], "f")}),
         "expected the shape \\[1, 2\\], got \\[1, 3\\]"),
        (lambda t: t.update({"v-sparse_incr_placement": np.array([0, 1])}),
         "entries in \\[0, 1\\)")):
      changed = dict(tensors)
      change(changed)
      testing.write(delta, changed)
      with self.assertRaisesRegex(errors.CheckpointError, message):
        self.read()


if __name__ == "__main__":
  absltest.main()
