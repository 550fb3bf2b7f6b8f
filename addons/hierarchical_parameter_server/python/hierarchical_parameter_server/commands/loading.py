# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""load, serve-metrics: start a server from a configuration."""

import threading
import time

from hierarchical_parameter_server import prometheus
from hierarchical_parameter_server import serving
from hierarchical_parameter_server.commands import checking

_BAR = 30


def _start(config, out, err):
  """Starts the server; shows how far it is, on a terminal."""
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
  """Loads every table; prints what each tier has."""
  _start(args.config, out, err)
  for model in serving.metrics()["models"]:
    for table in model["tables"]:
      for tier in ("volatile", "persistent"):
        found = table[tier]
        if found is not None:
          print("%s: %s tier: %d rows, %s of memory" %
                (table["tag"], tier, found["rows"], checking.amount(found["host_bytes"])),
                file=out)
  return True


def serve_metrics(args, out, err):
  """Loads, and answers /metrics until interrupted."""
  _start(args.config, out, err)
  server = prometheus.serve_metrics(args.port, args.address)
  print("http://%s:%d/metrics" % (args.address, server.server_port), file=out)
  out.flush()
  try:
    while True:
      time.sleep(3600)
  except KeyboardInterrupt:
    server.shutdown()
  return True
