# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests configurations: the examples are valid, and each mistake is reported with its path."""

import copy
import glob
import json
import os
import random
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized

from hugectr.config import errors
from hugectr.config import loading
from hugectr.config import model
from hugectr.config import schema_check

_EXAMPLES = os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"],
                         "addons/hugectr/example")


def _examples():
  found = {}
  for path in sorted(glob.glob(os.path.join(_EXAMPLES, "*.json"))):
    with open(path) as f:
      found[os.path.basename(path)[:-len(".json")]] = json.load(f)
  return found


def _layer(configuration, name):
  return next(l for l in configuration["layers"] if l["name"] == name)


def _index(configuration, name):
  return [l["name"] for l in configuration["layers"]].index(name)


class ConfigTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.dcn = _examples()["dcn"]

  def mistakes(self, configuration):
    with self.assertRaises(errors.ConfigError) as caught:
      model.parse(configuration, "f.json")
    for line in caught.exception.mistakes:
      self.assertStartsWith(line, "f.json: ")
    return [line[len("f.json: "):] for line in caught.exception.mistakes]

  def test_examples_hold(self):
    found = {name: model.parse(c) for name, c in _examples().items()}
    self.assertCountEqual(found, ["criteo_parquet", "dcn", "deepfm", "dlrm", "wdl"])
    self.assertEqual(str(found["dcn"].layers[-1].out_shapes[0]), "[batch, 1]")
    self.assertEqual(
        str(found["deepfm"].layers[0].out_shapes[0]), "[batch * 26, 11]")
    dlrm = found["dlrm"]
    interaction = next(l for l in dlrm.layers if l.type == "Interaction")
    self.assertEqual(str(interaction.out_shapes[0]), "[batch, 480]")
    self.assertEqual(dlrm.optimizer.hparam["warmup_steps"], 8000)
    wide, deep = found["wdl"].embeddings
    self.assertEqual((wide.bottom.first_slot, deep.bottom.first_slot), (0, 2))
    self.assertLen(deep.slot_sizes, 26)
    self.assertEqual(found["wdl"].optimizer.update_type, "Global")

  def test_defaults(self):
    optimizer = model.parse(self.dcn).optimizer
    self.assertEqual(optimizer.hparam["decay_power"], 2.0)
    self.assertEqual(optimizer.hparam["beta2"], 0.999)
    self.dcn["optimizer"] = {"type": "SGD", "global_update": True,
                             "sgd_hparam": {"learning_rate": 1}}
    self.assertEqual(model.parse(self.dcn).optimizer.update_type, "Global")

  def test_misspelt_key(self):
    clause = _layer(self.dcn, "cross")
    clause["mc_params"] = clause.pop("mc_param")
    self.assertEqual(self.mistakes(self.dcn), [
        "layers[5] ('cross').mc_params: no such key; did you mean 'mc_param'?",
        "layers[5] ('cross'): 'mc_param' is missing"])

  @parameterized.parameters(
      (["optimizer"], None, "configuration: 'optimizer' is missing"),
      (["layers"], {}, "layers: expected a list, got {}"),
      (["layers"], [], "layers: expected a list of at least 2, got 0"),
      (["layers", 5, "type"], "MultiCros",
       "layers[5] ('cross').type: expected one of "),
      (["layers", 5, "type"], None, "layers[5] ('cross'): 'type' is missing"),
      (["layers", 5, "mc_param", "num_layers"], 0,
       "layers[5] ('cross').mc_param.num_layers: expected a number of at least 1, got 0"),
      (["layers", 5, "mc_param", "num_layers"], 1.5,
       "layers[5] ('cross').mc_param.num_layers: expected an integer, got 1.5"),
      (["layers", 5, "mc_param", "num_layers"], True,
       "layers[5] ('cross').mc_param.num_layers: expected an integer, got true"),
      (["layers", 1, "sparse_embedding_hparam", "combiner"], 2,
       "layers[1] ('embedding').sparse_embedding_hparam.combiner: expected one of 0, 1, "
       "\"sum\", \"mean\", \"concat\", got 2"),
      (["optimizer", "adam_hparam"], None, "optimizer: 'adam_hparam' is missing"),
      (["optimizer", "adam_hparam", "beta1"], 1.0,
       "optimizer.adam_hparam.beta1: expected a number below 1, got 1.0"),
      (["solver", "eval_metrics"], ["AUC:x"],
       "solver.eval_metrics[0]: expected a string like "),
      (["layers", 0, "slot_size_array"], [1, 2],
       "layers[0] ('data', Data).slot_size_array: expected 26 numbers, one per slot of "
       "the sparse inputs, got 2"),
      (["layers", 0, "type"], "ReLU", "layers[0] ('data')"),
      (["layers", 1, "bottom"], "key",
       "layers[1] ('embedding', DistributedSlotSparseEmbeddingHash).bottom: there is no "
       "sparse input 'key'; did you mean 'keys'?"),
      (["layers", 1, "type"], "LocalizedSlotSparseEmbeddingHash",
       "layers[1] ('embedding', LocalizedSlotSparseEmbeddingHash).bottom: 'keys' is of "
       "type DistributedSlot, which this layer does not take"),
      (["layers", 3, "bottom"], ["flat", "Dense"],
       "layers[3] ('both', Concat).bottom: there is no tensor 'Dense'; did you mean "
       "'dense'?"),
      (["layers", 3, "bottom"], ["flat", "cross"],
       "layers[3] ('both', Concat).bottom: 'cross' is the top of layers[5] ('cross', "
       "MultiCross): a layer must follow those"),
      (["layers", 5, "bottom"], "cross",
       "layers[5] ('cross', MultiCross).bottom: 'cross' is the top of layers[5]"),
      (["layers", 2, "leading_dim"], 400,
       "layers[2] ('flat', Reshape): leading_dim, the last axis of what the layer gives, "
       "must divide the 416 numbers"),
      (["layers", 4, "ranges"], [[0, 430], [0, 429]],
       "layers[4] ('copies', Slice): range [0, 430) is not within the 429 columns"),
      (["layers", 4, "top"], ["to_cross"],
       "layers[4] ('copies', Slice).top: expected 2, got 1 names"),
      (["layers", 5, "top"], "dense",
       "layers[5] ('cross', MultiCross): there is already a tensor 'dense'"),
      (["layers", 5, "name"], "copies",
       "layers[5] ('copies', MultiCross): layers[4] has the same name"),
      (["layers", -1, "bottom"], ["label", "logit"],
       "layer 'loss': expected the label 'label' as the second bottom of the loss"),
      (["layers", -1, "regularizer"], "L2",
       "layers[14] ('loss', BinaryCrossEntropyLoss): 'lambda' is missing"),
      (["layers", 0, "dense", "dense_dim"], -1,
       "layers[0] ('data').dense.dense_dim: expected a number of at least 0, got -1"),
      (["layers", 0, "format"], "Raw",
       "layers[0] ('data', Data): 'num_samples' is missing, which format Raw needs"),
  )
  def test_tells_what_is_wrong(self, path, value, expected):
    at = self.dcn
    for key in path[:-1]:
      at = at[key]
    if value is None:
      del at[path[-1]]
    else:
      at[path[-1]] = value
    self.assertStartsWith(self.mistakes(self.dcn)[0], expected)

  @parameterized.parameters(
      ({"type": "Scale", "scale_param": {"axis": 2}},
       ".scale_param.axis: expected one of 0, 1, got 2"),
      ({"type": "Scale", "scale_param": {"factor": 0}},
       ".scale_param.factor: expected a number of at least 1, got 0"),
      ({"type": "GRU", "gru_param": {"num_output": 4, "SeqLength": 5, "vector_size": 7}},
       ": expected a bottom of SeqLength vectors of vector_size floats, [batch, 35] or "
       "[batch, 5, 7], got [batch, 429]"),
      ({"type": "Gather", "indices": [3, 429]},
       ": index 429 is not below 429, the last axis of the bottom [batch, 429]"),
      ({"type": "PReLU_Dice", "prelu_dice_param": {"alpha": .1, "eps": 0}},
       ".prelu_dice_param.eps: expected a number above 0, got 0"))
  def test_tells_what_is_wrong_of_later_layers(self, clause, expected):
    self.dcn["layers"].insert(4, dict(clause, name="x", bottom="both", top="x"))
    self.assertIn(expected, self.mistakes(self.dcn)[0])

  def test_scale_then_concat_as_attention_over_a_history(self):
    layers = self.dcn["layers"]
    layers[4:4] = [
        {"name": "s", "type": "Scale", "bottom": "both", "top": "s",
         "scale_param": {"axis": 1, "factor": 3}},
        {"name": "w", "type": "Scale", "bottom": "s", "top": "w",
         "scale_param": {"axis": 0, "factor": 2}},
        {"name": "back", "type": "Reshape", "bottom": "w", "top": "back",
         "leading_dim": 3 * 2 * 429},
        {"name": "some", "type": "Gather", "bottom": "back", "top": "some",
         "indices": [5, 5]}]
    shapes = {l.name: str(l.out_shapes[0]) for l in model.parse(self.dcn).layers}
    self.assertEqual([shapes[n] for n in ("s", "w", "back", "some")],
                     ["[batch * 3, 429]", "[batch * 3, 858]", "[batch, 2574]", "[batch, 2]"])

  def test_a_loss_is_last_and_the_only_one(self):
    layers = self.dcn["layers"]
    layers.append(layers.pop(-2))
    self.assertRegex("\n".join(self.mistakes(self.dcn)),
                     "expected losses as the last layers, got 1, and the last layer is "
                     "of type InnerProduct")
    self.dcn["layers"] = layers[:-2]
    self.assertRegex("\n".join(self.mistakes(self.dcn)), "expected losses.* got 0")

  def test_a_table_of_another_embedding(self):
    wdl = _examples()["wdl"]
    first, second = [l for l in wdl["layers"] if "Embedding" in l["type"]]
    second["table"] = "no"
    path = "layers[2] ('%s', %s).table: " % (second["name"], second["type"])
    self.assertEqual(self.mistakes(wdl)[0], path + "there is no embedding 'no' with a table of "
                     "its own before this one")
    second["table"] = first["name"]
    first["sparse_embedding_hparam"]["embedding_vec_size"] = 3
    second["sparse_embedding_hparam"].update(embedding_vec_size=4)
    self.assertIn(path + "'%s' has the embedding_vec_size 3, expected the same, got 4" %
                  first["name"], self.mistakes(wdl))
    for clause in (first, second):
      clause["type"] = "LocalizedSlotSparseEmbeddingHash"
    for part in wdl["layers"][0]["sparse"]:
      part["type"] = "LocalizedSlot"
    self.assertIn("expected one slot in both layers, got 26",
                  "\n".join(self.mistakes(wdl)))
    embeddings = [mock.Mock(table=t, bottom=mock.Mock(max_keys=k))
                  for t, k in ((None, 2), ("a", 5), (None, 9))]
    for embedding, name in zip(embeddings, "abc"):
      embedding.name = name
    self.assertEqual(model.most_keys(embeddings, "a"), 5)

  def test_an_embedding_that_nothing_takes_its_input(self):
    del self.dcn["layers"][1]
    found = "\n".join(self.mistakes(self.dcn))
    self.assertIn("no embedding takes the sparse input 'keys'", found)

  def test_one_mistake_is_reported_once(self):
    _layer(self.dcn, "flat")["leading_dim"] = 400
    self.assertLen(self.mistakes(self.dcn), 1)

  def test_one_hot_needs_sizes(self):
    dlrm = _examples()["dlrm"]
    del dlrm["layers"][0]["slot_size_array"]
    self.assertStartsWith(self.mistakes(dlrm)[0],
                          "layers[1] ('embedding', LocalizedSlotSparseEmbeddingOneHot): "
                          "'slot_size_array' is missing")

  @parameterized.parameters("Distributed", "Localized")
  def test_keys_of_later_versions(self, kind):
    data, embedding = self.dcn["layers"][:2]
    data["sparse"] = [{"top": "keys", "nnz_per_slot": [1] * 25 + [4],
                       "is_fixed_length": False, "slot_num": 26}]
    embedding.update(type=kind + "SlotSparseEmbeddingHash", plan_file=["a.json", "b.json"],
                     plan_file1="c.json")
    embedding["sparse_embedding_hparam"]["workspace_size_per_gpu_in_mb"] = 25
    self.dcn["solver"].update(auc_threshold=.8, export_predictions_prefix="p")
    found, = model.parse(self.dcn).data.sparse
    self.assertEqual(found, model.SparseInput("keys", kind == "Localized", 0, 26, 4, 29))
    data["sparse"][0]["nnz_per_slot"] = 2
    found, = model.parse(self.dcn).data.sparse
    self.assertEqual((found.max_nnz, found.max_keys), (2, 52))

  @parameterized.parameters(
      ({}, ": expected nnz_per_slot or max_feature_num_per_sample"),
      ({"nnz_per_slot": 1, "max_nnz": 1},
       ": expected either nnz_per_slot or max_nnz, got both"),
      ({"nnz_per_slot": 1, "max_feature_num_per_sample": 26},
       ": expected either nnz_per_slot or max_feature_num_per_sample, got both"),
      ({"nnz_per_slot": [1, 2]},
       ".nnz_per_slot: expected 26 numbers, one per slot, got 2"),
      ({"max_feature_num_per_sample": 26, "is_fixed_length": True},
       ".is_fixed_length: expected nnz_per_slot beside it"))
  def test_tells_what_is_wrong_with_keys_of_later_versions(self, keys, expected):
    self.dcn["layers"][0]["sparse"] = [dict(keys, top="keys", slot_num=26)]
    self.assertEqual(self.mistakes(self.dcn),
                     ["layers[0] ('data', Data).sparse[0]" + expected])

  def test_a_loss_over_several_rows_of_a_sample(self):
    layers = [l for l in self.dcn["layers"] if l["name"] in ("data", "embedding", "flat",
                                                             "logit", "loss")]
    layers[2]["leading_dim"] = 16
    layers[3]["bottom"] = "flat"
    found = dict(self.dcn, layers=layers)
    for labels in (1, 26):
      layers[0]["label"]["label_dim"] = labels
      self.assertEqual(str(model.parse(found).losses[0].in_shapes[0]), "[batch * 26, 1]")
    layers[0]["label"]["label_dim"] = 2
    self.assertEqual(self.mistakes(found), [
        "layers[4] ('loss', BinaryCrossEntropyLoss): the label: expected [batch, 1] or "
        "[batch, 26], got [batch, 2]"])

  def test_commas_after_the_last_item(self):
    path = self.create_tempfile(
        content='\ufeff{"a": [1, [2,] , ], "b,}": "c,]",\n}').full_path
    self.assertEqual(loading.read_json(path), {"a": [1, [2]], "b,}": "c,]"})
    for text in ("[,]", "{,}", "[1,,]", '{"a":,}', '{"a",}', "[1],", '["a,]'):
      path = self.create_tempfile(content=text).full_path
      with self.assertRaisesRegex(errors.ConfigError, "not JSON"):
        loading.read_json(path)

  @parameterized.parameters(
      ("", "line 1, column 1: not JSON"), ("{\n \"a\": }", "line 2, column 7: not JSON"),
      ('{"a": 1, "a": 2}', "the key 'a' occurs twice"), ("[NaN]", "NaN is not a number"),
      ("[" * 100000, "nested too deeply"), ("[1]", "configuration: expected an object"),
      ("\xff", r"line 1, column 1: not JSON: .*, got '\xff' \(U\+00FF, "),
      ('{"a": 1\uff0c "b": 2}',
       r"line 1, column 8: not JSON: .*, got '\uff0c' \(U\+FF0C, FULLWIDTH COMMA\)"))
  def test_files_that_are_no_configuration(self, text, expected):
    path = self.create_tempfile(content=text).full_path
    with self.assertRaisesRegex(errors.ConfigError, expected) as caught:
      model.read(path)
    self.assertIn(path, str(caught.exception))

  def test_a_file_that_does_not_exist_or_is_no_text(self):
    with self.assertRaisesRegex(errors.ConfigError, "no.json: cannot be read"):
      model.read("no.json")
    path = self.create_tempfile(content=b'{\n"caf\xe9": 1}', mode="wb").full_path
    with self.assertRaisesRegex(errors.ConfigError, r"line 2: the byte \\xe9 is not UTF-8"):
      model.read(path)

  def test_a_byte_order_mark_is_skipped(self):
    text = json.dumps(_examples()["dcn"]).encode("utf-8")
    path = self.create_tempfile(content=b"\xef\xbb\xbf" + text, mode="wb").full_path
    self.assertEqual(loading.read_json(path), _examples()["dcn"])

  def test_damaged_configurations_never_end_in_another_error(self):
    rng = random.Random(5)
    values = [None, True, -1, 0, 1.5, "", "x", "keys", [], [[]], {}, {"a": 1}, 10 ** 30]
    wrong = 0
    for name, example in _examples().items():
      for _ in range(50):
        broken = copy.deepcopy(example)
        for _ in range(rng.choice([1, 1, 2])):
          holder, key = rng.choice(list(_places(broken)))
          action = rng.randrange(3)
          if action == 0:
            del holder[key]
          elif action == 1:
            holder[key] = copy.deepcopy(rng.choice(values))
          elif isinstance(holder, dict):
            holder[key + "s"] = holder.pop(key)
          else:
            holder.append(holder[key])
        try:
          model.parse(broken, name)
        except errors.ConfigError as e:
          wrong += 1
          self.assertNotEmpty(e.mistakes)
    self.assertGreater(wrong, 150)


def _places(value):
  """Yields every (container, key) of a JSON value."""
  keys = value if isinstance(value, dict) else range(len(value))
  for key in list(keys):
    yield value, key
    if isinstance(value[key], (dict, list)):
      yield from _places(value[key])


class SchemaTest(absltest.TestCase):

  def test_every_definition_is_used_and_described(self):
    schema = schema_check.load_schema()
    text = json.dumps(schema)
    for name, definition in schema["definitions"].items():
      self.assertIn('"#/definitions/%s"' % name, text)
      if name not in ("layer", "sparse_embedding_hparam"):
        self.assertIn("description", definition, name)
      for key, child in definition.get("properties", {}).items():
        if not {"$ref", "const", "properties"} & set(child):
          self.assertIn("description", child, "%s.%s" % (name, key))

  def test_defaults_obey_their_own_schema(self):
    definitions = schema_check.load_schema()["definitions"]

    def walk(schema):
      if "default" in schema:
        self.assertEmpty(schema_check.mistakes(
            schema["default"], dict(schema, definitions=definitions)))
      for child in schema.get("properties", {}).values():
        walk(child)

    for definition in definitions.values():
      walk(definition)

  def test_unknown_keywords_of_a_schema_are_refused(self):
    with self.assertRaisesRegex(ValueError, "multipleOf"):
      schema_check.mistakes(3, {"multipleOf": 2})

  def test_true_is_no_number_and_one_is_no_truth(self):
    self.assertLen(schema_check.mistakes(True, {"enum": [1]}), 1)
    self.assertLen(schema_check.mistakes(1.0, {"type": "integer"}), 1)
    self.assertLen(schema_check.mistakes(True, {"type": "number"}), 1)

  def test_read_refuses_a_wrong_file_with_its_path(self):
    with self.assertRaisesRegex(errors.ConfigError, "^a.json: configuration: 'optimizer'"):
      loading.check({"layers": [{}, {}]}, "a.json")


if __name__ == "__main__":
  absltest.main()
