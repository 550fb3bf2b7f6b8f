# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Commands on pages and in scripts work: their programs, targets and flags exist.

The guides' commands are also listed below, each with the test that runs it.
"""

import os
import re

from absl.testing import absltest

import tree

_RESULTS = "benchmarks/results/"
_SCRIPTS = "benchmarks/gpu/"

# Commands of the README, CONTRIBUTING.md and docs/, with what runs them, or why nothing
# does. A command is given up to the part that varies; "…" stands for that part.
_CI = "continuous integration: .ci/run"
_RUN_BY = {
    "make test": _CI,
    "make test ALSO=2.15 MORE=1 MORE_WITHIN=80": _CI,
    ".ci/run": _CI,
    "make sanitize": _CI + ", as a part of MORE=1",
    "make extensive": _CI + ", likewise",
    "make test-all": "nothing: it takes hours, and its parts are above and below",
    "make setup": _CI + ", as make test's first step",
    "make demo": "//examples:train_ctr_test runs its program, .ci/run builds the wheel",
    "make demo TF=2.15": "nothing: it builds for another TensorFlow, which takes too long",
    "make test TF=2.15": "nothing: likewise",
    "make wheel TF=2.15": "nothing: likewise",
    "make check": "a part of make test",
    "make wheel": ".ci/run, as the wheel's step",
    "make wheels": ".ci/run builds the same wheels by the same programs",
    ".venv/bin/python tools/testing/where_time_goes.py …":
        "//tools/testing:where_time_goes_test",
    "make lint": "nothing: its tools are tested in //tools/lint",
    "make format": "nothing: it writes into the source tree",
    "make bench": "nothing: it takes an hour; //benchmarks:report_test on no sizes",
    "make clean": "nothing: it would remove what the build needs",
    "make distclean": "nothing: likewise",
    "bazel test …": _CI + " runs all of the targets",
    "bazel run //tools/docs:include_picture":
        "//tests/repo_rules:include_picture_test compares the page with what it writes",
    "PYTHON=/path/to/python3.7 ./configure": "//tools/setup:configure_test",
    "PYTHON=/path/to/python ./configure": "//tools/setup:configure_test",
    "./configure": "//tools/setup:configure_test",
    "pip install .": "//tools/pip_package:pip_backend_test; .ci/run runs pip wheel",
    "pip wheel .": _CI + ", as the wheel's step",
    "python setup.py bdist_wheel": "//tools/pip_package:pip_backend_test",
    "make wheels TF=2.15": "nothing: likewise",
    "python3.7 -m venv env": "nothing: Python's own",
    ". env/bin/activate": "nothing: likewise",
    "pip uninstall …": "nothing: it would change the environment of the tests",
    "pip install tensorflow==1.15.5 dist/sok_stock_tf-*.whl": _CI + " installs both",
    "pip install dist/sok_stock_tf-*.whl": _CI + " installs the wheel",
    "pip install dist/tf2.15/sok_stock_tf-*.whl":
        "nothing: the wheel for TensorFlow 2.15 takes too long to build",
    "pip install dist/*.whl": _CI + " installs the wheels",
    "pip install dist/sok_stock_tf_hps-*.whl": _CI + " installs the wheel",
    "bazel run //addons/hierarchical_parameter_server/database/redis:redis_benchmark":
        "nothing: it measures; its parts are tested beside them",
    "bazel run //addons/hierarchical_parameter_server/database/rocksdb:rocksdb_benchmark -- …":
        "nothing: likewise",
    "bazel run //addons/hugectr/python/hugectr/layers:write_schema":
        "//addons/hugectr/python/hugectr/layers:layers_test compares what it writes",
    "bazel run //tools/docs:hugectr_grammar":
        "//tests/repo_rules:hugectr_grammar_test compares the page with what it writes",
    "bazel run //tools/docs:deeprec_names":
        "//tests/repo_rules:deeprec_names_test compares the page with what it writes",
    "python -m embedding_variable.deeprec …":
        "//python/embedding_variable/deeprec:activation_test; //examples/deeprec:models_test",
    "python -m hierarchical_parameter_server …":
        "//addons/hierarchical_parameter_server/python/hierarchical_parameter_server/"
        "commands:commands_test",
    "python -m hugectr …": "//addons/hugectr/python/hugectr/commands:commands_test",
    "pip install tensorflow==1.15.0": _CI + " installs it",
    "pip install nvidia-cublas nvidia-cufft nvidia-curand nvidia-cusolver nvidia-cusparse":
        "nothing: 1 GB; //python/embedding_variable/gpu:cuda_libraries_test has its folders",
    "python -m embedding_variable …": "//python/embedding_variable/tools:main_test",
    "python -m embedding_variable.gpu …": "//python/embedding_variable/gpu:main_test",
    "horovodrun -np 4 python train.py": "//tests/distributed, by its module",
    "TF_RECORD_VERSION=1 SOK_EXCHANGE=memory horovodrun -np 4 python train.py":
        "//tests/distributed, by its module",
    "horovodrun -np 4 -H HOST1:2,HOST2:2 python train.py": "two nodes",
    'python -c "import embedding_variable; …': "//tests/docs:documents_test",
}

# A code span with only a tool's name is not a command.
_TOOLS = ("make", "pip", "pip install", "python", "bazel", "horovodrun")

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_SPAN = re.compile(r"`([^`\n]+)`")
_STARTS = re.compile(
    r"^(?:[A-Z_]+=\S* )*(?:make|bazel|pip|python|horovodrun|apt-get|\.?/?configure|"
    r"\.ci/run)(?= |$)")


def guides_commands(text):
  """Returns the commands in a guide's shell blocks and code spans."""
  found = []
  for language, block in _FENCE.findall(text):
    if language == "sh":
      lines = block.replace("\\\n", " ").splitlines()
      found += [re.sub(r"\s+#.*", "", line).strip() for line in lines]
  found += [span for span in _SPAN.findall(_FENCE.sub("", text))
            if _STARTS.match(span) and span not in _TOOLS]
  return [command for command in found if command]


def is_listed(command, listed):
  """Returns whether the list has the command, up to a "…"."""
  return command in listed or any(
      (command + " ").startswith(known[:-1]) for known in listed if known.endswith("…"))


def code(text):
  """Returns the code of a page: its code spans, and fenced or indented blocks."""
  parts = [block for _, block in _FENCE.findall(text)]
  text = _FENCE.sub("", text)
  parts += re.findall(r"^ {4,}(.*)$", text.replace("\\\n", " "), re.MULTILINE)
  return "\n".join(parts + _SPAN.findall(text))


def targets(build_text):
  """Returns the names of targets in the text of a BUILD file."""
  return set(re.findall(r'"([\w.]+)"', build_text))


def violations(path, text, read):
  """Returns a line for each program, target or flag that does not exist.

  Args:
    path: path of the page or script, for the message.
    text: its code.
    read: a function from a path to a file's text; raises OSError if there is no file.
  """
  found, sources = [], []

  def check(what, source):
    try:
      sources.append(read(source))
    except OSError:
      found.append("%s: there is no %s" % (path, what))

  # Removes Bazel's own options.
  text = re.sub(r"\bbazel (?:run|test|build)\b.*?(?= -- |$)",
                lambda m: re.sub(r"--\w\S*", "", m.group()), text, flags=re.MULTILINE)
  for package, name in set(re.findall(r"//([\w/]+):(\w+)", text)):
    try:
      build = read(package + "/BUILD")
    except OSError:
      build = ""
    # The macro gpu_program_test makes NAME_program.
    if not {name, re.sub("_program$", "", name)} & (targets(build) | {"all"}):
      found.append("%s: there is no target //%s:%s" % (path, package, name))
    elif re.search(r"--\w", text):
      for source in ["%s/%s.%s" % (package, name, kind) for kind in ("py", "cc", "cu")]:
        try:
          sources.append(read(source))
        except OSError:
          pass
  for source in set(re.findall(
      r"(?<![\w./])(?:benchmarks|examples|tests/on_gpu|addons/\w+/benchmark)/[\w/]+"
      r"\.(?:py|sh|cc)\b", text)):
    check(source, source)
  for name in set(re.findall(r"(?<![\w/:])(\w+_benchmark)\b(?!\.cc)", text)):
    check(name, "benchmarks/engine/%s.cc" % name)
  for name in set(re.findall(r"(?:^|\s)(stock_vs_ev) --", text)):
    check(name, "benchmarks/%s.py" % name)
  if "python -m hierarchical_parameter_server" in text:
    check("hierarchical_parameter_server",
          "addons/hierarchical_parameter_server/python/hierarchical_parameter_server/"
          "commands/main.py")
  if "python -m embedding_variable.deeprec" in text:
    check("embedding_variable.deeprec", "python/embedding_variable/deeprec/main.py")
  if "python -m hugectr" in text:
    check("hugectr", "addons/hugectr/python/hugectr/commands/main.py")
  known = "\n".join(sources)
  # Flags of the project's programs, not of Bazel or Horovod.
  if sources:
    for flag in set(re.findall(r"(?<![\w-])--(\w+)", text)):
      names = (flag, re.sub("^no", "", flag))
      if not any(re.search(r'(?:"|--)%s\b' % n, known) for n in names):
        found.append("%s: no program on the page has the flag --%s" % (path, flag))
  for variables, script in re.findall(
      r"((?:[A-Z_]+=(?:\"[^\"]*\"|\S+) )+)(benchmarks/[\w/]+\.sh)", text):
    try:
      script_text = read(script)
    except OSError:
      continue
    for variable in re.findall(r"([A-Z_]+)=", variables):
      if "${%s" % variable not in script_text:
        found.append("%s: %s does not read %s" % (path, script, variable))
  return sorted(found)


class CommandsTest(absltest.TestCase):

  def test_results_can_be_repeated(self):
    found = []
    pages = tree.files(".md")
    pages = [p for p in pages if p.startswith((_RESULTS, "docs/design/"))]
    self.assertGreater(len(pages), 10)
    for path in pages:
      found += violations(path, code(tree.read(path)), tree.read)
    self.assertEmpty(found, "\n" + "\n".join(found))

  def test_scripts_call_existing_programs(self):
    found = []
    for path in tree.files(".sh"):
      if path.startswith(_SCRIPTS):
        calls = "\n".join(re.findall(r"^[^#]*(?:benchmarks/\w+\.py|//\w).*(?:\n.*--.*)*",
                                     tree.read(path), re.MULTILINE))
        found += violations(path, re.sub("-m horovod.*\n", "", calls), tree.read)
    self.assertEmpty(found, "\n" + "\n".join(found))

  def test_every_script_of_the_benchmarks_is_tested(self):
    tests = "\n".join(tree.read(p) for p in tree.files("_test.py")
                      if p.startswith("benchmarks/"))
    lost = []
    for path in tree.files(".md"):
      if not path.startswith(_RESULTS):
        continue
      for name in set(re.findall(r"(?<!\w)benchmarks/(?:\w+/)?(\w+)\.(?:py|sh)",
                                 tree.read(path))):
        if not re.search(r"\b%s\b" % name, tests):
          lost.append("%s: no test of benchmarks/ runs %s" % (path, name))
    self.assertEmpty(lost, "\n".join(lost))

  def test_guides_commands_are_run_or_have_a_reason(self):
    pages = ["README.md", "CONTRIBUTING.md"] + [
        p for p in tree.files(".md") if os.path.dirname(p) == "docs"]
    used, lost = set(), []
    for path in pages:
      commands = guides_commands(tree.read(path))
      used.update(commands)
      lost += ["%s: %s" % (path, c) for c in commands if not is_listed(c, _RUN_BY)]
      lost += violations(path, "\n".join(commands), tree.read)
    self.assertEmpty(lost, "what runs it?\n" + "\n".join(lost))
    unused = [k for k in _RUN_BY if not any(is_listed(c, [k]) for c in used)]
    self.assertEmpty(unused, "no page prints it")

  def test_targets_that_run_commands_exist(self):
    found = violations("_RUN_BY", "\n".join(_RUN_BY.values()), tree.read)
    self.assertEmpty(found, "\n".join(found))

  def test_make_targets_exist(self):
    makefile = tree.read("Makefile")
    for path in ["README.md", "CONTRIBUTING.md"] + tree.files(".md"):
      for target in re.findall(r"`make ([a-z]+)", tree.read(path)):
        self.assertRegex(makefile, r"(?m)^%s:" % target, path)

  def test_refuses_missing_programs_targets_and_flags(self):
    files = {
        "benchmarks/BUILD": 'name = "save",',
        "benchmarks/save.py": 'DEFINE_integer("rows", 1)',
        "benchmarks/engine/a_benchmark.cc": '"--steps"',
        "benchmarks/gpu/run_a.sh": "${STEPS:-1}",
    }

    def read(path):
      if path not in files:
        raise OSError(path)
      return files[path]

    for text, count in (
        ("bazel run //benchmarks:save -- --rows=3", 0),
        ("bazel run //benchmarks:save -- --cols=3", 1),
        ("bazel run //benchmarks:sieve", 1),
        ("python benchmarks/save.py --norows", 0),
        ("python benchmarks/sieve.py", 1),
        ("a_benchmark --steps=3", 0),
        ("a_benchmark --step=3", 1),
        ("b_benchmark", 1),
        ("STEPS=3 benchmarks/gpu/run_a.sh", 0),
        ("THREADS=2 STEPS=3 benchmarks/gpu/run_a.sh", 1)):
      self.assertLen(violations("p.md", text, read), count, text)

  def test_finds_the_commands_of_a_guide(self):
    page = ("Say `make test`, or `python`.\n```sh\nbazel test //a   # one\n\n```\n"
            "```python\nmake = 1\n```\n`make_it`")
    self.assertCountEqual(guides_commands(page), ["make test", "bazel test //a"])
    self.assertTrue(is_listed("bazel test //a", ["bazel test …"]))
    self.assertFalse(is_listed("make tests", ["make test"]))


if __name__ == "__main__":
  absltest.main()
