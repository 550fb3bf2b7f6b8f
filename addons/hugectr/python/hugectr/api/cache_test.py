# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests the embedding training cache: bits, keysets, incremental models, files."""

import contextlib
import io
import os
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

import hugectr
from hugectr import testing
from hugectr.api import cache
from hugectr.api import printing
from hugectr.api import small_scripts
from hugectr.training import tables
from hugectr.training import trained_keys

_KIND = hugectr.TrainPSType_t
_EMBEDDING = hugectr.Embedding_t
_SLOTS, _SIZE = small_scripts.SLOTS, small_scripts.SIZE
_ROWS = 12  # in memory, of 40


class CacheTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.folder = absltest.get_default_test_tmpdir() + "/cache_test"
    small_scripts.write_norm(cls.folder)
    # The second part has other keys than the first: only the low half of each slot.
    cls.sources, cls.keysets = [], []
    for k, size in enumerate((_SIZE, _SIZE // 2)):
      path = "%s/part%d/_file_list.txt" % (cls.folder, k)
      testing.write_data(
          path, testing.Planted([_SIZE] * _SLOTS, small_scripts.DENSE), 1, 200, 5 + k,
          "Norm", check="Sum")
      cls.sources.append(path)
      keys = np.arange(_SLOTS * _SIZE, dtype=np.uint32)
      keys[keys % _SIZE < size].tofile("%s/keys%d" % (cls.folder, k))
      cls.keysets.append("%s/keys%d" % (cls.folder, k))

  def setUp(self):
    super().setUp()
    self.enter_context(mock.patch.object(printing, "_reported", set()))

  def model(self, etc=None, kind=_EMBEDDING.DistributedSlotSparseEmbeddingHash, **reader):
    found = {} if etc is None else dict(source=self.sources, keyset=self.keysets)
    found.update(reader)
    model = hugectr.Model(
        small_scripts.solver(repeat_dataset=False), small_scripts.reader(self.folder, **found),
        hugectr.CreateOptimizer(update_type=hugectr.Update_t.Local), etc)
    self.addCleanup(model.close)
    small_scripts.add_inputs(model, embedding_type=kind, workspace_size_per_gpu_in_mb=0,
                             max_vocabulary_size_per_gpu=_ROWS)
    model.add(hugectr.DenseLayer(hugectr.Layer_t.InnerProduct, ["both"], ["logit"],
                                 num_output=1))
    model.add(hugectr.DenseLayer(hugectr.Layer_t.BinaryCrossEntropyLoss, ["logit", "label"],
                                 ["loss"]))
    return model

  def cached(self, folder, **arguments):
    values = dict(ps_types=[_KIND.Cached], sparse_models=[folder + "/rows"],
                  local_paths=[folder + "/ssd"],
                  hmem_cache_configs=[hugectr.CreateHMemCache(1, 0.5, 0)])
    values.update(arguments)
    return hugectr.CreateETC(**values)

  def rows(self, path):
    """Returns {key: row} of a folder."""
    keys = np.fromfile(path + "/key", np.int64)
    return dict(zip(keys.tolist(),
                    np.fromfile(path + "/emb_vector", np.float32).reshape([-1, 4])))

  @parameterized.parameters((_EMBEDDING.DistributedSlotSparseEmbeddingHash,),
                            (_EMBEDDING.LocalizedSlotSparseEmbeddingHash,))
  def test_trains_to_the_bits_of_tables_in_memory(self, kind):
    folder = self.create_tempdir().full_path
    model = self.model(self.cached(folder), kind)
    model.compile()
    etc = model.get_embedding_training_cache()
    self.assertIs(model.get_model_oversubscriber(), etc)
    with contextlib.redirect_stdout(io.StringIO()) as out:
      model.fit(num_epochs=2, display=1, eval_interval=0, snapshot=1)
    self.assertIn("Finish 2 epochs 16 global iterations", out.getvalue())
    in_memory, in_files = etc.rows()
    self.assertEqual(in_memory + in_files, _SLOTS * _SIZE)
    self.assertGreater(in_files, 0)

    plain = self.model(kind=kind)
    plain.compile()
    for _ in range(2):
      for source in self.sources:
        plain.set_source(source)
        while plain.train():
          pass
    self.assertEqual(model.get_current_loss(), plain.get_current_loss())
    plain.save_params_to_files(folder + "/plain", 1)
    model.save_params_to_files(folder + "/etc", 1)
    self.assertEqual(sorted(n for n in os.listdir(folder) if n.startswith("etc")),
                     ["etc0_opt_sparse_1.model", "etc_dense_1.model",
                      "etc_opt_dense_1.model", "etc_opt_dense_1.model.ntp.json"])
    for ours, theirs in (("rows", "plain0_sparse_1.model"),
                         ("etc0_opt_sparse_1.model", "plain0_opt_sparse_1.model")):
      for name in os.listdir(folder + "/" + theirs):
        with open("%s/%s/%s" % (folder, ours, name), "rb") as f:
          with open("%s/%s/%s" % (folder, theirs, name), "rb") as g:
            self.assertEqual(f.read(), g.read(), name)

  def test_incremental_models_and_files(self):
    folder = self.create_tempdir().full_path
    model = self.model(self.cached(folder))
    model.compile()
    (keys, rows), = model.get_incremental_model()
    self.assertEqual((keys.shape, rows.shape), ((0,), (0, 4)))
    model.start_data_reading()
    model.get_embedding_training_cache().update(self.keysets)
    self.assertTrue(model.train())
    trained = np.unique(model._session._last[True][2])  # pylint: disable=protected-access
    (keys, rows), = model.get_incremental_model()
    np.testing.assert_array_equal(keys, trained)
    self.assertEqual((keys.dtype, rows.dtype), (np.int64, np.float32))
    model.save_params_to_files(folder + "/m")
    saved = self.rows(folder + "/rows")
    np.testing.assert_array_equal(rows, [saved[k] for k in keys.tolist()])
    # A frozen table is not trained.
    model.freeze_embedding("rows")
    model.train()
    self.assertEmpty(model.get_incremental_model()[0][0])
    model.unfreeze_embedding("rows")
    model.train()
    (keys, rows), = model.get_incremental_model()
    self.assertNotEmpty(keys)
    self.assertTrue((rows != [saved.get(k, np.zeros(4)) for k in keys.tolist()]).all(1).all())
    # Rows that exist are where another model begins.
    model.save_params_to_files(folder + "/m")
    saved = self.rows(folder + "/rows")
    again = self.model(self.cached(folder, local_paths=[folder + "/other"]))
    again.compile()
    again.save_params_to_files(folder + "/again")
    np.testing.assert_equal(self.rows(folder + "/rows"), saved)
    again.load_dense_weights(folder + "/m_dense_0.model")
    for each in (model, again):
      each.eval()
    np.testing.assert_array_equal(again.check_out_tensor("rows", hugectr.Tensor_t.Evaluate),
                                  model.check_out_tensor("rows", hugectr.Tensor_t.Evaluate))

  def test_set_source(self):
    model = self.model(self.cached(self.create_tempdir().full_path))
    model.compile()
    with self.assertRaisesRegex(ValueError, "expected 2 keysets, got 1"):
      model.set_source(self.sources, keyset=self.keysets[:1])
    model.set_source(source=self.sources[:1], keyset=self.keysets[:1],
                     eval_source=self.sources[1])
    # No passes are one pass.
    with contextlib.redirect_stdout(io.StringIO()) as out:
      model.fit(display=0, eval_interval=4, snapshot=0)
    self.assertIn("Finish 1 epochs 4 global iterations", out.getvalue())
    self.assertIn("Evaluation source file: " + self.sources[1], out.getvalue())

  def test_wrong_use(self):
    folder = self.create_tempdir().full_path
    etc = self.cached(folder)
    with self.assertRaisesRegex(TypeError, "etc_params: expected what CreateETC returns"):
      self.model("etc")
    with self.assertRaisesRegex(ValueError, "expected 2 keysets, got 0"):
      self.model(etc, keyset="")
    with self.assertRaisesRegex(RuntimeError, "repeat_dataset: expected False"):
      hugectr.Model(small_scripts.solver(), small_scripts.reader(self.folder),
                    hugectr.CreateOptimizer(), etc)
    for arguments, kind, text in (
        ({"ps_types": []}, ValueError, "ps_types is empty"),
        ({"ps_types": ["Cached"]}, TypeError, "ps_types: expected a member of"),
        ({"local_paths": []}, ValueError, "local_paths is empty; Cached tables need"),
        ({"sparse_models": []}, ValueError, "sparse_models is empty"),
        ({"hmem_cache_configs": [3]}, TypeError,
         "hmem_cache_configs: expected what CreateHMemCache returns")):
      with self.assertRaisesRegex(kind, "CreateETC: " + text):
        self.cached(folder, **arguments)
    with self.assertRaisesRegex(ValueError, "num_blocks: expected an integer of at least 1"):
      hugectr.CreateHMemCache(0, .5, 0)
    with self.assertRaisesRegex(ValueError, "dest_sparse_models is empty"):
      hugectr.CreateMOS(True)
    with self.assertRaisesRegex(ValueError, "train_from_scratch=False needs"):
      hugectr.CreateMOS(False, True, [], ["a"])
    model = self.model(self.cached(folder, sparse_models=["a", "b"]))
    with self.assertRaisesRegex(hugectr.ConfigError, r"sparse_models: expected 1 values, one "
                                r"per embedding \(rows\), got 2"):
      model.compile()
    for path, text in (("%s/a/key", "2 |bytes|floats"), ("%s/a/emb_vector", "floats")):
      os.makedirs(folder + "/a", exist_ok=True)
      np.zeros(1, np.int64).tofile(path % folder)
    with self.assertRaisesRegex(ValueError, text):
      self.model(self.cached(folder, sparse_models=[folder + "/a"])).compile()
    plain = self.model(source=self.sources[:1])
    with self.assertRaisesRegex(RuntimeError, "compile"):
      plain.get_embedding_training_cache()
    plain.compile()
    with self.assertRaisesRegex(RuntimeError, "made without etc_params"):
      plain.get_embedding_training_cache()
    with self.assertRaisesRegex(RuntimeError, "made without etc_params"):
      plain.get_incremental_model()
    with self.assertRaisesRegex(ValueError, "expected one source, got 2, and 2 keysets"):
      plain.set_source(self.sources, keyset=self.keysets)

  def test_where_rows_are(self):
    hmem = [hugectr.CreateHMemCache(n, None, None) for n in (2, 3)]
    etc = hugectr.CreateETC([_KIND.Staged, _KIND.Cached], ["a", "b"], ["p", "q"], hmem)
    with mock.patch.object(cache, "_has_gpu", lambda: True):
      self.assertEqual(etc.beyond(["x", "y"], 1, 2), {
          "x": tables.BeyondMemory("HBM_DRAM", None),
          "y": tables.BeyondMemory("DRAM_SSDHASH", "q", 3)})
    with mock.patch.object(cache, "_has_gpu", lambda: False):
      with contextlib.redirect_stdout(io.StringIO()) as out:
        self.assertEqual(list(etc.beyond(["x", "y"], 0, 1 + 1)), ["y"])
    self.assertIn("no GPU, so all rows of 'x' are in host memory", out.getvalue())
    with self.assertRaisesRegex(hugectr.ConfigError, "expected 1 path, or 3, one per process"):
      etc.beyond(["x", "y"], 0, 3)
    embedding = mock.Mock(rows_per_device=10, slot_sizes=None)
    embedding.bottom.is_localized = False
    self.assertEqual(tables.memory_rows(embedding, 3), [30])
    mos = hugectr.CreateMOS(False, False, ["old"], ["new"])
    self.assertEqual(mos.beyond(["x"], 0, 1),
                     {"x": tables.BeyondMemory("DRAM_SSDHASH", "new.rows")})
    self.assertEqual((mos.to_load(["x"]), mos.saved), ({"x": "old"}, ["new"]))
    self.assertEqual(hugectr.CreateMOS(True, True, ["old"], ["new"]).to_load(["x"]), {})
    with contextlib.redirect_stdout(io.StringIO()) as out:
      for _ in "ab":
        hugectr.CreateHMemCache(1, .5, 0)
    self.assertEqual(out.getvalue().count("target_hit_rate has no effect"), 1)
    self.assertEqual(out.getvalue().count("max_num_evict has no effect"), 1)

  def test_keys_of_lookups_of_one_table(self):
    layers = [mock.Mock(tables=["t"]) for _ in "abc"]
    for layer, name, table in zip(layers, "abc", (None, None, "a")):
      layer.embedding.name, layer.embedding.table = name, table
      layer.embedding.bottom.is_localized = False
    found = trained_keys.TrainedKeys(layers)
    batch = [(np.array(keys), None) for keys in ([3, 1], [7], [1, 2])]
    found.add(batch, frozenset("b"))
    self.assertEqual([[k.tolist() for k in keys] for keys in found.distinct()],
                     [[[1, 2, 3]], [[]]])

  def test_keys_are_kept_distinct(self):
    keys = trained_keys._Keys()  # pylint: disable=protected-access
    with mock.patch.object(trained_keys, "_MOST", 100):
      for k in range(40):
        keys.add(np.arange(k % 3, 20))
        self.assertLess(sum(len(p) for p in keys._parts), 121)  # pylint: disable=protected-access
      np.testing.assert_array_equal(keys.distinct(), np.arange(20))


if __name__ == "__main__":
  absltest.main()
