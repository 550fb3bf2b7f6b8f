# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command `check`: errors of a configuration, and the memory it needs."""

from hierarchical_parameter_server import serving


def amount(count):
  """Returns a number of bytes in readable form: "1.5 GiB"."""
  for unit in ("B", "KiB", "MiB", "GiB"):
    if count < 1024:
      return ("%d %s" if unit == "B" else "%.1f %s") % (count, unit)
    count /= 1024.
  return "%.1f TiB" % count


def counted(number, what):
  """Returns "1 error", "2 errors"."""
  return "%d %s%s" % (number, what, "" if number == 1 else "s")


def _reach(tiers, out):
  """Prints whether each tier was reached; returns the number that were not."""
  if not tiers:
    print("this configuration has no tier in another program", file=out)
  for tier in tiers:
    if not tier["error"]:
      print("%s: %s was reached in %d ms" %
            (tier["tier"], tier["what"], tier["milliseconds"]), file=out)
  missed = [tier for tier in tiers if tier["error"]]
  for tier in missed:
    print("error: %s: %s was not reached in %d ms: %s" %
          (tier["tier"], tier["what"], tier["milliseconds"], tier["error"]), file=out)
  return len(missed)


def check(args, out, err):
  """Prints errors, notes and the plan; returns whether there are no errors."""
  del err
  found = serving.check(args.config, connect=args.connect)
  for error in found["errors"]:
    print("error: " + error, file=out)
  for note in found["notes"]:
    print("note: " + note, file=out)
  plan = found["plan"]
  if plan:
    head = ("model", "table", "width", "rows", "files", "host memory", "GPU cache",
            "largest lookup")
    lines = [head] + [
        (t["model"], t["table"], str(t["width"]), str(t["rows"]), amount(t["file_bytes"]),
         amount(t["host_bytes"]),
         amount(t["device_bytes"]) + (" (lfu)" if t["cache_policy"] == "lfu" else ""),
         amount(t["lookup_bytes"]))
        for t in plan["tables"]]
    widths = [max(len(line[c]) for line in lines) for c in range(len(head))]
    for line in lines:
      print("  ".join(text.ljust(width) for text, width in zip(line, widths)).rstrip(),
            file=out)
    print("host memory in all: " + amount(plan["host_bytes"]), file=out)
    print("GPU memory in all, where there is a GPU: " + amount(plan["device_bytes"]),
          file=out)
  errors = len(found["errors"])
  if found["tiers"] is not None:
    errors += _reach(found["tiers"], out)
  print("%s, %s" % (counted(errors, "error"), counted(len(found["notes"]), "note")),
        file=out)
  return not errors
