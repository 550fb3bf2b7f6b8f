# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables of a hugectr Session, looked up in the inference parameter server."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import hierarchical_parameter_server as hps
import hugectr
from hugectr import small_model as model
from hugectr import testing


class HugectrTablesTest(parameterized.TestCase):

  def tearDown(self):
    hps.stop()
    super().tearDown()

  @parameterized.parameters((False, False), (True, False), (True, True))
  def test_the_server_gives_the_rows_that_were_trained(self, localized, by_slot):
    folder = self.create_tempdir().full_path
    testing.write_parquet(folder + "/train", model.PLANTED, files=1, rows=60, seed=1)
    configuration = model.configuration(folder, "Adam", "Local", localized)
    del configuration["layers"][0]["eval_source"]
    solver = hugectr.solver_parser_helper(batchsize=20, batchsize_eval=20,
                                          repeat_dataset=True)
    path = testing.write_json(folder + "/model.json", configuration)
    with hugectr.Session(solver, path) as session:
      session.start_data_reading()
      for _ in range(5):
        session.train()
      server = session.export_inference_tables(folder + "/served", "ctr", by_slot)
      session.download_params_to_files(folder + "/m", 1)
    rows = model.read_rows(folder + "/m0_sparse_1.model", localized)
    slots = rows["slot"] if by_slot else np.zeros(len(rows), int)
    checked = hps.check(server)
    self.assertEqual((checked["errors"], checked["notes"]), ([], []))
    for table in range(model.SLOTS if by_slot else 1):
      mine = rows[slots == table]
      ids = np.append(mine["key"].astype(np.int64), 10 ** 12)  # the last id has no row
      with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        layer = hps.LookupLayer(
            model_name="ctr", table_id=table, emb_vec_size=model.FLOATS,
            emb_vec_dtype=tf.float32, ps_config_file=server, global_batch_size=20)
        found = session.run(layer(tf.constant(ids)))
      np.testing.assert_array_equal(found[:-1], mine["row"])
      np.testing.assert_array_equal(found[-1], np.zeros(model.FLOATS))


if __name__ == "__main__":
  absltest.main()
