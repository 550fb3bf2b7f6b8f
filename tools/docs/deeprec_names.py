# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes the table of DeepRec's names into docs/deeprec_names.md.

  bazel run //tools/docs:deeprec_names
"""

import io
import json
import os
import sys

PAGE = "docs/deeprec_names.md"
NAMES = "python/embedding_variable/deeprec/names.json"
COMMAND = "bazel run //tools/docs:deeprec_names"

_BEGIN = "<!-- names: begin (written by %s) -->\n" % COMMAND
_END = "<!-- names: end -->\n"


def table(groups):
  """Returns the Markdown of the groups of names.json."""
  lines = ["", "| name | here | |", "| --- | --- | --- |"]
  for group in groups:
    lines.append("| **%s** | | |" % group["group"])
    for name in group["names"]:
      lines.append("| `%s` | %s | %s |" % (name["name"], name["is"], name["how"]))
  return "\n".join(lines) + "\n\n"


def with_table(page, groups):
  """Returns the page with a current table."""
  begin, end = page.index(_BEGIN) + len(_BEGIN), page.index(_END)
  return page[:begin] + table(groups) + page[end:]


def main():
  os.chdir(os.environ.get("BUILD_WORKSPACE_DIRECTORY", "."))
  with io.open(NAMES, encoding="utf-8") as f:
    groups = json.load(f)
  with io.open(PAGE, encoding="utf-8") as f:
    page = f.read()
  with io.open(PAGE, "w", encoding="utf-8") as f:
    f.write(with_table(page, groups))
  sys.stdout.write("wrote %s\n" % PAGE)


if __name__ == "__main__":
  main()
