# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Counts test cases from the XML logs that gtest and absl write.

A test program without a log of its own counts as one failed case. So does one that failed
with a log that shows no failed case, because it crashed or ran out of time.

A check may fail because of a busy machine: a thread may not run for a second. Such a test
is a bug to fix and is listed as UNSTABLE, but the product is not broken. This module
decides which targets may run again, and when a second run excuses the first.
"""

import collections
import json
import urllib.parse
import xml.etree.ElementTree as ElementTree


class Counts:
  """Passed, failed and skipped cases; failed and skipped cases have a line each.

  Attributes:
    passed: number of cases.
    failed: a line for each.
    skipped: `PROGRAM CASE: REASON` for each.
    failed_logs: paths of the output of the programs that failed.
    failed_checks: labels of the Bazel targets that failed a check, but neither crashed, nor
      ran out of time, nor had a sanitizer report.
    unstable: labels that failed a check once, and then passed alone.
  """

  def __init__(self):
    self.passed = 0
    self.failed = []
    self.skipped = []
    self.failed_logs = []
    self.failed_checks = []
    self.unstable = []

  def add(self, other):
    self.passed += other.passed
    self.failed += other.failed
    self.skipped += other.skipped
    self.failed_logs += other.failed_logs
    self.failed_checks += other.failed_checks
    self.unstable += other.unstable

  def worth_another_run(self):
    """Returns the labels to run again: all that failed, or none.

    None if any target failed in another way than by a check, or if many failed: then a
    busy machine is not the cause.
    """
    labels = set(self.failed_checks)
    others = [name for name in self.failed if _label(name) not in labels]
    return sorted(labels) if len(labels) <= _UNSTABLE_AT_MOST and not others else []

  def excuse(self, again):
    """Counts failures as passed if the second run, `again`, had no failure."""
    if again.failed or not self.worth_another_run():
      return
    self.unstable += self.worth_another_run()
    self.passed += len(self.failed)
    self.failed, self.failed_checks = [], []

  def skipped_programs(self):
    """Returns one line for each program and reason, with the names of its cases."""
    cases = collections.OrderedDict()
    for line in self.skipped:
      name, _, reason = line.partition(": ")
      program, _, case = name.partition(" ")
      # gtest puts the source location on the first line of a reason.
      reason = reason.strip().split("\n")[-1]
      cases.setdefault((program, reason), []).append(case)
    return [
        ("%s (%d), %s: %s" % (program, len(names), reason, " ".join(names))).rstrip(": ")
        for (program, reason), names in cases.items()
    ]

  def line(self):
    """Returns the summary, `N passed, N failed, N skipped`."""
    return "%d passed, %d failed, %d skipped" % (
        self.passed, len(self.failed), len(self.skipped))


# Number of targets of one run that may be unstable.
_UNSTABLE_AT_MOST = 2

# Words in a program's log that make a failure final.
_NEVER_EXCUSED = ("AddressSanitizer", "LeakSanitizer", "ThreadSanitizer",
                  "runtime error:", "Segmentation fault", "Aborted", "core dumped")


def _label(name):
  return name.split(" ")[0].rstrip(":")


def _failed_a_check(status, logs, counts):
  if status != "FAILED" or any("ended as" in name for name in counts.failed):
    return False
  for path in logs:
    try:
      with open(path, errors="replace") as f:
        text = f.read()
    except OSError:
      return False
    if any(word in text for word in _NEVER_EXCUSED):
      return False
  return True


def _case_name(case):
  return ".".join(p for p in (case.get("classname"), case.get("name")) if p)


def _skip_reason(case):
  """Returns the reason why a case was skipped, or None if it ran."""
  skipped = case.find("skipped")
  if skipped is not None:
    return skipped.get("message") or (skipped.text or "").strip() or "skipped"
  if case.get("status") == "notrun" or case.get("result") in ("skipped", "suppressed"):
    return "disabled"
  return None


# A method of tf.test.TestCase that unittest takes for a test and TensorFlow skips.
_NO_CASE = "test_session"


def count_xml(path, program):
  """Returns the Counts of one test.xml, with `program` as prefix of names."""
  counts = Counts()
  for case in ElementTree.parse(path).getroot().iter("testcase"):
    name = "%s %s" % (program, _case_name(case))
    reason = _skip_reason(case)
    if reason is not None and case.get("name") == _NO_CASE:
      continue
    if case.find("failure") is not None or case.find("error") is not None:
      counts.failed.append(name)
    elif reason is not None:
      counts.skipped.append("%s: %s" % (name, reason))
    else:
      counts.passed += 1
  return counts


def count_program(xml_paths, program, succeeded, how_it_ended):
  """Returns the Counts of one test program.

  Args:
    xml_paths: its logs, one for each shard.
    program: its name.
    succeeded: whether it ended well.
    how_it_ended: for the line of a failure that no log shows.
  """
  counts = Counts()
  for path in xml_paths:
    try:
      counts.add(count_xml(path, program))
    except (OSError, ElementTree.ParseError) as e:
      succeeded, how_it_ended = False, "its log cannot be read (%s)" % e
  if not succeeded and not counts.failed:
    counts.failed.append("%s: %s" % (program, how_it_ended))
  if succeeded and not (counts.passed or counts.skipped):
    counts.failed.append("%s: it ran no test case" % program)
  return counts


def tail(path, lines):
  """Returns the last lines of a file, or why it cannot be read."""
  try:
    with open(path, errors="replace") as f:
      return "\n".join(f.read().splitlines()[-lines:])
  except OSError as e:
    return str(e)


def _local_path(uri):
  parts = urllib.parse.urlparse(uri)
  return urllib.parse.unquote(parts.path) if parts.scheme == "file" else None


def _worst_status(results):
  """Returns the status of a target that has results but no summary."""
  statuses = {result.get("status", "NO_STATUS") for result in results}
  return sorted(statuses - {"PASSED", "FLAKY"} or statuses)[0]


def _read_events(path):
  """Returns (events of a build event file, why it is truncated or None).

  A file is truncated if the disk was full or Bazel was killed: its last line is
  incomplete, or the event that Bazel marks as the last one is missing.
  """
  events = []
  with open(path, errors="replace") as lines:
    for number, line in enumerate(lines, 1):
      try:
        event = json.loads(line)
      except ValueError:
        return events, "line %d is an incomplete event" % number
      if not isinstance(event, dict):
        return events, "line %d is not an event" % number
      events.append(event)
  is_whole = bool(events) and events[-1].get("lastMessage", False)
  return events, None if is_whole else "event %d, the last one, is missing" % (
      len(events) + 1)


def _is_unbuilt(completed):
  """Returns whether the completion event of a target without a result is one of a failed build."""
  if "completed" in completed:
    return not completed["completed"].get("success", False)
  return completed.get("aborted", {}).get("reason", "USER_INTERRUPTED") != "USER_INTERRUPTED"


def count_build_events(path, stopped=None):
  """Returns the Counts of one `bazel test` from its build event file.

  Targets that could not be built, and so never ran, are failures. If the file is
  truncated, the results in it count, and one additional failure stands for all targets
  without a result.

  Args:
    path: file of --build_event_json_file.
    stopped: why `bazel test` was interrupted, if it was. Then targets without a result are
      skips with this reason, unless they could not be built.
  """
  results, summaries, completed, wanted = {}, {}, {}, set()
  events, cut = _read_events(path)
  for event in events:
    event_id = event.get("id", {})
    if "targetConfigured" in event_id:
      kind = event.get("configured", {}).get("targetKind", "")
      if kind.endswith("_test rule"):
        wanted.add(event_id["targetConfigured"]["label"])
    elif "targetCompleted" in event_id:
      completed[event_id["targetCompleted"]["label"]] = event
    elif "testResult" in event_id and "testResult" in event:
      label = event_id["testResult"]["label"]
      attempt = (event_id["testResult"].get("shard", 1),
                 event_id["testResult"].get("run", 1))
      # A later attempt of a flaky test replaces the earlier one.
      results.setdefault(label, {})[attempt] = event["testResult"]
    elif "testSummary" in event_id and "testSummary" in event:
      summaries[event_id["testSummary"]["label"]] = event["testSummary"]

  counts = Counts()
  if cut is not None and not stopped:
    counts.failed.append("the build's event file is truncated: %s: %s" % (path, cut))
  for label in sorted(wanted | set(results)):
    status = summaries.get(label, {}).get("overallStatus", "NO_STATUS")
    if label not in summaries and (stopped or cut is not None):
      not_run = stopped and not _is_unbuilt(completed.get(label, {}))
      if not_run:
        counts.skipped.append("%s all: %s" % (label, stopped))
      if label in results:
        status = _worst_status(results[label].values())
      elif not_run or not stopped:
        continue
    if label not in results:
      counts.failed.append("%s: it could not be built, or did not run" % label)
      continue
    outputs = collections.defaultdict(list)
    for result in results[label].values():
      for output in result.get("testActionOutput", []):
        local = _local_path(output.get("uri", ""))
        if local:
          outputs[output.get("name")].append((result.get("status"), local))
    paths = [path for _, path in outputs["test.xml"]]
    succeeded = status in ("PASSED", "FLAKY")
    program = count_program(paths, label, succeeded, "ended as %s" % status)
    if not succeeded:
      program.failed_logs = [path for how, path in outputs["test.log"] if how != "PASSED"]
      if _failed_a_check(status, program.failed_logs, program):
        program.failed_checks.append(label)
    counts.add(program)
  return counts
