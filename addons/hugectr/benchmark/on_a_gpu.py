# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains the sample models on a TensorFlow GPU: AUC against the CPU, speed against an example.

  python addons/hugectr/benchmark/on_a_gpu.py --part=models    # AUC of the five models
  python addons/hugectr/benchmark/on_a_gpu.py --part=example   # DLRM beside train_ctr.py
  python addons/hugectr/benchmark/on_a_gpu.py --part=oversubscription

Run it from the root of the repository, with both wheels and a TensorFlow with GPU
support installed.

"models" trains each configuration by `python -m hugectr train`: without a GPU, with a
GPU, and with a GPU in float16, on the same generated data and from the same dense
parameters.

"example" makes examples/train_ctr.py generate its data and train its DLRM on the GPU;
then the data is converted, and the same model is trained from a JSON.

"oversubscription" trains with all rows in memory and with a fifth of them in GPU memory
(the others in host memory), and compares the files byte by byte.

Exit status 1: an AUC differs from the CPU's by more than 0.002, the example is more
than 10 % faster, or bytes differ.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

from absl import app
from absl import flags

FLAGS = flags.FLAGS
flags.DEFINE_enum("part", "models", ["models", "example", "oversubscription"],
                  "The measurement to run.")
flags.DEFINE_list("models", ["wdl", "dcn", "deepfm", "dlrm", "criteo_parquet"],
                  "Configurations of addons/hugectr/example.")
flags.DEFINE_integer("steps", 200, "Training steps of each run.", lower_bound=4)
flags.DEFINE_integer("batch_size", 4096, "Samples per step.", lower_bound=1)
flags.DEFINE_integer("eval_samples", 200000, "Evaluation samples.", lower_bound=1)
flags.DEFINE_integer("dim", 128, "Floats per row, in part example.", lower_bound=1)
flags.DEFINE_integer("keys", 200000, "Keys per slot, in part example.", lower_bound=2)
flags.DEFINE_enum("example_device", "gpu", ["cpu", "gpu"],
                  "Device of train_ctr.py in part example.")
flags.DEFINE_string("folder", "", "Folder for data; default: a temporary folder.")

# Writes the initial dense parameters of a configuration (first argument) on the CPU,
# since a GPU draws other values.
_WRITE_START = """
import sys, hugectr
with hugectr.Session(hugectr.solver_parser_helper(i64_input_key=True), sys.argv[1]) as session:
  session.download_params_to_files(sys.argv[2], 1)
"""

_SAMPLES = "addons/hugectr/example/%s.json"


def _run(arguments, **env):
  """Runs Python with arguments; returns its output."""
  done = subprocess.run([sys.executable, "-W", "ignore"] + arguments, text=True,
                        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                        env=dict(os.environ, TF_CPP_MIN_LOG_LEVEL="2", **env))
  if done.returncode:
    raise RuntimeError("%s ended with status %d:\n%s%s" % (
        " ".join(arguments), done.returncode, done.stdout[-2000:], done.stderr[-4000:]))
  return done.stdout


def _hugectr(*arguments, **env):
  return _run(["-m", "hugectr"] + list(arguments), **env)


def _write(folder, name, value):
  path = os.path.join(folder, name)
  with open(path, "w") as f:
    json.dump(value, f)
  return path


def _solver(**more):
  return dict({"lr_policy": "fixed", "display": max(1, FLAGS.steps // 4),
               "max_iter": FLAGS.steps, "gpu": [0], "batchsize": FLAGS.batch_size,
               "batchsize_eval": min(16384, FLAGS.eval_samples), "snapshot": 0,
               "eval_interval": FLAGS.steps,
               "max_eval_samples": FLAGS.eval_samples, "eval_metrics": ["AUC"],
               "input_key_type": "I64"}, **more)


def _train(path, **env):
  """Returns (AUC, samples per second after the first quarter of the steps)."""
  printed = _hugectr("train", path, **env)
  rates = [float(x) for x in re.findall(r"samples/s (\d+)", printed)][1:]
  auc, = re.findall(r"evaluation: AUC ([\d.]+)", printed)
  return float(auc), len(rates) / sum(1 / r for r in rates)


def _sized(folder, name, **solver):
  """Writes a sample configuration with our sizes; returns (path, folder of its data)."""
  with open(_SAMPLES % name) as f:
    configuration = json.load(f)
  data = configuration["layers"][0]
  place = os.path.join(folder, "%d_slots" % len(data["slot_size_array"]))
  for key, part in (("source", "train"), ("eval_source", "val")):
    data[key] = os.path.join(place, part, "_file_list.txt")
  if configuration["optimizer"]["type"] == "SGD":
    # The configuration's schedule is for 70,000 steps.
    configuration["optimizer"]["sgd_hparam"] = {"learning_rate": 1.0}
  configuration["solver"] = _solver(**solver)
  return _write(folder, name + ".json", configuration), place


def models(folder):
  """Prints a table; returns whether every AUC is close to the CPU's."""
  print("| model | AUC on the CPU | on a GPU | float16 | samples/s on the CPU | on a GPU | "
        "float16 |\n| --- | --- | --- | --- | --- | --- | --- |")
  near = True
  for name in FLAGS.models:
    path, place = _sized(folder, name)
    if not os.path.exists(place):
      _hugectr("generate", path, "--samples", str(FLAGS.steps * FLAGS.batch_size),
               "--eval_samples", str(FLAGS.eval_samples))
    start = os.path.join(folder, name)
    _run(["-c", _WRITE_START, path, start], CUDA_VISIBLE_DEVICES="")
    start += "_dense_1.model"
    path, _ = _sized(folder, name, dense_model_file=start)
    found = [_train(path, CUDA_VISIBLE_DEVICES=""), _train(path)]
    path, _ = _sized(folder, name, dense_model_file=start, mixed_precision=1024)
    found.append(_train(path))
    print("| %s | %s | %s |" % (name, " | ".join("%.4f" % auc for auc, _ in found),
                                " | ".join("%.0f" % rate for _, rate in found)), flush=True)
    near &= all(abs(auc - found[0][0]) <= .002 for auc, _ in found)
  return near


def _example_model(place):
  """Returns the configuration of train_ctr.py's DLRM, with its optimizer and rate."""

  def mlp(name, bottom, widths):
    layers = []
    for k, width in enumerate(widths):
      fc, relu = "%s_%d" % (name, k), "%s_relu_%d" % (name, k)
      layers += [
          {"name": fc, "type": "InnerProduct", "bottom": bottom, "top": fc, "fc_param": {
              "num_output": width, "weight_init": "XavierUniform", "bias_init": "Zero"}},
          {"name": relu, "type": "ReLU", "bottom": fc, "top": relu}]
      bottom = relu
    return layers

  below, above = mlp("below", "dense", [64, FLAGS.dim]), mlp("above", "pairs", [256, 128])
  return {
      "solver": _solver(),
      "optimizer": {"type": "Adam", "update_type": "Local", "adam_hparam": {
          "learning_rate": .004, "beta1": .9, "beta2": .999, "epsilon": 1e-8}},
      "layers": [
          {"name": "data", "type": "Data", "format": "Parquet",
           "source": os.path.join(place, "train", "_file_list.txt"),
           "eval_source": os.path.join(place, "val", "_file_list.txt"), "check": "None",
           "label": {"top": "label", "label_dim": 1},
           "dense": {"top": "dense", "dense_dim": 13},
           "sparse": [{"top": "keys", "type": "LocalizedSlot", "slot_num": 26,
                       "max_feature_num_per_sample": 26, "max_nnz": 1}],
           "slot_size_array": [FLAGS.keys] * 26},
          {"name": "rows", "type": "LocalizedSlotSparseEmbeddingOneHot", "bottom": "keys",
           "top": "rows", "sparse_embedding_hparam": {
               "embedding_vec_size": FLAGS.dim, "combiner": 0,
               "max_vocabulary_size_per_gpu": 26 * FLAGS.keys}}] + below + [
          {"name": "pairs", "type": "Interaction", "bottom": [below[-1]["top"], "rows"],
           "top": "pairs"}] + above + [
          {"name": "logit", "type": "InnerProduct", "bottom": above[-1]["top"],
           "top": "logit", "fc_param": {"num_output": 1}},
          {"name": "loss", "type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"],
           "top": "loss"}]}


def example(folder):
  """Prints both speeds; returns whether HugeCTR's is at least nine tenths of the example's."""
  printed = _run([
      "examples/train_ctr.py", "--demo", "--model=dlrm",
      "--device=%s" % FLAGS.example_device,
      "--steps=%d" % FLAGS.steps, "--batch_size=%d" % FLAGS.batch_size,
      "--eval_samples=%d" % FLAGS.eval_samples, "--dim=%d" % FLAGS.dim,
      "--work_dir=%s" % folder])
  rate = float(re.search(r"samples per second +(\d+)", printed).group(1))
  auc = float(re.search(r"\nAUC +([\d.]+)", printed).group(1))
  path = _write(folder, "dlrm.json", _example_model(folder))
  for source, target in (("train.txt", "train"), ("eval.txt", "val")):
    _hugectr("convert", path, os.path.join(folder, source),
             os.path.join(folder, target, "_file_list.txt"), "--from", "tsv", "--to",
             "parquet", "--rows_per_file", "250000")
  our_auc, our_rate = _train(path)
  print("train_ctr.py  %8.0f samples/s  AUC %.4f\nhugectr       %8.0f samples/s  AUC %.4f  "
        "%.0f %%" % (rate, auc, our_rate, our_auc, 100 * our_rate / rate))
  return our_rate >= .9 * rate


def _train_beyond_memory(path, prefix, storage, folder):
  """Trains in this process, prints where rows were, and writes model files."""
  import hugectr  # pylint: disable=g-import-not-at-top
  more = {} if storage is None else dict(
      use_model_oversubscriber=True, oversubscription_storage=storage,
      temp_embedding_dir=folder)
  solver = hugectr.solver_parser_helper(
      batchsize=FLAGS.batch_size, batchsize_eval=FLAGS.eval_samples, i64_input_key=True,
      repeat_dataset=True, **more)
  with hugectr.Session(solver, path) as session:
    session.start_data_reading()
    for _ in range(FLAGS.steps):
      session.train()
    where = session.get_model_oversubscriber().rows() if more else "all in memory"
    print("%s: %s, rows above and below: %s" % (storage, session.evaluation(), where),
          flush=True)
    session.download_params_to_files(prefix, 1)


def oversubscription(folder):
  """Prints the AUC of each storage; returns whether all gave the same bytes."""
  path, place = _sized(folder, "criteo_parquet")
  with open(path) as f:
    configuration = json.load(f)
  hparam = configuration["layers"][1]["sparse_embedding_hparam"]
  hparam["max_vocabulary_size_per_gpu"] = sum(
      configuration["layers"][0]["slot_size_array"]) // 5
  path = _write(folder, "fifth.json", configuration)
  if not os.path.exists(place):
    _hugectr("generate", path, "--samples", str(FLAGS.steps * FLAGS.batch_size),
             "--eval_samples", str(FLAGS.eval_samples))
  files = {}
  for storage in (None, "HBM_DRAM", "DRAM_SSDHASH"):
    prefix = os.path.join(folder, "model_%s" % storage)
    _train_beyond_memory(path, prefix, storage, folder)
    for end in ("_dense_1.model", "0_sparse_1.model", "0_opt_sparse_1.model"):
      with open(prefix + end, "rb") as f:
        files.setdefault(end, set()).add(f.read())
  same = all(len(found) == 1 for found in files.values())
  print("model files: %s" % ("the same bytes" if same else "they differ"))
  return same


_PARTS = {"models": models, "example": example, "oversubscription": oversubscription}


def main(unused_argv):
  with tempfile.TemporaryDirectory() as temporary:
    folder = FLAGS.folder or temporary
    os.makedirs(folder, exist_ok=True)
    return 0 if _PARTS[FLAGS.part](folder) else 1


if __name__ == "__main__":
  app.run(main)
