# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`python -m embedding_variable publish --check`: checks the folder of a publication."""

from embedding_variable.checkpoint_format import errors
from embedding_variable.checkpoint_format import publication_checks
from embedding_variable.checkpoint_format import publications


def check(folder):
  """Reads everything that `current.json` names and compares sizes and checksums.

  Reads one tensor at a time.

  Args:
    folder: string.

  Returns:
    string, a line for the state, the full version and each delta.

  Raises:
    CheckpointError: names what is missing, damaged or foreign.
  """
  state = publications.read(folder)
  if state is None:
    raise errors.CheckpointError("%s has no %s: nothing was published to it" %
                                 (folder, publications.CURRENT))
  publication_checks.check_full(folder, state, with_tensors=True)
  lines = ["version %d, step %s, %s" % (state["version"], state["step"], state["time"]),
           _line("full version", state["full"])]
  for sequence, entry in enumerate(state["deltas"], 1):
    publication_checks.check_delta(folder, state, sequence)
    lines.append(_line("delta %d" % sequence, entry))
  return "\n".join(lines) + "\n"


def _line(name, entry):
  size = sum(f["bytes"] for f in entry["files"].values())
  return "  {}: step {}, {:,} bytes".format(name, entry.get("step"), size)
