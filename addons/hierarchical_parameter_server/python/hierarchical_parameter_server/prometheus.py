# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The server's metrics as Prometheus reads them, and a server of them."""

import http.server
import threading

from hierarchical_parameter_server import serving

_COUNTERS = (
    ("lookups", "hps_lookups_total", "Lookups of a table."),
    ("keys", "hps_keys_total", "Ids that were looked up."),
    ("from_volatile", "hps_volatile_hits_total", "Ids whose row the volatile tier had."),
    ("from_persistent", "hps_persistent_hits_total",
     "Ids whose row the persistent tier had."),
    ("defaults", "hps_default_rows_total", "Ids that no tier had."),
    ("late", "hps_late_rows_total",
     "Ids that were answered with the default value before a tier was asked."),
    ("failed", "hps_failed_lookups_total", "Lookups that ended in an error."),
)
_TIER_VALUES = (
    ("rows", "hps_rows", "gauge", "Rows of a tier."),
    ("host_bytes", "hps_host_bytes", "gauge", "Memory of a tier."),
    ("inserted", "hps_inserted_rows_total", "counter", "Rows that were stored."),
    ("evicted", "hps_evicted_rows_total", "counter", "Rows that a limit removed."),
)
_CACHE_VALUES = (
    ("hits", "hps_cache_hits_total", "counter", "Ids whose row the GPU cache had."),
    ("misses", "hps_cache_misses_total", "counter", "Ids whose row it had not."),
    ("rows", "hps_cache_rows", "gauge", "Rows of the GPU cache."),
    ("device_bytes", "hps_cache_bytes", "gauge", "GPU memory of the cache."),
    ("inserted", "hps_cache_inserted_rows_total", "counter", "Rows that it stored."),
    ("evicted", "hps_cache_evicted_rows_total", "counter", "Rows that gave room."),
    ("refreshed", "hps_cache_refreshed_rows_total", "counter",
     "Rows of it that updates and refreshes overwrote."),
)
_REFRESH_VALUES = (
    ("walks", "hps_cache_refresh_walks_total", "counter",
     "Times that all rows of the GPU cache were read from the tiers again."),
    ("rows", "hps_cache_refresh_rows_total", "counter", "Rows that were read so."),
    ("failures", "hps_cache_refresh_failures_total", "counter",
     "Times that a tier or the cache ended this."),
)
_UPDATE_VALUES = (
    ("received_rows", "hps_update_received_rows_total", "counter",
     "Rows that an update source gave."),
    ("delivered_rows", "hps_update_delivered_rows_total", "counter",
     "Rows of these that the tiers have stored."),
    ("rejected_rows", "hps_update_rejected_rows_total", "counter",
     "Rows of these that no table here takes."),
    ("rejected", "hps_update_rejected_batches_total", "counter",
     "Batches with such rows."),
    ("malformed", "hps_update_malformed_total", "counter",
     "Messages or files that are damaged."),
    ("failures", "hps_update_failures_total", "counter",
     "Polls, deliveries and commits that failed and were tried again."),
    ("pending_rows", "hps_update_pending_rows", "gauge",
     "Rows that were given and are neither stored nor rejected yet."),
    ("waiting", "hps_update_waiting", "gauge",
     "Messages or files that were there at the last poll and were not given yet."),
)


def _label(text):
  return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _tables(metrics):
  for model in metrics["models"]:
    for table in model["tables"]:
      yield 'model="%s",table="%s"' % (_label(model["model"]),
                                       _label(table["table"])), table


def _pending_rows(reader):
  return reader["received_rows"] - reader["delivered_rows"] - reader["rejected_rows"]


def text(metrics):
  """Returns metrics (serving.metrics()) in Prometheus' text format, version 0.0.4."""
  lines = []

  def head(name, kind, what):
    lines.append("# HELP %s %s" % (name, what))
    lines.append("# TYPE %s %s" % (name, kind))

  for field, name, what in _COUNTERS:
    head(name, "counter", what)
    for labels, table in _tables(metrics):
      lines.append("%s{%s} %d" % (name, labels, table[field]))
  head("hps_lookup_seconds", "histogram", "Time of a lookup.")
  for labels, table in _tables(metrics):
    so_far = 0
    for i, count in enumerate(table["latency"][:-1]):
      so_far += count
      lines.append('hps_lookup_seconds_bucket{%s,le="%g"} %d' %
                   (labels, 1e-6 * 2**i, so_far))
    total = sum(table["latency"])
    lines.append('hps_lookup_seconds_bucket{%s,le="+Inf"} %d' % (labels, total))
    lines.append("hps_lookup_seconds_sum{%s} %.9f" % (labels, table["nanoseconds"] * 1e-9))
    lines.append("hps_lookup_seconds_count{%s} %d" % (labels, total))
  for field, name, kind, what in _TIER_VALUES:
    head(name, kind, what)
    for labels, table in _tables(metrics):
      for tier in ("volatile", "persistent"):
        if table[tier] is not None and field in table[tier]:
          lines.append('%s{%s,tier="%s"} %d' % (name, labels, tier, table[tier][field]))
  for field, name, kind, what in _CACHE_VALUES:
    head(name, kind, what)
    for labels, table in _tables(metrics):
      if table["cache"] is not None and field in table["cache"]:
        lines.append("%s{%s} %d" % (name, labels, table["cache"][field]))
  for field, name, kind, what in _REFRESH_VALUES:
    head(name, kind, what)
    for labels, table in _tables(metrics):
      if table["refresh"] is not None:
        lines.append("%s{%s} %d" % (name, labels, table["refresh"][field]))
  for field, name, kind, what in _UPDATE_VALUES:
    head(name, kind, what)
    for reader in metrics["updates"]:
      value = (_pending_rows(reader) if field == "pending_rows" else reader[field])
      if value >= 0:  # A source may not know how much waits.
        lines.append('%s{group="%s"} %d' % (name, _label(reader["group"]), value))
  return "\n".join(lines) + "\n"


class _Handler(http.server.BaseHTTPRequestHandler):
  """Answers /metrics."""

  def do_GET(self):  # pylint: disable=invalid-name
    if self.path.split("?")[0] not in ("/", "/metrics"):
      self.send_error(404)
      return
    try:
      body = text(serving.metrics()).encode("utf-8")
    except Exception as e:  # pylint: disable=broad-except
      self.send_error(503, str(e).splitlines()[0])
      return
    self.send_response(200)
    self.send_header("Content-Type", "text/plain; version=0.0.4")
    self.send_header("Content-Length", str(len(body)))
    self.end_headers()
    self.wfile.write(body)

  def log_message(self, format, *args):  # pylint: disable=redefined-builtin
    pass


def serve_metrics(port, address="127.0.0.1"):
  """Serves /metrics of this process's server over HTTP, in a thread of its own.

  Args:
    port: int; 0 takes one that is free.
    address: the interface.

  Returns:
    An http.server.HTTPServer: `server_port` is the port, `shutdown()` ends it.

  Raises:
    OSError: the port is taken.
  """
  server = http.server.HTTPServer((address, port), _Handler)
  thread = threading.Thread(target=server.serve_forever, daemon=True)
  thread.start()
  return server
