# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of test_log."""

import json
import os

from absl.testing import absltest

import test_log

_GTEST = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="4" failures="1" disabled="1" errors="0" name="AllTests">
  <testsuite name="Table" tests="4">
    <testcase name="Finds" status="run" result="completed" classname="Table" />
    <testcase name="Grows" status="run" result="completed" classname="Table">
      <failure message="boom" type=""></failure>
    </testcase>
    <testcase name="Later" status="notrun" result="suppressed" classname="Table" />
    <testcase name="NoGpu" status="run" result="skipped" classname="Table">
      <skipped message="no GPU here" />
    </testcase>
  </testsuite>
</testsuites>
"""

_ABSL = """<?xml version="1.0"?>
<testsuites name="" tests="2" failures="0" errors="1">
<testsuite name="T" tests="2" failures="0" errors="1">
  <testcase name="test_a" status="run" result="completed" classname="T" time="0" />
  <testcase name="test_b" status="run" result="completed" classname="T" time="0">
  <error message="e" type="ValueError"><![CDATA[trace]]></error>
  </testcase>
</testsuite>
</testsuites>
"""

_ONE = '<testsuites><testsuite><testcase name="a"/></testsuite></testsuites>'


class TestLogTest(absltest.TestCase):

  def file(self, text, name="test.xml"):
    return self.create_tempfile("%s/%s" % (self.id(), name), text).full_path

  def events(self, *events):
    last = {"id": {"progress": {}}, "lastMessage": True}
    lines = [json.dumps(e) for e in events + (last,)]
    return self.file("\n".join(lines) + "\n", "events.json")

  def configured(self, label, kind="py_test rule"):
    return {"id": {"targetConfigured": {"label": label}},
            "configured": {"targetKind": kind}}

  def result(self, label, xml, shard=1):
    output = {"name": "test.xml", "uri": "file://" + xml}
    return {"id": {"testResult": {"label": label, "run": 1, "shard": shard}},
            "testResult": {"testActionOutput": [output]}}

  def summary(self, label, status):
    return {"id": {"testSummary": {"label": label}},
            "testSummary": {"overallStatus": status}}

  def test_counts_gtest_cases(self):
    counts = test_log.count_xml(self.file(_GTEST), "//a")
    self.assertEqual(counts.line(), "1 passed, 1 failed, 2 skipped")
    self.assertEqual(counts.failed, ["//a Table.Grows"])
    self.assertEqual(counts.skipped,
                     ["//a Table.Later: disabled", "//a Table.NoGpu: no GPU here"])

  def test_counts_an_absl_error_as_a_failure(self):
    counts = test_log.count_xml(self.file(_ABSL), "//a")
    self.assertEqual(counts.line(), "1 passed, 1 failed, 0 skipped")

  def test_tensorflows_own_skip_is_no_case(self):
    case = '<testsuites><testcase name="%s"><skipped/></testcase></testsuites>'
    self.assertLen(test_log.count_xml(self.file(case % "test_a"), "//a").skipped, 1)
    self.assertEmpty(
        test_log.count_xml(self.file(case % "test_session"), "//a").skipped)

  def test_a_crash_is_a_failure_though_no_case_failed(self):
    counts = test_log.count_program([self.file(_ONE)], "//a", False, "exit code -11")
    self.assertEqual(counts.line(), "1 passed, 1 failed, 0 skipped")
    self.assertEqual(counts.failed, ["//a: exit code -11"])

  def test_a_missing_or_broken_log_is_a_failure(self):
    broken = self.file("<testsuites>")
    for path in (broken, os.path.join(os.path.dirname(broken), "none.xml")):
      counts = test_log.count_program([path], "//a", True, "")
      self.assertLen(counts.failed, 1)
      self.assertIn("its log cannot be read", counts.failed[0])

  def test_a_program_without_a_case_is_a_failure(self):
    counts = test_log.count_program([self.file("<testsuites/>")], "//a", True, "")
    self.assertEqual(counts.failed, ["//a: it ran no test case"])

  def test_build_events_add_up_shards(self):
    xml = self.file(_ONE)
    counts = test_log.count_build_events(
        self.events(
            self.configured("//a"), self.result("//a", xml, 1),
            self.result("//a", xml, 2), self.summary("//a", "PASSED")))
    self.assertEqual(counts.line(), "2 passed, 0 failed, 0 skipped")

  def test_skipped_cases_are_named_a_line_for_each_program_and_reason(self):
    counts = test_log.Counts()
    counts.skipped = ["//a X.One: a.cc:7\nno GPU", "//a X.Two: a.cc:9\nno GPU",
                      "//a Y: no disk", "b.py: no network"]
    self.assertEqual(counts.skipped_programs(), [
        "//a (2), no GPU: X.One X.Two", "//a (1), no disk: Y", "b.py (1), no network"])

  def test_logs_of_failed_programs_are_listed(self):
    log = self.file("\n".join("line %d" % i for i in range(9)), "test.log")

    def logged(label, status):
      event = self.result(label, self.file(_ONE))
      event["testResult"]["status"] = status
      event["testResult"]["testActionOutput"].append(
          {"name": "test.log", "uri": "file://" + log})
      return event

    counts = test_log.count_build_events(
        self.events(
            self.configured("//a"), logged("//a", "FAILED"),
            self.summary("//a", "FAILED"), self.configured("//b"),
            logged("//b", "PASSED"), self.summary("//b", "PASSED")))
    self.assertEqual(counts.failed_logs, [log])
    self.assertEqual(test_log.tail(log, 2), "line 7\nline 8")
    self.assertIn("none", test_log.tail(log + "/none", 2))

  def run_of(self, failures):
    """Returns the Counts of a run; `failures`: label -> (status, log, XML)."""
    events = []
    for i, (label, (status, text, xml)) in enumerate(sorted(failures.items())):
      event = self.result(label, self.file(xml, "%d.xml" % i))
      event["testResult"]["status"] = status
      event["testResult"]["testActionOutput"].append(
          {"name": "test.log", "uri": "file://" + self.file(text, "%d.log" % i)})
      events += [self.configured(label), event, self.summary(label, status)]
    return test_log.count_build_events(self.events(*events))

  def test_a_failed_check_is_excused_by_a_second_run_and_named(self):
    counts = self.run_of({"//a": ("FAILED", "1 vs 2", _GTEST)})
    self.assertEqual(counts.worth_another_run(), ["//a"])
    counts.excuse(self.run_of({"//a": ("PASSED", "", _ONE)}))
    self.assertEqual(counts.line(), "2 passed, 0 failed, 2 skipped")
    self.assertEqual(counts.unstable, ["//a"])
    total = test_log.Counts()
    total.add(counts)
    self.assertEqual(total.unstable, ["//a"])

  def test_a_second_failure_stands(self):
    failed = {"//a": ("FAILED", "1 vs 2", _GTEST)}
    counts = self.run_of(failed)
    counts.excuse(self.run_of(failed))
    self.assertEqual(counts.line(), "1 passed, 1 failed, 2 skipped")
    self.assertEmpty(counts.unstable)

  def test_failures_that_no_second_run_excuses(self):
    check = ("FAILED", "1 vs 2", _GTEST)
    for name, failure in (("a race", ("FAILED", "WARNING: ThreadSanitizer: x", _GTEST)),
                          ("memory", ("FAILED", "ERROR: AddressSanitizer: x", _GTEST)),
                          ("a crash", ("FAILED", "1 vs 2", _ONE)),
                          ("time", ("TIMEOUT", "1 vs 2", _GTEST))):
      with self.subTest(name):
        counts = self.run_of({"//a": check, "//b": failure})
        self.assertEmpty(counts.worth_another_run())
        counts.excuse(test_log.Counts())
        self.assertLen(counts.failed, 2)
    many = self.run_of({"//a": check, "//b": check, "//c": check})
    self.assertEmpty(many.worth_another_run())

  def test_build_events_count_what_was_not_built(self):
    counts = test_log.count_build_events(
        self.events(self.configured("//a"), self.configured("//l", "cc_library rule")))
    self.assertEqual(counts.failed, ["//a: it could not be built, or did not run"])

  def test_build_events_count_a_timeout(self):
    counts = test_log.count_build_events(
        self.events(
            self.configured("//a"), self.result("//a", self.file(_ONE)),
            self.summary("//a", "TIMEOUT")))
    self.assertEqual(counts.failed, ["//a: ended as TIMEOUT"])

  def test_truncated_build_events_count_and_add_one_failure(self):

    def ran(label, name, status):
      event = self.result(label, self.file(_ONE, name + ".xml"))
      event["testResult"]["status"] = status
      return event

    whole = self.events(
        self.configured("//a"), self.configured("//b"), self.configured("//c"),
        self.configured("//d"), ran("//a", "a", "PASSED"),
        self.summary("//a", "PASSED"), ran("//b", "b", "PASSED"),
        ran("//c", "c", "TIMEOUT"), self.summary("//b", "PASSED"))
    with open(whole) as f:
      lines = f.read().splitlines(True)
    # The summary of //b is cut in half, missing, or missing after a truncated line. The
    # bytes that are not text stand for a block of zeros, as a failing disk may leave it.
    for name, text, why in (
        ("half", "".join(lines[:8]) + lines[8][:30], "line 9 is an incomplete event"),
        ("end", "".join(lines[:8]), "event 9, the last one, is missing"),
        ("number", "".join(lines[:8]) + "1", "line 9 is not an event"),
        ("zeros", "".join(lines[:8]) + "\0\0\n" + lines[9],
         "line 9 is an incomplete event")):
      with self.subTest(name):
        path = self.file(text, name + ".json")
        counts = test_log.count_build_events(path)
        self.assertEqual(counts.failed, [
            "the build's event file is truncated: %s: %s" % (path, why), "//c: ended as TIMEOUT"])
        self.assertEqual(counts.passed, 3)
        self.assertEmpty(counts.worth_another_run())
    empty = self.file("", "empty.json")
    self.assertEqual(
        test_log.count_build_events(empty).failed,
        ["the build's event file is truncated: %s: "
         "event 1, the last one, is missing" % empty])

  def test_targets_of_an_interrupted_run_are_skips_unless_they_failed(self):

    def completed(label, **how):
      return dict({"id": {"targetCompleted": {"label": label}}}, **how)

    interrupted = {"reason": "USER_INTERRUPTED"}
    failed = self.result("//failed", self.file(_GTEST))
    failed["testResult"]["status"] = "FAILED"
    first = self.result("//first", self.file(_ONE))
    first["testResult"]["status"] = "PASSED"
    labels = ["//passed", "//failed", "//first", "//runs", "//waits", "//unseen", "//no_build",
              "//no_analysis"]
    path = self.events(
        *[self.configured(label) for label in labels] + [
            self.result("//passed", self.file(_ONE)), self.summary("//passed", "PASSED"),
            failed, self.summary("//failed", "FAILED"), first,
            completed("//runs", completed={"success": True}),
            completed("//waits", aborted=interrupted),
            completed("//no_build", completed={}),
            completed("//no_analysis", aborted={"reason": "ANALYSIS_FAILURE"}),
            {"id": {"testResult": {"label": "//runs"}}, "aborted": interrupted},
            {"id": {"testSummary": {"label": "//runs"}}, "aborted": interrupted}])
    for name, last in (("whole", ""), ("truncated", "{")):
      with self.subTest(name), open(path, "a") as f:
        f.write(last)
        f.flush()
        counts = test_log.count_build_events(path, "no time")
        self.assertEqual([line for line in counts.skipped if line.endswith("all: no time")], [
            "//%s all: no time" % label for label in ("first", "runs", "unseen", "waits")])
        self.assertEqual([line.split(":")[0].split(" ")[0] for line in counts.failed],
                         ["//failed", "//no_analysis", "//no_build"])

  def test_build_events_without_a_summary_are_a_failure(self):
    counts = test_log.count_build_events(
        self.events(self.configured("//a"), self.result("//a", self.file(_ONE))))
    self.assertLen(counts.failed, 1)


if __name__ == "__main__":
  absltest.main()
