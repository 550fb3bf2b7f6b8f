# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The list of DeepRec's names and what each one does, from names.json.

docs/deeprec_names.md has the same list, written by //tools/docs:deeprec_names.
"""

import io
import json
import os
import re

# Values of "is" in the file, in the order of the launcher's list.
KINDS = ("same", "stands in", "no effect", "error")


def groups():
  """Returns the file's groups: dicts with "group" and "names".

  A name is a dict with "name", "is" (one of `KINDS`) and "how".
  """
  path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "names.json")
  with io.open(path, encoding="utf-8") as f:
    return json.load(f)


def text():
  """Returns the list for a terminal."""
  lines = []
  for group in groups():
    lines += ["", group["group"].replace("`", "")]
    for name in group["names"]:
      how = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", name["how"]).replace("`", "")
      lines.append("  %-10s %s%s" % (name["is"], name["name"], how and ": " + how))
  return "\n".join(lines[1:]) + "\n"
