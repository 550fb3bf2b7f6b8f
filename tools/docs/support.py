# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes below the title of each guide with which TensorFlow it works, and how.

  bazel run //tools/docs:support

PAGES is the one table of what is supported. A statement needs a test: GRAPH_1 follows from
the tests of make test; GRAPH_2 and EAGER name what runs on TensorFlow 2.x.
tests/repo_rules/support_test.py compares the pages, this table and the tests.
"""

import collections
import io
import json
import os
import sys

VERSIONS = "python/embedding_variable/tensorflow_versions.json"
TESTS_ON_2 = "tools/testing/tensorflow_2.py"
EAGER_TESTS = "tests/eager"
BEGIN = "*Works with* "

# wheel: the distribution. tests: a target or folder of tests that make test runs on 1.15.
# graph_2: the target of TESTS_ON_2 that tests graph mode on 2.x, or None. eager: the test in
# EAGER_TESTS of eager execution, tf.function and Keras, or None.
Page = collections.namedtuple("Page", ["wheel", "tests", "graph_2", "eager"])

_SOK, _HPS, _HUGECTR = "sok-stock-tf", "sok-stock-tf-hps", "sok-stock-tf-hugectr"
_CONFORMANCE = "//tests/conformance/..."
_OF_HPS = "//addons/hierarchical_parameter_server/python/..."
_OF_HUGECTR = "//addons/hugectr/python/..."

PAGES = {
    "checkpoints.md": Page(_SOK, "tests/conformance", _CONFORMANCE, "checkpoint_test"),
    "deeprec.md": Page(_SOK, "tests/deeprec_models", None, None),
    "embedding_variables.md": Page(_SOK, "tests/conformance", _CONFORMANCE, "training_test"),
    "filters.md": Page(_SOK, "tests/conformance", _CONFORMANCE, "training_test"),
    "gpu.md": Page(_SOK, "tests/on_gpu", _CONFORMANCE, "gpu_test"),
    "hugectr.md": Page(_HUGECTR, "addons/hugectr/python", _OF_HUGECTR, None),
    "hugectr_arguments.md": Page(_HUGECTR, "addons/hugectr/python", _OF_HUGECTR, None),
    "hugectr_beyond_memory.md": Page(_HUGECTR, "addons/hugectr/python", _OF_HUGECTR, None),
    "hugectr_files.md": Page(_HUGECTR, "addons/hugectr/python", _OF_HUGECTR, None),
    "hugectr_inference.md": Page(_HUGECTR, "addons/hugectr/python", _OF_HUGECTR, None),
    "hugectr_json.md": Page(_HUGECTR, "addons/hugectr/python", _OF_HUGECTR, None),
    "hugectr_json_inputs.md": Page(_HUGECTR, "addons/hugectr/python", _OF_HUGECTR, None),
    "hugectr_json_layers.md": Page(_HUGECTR, "addons/hugectr/python", _OF_HUGECTR, None),
    "hugectr_json_more_layers.md": Page(_HUGECTR, "addons/hugectr/python", _OF_HUGECTR, None),
    "hugectr_layers.md": Page(_HUGECTR, "addons/hugectr/python", _OF_HUGECTR, None),
    "incremental_checkpoints.md": Page(_SOK, "tests/conformance", _CONFORMANCE, None),
    "inference_configuration.md": Page(
        _HPS, "addons/hierarchical_parameter_server/python", _OF_HPS, "hps_test"),
    "inference_databases.md": Page(_HPS, "addons/hierarchical_parameter_server/python",
                                   _OF_HPS, "hps_test"),
    "inference_parameter_server.md": Page(
        _HPS, "addons/hierarchical_parameter_server/python", _OF_HPS, "hps_test"),
    "many_processes.md": Page(_SOK, "tests/distributed",
                              "distributed_lookup_utest_on_2_ranks",
                              "ranks_utest"),
    "optimizers.md": Page(_SOK, "tests/conformance", _CONFORMANCE, "training_test"),
    "parameter_servers.md": Page(_SOK, "tests/distributed", None, None),
    "serving.md": Page(_SOK, "tests/conformance", _CONFORMANCE, "saved_model_test"),
    "sok_api.md": Page(_SOK, "addons/sparse_operation_kit/python",
                       "sok_variables_utest_on_2_ranks", "sok_test"),
    "sok_before_2.md": Page(_SOK, "addons/sparse_operation_kit/python",
                            "sok_variables_utest_on_2_ranks", "sok_test"),
    "sok_files.md": Page(_SOK, "addons/sparse_operation_kit/python",
                         "dump_load_utest_on_2_ranks", "sok_test"),
    "ssd.md": Page(_SOK, "tests/conformance", _CONFORMANCE, "checkpoint_test"),
    "tools.md": Page(_SOK, "python/embedding_variable/checkpoint",
                     "//python/embedding_variable/checkpoint/...", "checkpoint_test"),
}

# Pages that are not a guide to one feature.
OTHER_PAGES = ("adding.md", "architecture.md", "deeprec_names.md",
               "environment_variables.md", "glossary.md", "keras.md", "migration.md",
               "migration_hps.md", "tensorflow_2.md", "tensorflow_gpu_build.md",
               "troubleshooting.md")


def supported(text):
  """Returns the minor versions of TensorFlow, oldest first, from the text of VERSIONS."""
  return list(json.loads(text))


def _series(words):
  """Returns "a, b and c"."""
  return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def line(page, versions):
  """Returns what stands below a page's title.

  Args:
    page: Page.
    versions: result of supported().
  """
  text = BEGIN + "TensorFlow " + (_series(versions) if page.graph_2 else versions[0])
  text += " in graph mode"
  if page.eager:
    text += ", and on 2.x in eager execution, `tf.function` and Keras"
  return "%s. Wheel: `%s`." % (text, page.wheel)


def _wrapped(text, width=119):
  lines = [""]
  for word in text.split(" "):
    if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
      lines.append("")
    lines[-1] += (" " if lines[-1] else "") + word
  return "\n".join(lines)


def with_line(text, page, versions):
  """Returns the text of a page with a current line."""
  title, rest = text.split("\n\n", 1)
  if rest.startswith(BEGIN):
    rest = rest.split("\n\n", 1)[1]
  return "\n\n".join([title, _wrapped(line(page, versions)), rest])


def main():
  os.chdir(os.environ.get("BUILD_WORKSPACE_DIRECTORY", "."))
  with io.open(VERSIONS, encoding="utf-8") as f:
    versions = supported(f.read())
  for name, page in sorted(PAGES.items()):
    path = os.path.join("docs", name)
    with io.open(path, encoding="utf-8") as f:
      text = f.read()
    with io.open(path, "w", encoding="utf-8") as f:
      f.write(with_line(text, page, versions))
  sys.stdout.write("wrote a line of %d pages\n" % len(PAGES))


if __name__ == "__main__":
  main()
