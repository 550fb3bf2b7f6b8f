# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The installed hugectr checks a configuration, generates its data and trains on them."""

import json
import os
import subprocess
import sys

from absl.testing import absltest

_CONFIGURATION = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "..", "addons", "hugectr",
    "example", "criteo_parquet.json")


def _hugectr(folder, *arguments):
  """Returns the output of `python -m hugectr`; fails the test if the command fails."""
  done = subprocess.run(
      [sys.executable, "-I", "-W", "ignore", "-m", "hugectr"] + list(arguments),
      cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
      stderr=subprocess.STDOUT, universal_newlines=True,
      env=dict(os.environ, TF_CPP_MIN_LOG_LEVEL="2"))
  if done.returncode != 0:
    raise AssertionError("hugectr %s ended with %d:\n%s" % (
        " ".join(arguments), done.returncode, done.stdout))
  return done.stdout


class HugectrTest(absltest.TestCase):

  def test_generates_checks_and_trains(self):
    folder = self.create_tempdir().full_path
    with open(_CONFIGURATION) as f:
      configuration = json.load(f)
    configuration["solver"].update(
        batchsize=128, batchsize_eval=256, max_iter=30, display=10, eval_interval=15,
        eval_batches=2, snapshot=0)
    configuration["solver"]["eval_metrics"] = ["AUC:1.0"]
    data = configuration["layers"][0]
    data["slot_size_array"] = [20] * len(data["slot_size_array"])
    path = os.path.join(folder, "model.json")
    with open(path, "w") as f:
      json.dump(configuration, f)
    _hugectr(folder, "generate", path, "--samples", "4000", "--eval_samples", "600")
    _hugectr(folder, "check", path)
    self.assertIn("AUC", _hugectr(folder, "train", path))

  def test_a_misspelt_layer_is_named(self):
    folder = self.create_tempdir().full_path
    with open(_CONFIGURATION) as f:
      configuration = json.load(f)
    configuration["layers"][1]["type"] = "Embeding"
    path = os.path.join(folder, "model.json")
    with open(path, "w") as f:
      json.dump(configuration, f)
    with self.assertRaisesRegex(AssertionError, r"layers\[1\].*Embeding"):
      _hugectr(folder, "check", path)


if __name__ == "__main__":
  absltest.main()
