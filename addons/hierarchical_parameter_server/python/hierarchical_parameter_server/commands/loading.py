# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command `load`: starts a server from a configuration."""

import threading
import time

from hierarchical_parameter_server import serving
from hierarchical_parameter_server.commands import checking

_BAR = 30


def _start(config, out, err):
  """Starts the server; shows the progress on a terminal."""
  plan = serving.check(config)["plan"]
  total = sum(t["rows"] for t in plan["tables"]) if plan else 0
  trouble = []

  def work():
    try:
      serving.start(config)
    except Exception as e:  # pylint: disable=broad-except
      trouble.append(e)

  begin, before = time.time(), serving.loaded_rows()
  thread = threading.Thread(target=work)
  thread.start()
  shows = getattr(err, "isatty", lambda: False)()
  while thread.is_alive():
    thread.join(0.2)
    if shows and total:
      done = min(serving.loaded_rows() - before, total)
      filled = _BAR * done // total
      err.write("\r[%s%s] %d/%d rows" % ("#" * filled, "." * (_BAR - filled), done, total))
      err.flush()
  if shows and total:
    err.write("\n")
  if trouble:
    raise trouble[0]
  print("loaded in %.1f s" % (time.time() - begin), file=out)


def load(args, out, err):
  """Loads every table; prints the content of each tier."""
  _start(args.config, out, err)
  for model in serving.metrics()["models"]:
    for table in model["tables"]:
      for tier in ("volatile", "persistent"):
        found = table[tier]
        if found is None:
          continue
        if "error" in found:
          raise ValueError("%s: %s tier: %s" % (table["tag"], tier, found["error"]))
        print("%s: %s tier: %d rows, %s of memory" %
              (table["tag"], tier, found["rows"], checking.amount(found["host_bytes"])),
              file=out)
  return True
