# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the command line."""

import contextlib
import csv
import io
import os
import subprocess
import sys
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from embedding_variable.tools import arrow
from embedding_variable.tools import bundle_writer
from embedding_variable.tools import main
from embedding_variable.tools import testing

_KEYS = [3, -7, 1003, 2**62]
_VALUES = [[3., 30.], [7., 70.], [13., 130.], [0.1, -1e-38]]
_ADAGRAD = [[.3, .3], [.7, .7], [1.3, 1.3], [.1, .1]]


def _tensors(**changes):
  """Returns a table `a/v` with all columns, and a dense tensor."""
  facts = dict(
      keys=_KEYS, values=_VALUES, versions=[90, 100, 10, -1], freqs=[5, 1, 2, 1],
      filtered=[(8, 99, 1), (-2000, 50, 2)], slots={"Adagrad": _ADAGRAD},
      defaults=[[9., 9.], [8., 8.], [7., 7.]])
  facts.update(changes)
  tensors = testing.table("a/v", **facts)
  tensors["dense"] = np.arange(6, dtype=np.float32).reshape(2, 3)
  tensors["global_step"] = np.array(100, np.int64)
  tensors["words"] = np.array([b"x", b"yz"])
  return tensors


def _in_parts():
  """Returns the same table in two parts: key in part floormod(key, 1000) % 2."""
  tensors = {}
  for part in (0, 1):
    mine = [i for i, k in enumerate(_KEYS) if k % 1000 % 2 == part]
    pick = lambda values: [values[i] for i in mine]  # pylint: disable=cell-var-from-loop
    tensors.update(testing.table(
        "a/v/part_%d" % part, pick(_KEYS), pick(_VALUES), pick([90, 100, 10, -1]),
        pick([5, 1, 2, 1]), slots={"Adagrad": pick(_ADAGRAD)},
        filtered=[f for f in [(8, 99, 1), (-2000, 50, 2)] if f[0] % 2 == part],
        defaults=[[9., 9.], [8., 8.], [7., 7.]] if part else [[9., 9.]]))
  whole = _tensors()
  tensors.update({n: whole[n] for n in ("dense", "global_step", "words")})
  return tensors


class ToolsTest(parameterized.TestCase):

  def setUp(self):
    super(ToolsTest, self).setUp()
    self.directory = self.create_tempdir().full_path
    self.prefix = os.path.join(self.directory, "model.ckpt-100")

  def run_tool(self, *args, **kwargs):
    """Returns the output of a command, which must exit with `status` (0)."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
      status = main.main(list(args))
    self.assertEqual(status, kwargs.get("status", 0), err.getvalue())
    return err.getvalue() if status == 2 else out.getvalue()

  def path(self, name):
    return os.path.join(self.directory, name)

  # inspect

  def test_version(self):
    with self.assertRaises(SystemExit) as ended, contextlib.redirect_stdout(
        io.StringIO()) as out:
      main.main(["--version"])
    self.assertEqual(ended.exception.code, 0)
    self.assertRegex(out.getvalue(), r"^embedding_variable \d+\.\d+\.\d+\n$")

  @parameterized.parameters((_tensors, 1), (_in_parts, 2))
  def test_inspect_shows_each_table(self, make, parts):
    testing.write(self.prefix, make())
    text = self.run_tool("inspect", self.prefix)
    self.assertIn("global step 100", text)
    row, = [l.split() for l in text.splitlines() if l.startswith("a/v ")]
    self.assertEqual(row[:7], ["a/v", str(parts), "4", "2", "2", "int64", "Adagrad"])
    self.assertEqual(" ".join(row[9:]), "1 to 5 10 to 100")
    self.assertIn("other tensors: 3,", text)
    self.assertRegex(text, r"\n  2-3  1  #+\n  4-7  1  #+\n")
    self.assertRegex(text, r"\n *never +1  #+\n")

  def test_inspect_adds_up_the_bytes(self):
    tensors = _tensors(slots=None)
    testing.write(self.prefix, tensors)
    table_bytes = sum(t.nbytes for n, t in tensors.items() if n.startswith("a/v"))
    self.assertIn("%.1f KiB" % (table_bytes / 1024.), self.run_tool("inspect", self.prefix))

  def test_inspect_without_recorded_numbers(self):
    testing.write(self.prefix, _tensors(versions=None, freqs=None))
    text = self.run_tool("inspect", self.prefix)
    self.assertRegex(text, r"a/v .* -  +-\n")
    self.assertNotIn("rows by", text)

  def test_inspect_takes_a_directory(self):
    testing.write(self.prefix, _tensors())
    tf.train.update_checkpoint_state(self.directory, self.prefix)
    self.assertIn(self.prefix, self.run_tool("inspect", self.directory))

  def test_inspect_of_an_empty_table_and_of_none(self):
    testing.write(self.prefix, testing.table("e", [], np.zeros([0, 4])))
    self.assertRegex(self.run_tool("inspect", self.prefix), r"\ne +1 +0 +0 +4 ")
    testing.write(self.path("none"), {"dense": np.zeros(3)})
    self.assertIn("no embedding variables", self.run_tool("inspect", self.path("none")))

  def test_a_table_under_another_tables_name_is_no_slot(self):
    tensors = _tensors()
    tensors.update(testing.table("a/v/w", [1], [[1., 2., 3.]], defaults=[[0., 0., 0.]]))
    tensors.update(testing.table("a/v/Ada/m", [1], [[1., 2.]]))
    testing.write(self.prefix, tensors)
    text = self.run_tool("inspect", self.prefix)
    self.assertRegex(text, r"\na/v/w +1 +1 +0 +3 +int64 +- ")
    self.assertRegex(text, r"\na/v +.* Ada/m,Adagrad ")

  def test_tables_of_feature_columns(self):
    tensors = {}
    for i in (10, 1, 2):
      tensors.update(testing.table("input/C%d_embedding/weights" % i, range(i), np.ones([i, 2])))
    testing.write(self.prefix, tensors)
    lines = self.run_tool("inspect", self.prefix).splitlines()
    self.assertEqual([line.split()[0].split("/")[1] for line in lines if "input/" in line],
                     ["C1_embedding", "C2_embedding", "C10_embedding"])
    self.assertRegex("\n".join(lines), r"\n3 variables +3 +13 +0 +[\d.]+ KiB\n")
    self.assertIn("input/C1_embedding/weights[0]\n",
                  self.run_tool("lookup", self.prefix, "C1", "0"))
    text = self.run_tool("inspect", self.prefix, "--variable", "weights", status=2)
    self.assertIn("'weights' may be any of 3 embedding variables: 'input/C1_embedding", text)
    text = self.run_tool("inspect", self.prefix, "--variable", "c10", status=2)
    self.assertIn("no embedding variable 'c10'; did you mean 'input/C10_embedding/weights'?",
                  text)

  def test_a_table_under_another_tables_name_in_deeprecs_file(self):
    # Without default rows, a name with slots is a table, since slots have none.
    tensors = _tensors(defaults=None)
    tensors.update(testing.table("a/v/w", [1], [[1., 2.]], slots={"Adagrad": [[1., 2.]]}))
    testing.write(self.prefix, tensors)
    text = self.run_tool("inspect", self.prefix)
    self.assertRegex(text, r"\na/v/w +1 +1 +0 +2 +int64 +Adagrad ")
    self.assertRegex(text, r"\na/v +1 +4 +.* int64 +Adagrad ")

  def test_plot_is_a_png(self):
    testing.write(self.prefix, _tensors())
    png = self.path("plot.png")
    try:
      __import__("matplotlib")
    except ImportError as e:
      self.assertIn("matplotlib", self.run_tool("inspect", self.prefix, "--plot", png,
                                                status=2))
      self.skipTest(str(e))
    self.assertIn("wrote " + png, self.run_tool("inspect", self.prefix, "--plot", png))
    with open(png, "rb") as f:
      self.assertEqual(f.read(8), b"\x89PNG\r\n\x1a\n")

  def test_plot_without_matplotlib_names_the_package(self):
    testing.write(self.prefix, _tensors())
    with absltest.mock.patch.dict(sys.modules, {"matplotlib": None}):
      text = self.run_tool("inspect", self.prefix, "--plot", self.path("p.png"), status=2)
    self.assertIn("pip install matplotlib", text)

  # lookup

  @parameterized.parameters(_tensors, _in_parts)
  def test_lookup_prints_rows(self, make):
    testing.write(self.prefix, make())
    text = self.run_tool("lookup", self.prefix, "a/v", "-7", "1003", "8", "-1",
                         str(2**63 - 1))
    self.assertEqual(text, """\
a/v[-7]: frequency 1, version 100
  value  7 70
  Adagrad  0.7 0.7
a/v[1003]: frequency 2, version 10
  value  13 130
  Adagrad  1.3 1.3
a/v[8]: not admitted yet, frequency 1
a/v[-1]: absent
  reads default row 2  7 7
a/v[9223372036854775807]: absent
  reads default row 1  8 8
""")

  def test_lookup_refuses_a_key_of_another_type(self):
    tensors = _tensors()
    for name in [n for n in tensors if n.endswith(("-keys", "-keys_filtered"))]:
      tensors[name] = tensors[name].astype(np.int32)
    testing.write(self.prefix, tensors)
    self.assertIn("int32", self.run_tool("lookup", self.prefix, "a/v", str(2**40),
                                         status=2))

  def test_the_error_for_an_unknown_variable_lists_the_existing_ones(self):
    testing.write(self.prefix, _tensors())
    self.assertIn("no embedding variable 'b'; it has 'a/v'",
                  self.run_tool("lookup", self.prefix, "b", "1", status=2))

  # export

  @parameterized.parameters(_tensors, _in_parts)
  def test_csv_gives_every_bit_back(self, make):
    testing.write(self.prefix, make())
    path = self.path("v.csv")
    self.run_tool("export", self.prefix, "a/v", "--to", "csv", "--out", path, "--slots")
    with open(path) as f:
      rows = {int(r["key"]): r for r in csv.DictReader(f)}
    self.assertEqual(sorted(rows), sorted(_KEYS))
    for key, value, slot in zip(_KEYS, _VALUES, _ADAGRAD):
      row = rows[key]
      for name, expected in (("value", value), ("Adagrad", slot)):
        got = np.array([row["%s_0" % name], row["%s_1" % name]], np.float32)
        np.testing.assert_array_equal(got, np.array(expected, np.float32))
    self.assertEqual((rows[3]["version"], rows[3]["frequency"]), ("90", "5"))

  def test_npz(self):
    testing.write(self.prefix, _tensors(versions=None))
    path = self.path("v.npz")
    self.run_tool("export", self.prefix, "a/v", "--to", "npz", "--out", path, "--slots")
    arrays = np.load(path)
    self.assertEqual(sorted(arrays.files), ["Adagrad", "frequencies", "keys", "values"])
    rows = dict(zip(arrays["keys"].tolist(), arrays["values"].tolist()))
    self.assertEqual(rows[-7], [7., 70.])

  def test_npz_with_two_arrays_of_one_name(self):
    for slots in (["a/b", "a_b"], ["keys"]):
      testing.write(self.prefix, _tensors(slots=dict.fromkeys(slots, _ADAGRAD)))
      path = self.path("twice.npz")
      arguments = ["export", self.prefix, "a/v", "--to", "npz", "--out", path]
      self.assertIn("of slot '%s' is another array's" % slots[-1],
                    self.run_tool(*(arguments + ["--slots"]), status=2))
      self.assertFalse(os.path.exists(path))
      self.run_tool(*arguments)
      os.remove(path)

  def test_parquet(self):
    testing.write(self.prefix, _tensors())
    path = self.path("v.parquet")
    self.run_tool("export", self.prefix, "a/v", "--to", "parquet", "--out", path,
                  "--slots")
    columns = arrow.load().parquet.read_table(path).to_pydict()
    self.assertEqual(sorted(columns),
                     ["Adagrad", "frequency", "key", "values", "version"])
    self.assertCountEqual(columns["key"], _KEYS)
    for name, expected in (("values", _VALUES), ("Adagrad", _ADAGRAD),
                           ("version", [90, 100, 10, -1]), ("frequency", [5, 1, 2, 1])):
      rows = dict(zip(columns["key"], columns[name]))
      np.testing.assert_array_equal(
          np.array([rows[key] for key in _KEYS]),
          np.array(expected, np.float32 if name in ("values", "Adagrad") else np.int64),
          name)

  @parameterized.parameters("pyarrow", "pyarrow_hotfix")
  def test_parquet_without_its_libraries(self, missing):
    testing.write(self.prefix, _tensors())
    path = self.path("v.parquet")
    with mock.patch.dict(sys.modules, {missing: None}):
      text = self.run_tool("export", self.prefix, "a/v", "--to", "parquet", "--out", path,
                           status=2)
    self.assertRegex(text, "%s.*pip install pyarrow pyarrow-hotfix" % missing)
    self.assertFalse(os.path.exists(path))

  def test_an_existing_file_is_kept(self):
    testing.write(self.prefix, _tensors())
    path = self.path("v.csv")
    with open(path, "w") as f:
      f.write("mine")
    args = ("export", self.prefix, "a/v", "--to", "csv", "--out", path)
    self.assertIn("exists", self.run_tool(*args, status=2))
    with open(path) as f:
      self.assertEqual(f.read(), "mine")
    self.run_tool(*(args + ("--force",)))
    with open(path) as f:
      self.assertStartsWith(f.read(), "key,version,frequency,value_0,value_1\n")

  def test_a_slot_with_keys_of_its_own_order_and_one_missing(self):
    tensors = _tensors()
    slot = testing.table("a/v/Adagrad", _KEYS[:0:-1], _ADAGRAD[:0:-1])
    for name in ("keys", "values"):  # key 3 is missing; reverse order
      tensors["a/v/Adagrad-" + name] = slot["a/v/Adagrad-" + name][::-1]
    testing.write(self.prefix, tensors)
    text = self.run_tool("lookup", self.prefix, "a/v", "-7", "3")
    self.assertIn("Adagrad  0.7 0.7", text)
    self.assertIn("Adagrad  nan nan", text)

  # diff

  def test_equal_checkpoints_do_not_differ_whatever_the_parts(self):
    testing.write(self.prefix, _tensors())
    testing.write(self.path("parts"), _in_parts())
    self.assertEqual(self.run_tool("diff", self.prefix, self.path("parts")), "")

  def test_diff_names_what_differs(self):
    testing.write(self.prefix, _tensors())
    other = _tensors(keys=[3, -7, 1004, 2**62], versions=[90, 101, 10, -1],
                     values=[[3., 30.], [7., 70.5], [13., 130.], [0.1, -1e-38]])
    other["dense"] = other["dense"] + np.float32([0, 0, 2])
    other["words"] = np.array([b"x", b"y"])
    del other["global_step"]
    other["more"] = np.zeros(2)
    testing.write(self.path("other"), other)
    self.assertEqual(
        self.run_tool("diff", self.prefix, self.path("other"), status=1), """\
a/v: rows only in the first: 1 (1003)
a/v: rows only in the second: 1 (1004)
a/v: values differ in 1 (-7) rows of 3, at most by 0.5
a/v: versions differ in 1 (-7) rows of 3, at most by 1
dense: 2 of 6 numbers differ, at most by 2
global_step: only in the first
more: only in the second
words: differs
""")

  def test_diff_sees_other_slots_dims_and_filtered_keys(self):
    testing.write(self.prefix, _tensors())
    testing.write(self.path("slots"), _tensors(slots=None, filtered=[]))
    text = self.run_tool("diff", self.prefix, self.path("slots"), status=1)
    self.assertEqual(text, "a/v: slots Adagrad and none\n"
                     "a/v: keys that are not admitted yet: 2 and 0\n")
    testing.write(self.path("dim"), _tensors(values=[[1.]] * 4, defaults=[[1.]]))
    self.assertEqual(self.run_tool("diff", self.prefix, self.path("dim"), status=1),
                     "a/v: dim 2 and 1\n")

  # shrink

  @parameterized.parameters(_tensors, _in_parts)
  def test_shrink_drops_old_rows_with_their_slots(self, make):
    testing.write(self.prefix, make())
    before = testing.read(self.prefix)
    out = self.path("new/small")
    text = self.run_tool("shrink", self.prefix, "--evict-older-than", "9", "--out", out)
    # 100 - 90 > 9 and 100 - 10 > 9; the row that was never updated stays.
    self.assertIn("a/v: 2 of 4 rows evicted\n", text)
    keep = [i for i, k in enumerate(_KEYS) if k in (-7, 2**62)]
    expected = _tensors(
        keys=[_KEYS[i] for i in keep], values=[_VALUES[i] for i in keep],
        versions=[100, -1], freqs=[1, 1], slots={"Adagrad": [_ADAGRAD[i] for i in keep]})
    if make is _tensors:
      got = testing.read(out)
      self.assertEqual(sorted(got), sorted(expected))
      for name, array in expected.items():
        np.testing.assert_array_equal(got[name], array, name)
        self.assertEqual(got[name].dtype.kind, np.asarray(before[name]).dtype.kind, name)
    testing.write(self.path("expected"), expected)
    self.assertEqual(self.run_tool("diff", out, self.path("expected")), "")
    for name, array in testing.read(self.prefix).items():  # the input is unchanged
      np.testing.assert_array_equal(array, before[name])
    self.assertFalse([n for n in testing.files(self.directory) if "_partial" in n])

  def test_the_boundary_is_that_of_global_step_evict(self):
    testing.write(self.prefix, _tensors())
    text = self.run_tool("shrink", self.prefix, "--evict-older-than", "10")
    self.assertIn("1 of 4 rows", text)
    self.assertIn("wrote %s-shrunk" % self.prefix, text)

  def test_shrink_counts_from_the_step_that_is_given(self):
    testing.write(self.prefix, _tensors())
    self.assertIn("3 of 4 rows", self.run_tool(
        "shrink", self.prefix, "--evict-older-than", "10", "--global-step", "1000"))

  def test_shrink_drops_filtered_keys(self):
    testing.write(self.prefix, _tensors())
    out = self.path("small")
    text = self.run_tool("shrink", self.prefix, "--drop-filtered", "--out", out)
    self.assertIn("0 of 4 rows evicted, 2 keys that were not admitted dropped", text)
    got = testing.read(out)
    self.assertEmpty(got["a/v-keys_filtered"])
    self.assertEmpty(got["a/v/Adagrad-freqs_filtered"])
    self.assertFalse(got["a/v-partition_filter_offset"].any())
    self.assertLen(got["a/v-keys"], 4)

  def test_shrink_takes_a_slots_own_keys(self):
    tensors = _tensors()
    for name in ("keys", "values"):
      tensors["a/v/Adagrad-" + name] = tensors["a/v/Adagrad-" + name][::-1]
    testing.write(self.prefix, tensors)
    out = self.path("small")
    self.run_tool("shrink", self.prefix, "--evict-older-than", "9", "--out", out)
    got = testing.read(out)
    rows = dict(zip(got["a/v/Adagrad-keys"].tolist(), got["a/v/Adagrad-values"].tolist()))
    self.assertEqual(rows, {-7: [np.float32(.7)] * 2, 2**62: [np.float32(.1)] * 2})

  def test_shrink_of_one_variable_leaves_the_others(self):
    tensors = _tensors()
    tensors.update(testing.table("b", [1], [[1.]], versions=[0], defaults=[[0.]]))
    tensors.update(testing.table("c", [1], [[1.]], defaults=[[0.]]))
    testing.write(self.prefix, tensors)
    out = self.path("small")
    text = self.run_tool("shrink", self.prefix, "--evict-older-than", "9",
                         "--variable", "b", "--out", out)
    self.assertEqual(text, "b: 1 of 1 rows evicted\nwrote %s\n" % out)
    got = testing.read(out)
    self.assertLen(got["a/v-keys"], 4)
    self.assertEmpty(got["b-keys"])
    self.assertIn("c: 0 of 1 rows evicted, all kept: no versions were recorded",
                  self.run_tool("shrink", self.prefix, "--evict-older-than", "9"))

  @parameterized.parameters(
      ({}, [], "needs --evict-older-than"),
      ({}, ["--evict-older-than", "-1"], "at least 0, got -1"),
      ({"versions": None}, ["--evict-older-than", "1"], "no versions were recorded"),
  )
  def test_shrink_refuses(self, changes, args, message):
    testing.write(self.prefix, _tensors(**changes))
    before = testing.files(self.directory)
    self.assertIn(message, self.run_tool("shrink", self.prefix, *args, status=2))
    self.assertEqual(testing.files(self.directory), before)

  def test_shrink_never_writes_over_a_checkpoint(self):
    testing.write(self.prefix, _tensors())
    for out in (self.prefix, os.path.relpath(self.prefix)):
      self.assertIn("exists", self.run_tool(
          "shrink", self.prefix, "--evict-older-than", "1", "--out", out, status=2))

  # Damaged or missing input.

  def test_no_checkpoint_is_an_error_that_names_it(self):
    self.assertIn("no checkpoint at " + self.prefix,
                  self.run_tool("inspect", self.prefix, status=2))
    self.assertIn("has no checkpoint", self.run_tool("inspect", self.directory, status=2))
    with open(self.prefix + ".index", "wb") as f:
      f.write(b"nonsense")
    self.assertIn("cannot be read", self.run_tool("inspect", self.prefix, status=2))
    with open(self.path("checkpoint"), "wb") as f:
      f.write(b"\xff\xfe")
    self.assertIn("the file 'checkpoint' of the directory %s cannot be read" %
                  self.directory, self.run_tool("inspect", self.directory, status=2))

  def test_a_checkpoint_whose_replacement_was_interrupted(self):
    testing.write(self.prefix, _tensors())
    testing.write(self.path("new"), _tensors(slots=None))
    for name in os.listdir(self.directory):
      if name.startswith("new."):
        os.rename(self.path(name), self.prefix + ".commit" + name[len("new"):])
    before = testing.files(self.directory)
    text = self.run_tool("inspect", self.prefix)
    self.assertNotIn("Adagrad", text)
    self.assertIn(self.prefix, text)
    self.assertEqual(testing.files(self.directory), before)

  @parameterized.parameters(
      ["lookup", "a/v", "1"], ["shrink", "--evict-older-than", "1"])
  def test_a_cut_data_file_is_an_error_and_leaves_nothing(self, command, *args):
    testing.write(self.prefix, _tensors())
    data = self.prefix + ".data-00000-of-00001"
    with open(data, "r+b") as f:
      f.truncate(100)
    before = testing.files(self.directory)
    self.assertIn("cannot be read",
                  self.run_tool(command, self.prefix, *args, status=2))
    self.assertEqual(testing.files(self.directory), before)

  @parameterized.parameters(
      ["inspect"], ["lookup", "a/v", "1"], ["shrink", "--evict-older-than", "1"])
  def test_an_index_that_claims_larger_tensors_is_an_error(self, command, *args):
    tensors = {n: np.asarray(t) for n, t in _tensors().items() if n != "words"}
    for name, shape in (("a/v-default_rows", [2**45, 2]), ("dense", [2**31, 2**31])):
      testing.write_claiming(self.prefix, tensors, {name: shape})
      self.assertRegex(
          self.run_tool(command, self.prefix, *args, status=2),
          "%s.* needs %d bytes" % (name, 4 * shape[0] * shape[1]))
    testing.write_claiming(self.prefix, tensors, {})
    self.run_tool(command, self.prefix, *args)

  def test_what_is_written_in_many_pieces_is_one_checkpoint(self):
    tensors = _tensors()
    with bundle_writer.BundleWriter(self.prefix, flush_bytes=1) as writer:
      for name, array in tensors.items():
        writer.add(name, array)
    got = testing.read(self.prefix)
    self.assertEqual(sorted(got), sorted(tensors))
    for name, array in tensors.items():
      np.testing.assert_array_equal(got[name], array)
    self.assertLen(testing.files(self.directory), 1 + len(tensors))


class TrainedTest(absltest.TestCase):
  """The tools on files that the Saver writes, and back."""

  def test_a_shrunk_checkpoint_restores_and_trains_on(self):
    directory = self.create_tempdir().full_path
    prefix, out = os.path.join(directory, "m"), os.path.join(directory, "small")
    env = dict(os.environ, TF_RECORD_VERSION="1", TF_RECORD_FREQ="1")
    env["PYTHONPATH"] = os.pathsep.join(sys.path)
    script = """
import sys
import tensorflow as tf
import embedding_variable
v = tf.get_embedding_variable("v", 2, partitioner=tf.fixed_size_partitioner(2))
ids = tf.placeholder(tf.int64, [None])
step = tf.train.get_or_create_global_step()
loss = tf.reduce_sum(tf.nn.embedding_lookup(v, ids) ** 2)
train = tf.train.AdamOptimizer(0.1).minimize(loss, global_step=step)
count = tf.add_n([p.total_count()[0] for p in v])
with tf.Session() as s:
  if sys.argv[1] == "save":
    s.run(tf.global_variables_initializer())
    for batch in ([1, 2, 3], [2, -3], [2, 5]):
      s.run(train, {ids: batch})
    tf.train.Saver().save(s, sys.argv[2])
  else:
    tf.train.Saver().restore(s, sys.argv[2])
    before = s.run(count)
    s.run(train, {ids: [1]})
    print("rows", before, s.run(count))
"""

    def python(*args):
      return subprocess.run([sys.executable, "-W", "ignore"] + list(args), env=env,
                            check=True, stdout=subprocess.PIPE,
                            universal_newlines=True).stdout

    python("-c", script, "save", prefix)
    text = python("-m", "embedding_variable", "shrink", prefix, "--evict-older-than",
                  "1", "--out", out)
    # At step 3: keys 1 and 3 have version 0, -3 has 1, 2 and 5 have 2.
    self.assertIn("v: 3 of 5 rows evicted", text)
    self.assertEqual(python("-c", script, "restore", out), "rows 2 3\n")


if __name__ == "__main__":
  absltest.main()
