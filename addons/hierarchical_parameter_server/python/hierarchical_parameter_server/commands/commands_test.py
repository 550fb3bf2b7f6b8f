# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests the commands, in one process and as a program."""

import contextlib
import importlib
import io
import json
import os
import re
import sys
from unittest import mock
from xml.etree import ElementTree

from absl.testing import absltest
import numpy as np
import tensorflow as tf

import hierarchical_parameter_server as hps
from hierarchical_parameter_server import testing
from hierarchical_parameter_server.commands import main
from hierarchical_parameter_server.commands import profiling


def run(*argv):
  """Returns (exit code, output, errors)."""
  out, err = io.StringIO(), io.StringIO()
  with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
    code = main.main([str(a) for a in argv])
  return code, out.getvalue(), err.getvalue()


class CommandsTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    hps.stop()
    self.folder = self.create_tempdir().full_path
    self.rows = np.arange(2000, dtype=np.float32).reshape([500, 4])
    testing.write_table(os.path.join(self.folder, "t"), np.arange(500) - 3, self.rows)

  def tearDown(self):
    hps.stop()
    super().tearDown()

  def config(self, name="ps.json", **more):
    return testing.write_config(
        os.path.join(self.folder, name),
        [testing.model("m", ["t"], [4], [-1.], **more)])

  def rewrite(self, config, **parts):
    with open(config) as f:
      read = json.load(f)
    read.update(parts)
    with open(config, "w") as f:
      json.dump(read, f)

  def test_version(self):
    with self.assertRaises(SystemExit) as ended, contextlib.redirect_stdout(
        io.StringIO()) as out:
      main.main(["--version"])
    self.assertEqual(ended.exception.code, 0)
    self.assertRegex(out.getvalue(), r"^hierarchical_parameter_server \d+\.\d+\.\d+\n$")

  def test_check(self):
    code, out, _ = run("check", self.config(hit_rate_threshold=0.9))
    self.assertEqual(code, 0)
    self.assertIn("note: models[0].hit_rate_threshold", out)
    self.assertRegex(out, r"m +table0 +4 +500 +11\.7 KiB")
    self.assertIn("0 errors, 1 note\n", out)
    _, out, _ = run("check", self.config(gpucacheper=.5))
    self.assertNotIn("lfu", out)
    code, out, _ = run("check", self.config(gpucacheper=.5, embedding_cache_policy="lfu"))
    self.assertEqual(code, 0, out)
    self.assertIn("MiB (lfu)", out)
    code, out, _ = run("check", self.config(embedding_cache_policy="mru"))
    self.assertIn('embedding_cache_policy: expected one of "lru", "lfu", got "mru"', out)
    code, out, _ = run("check", self.config(gpucacher=1))
    self.assertEqual(code, 1)
    self.assertIn("error: ", out)
    self.assertIn("models[0].gpucacher: unknown key; was 'gpucache' meant?", out)

  def test_lookup(self):
    code, out, _ = run("lookup", self.config(), "m", "table0", "--", "-3", "9999", "0")
    self.assertEqual(code, 0)
    self.assertEqual(out.splitlines(), [
        "-3\t0 1 2 3", "9999\t-1 -1 -1 -1", "0\t12 13 14 15",
        "1 of 3 keys have the default value"])
    code, _, err = run("lookup", self.config(), "m", "tabel", "1")
    self.assertEqual(code, 2)
    self.assertIn("model 'm' has no table 'tabel'; its tables are table0", err)
    code, _, err = run("lookup", os.path.join(self.folder, "none.json"), "m", "0", "1")
    self.assertEqual(code, 2)
    self.assertIn("none.json", err)

  def test_load(self):
    code, out, _ = run("load", self.config())
    self.assertEqual(code, 0)
    self.assertRegex(out, r"hps_et\.m\.table0: volatile tier: 500 rows, ")

  def test_profile(self):
    for stream in ("zipf", "uniform", "repeated"):
      code, out, err = run("profile", self.config(), "--stream", stream, "--batch", 64,
                           "--iterations", 20, "--threads", 2, "--chart")
      self.assertEqual(code, 0, err)
      self.assertIn("2 callers, 40 lookups", out)
      self.assertIn("volatile 100.00 %  persistent 0.00 %  default 0.00 %", out)
      self.assertIn(" us #", out)
    code, _, err = run("profile", self.config(), "--exponent", 1)
    self.assertEqual(code, 2)
    self.assertIn("--exponent: expected more than 1, got 1", err)

  def test_profile_of_all_streams(self):
    code, out, err = run("profile", self.config(), "--stream", "all", "--batch", 64,
                         "--iterations", 20)
    self.assertEqual(code, 0, err)
    table = out[out.index("stream "):].splitlines()[-4:]
    self.assertEqual(table[0].split(), [
        "stream", "p50", "us", "p99", "us", "lookups/s", "cache", "%", "volatile", "%",
        "persistent", "%", "default", "%"])
    self.assertEqual([line.split()[0] for line in table[1:]],
                     ["repeated", "zipf", "uniform"])
    for line in table[1:]:
      p50, p99, _ = [float(v) for v in line.split()[1:4]]
      self.assertGreater(p50, 0)
      self.assertGreaterEqual(p99, p50)
      self.assertEqual([float(v) for v in line.split()[4:]], [0, 100, 0, 0])

  def test_profile_reports_which_tier_had_the_rows(self):
    config = self.config()
    with open(config) as f:
      parts = json.load(f)
    parts["volatile_db"] = {"type": "hash_map", "initial_cache_rate": .2}
    parts["persistent_db"] = {"type": "mapped_files"}
    with open(config, "w") as f:
      json.dump(parts, f)
    code, out, err = run("profile", config, "--stream", "uniform", "--batch", 500,
                         "--iterations", 64, "--warmup", 0)
    self.assertEqual(code, 0, err)
    found = re.search(r"volatile ([\d.]+) %  persistent ([\d.]+) %  default 0\.00 %", out)
    self.assertAlmostEqual(float(found.group(1)), 20, delta=2)
    self.assertAlmostEqual(float(found.group(1)) + float(found.group(2)), 100, delta=.02)

  def test_chart_as_a_file(self):
    config = self.config()
    svg = os.path.join(self.folder, "a.svg")
    code, out, err = run("profile", config, "--stream", "all", "--batch", 64,
                         "--iterations", 20, "--chart_file", svg)
    self.assertEqual(code, 0, err)
    self.assertIn("chart: " + svg, out)
    root = ElementTree.parse(svg).getroot()
    space = "{http://www.w3.org/2000/svg}"
    self.assertEqual(root.tag, space + "svg")
    curves = root.findall(space + "polyline")
    self.assertLen(curves, 3)
    for curve in curves:
      points = np.array([p.split(",") for p in curve.get("points").split()], float)
      # Points are inside the picture and go right and up.
      self.assertTrue((points >= 0).all() and (points <= [720, 420]).all())
      self.assertTrue((np.diff(points, axis=0) * [1, -1] >= 0).all())
    words = [t.text for t in root.findall(space + "text")]
    self.assertIn("hps_et.m.table0, batch 64, 1 callers", words)
    self.assertContainsSubset(["repeated", "zipf", "uniform", "50 %"], words)

  def test_chart_by_matplotlib(self):
    try:
      importlib.import_module("matplotlib")
    except ImportError:
      self.skipTest("matplotlib is not installed")
    png = os.path.join(self.folder, "a.png")
    code, _, err = run("profile", self.config(), "--batch", 64, "--iterations", 20,
                       "--chart_file", png)
    self.assertEqual(code, 0, err)
    with open(png, "rb") as f:
      self.assertEqual(f.read(8), b"\x89PNG\r\n\x1a\n")

  def test_charts_that_cannot_be_written_are_errors_before_anything_is_measured(self):
    config = self.config()
    for name, message in (
        ("a.pdf", "expected a name that ends in .png or .svg, got 'a.pdf'"),
        ("chart", "ends in .png or .svg, got 'chart'"),
        ("no/such/a.svg", "there is no folder 'no/such'")):
      code, out, err = run("profile", config, "--chart_file", name)
      self.assertEqual((code, out), (2, ""))
      self.assertIn(message, err)
    with mock.patch.dict(sys.modules, {"matplotlib": None}):
      code, out, err = run("profile", config, "--chart_file", "a.png")
    self.assertEqual((code, out), (2, ""))
    self.assertIn("a.png: a .png needs matplotlib, which is not installed", err)

  def test_zipf_has_the_given_exponent(self):
    drawn = profiling.zipf(np.random.RandomState(1), 10**6, 1.2, 200000)
    self.assertEqual(drawn.min(), 0)
    self.assertLess(drawn.max(), 10**6)
    # The shares of [1, 2) and of the first tenth match the continuous distribution.
    top = 1 - (10**6 + 1.)**-0.2
    self.assertAlmostEqual((drawn == 0).mean(), (1 - 2**-0.2) / top, delta=0.01)
    self.assertAlmostEqual((drawn < 10**5).mean(), (1 - (10**5 + 1.)**-0.2) / top,
                           delta=0.01)

  def test_convert(self):
    np.arange(5, dtype=np.int64).tofile(os.path.join(self.folder, "v_keys.file"))
    np.zeros(10, np.float32).tofile(os.path.join(self.folder, "v_values.file"))
    code, out, err = run("convert", "legacy", self.folder, self.folder)
    self.assertEqual((code, out), (0, "v: 5 rows of 2 floats\n"), err)
    code, _, err = run("convert", "checkpoint", self.folder + "/none", self.folder)
    self.assertEqual(code, 2)
    self.assertIn("no checkpoint at %s/none" % self.folder, err)

  def test_check_tries_the_tiers(self):
    config = self.config()
    code, out, _ = run("check", config, "--connect")
    self.assertEqual(code, 0)
    self.assertIn("this configuration has no tier in another program", out)
    self.rewrite(config, volatile_db={"type": "redis", "address": "127.0.0.1:1",
                                      "timeout_ms": 200})
    code, out, _ = run("check", config)
    self.assertEqual(code, 0)
    code, out, _ = run("check", config, "--connect")
    self.assertEqual(code, 1)
    self.assertRegex(out, r"error: volatile_db: redis 127\.0\.0\.1:1 was not reached in \d+ "
                     r"ms: .*Connection refused")
    self.assertIn("1 error, 0 notes", out)

  def test_check_counts_mistakes(self):
    config = self.config()
    self.rewrite(config, volatile_db={"type": "hash", "num_partitions": 0},
                 persistent_db={"type": "rocks_db"}, models=[])
    code, out, _ = run("check", config)
    self.assertEqual(code, 1)
    self.assertEqual(out.count("error: " + config + ": "), 3)
    self.assertIn("3 errors, 0 notes", out)

  def test_a_file_that_is_not_json_is_an_error_that_says_where(self):
    path = os.path.join(self.folder, "ps.json")
    for read, message in (
        (b'{"models": []\xef\xbc\x8c}',
         "line 1, column 14: expected ',' or '}', got '\uff0c' (U+FF0C, a full-width comma)"),
        (b'{\n\xe9}', "line 2, column 1: expected a key in quotes, got the byte \\xe9, which is "
         "not UTF-8"),
        (b'\xef\xbb\xbf{\n"models": [}', "line 2, column 12: expected a value, got '}'")):
      with open(path, "wb") as f:
        f.write(read)
      code, out, _ = run("check", path)
      self.assertEqual(code, 1)
      self.assertIn("error: %s, %s" % (path, message), out)
      with self.assertRaises(tf.errors.InvalidArgumentError) as raised:
        hps.start(path)
      self.assertIn(message, raised.exception.message)

  def test_a_byte_order_mark_is_skipped(self):
    config = self.config()
    with open(config, "rb") as f:
      read = f.read()
    with open(config, "wb") as f:
      f.write(b"\xef\xbb\xbf" + read)
    self.assertEqual(run("check", config)[0], 0)
    hps.start(config)

  def test_names_in_any_encoding(self):
    name = os.fsdecode(b"caf\xe9.json")
    code, out, _ = run("check", self.config(name))
    self.assertEqual(code, 0, out)
    hps.start(os.path.join(self.folder, name))
    hps.stop()
    none = os.path.join(self.folder, os.fsdecode(b"none\xff"))
    code, out, _ = run("check", none)
    self.assertEqual(code, 1)
    self.assertIn("none\\xff': No such file", out)
    with self.assertRaisesRegex(tf.errors.NotFoundError, r"none\\xff': No such file"):
      hps.start(none)
    # The folder of a table may have such a name, too.
    config = self.config()
    with open(config, "rb") as f:
      read = f.read()
    with open(config, "wb") as f:
      f.write(read.replace(b'"t"', b'"t\xff"'))
    code, out, _ = run("check", config)
    self.assertEqual(code, 1)
    self.assertIn("t\\xff/", out)
    # The terminal's encoding cannot represent the character.
    ascii_out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    with contextlib.redirect_stdout(ascii_out):
      self.assertEqual(main.main(["check", os.path.join(self.folder, "\uff0c")]), 1)
    ascii_out.flush()
    self.assertIn(b"\\uff0c", ascii_out.buffer.getvalue())


if __name__ == "__main__":
  absltest.main()
