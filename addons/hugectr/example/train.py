# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The script of NVTabular's guide to training with HugeCTR.

  python train.py criteo_parquet.json
"""

import sys

# The folder of HugeCTR in NVIDIA's containers; elsewhere it has no effect.
sys.path.append("/usr/local/hugectr/lib")

from hugectr import Session, solver_parser_helper, get_learning_rate_scheduler  # pylint: disable=g-import-not-at-top

STEPS = 5000
SHOW_LOSS_EVERY = 100
EVALUATE_EVERY = 3000


def train(json_config_file):
  """Trains; prints the loss, and metrics of one batch, on the way."""
  solver_config = solver_parser_helper(
      seed=0,
      batchsize=16384,
      batchsize_eval=16384,
      model_file="",
      embedding_files=[],
      vvgpu=[[0]],
      use_mixed_precision=False,
      scaler=1.0,
      i64_input_key=True,
      use_algorithm_search=True,
      use_cuda_graph=True,
      repeat_dataset=True)
  lr_sch = get_learning_rate_scheduler(json_config_file)
  sess = Session(solver_config, json_config_file)
  sess.start_data_reading()
  for i in range(STEPS):
    sess.set_learning_rate(lr_sch.get_next())
    sess.train()
    if i % SHOW_LOSS_EVERY == 0:
      print("[HUGECTR][INFO] iter: {}; loss: {}".format(i, sess.get_current_loss()))
    if i % EVALUATE_EVERY == 0 and i != 0:
      print("[HUGECTR][INFO] iter: {}, {}".format(i, sess.evaluation()))


if __name__ == "__main__":
  train(sys.argv[1])
