# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""make test, make check, make extensive and make sanitize, after make setup.

The last line is `N passed, N failed, N skipped`, counted from the test logs. The exit
code is 1 if a test failed or could not run.
"""

import argparse
from concurrent import futures
import glob
import os
import platform
import subprocess
import sys
import time

import installed
import steps
import tensorflow_2
import test_log

_BUILD_DIR = ".build"
_WHEEL_DIR = "dist"

# Number of failed programs whose logs are shown, and of lines of each.
_LOGS_SHOWN, _LOG_LINES = 4, 25

# (TensorFlow version, whether it is a failure if it cannot be installed).
_TENSORFLOWS = (("1.15.5", True), ("1.15.0", False))

# A test with this tag is not part of make test: it runs the code of smaller tests on more
# models, numbers of ranks or storages.
_EXTENSIVE = "extensive"

# Estimated time of each sanitizer, most of which is compilation, as a share of make test's
# from scratch.
_SANITIZER_SHARE = 0.4


class TimeLimit(object):
  """Bounds the parts that follow make test."""

  def __init__(self, test_seconds=0., end_by=float("inf")):
    """
    Args:
      test_seconds: seconds that make test has taken on this machine.
      end_by: time.time() at which the last part is interrupted.
    """
    self._test_seconds = test_seconds
    self._end_by = end_by

  def left(self):
    """Returns the seconds that are left; none or less if the time is up."""
    return self._end_by - time.time()

  def skips(self, name, share, counts, command):
    """Returns whether a part would end too late; if so, counts it as skipped, by name.

    Args:
      name: name of the part.
      share: its time as a share of make test's.
      counts: test_log.Counts to add the skip to.
      command: what runs it without a limit.
    """
    if share * self._test_seconds < self.left():
      return False
    counts.skipped.append("%s all: it would take too long; %s runs it" % (name, command))
    return True


def bazel_test(name, targets, flags=(), bazel=("bazel",), limit=TimeLimit()):
  """Runs `bazel test`, or what `bazel` has instead; returns its Counts.

  If only one or two targets failed a check, they run again, three times and one at a
  time. If they pass all three runs they count as passed and are listed as UNSTABLE at the
  end. Targets that do not end within the limit count as skipped.
  """
  counts = _bazel_test(name, targets, flags, bazel, limit)
  labels = counts.worth_another_run()
  if labels and limit.left() > 0:
    with steps.step("once more, alone: " + " ".join(labels)):
      again = _bazel_test(
          name + "_again", labels, list(flags) + [
              "--runs_per_test=3", "--local_test_jobs=1", "--nocache_test_results"
          ], bazel, limit)
    # Otherwise some of the runs have not ended.
    if limit.left() > 0:
      counts.excuse(again)
  return counts


def _bazel_test(name, targets, flags, bazel, limit):
  events = os.path.join(_BUILD_DIR, "%s_events.json" % name)
  if os.path.exists(events):
    os.remove(events)
  profile = os.path.join(_BUILD_DIR, "%s_profile.gz" % name)
  terminal = sys.stdout.isatty()
  code = steps.run(
      list(bazel) + [
          "test", "--keep_going", "--build_event_json_file=" + events,
          "--profile=" + profile,
          "--color=" + ("yes" if terminal else "no"),
          "--curses=" + ("yes" if terminal else "no"),
          "--show_progress_rate_limit=" + ("0.2" if terminal else "30")
      ] + list(flags) + ["--"] + list(targets), limit.left())
  stopped = "the time was up before it ended" if code != 0 and limit.left() <= 0 else None
  counts = test_log.Counts()
  if os.path.exists(events):
    counts = test_log.count_build_events(events, stopped)
  if stopped:
    counts.skipped.append("%s rest: %s" % (name, stopped))
  elif code != 0 and not counts.failed:
    counts.failed.append("bazel test (%s) ended with exit code %d" % (name, code))
  return counts


def build_wheels(version=None):
  """Builds the wheels of this project and of the addons. Returns their paths, or None.

  Args:
    version: TensorFlow's, such as "2.15"; None: 1.15.
  """
  folder = os.path.join(_WHEEL_DIR, "tf" + version) if version else _WHEEL_DIR
  for old in glob.glob(os.path.join(folder, "*.whl")):
    os.remove(old)
  builders, bazel, programs = ["hugectr", "hps", "serving"], ["bazel"], "bazel-bin"
  if version:
    builders.append("sok")
    bazel, programs = tensorflow_2.command(version), tensorflow_2.programs(version)
  # Built by pip, as a user does. pip runs Bazel; nothing is downloaded.
  elif steps.run([sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel",
                  "--no-deps", "--no-index", "--no-cache-dir", "-w", folder, "."]) != 0:
    return None
  for builder in ["tools/pip_package/build_" + name for name in builders]:
    target = "//%s:%s" % os.path.split(builder)
    if (steps.run(bazel + ["build", target]) != 0 or
        steps.run([os.path.join(programs, builder), folder]) != 0):
      return None
  wheels = sorted(glob.glob(os.path.join(folder, "*.whl")))
  return wheels if len(wheels) == 4 else None


def installed_wheels(tensorflows, version=None):
  """Builds the wheels, and tests them installed.

  Args:
    tensorflows: pairs (version of TensorFlow to test them with, whether it is a failure if
      that cannot be installed).
    version: argument of build_wheels.
  """
  counts = test_log.Counts()
  with steps.step("build the wheels"):
    wheels = build_wheels(version)
  if wheels is None:
    counts.failed.append("the wheels could not be built")
    return counts

  def test(tensorflow):
    return installed.test_wheels(
        _BUILD_DIR, tensorflow[0], wheels, "tests/installed", tensorflow[1])

  # Side by side, because much of the time is for downloads and for programs of one thread.
  with steps.step("the installed wheels beside TensorFlow " +
                  " and ".join(tensorflow for tensorflow, _ in tensorflows)):
    with futures.ThreadPoolExecutor() as pool:
      for found in pool.map(test, tensorflows):
        counts.add(found)
  return counts


def usual():
  """Runs every Bazel test that is not extensive, then tests the installed wheels."""
  counts = test_log.Counts()
  with steps.step("bazel test //..."):
    counts.add(bazel_test("test", ["//..."], ["--test_tag_filters=-" + _EXTENSIVE]))
  counts.add(installed_wheels(_TENSORFLOWS))
  return counts


def fast():
  """Runs the small tests."""
  counts = test_log.Counts()
  with steps.step("bazel test //... (the fast part)"):
    flags = ["--test_size_filters=small", "--test_tag_filters=-slow,-" + _EXTENSIVE]
    counts.add(bazel_test("check", ["//..."], flags))
  return counts


def extensive(limit=TimeLimit()):
  """Runs the extensive tests, as far as the limit allows."""
  counts = test_log.Counts()
  if not limit.skips(_EXTENSIVE, 0, counts, "make extensive"):
    with steps.step(_EXTENSIVE):
      counts.add(bazel_test(_EXTENSIVE, ["//..."], ["--test_tag_filters=" + _EXTENSIVE],
                            limit=limit))
  return counts


def _fixed_addresses():
  """Returns arguments for bazel that keep ThreadSanitizer's memory map free.

  g++ 12's runtime ends at once on kernels that randomize addresses by more than 28 bits,
  unless the program runs without randomization.
  """
  setarch = ["setarch", platform.machine(), "-R"]
  try:
    usable = subprocess.call(setarch + ["true"], stderr=subprocess.DEVNULL) == 0
  except OSError:
    usable = False
  return ["--run_under=" + " ".join(setarch)] if usable else []


def sanitize(limit=TimeLimit()):
  """Runs the C++ tests of the engine and of the addons with both sanitizers, as far as
  the limit allows."""
  counts = test_log.Counts()
  for config, name, more in (("asan", "AddressSanitizer", []),
                             ("tsan", "ThreadSanitizer", _fixed_addresses())):
    if limit.skips(name, _SANITIZER_SHARE, counts, "make sanitize"):
      continue
    # ThreadSanitizer finds nothing in single-threaded tests, which take long with it.
    with steps.step("the engine under " + name):
      counts.add(
          bazel_test(
              config,
              ["//kernels/engine/...", "//addons/sparse_operation_kit/exchange/...",
               "//addons/hierarchical_parameter_server/...", "//addons/hugectr/reader/..."],
              ["--config=" + config, "--test_tag_filters=engine,-gpu,-no" + config] +
              more, limit=limit))
  return counts


def on_tensorflow_2(version, runs, limit=TimeLimit()):
  """Runs tests on TensorFlow 2.x, as far as the limit allows.

  Args:
    version: such as "2.15".
    runs: list of (name, targets, flags) of tensorflow_2.py.
    limit: TimeLimit.
  """
  counts = test_log.Counts()
  make_test = "make test TF=" + version
  for script in tensorflow_2.SET_UP:
    if limit.left() <= 0:
      break
    with steps.step("%s %s" % (script, version)):
      if steps.run([script, version], limit.left()) != 0 and limit.left() > 0:
        counts.failed.append("%s %s failed" % (script, version))
        return counts
  for name, targets, flags in runs:
    if not limit.skips(name, 0, counts, make_test):
      with steps.step("the tests " + name):
        counts.add(bazel_test(name, targets, flags, tensorflow_2.command(version), limit))
  return counts


_MODES = {"test": usual, "check": fast, "extensive": extensive, "sanitize": sanitize}


def main():
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("mode", choices=sorted(_MODES))
  parser.add_argument(
      "--more", action="store_true",
      help="make test: the extensive tests and the sanitizers too")
  parser.add_argument(
      "--more_within", type=float, metavar="MINUTES", default=float("inf"),
      help="what follows the tests of 1.15 is interrupted after this time, counted from "
      "--started; what has not ended by then is skipped")
  parser.add_argument(
      "--started", type=float, metavar="SECONDS", default=time.time(),
      help="time.time() of the start; that of this program by default")
  parser.add_argument(
      "--tensorflow", metavar="VERSION",
      help="make test: on this TensorFlow of 2.x instead of 1.15")
  parser.add_argument(
      "--also_eager_on", metavar="VERSION",
      help="make test: then the tests of eager execution and Keras on this TensorFlow of 2.x; "
      "those of graph mode are the last part of --more")
  arguments = parser.parse_args()
  start = time.time()
  os.makedirs(_BUILD_DIR, exist_ok=True)
  if arguments.tensorflow:
    version = arguments.tensorflow
    counts = on_tensorflow_2(version, tensorflow_2.eager(version) + tensorflow_2.graph(version))
    counts.add(installed_wheels([(version + ".*", True)], version))
  else:
    counts = _MODES[arguments.mode]()
    limit = TimeLimit(time.time() - start, arguments.started + 60 * arguments.more_within)
    also = arguments.also_eager_on
    if also:
      counts.add(on_tensorflow_2(also, tensorflow_2.eager(also), limit))
    if arguments.more:
      counts.add(sanitize(limit))
      counts.add(extensive(limit))
      if also:
        counts.add(on_tensorflow_2(also, tensorflow_2.graph(also), limit))
  steps.print_times()
  for line in counts.skipped_programs():
    print("SKIPPED " + line)
  # Printed last, because often only the end of a long output is kept.
  for path in counts.failed_logs[:_LOGS_SHOWN]:
    print("\n== the end of %s\n%s" % (path, test_log.tail(path, _LOG_LINES)))
  for label in counts.unstable:
    print("UNSTABLE %s: failed a check, then passed three times alone" % label)
  for name in counts.failed:
    print("FAILED " + name)
  with open(os.path.join(_BUILD_DIR, "summary.txt"), "w") as f:
    f.write(counts.line() + "\n")
  print(counts.line(), flush=True)
  sys.exit(1 if counts.failed else 0)


if __name__ == "__main__":
  main()
