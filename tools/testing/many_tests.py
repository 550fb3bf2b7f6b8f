# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs several test programs, one after the other, with one import of TensorFlow.

  many_tests.py A_test.py B_test.py

Each program is a process of its own (preloaded.py). Their XML logs become one log, which
Bazel and `make test` read as that of one program. The exit status is 1 if a program
failed.
"""

import os
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

import preloaded

# Attributes of a log that are sums over its test suites.
_COUNTS = ("tests", "failures", "errors")


def _failed_program(path, code):
  """Returns the XML of a program that ended without a log."""
  suite = ElementTree.Element("testsuite", name=path, tests="1", failures="0", errors="1")
  case = ElementTree.SubElement(suite, "testcase", name=path, classname="", time="0")
  ElementTree.SubElement(case, "error", message="it ended with exit status %d and no log" %
                         code)
  return suite


def run(interpreter, path, folder):
  """Runs one program; returns (its exit status, a list of testsuite elements).

  Args:
    interpreter: preloaded.Interpreter.
    path: path of the program.
    folder: an empty one, for its log and its temporary files.
  """
  xml = os.path.join(folder, "test.xml")
  begin = time.time()
  program = interpreter.start(
      [path], sys.stdout, dict(os.environ, XML_OUTPUT_FILE=xml, TEST_TMPDIR=folder))
  code = program.wait()
  try:
    suites = list(ElementTree.parse(xml).getroot())
  except (OSError, ElementTree.ParseError):
    suites = [_failed_program(path, code)]
    code = code or 1
  cases = sum(len(s.findall("testcase")) for s in suites)
  print("\n== %s: exit status %d, %d cases, %.1f s\n" %
        (path, code, cases, time.time() - begin), flush=True)
  return code, suites


def main(argv):
  interpreter = preloaded.Interpreter(["tensorflow"], flags=())
  log, failed = ElementTree.Element("testsuites", name=""), []
  for path in argv[1:]:
    code, suites = run(interpreter, path,
                       tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
    log.extend(suites)
    if code:
      failed.append(path)
  interpreter.close()
  for count in _COUNTS:
    log.set(count, str(sum(int(s.get(count, 0)) for s in log)))
  if "XML_OUTPUT_FILE" in os.environ:
    ElementTree.ElementTree(log).write(
        os.environ["XML_OUTPUT_FILE"], encoding="utf-8", xml_declaration=True)
  for path in failed:
    print("FAILED %s" % path)
  return 1 if failed or not argv[1:] else 0


if __name__ == "__main__":
  sys.exit(main(sys.argv))
