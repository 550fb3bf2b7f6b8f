# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests the commands in this process."""

import contextlib
import glob
import io
import json
import os
import re
import sys
from unittest import mock
import xml.dom.minidom

from absl.testing import absltest
from absl.testing import parameterized
from matplotlib import image
import numpy as np
import tensorflow as tf

from hugectr import testing
from hugectr.commands import checking
from hugectr.commands import converting
from hugectr.commands import main
from hugectr.commands import picture
from hugectr.commands import progress
from hugectr.config import model as models
from hugectr.data import arrow
from hugectr.data import batches
from hugectr.data import sources
from hugectr.training import metrics

_EXAMPLES = "addons/hugectr/example/"


def _run(*argv):
  """Returns (status, standard output, standard error)."""
  out, error = io.StringIO(), io.StringIO()
  with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
    status = main.main([str(a) for a in argv])
  return status, out.getvalue(), error.getvalue()


class Terminal(io.StringIO):

  def isatty(self):
    return True


class CommandsTest(parameterized.TestCase):

  def configuration(self, **solver):
    """Returns the path of a small configuration, in its own folder."""
    with open(_EXAMPLES + "criteo_parquet.json") as f:
      found = json.load(f)
    folder = self.create_tempdir().full_path
    data = found["layers"][0]
    data["source"] = folder + "/train/_file_list.txt"
    data["eval_source"] = folder + "/val/_file_list.txt"
    data["slot_size_array"] = [20] * 26
    for layer in found["layers"]:
      if "fc_param" in layer and layer["fc_param"]["num_output"] > 1:
        layer["fc_param"]["num_output"] = 8
    found["solver"] = dict({"batchsize": 100, "batchsize_eval": 200, "display": 10,
                            "eval_interval": 20, "snapshot": 0, "eval_batches": 2}, **solver)
    path = folder + "/model.json"
    with open(path, "w") as f:
      json.dump(found, f)
    return path, folder

  def test_version(self):
    with self.assertRaises(SystemExit) as ended, contextlib.redirect_stdout(
        io.StringIO()) as out:
      main.main(["--version"])
    self.assertEqual(ended.exception.code, 0)
    self.assertRegex(out.getvalue(), r"^hugectr \d+\.\d+\.\d+\n$")

  @parameterized.parameters("criteo_parquet", "dcn", "deepfm", "dlrm", "wdl")
  def test_check_prints_and_draws_the_layers(self, name):
    path = _EXAMPLES + name + ".json"
    plot = self.create_tempdir().full_path + "/model.svg"
    status, out, error = _run("check", path, "--plot", plot)
    self.assertEqual((status, error), (0, ""))
    model, configuration = models.read(path)
    for layer in configuration["layers"]:
      self.assertRegex(out, r"(?m)^%s +%s" % (layer["name"], layer["type"]))
    self.assertLen(checking.rows_of(model), len(configuration["layers"]))
    drawing = xml.dom.minidom.parse(plot)
    # One more rectangle is the background.
    self.assertLen(drawing.getElementsByTagName("rect"), len(configuration["layers"]) + 1)
    arrows = sum(len(l["bottom"]) if isinstance(l["bottom"], list) else 1
                 for l in configuration["layers"][1:])
    self.assertLen(drawing.getElementsByTagName("path"), arrows + 1)

  @parameterized.parameters("dlrm", "wdl")
  def test_check_draws_a_png(self, name):
    plot = self.create_tempdir().full_path + "/model.PNG"
    status, _, error = _run("check", _EXAMPLES + name + ".json", "--plot", plot)
    self.assertEqual((status, error), (0, ""))
    pixels = image.imread(plot)
    model, _ = models.read(_EXAMPLES + name + ".json")
    svg = xml.dom.minidom.parseString(picture.svg(model)).documentElement
    # Each side has one and a half times as many pixels.
    for side, name in ((0, "height"), (1, "width")):
      self.assertAlmostEqual(pixels.shape[side], 1.5 * float(svg.getAttribute(name)), delta=2)
    colours = {tuple(c) for c in np.round(255 * pixels[..., :3]).astype(int).reshape([-1, 3])}
    for colour in ("e8eef7", "e6f4ea", "ffffff", "fdecea"):
      self.assertIn(tuple(bytes.fromhex(colour)), colours)

  def test_a_png_without_matplotlib_is_a_sentence(self):
    with mock.patch.dict(sys.modules, {"matplotlib": None}):
      status, _, error = _run("check", _EXAMPLES + "dcn.json", "--plot", "x.png")
    self.assertEqual(status, 2)
    self.assertRegex(error, "error: check: matplotlib, which draws a PNG, is not installed")

  def test_check_tells_each_mistake(self):
    path, _ = self.configuration()
    with open(path) as f:
      found = json.load(f)
    found["layers"][2]["leading_dim"] = 7
    found["layers"][-1]["bottom"][0] = "logits"
    with open(path, "w") as f:
      json.dump(found, f)
    status, out, error = _run("check", path)
    self.assertEqual((status, out), (2, ""))
    self.assertLen(error.splitlines(), 2)
    self.assertRegex(error, r"error: .*model.json: layers\[2\] \('flat', Reshape\): lead")
    self.assertRegex(error, r"there is no tensor 'logits'; did you mean 'logit'\?")

  @parameterized.parameters(
      ({"gpu": [0, 0]}, "solver: vvgpu: expected a list of different device numbers"),
      ({"gpu": [0, 1, 2]}, "solver: batchsize: expected a multiple of the 3 devices"),
      ({"max_iter": 3, "num_epochs": 1}, "solver: expected either max_iter or num_epochs"))
  def test_check_tells_what_is_wrong_with_the_solver(self, solver, expected):
    path, _ = self.configuration(**solver)
    status, out, error = _run("check", path)
    self.assertEqual((status, out), (2, ""))
    self.assertEqual(error.count("error: "), 1)
    self.assertIn("%s: %s" % (path, expected), error)

  def test_generate_then_train(self):
    path, folder = self.configuration(
        max_iter=45, snapshot=40, snapshot_prefix="", eval_metrics=["AUC", "AverageLoss"])
    with open(path) as f:
      found = json.load(f)
    found["solver"]["snapshot_prefix"] = folder + "/out/m"
    with open(path, "w") as f:
      json.dump(found, f)
    status, out, error = _run("generate", path, "--samples", 1001, "--files", 3,
                              "--eval_samples", 300)
    self.assertEqual((status, error), (0, ""))
    self.assertIn("wrote 1001 samples, ", out)
    self.assertLen(glob.glob(folder + "/train/*.parquet"), 3)
    status, out, error = _run("train", path, "--summaries", folder + "/summaries")
    self.assertEqual(status, 0, error)
    self.assertEqual(re.findall(r"(?m)^iter (\d+); loss [\d.]+; learning rate 0.005; "
                                r"samples/s \d+$", out), ["10", "20", "30", "40"])
    self.assertEqual(re.findall(r"(?m)^iter (\d+); evaluation: AUC [\d.]+, AverageLoss "
                                r"[\d.]+$", out), ["20", "40"])
    self.assertIn("iter 40; wrote model files %s/out/m*_40.model" % folder, out)
    self.assertTrue(os.path.exists(folder + "/out/m0_sparse_40.model"))
    self.assertEndsWith(out, "trained 45 iterations\n")
    tags = {}
    for events in glob.glob(folder + "/summaries/*"):
      for event in tf.compat.v1.train.summary_iterator(events):
        for value in event.summary.value:
          tags.setdefault(value.tag, []).append(event.step)
    self.assertEqual(tags, {
        "loss": [10, 20, 30, 40], "learning_rate": [10, 20, 30, 40],
        "samples_per_second": [10, 20, 30, 40], "eval/AUC": [20, 40],
        "eval/AverageLoss": [20, 40]})

  @parameterized.parameters("Parquet", "Norm", "Raw")
  def test_generate_several_labels(self, kind):
    path, folder = self.configuration()
    with open(path) as f:
      found = json.load(f)
    # Two labels, each with its own weights.
    found["layers"][0].update(format=kind, check="None")
    if kind == "Raw":
      found["layers"][0].update(source=folder + "/train/raw", eval_source=folder + "/val/raw",
                                num_samples=2000, eval_num_samples=100)
    found["layers"][0]["label"]["label_dim"] = 2
    found["layers"][-1].update(type="MultiCrossEntropyLoss", target_weight=[.5, .5])
    for layer in found["layers"]:
      if "fc_param" in layer and layer["fc_param"]["num_output"] == 1:
        layer["fc_param"]["num_output"] = 2
    with open(path, "w") as f:
      json.dump(found, f)
    status, out, error = _run("generate", path, "--samples", 2000, "--eval_samples", 100)
    self.assertEqual((status, error), (0, ""))
    self.assertRegex(out, r"AUC much above 0\.\d{4} of label 1, 0\.\d{4} of label 2\n$")
    data = models.read(path)[0].data
    read = batches.joined(list(
        sources.open_source(data.source, data, "I32", 512).chunks()))
    self.assertEqual(read.labels.shape, (2000, 2))
    agree = (read.labels[:, 0] == read.labels[:, 1]).mean()
    self.assertBetween(agree, .1, .9)
    for k in range(2):
      self.assertBetween(read.labels[:, k].mean(), .1, .9)
    # The first label is the same as if it were the only one.
    found["layers"][0]["label"]["label_dim"] = 1
    found["layers"][-1].update(type="BinaryCrossEntropyLoss")
    del found["layers"][-1]["target_weight"]
    for layer in found["layers"]:
      if "fc_param" in layer and layer["fc_param"]["num_output"] == 2:
        layer["fc_param"]["num_output"] = 1
    with open(path, "w") as f:
      json.dump(found, f)
    self.assertEqual(_run("generate", path, "--samples", 2000, "--eval_samples", 100)[0], 0)
    data = models.read(path)[0].data
    alone = batches.joined(list(
        sources.open_source(data.source, data, "I32", 512).chunks()))
    np.testing.assert_array_equal(alone.labels[:, 0], read.labels[:, 0])
    np.testing.assert_array_equal(alone.dense, read.dense)

  def read(self, path, kind, configuration):
    """Returns all samples of a path: labels, dense, keys with offsets."""
    data = models.read(configuration)[0].data
    data = data._replace(format=kind, clause=dict(data.clause, num_samples=230))
    found = batches.joined(list(
        sources.open_source(path, data, "I64", 100).chunks()))
    # The keys of a Norm file already include offsets.
    return found.labels, found.dense, np.stack([s.keys for s in found.slots])

  def test_convert_and_convert_back(self):
    path, folder = self.configuration(input_key_type="I64")
    with open(path) as f:
      found = json.load(f)
    found["layers"][0]["float_label_dense"] = True
    with open(path, "w") as f:
      json.dump(found, f)
    _run("generate", path, "--samples", 230, "--eval_samples", 1)
    places = [("parquet", folder + "/train/_file_list.txt"),
              ("norm", folder + "/norm/list.txt"), ("raw", folder + "/raw/all.bin"),
              ("parquet", folder + "/again/_file_list.txt")]
    expected = self.read(places[0][1], "Parquet", path)
    for (kind, source), (target_kind, target) in zip(places, places[1:]):
      status, out, error = _run("convert", path, source, target, "--from", kind, "--to",
                                target_kind, "--rows_per_file", 100)
      self.assertEqual((status, error), (0, ""))
      self.assertEqual(out, "wrote 230 samples, %s\n" % target)
      found = self.read(target, converting.FORMATS[target_kind], path)
      for one, other in zip(found, expected):
        np.testing.assert_array_equal(one, other)
    self.assertCountEqual(os.listdir(folder + "/norm"),
                          ["0.data", "1.data", "2.data", "list.txt"])
    status, _, error = _run("convert", path, places[0][1], places[0][1], "--from",
                            "parquet", "--to", "norm")
    self.assertEqual(status, 2)
    self.assertIn("source and target: expected different folders", error)

  @parameterized.parameters("convert", "train")
  def test_a_parquet_file_cannot_run_code(self, command):
    path, folder = self.configuration(max_iter=1)
    _run("generate", path, "--samples", 20, "--eval_samples", 1, "--files", 1)
    marker = folder + "/marker"
    testing.write_with_code(folder + "/train/0.parquet", "C3", marker)
    more = ([folder + "/train/_file_list.txt", folder + "/norm/list.txt", "--from",
             "parquet", "--to", "norm"] if command == "convert" else [])
    status, _, error = _run(command, path, *more)
    if hasattr(arrow.pa, "PyExtensionType"):
      self.assertEqual(status, 2)
      self.assertRegex(error, "error: .*/0.parquet: not a Parquet file that can be read: a "
                       "column has the extension type 'arrow.py_extension_type'")
    else:
      # Newer versions of pyarrow read the column without its extension type.
      self.assertEqual(status, 0)
    self.assertFalse(os.path.exists(marker))

  def test_convert_criteos_text(self):
    path, folder = self.configuration()
    lines = ["\t".join(["1"] + ["7", "", "-2"] + ["0"] * 10 + ["68fd1e64", "", "F"] +
                       ["a"] * 23), "\t".join(["0"] + [""] * 39)]
    with open(folder + "/a.tsv", "w") as f:
      f.write("\n\n".join(lines) + "\n\n")  # empty lines are skipped
    status, _, error = _run("convert", path, folder + "/a.tsv", folder + "/c/list.txt",
                            "--from", "tsv", "--to", "parquet")
    self.assertEqual((status, error), (0, ""))
    labels, dense, keys = self.read(folder + "/c/list.txt", "Parquet", path)
    self.assertEqual(labels[:, 0].tolist(), [1., 0.])
    np.testing.assert_allclose(dense[0, :4], [np.log(8), 0, 0, 0], rtol=1e-6)
    self.assertEqual(dense[1].tolist(), [0.] * 13)
    keys = keys - 20 * np.arange(26)[:, None]
    self.assertEqual(keys[:4, 0].tolist(), [1 + 0x68fd1e64 % 19, 0, 16, 11])
    self.assertEqual(keys[:, 1].tolist(), [0] * 26)
    for wrong, expected in (
        (lines[0].replace("68fd1e64", "68fd1e6g"), "line 1, column C1: expected up to 8 hex"),
        (lines[0].replace("68fd1e64", "168fd1e64"), "line 1, column C1: expected up to 8"),
        (lines[0].replace("68fd1e64", "68\0fd1e6"), "line 1, column C1: .*got '68.x00fd1e6'"),
        (lines[0].replace("68fd1e64", "68fd1e64\0"), "line 1, column C1: .*4.x00'"),
        (lines[0].replace("\tF\t", "\tF\0\t"), "line 1, column C3: expected up to 8"),
        (lines[0].replace("\tF\t", "\t\0\t"), "line 1, column C3: .*got '.x00'"),
        (lines[0].replace("68fd1e64", "\u20ac"), "line 1, column C1: expected up to 8"),
        ("1\t2", "line 1: expected 40 fields separated by tabs, got 2"),
        (lines[0].replace("7", "x", 1), "line 1, column I1: expected an integer, or nothing, "
         "got 'x'"),
        (lines[0].replace("-2", "1.5"), "line 1, column I3: expected an integer"),
        (lines[0] + "\n\n" + lines[1][1:], "line 3, column label: expected a number, got ''")):
      with open(folder + "/a.tsv", "w", encoding="utf-8") as f:
        f.write(wrong + "\n")
      status, _, error = _run("convert", path, folder + "/a.tsv", folder + "/d/list.txt",
                              "--from", "tsv", "--to", "parquet")
      self.assertEqual(status, 2)
      self.assertRegex(error, "error: .*a.tsv: " + expected)

  @parameterized.parameters("Norm", "Raw")
  def test_generate_and_train_other_formats(self, kind):
    path, folder = self.configuration(max_iter=20, display=20, eval_interval=20)
    with open(path) as f:
      found = json.load(f)
    found["layers"][0].update(format=kind, num_samples=500, eval_num_samples=200,
                              check="Sum")
    found["layers"][1]["type"] = "DistributedSlotSparseEmbeddingHash"
    found["layers"][0]["sparse"][0]["type"] = "DistributedSlot"
    with open(path, "w") as f:
      json.dump(found, f)
    self.assertEqual(_run("generate", path, "--samples", 500)[0], 0)
    self.assertEqual(os.path.exists(folder + "/train/3.data"), kind == "Norm")
    status, out, error = _run("train", path)
    self.assertEqual(status, 0, error)
    self.assertRegex(out, r"iter 20; evaluation: AUC 0\.\d+")

  def test_train_ends_with_its_epochs_or_at_a_threshold(self):
    path, _ = self.configuration(num_epochs=2, eval_interval=0)
    _run("generate", path, "--samples", 250, "--eval_samples", 50)
    status, out, _ = _run("train", path)
    self.assertEqual(status, 0)
    self.assertEndsWith(out, "trained 6 iterations\n")
    again, _ = self.configuration(max_iter=1000, eval_interval=4,
                                  eval_metrics=["AUC:0.01", "AverageLoss"])
    _run("generate", again, "--samples", 250, "--eval_samples", 50)
    status, out, _ = _run("train", again)
    self.assertEqual(status, 0)
    self.assertEndsWith(out, "metrics have reached their thresholds\n"
                        "trained 4 iterations\n")

  def test_train_to_an_auc_threshold_and_export_predictions(self):
    path, folder = self.configuration(max_iter=1000, eval_interval=4, auc_threshold=.01,
                                      eval_metrics=["AverageLoss", "AUC"])
    with open(path) as f:
      found = json.load(f)
    found["solver"]["export_predictions_prefix"] = folder + "/out/p"
    with open(path, "w") as f:
      json.dump(found, f)
    _run("generate", path, "--samples", 250, "--eval_samples", 500)
    for _ in range(2):
      status, out, error = _run("train", path)
      self.assertEqual(status, 0, error)
      self.assertEndsWith(out, "metrics have reached their thresholds\n"
                          "trained 4 iterations\n")
      self.assertCountEqual(os.listdir(folder + "/out"), ["p_pred_4", "p_label_4"])
      predictions, labels = (np.loadtxt(folder + "/out/p_%s_4" % what)
                             for what in ("pred", "label"))
      # Two batches of 200.
      self.assertEqual((predictions.shape, labels.shape), ((400,), (400,)))
      self.assertIn("AUC %.6f" % metrics.auc(labels, predictions), out)
    found["solver"]["eval_metrics"] = ["AUC:0.7"]
    with open(path, "w") as f:
      json.dump(found, f)
    status, _, error = _run("check", path)
    self.assertEqual(status, 2)
    self.assertIn("solver: expected either auc_threshold or 'AUC:0.7' in eval_metrics, got "
                  "both", error)

  @parameterized.parameters(1, 26)
  def test_train_a_loss_over_the_slots_of_each_sample(self, labels):
    path, folder = self.configuration(max_iter=4, eval_interval=4)
    with open(path) as f:
      found = json.load(f)
    data, embedding = found["layers"][:2]
    data["label"]["label_dim"] = labels
    found["layers"] = [data, embedding] + [
        {"name": "rows", "type": "Reshape", "bottom": embedding["top"], "top": "rows",
         "leading_dim": embedding["sparse_embedding_hparam"]["embedding_vec_size"]},
        {"name": "logit", "type": "InnerProduct", "bottom": "rows", "top": "logit",
         "fc_param": {"num_output": 1}},
        {"name": "loss", "type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"],
         "top": "loss"}]
    found["solver"]["export_predictions_prefix"] = folder + "/p"
    with open(path, "w") as f:
      json.dump(found, f)
    self.assertEqual(_run("generate", path, "--samples", 250, "--eval_samples", 40)[0], 0)
    status, out, error = _run("train", path)
    self.assertEqual(status, 0, error)
    self.assertRegex(out, r"iter 4; evaluation: AUC 0\.\d+")
    predictions, given = (np.loadtxt(folder + "/p_%s_4" % what, ndmin=2)
                          for what in ("pred", "label"))
    # Two batches of 200, which repeat the 40 samples.
    self.assertEqual(predictions.shape, (400 * 26, 1) if labels == 1 else (400, 26))
    self.assertEqual(given.shape, predictions.shape)
    if labels == 1:
      self.assertEqual(given.reshape([400, 26]).std(axis=1).max(), 0)

  @parameterized.parameters(
      (["generate", "--samples", 0], "--samples: expected at least 1, got 0"),
      (["train"], "_file_list.txt: cannot be read"))
  def test_trouble_is_a_sentence(self, command, expected):
    path, _ = self.configuration()
    status, _, error = _run(command[0], path, *command[1:])
    self.assertEqual(status, 2)
    self.assertRegex(error, r"(?s)error: [^\n]*%s[^\n]*\n$" % re.escape(expected))

  def test_a_bar_on_a_terminal_and_nowhere_else(self):
    terminal = Terminal()
    bar = progress.Progress(terminal, 10)
    bar.show(5, "x")
    self.assertEqual(terminal.getvalue(), "\r[###############...............] 5/10 x")
    bar.clear()
    self.assertEndsWith(terminal.getvalue(), "\r")
    file = io.StringIO()
    progress.Progress(file, 10).show(5, "x")
    self.assertEqual(file.getvalue(), "")


if __name__ == "__main__":
  absltest.main()
