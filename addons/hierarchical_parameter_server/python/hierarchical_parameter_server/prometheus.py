# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The server's metrics in Prometheus' format, and an HTTP server for them."""

import http.server
import socket
import threading

import tensorflow as tf

from hierarchical_parameter_server import serving

_COUNTERS = (
    ("lookups", "hps_lookups_total", "Lookups of a table."),
    ("keys", "hps_keys_total", "Ids looked up."),
    ("from_volatile", "hps_volatile_hits_total", "Ids found in the volatile tier."),
    ("from_persistent", "hps_persistent_hits_total",
     "Ids found in the persistent tier."),
    ("defaults", "hps_default_rows_total", "Ids found in no tier."),
    ("unavailable", "hps_unavailable_rows_total",
     "Ids answered with the default value because a tier was unavailable."),
    ("late", "hps_late_rows_total",
     "Ids answered with the default value without reading a tier."),
    ("failed", "hps_failed_lookups_total", "Lookups that failed."),
)
_TIER_VALUES = (
    ("rows", "hps_rows", "gauge", "Rows of a tier."),
    ("host_bytes", "hps_host_bytes", "gauge", "Memory of a tier."),
    ("inserted", "hps_inserted_rows_total", "counter", "Rows stored."),
    ("evicted", "hps_evicted_rows_total", "counter", "Rows evicted by a limit."),
)
_CACHE_VALUES = (
    ("hits", "hps_cache_hits_total", "counter", "Ids found in the GPU cache."),
    ("misses", "hps_cache_misses_total", "counter", "Ids not found in the GPU cache."),
    ("rows", "hps_cache_rows", "gauge", "Rows of the GPU cache."),
    ("device_bytes", "hps_cache_bytes", "gauge", "GPU memory of the cache."),
    ("inserted", "hps_cache_inserted_rows_total", "counter", "Rows stored in the GPU cache."),
    ("evicted", "hps_cache_evicted_rows_total", "counter", "Rows evicted from the GPU cache."),
    ("refreshed", "hps_cache_refreshed_rows_total", "counter",
     "Rows of the GPU cache overwritten by updates and refreshes."),
)
_REFRESH_VALUES = (
    ("walks", "hps_cache_refresh_walks_total", "counter",
     "Complete refreshes of the GPU cache from the tiers."),
    ("rows", "hps_cache_refresh_rows_total", "counter", "Rows read by refreshes."),
    ("failures", "hps_cache_refresh_failures_total", "counter",
     "Refreshes that failed in a tier or the cache."),
)
_OUTAGE_VALUES = (
    ("away", "hps_tier_away", "gauge", "1 while lookups skip the tier, otherwise 0."),
    ("failures", "hps_tier_failures_total", "counter",
     "Lookups that did not reach the tier in time."),
    ("skipped", "hps_tier_skipped_lookups_total", "counter",
     "Lookups that skipped the tier because it was unavailable."),
)
_UPDATE_VALUES = (
    ("received_rows", "hps_update_received_rows_total", "counter",
     "Rows received from an update source."),
    ("delivered_rows", "hps_update_delivered_rows_total", "counter",
     "Received rows stored in the tiers."),
    ("rejected_rows", "hps_update_rejected_rows_total", "counter",
     "Received rows that no table accepts."),
    ("rejected", "hps_update_rejected_batches_total", "counter",
     "Batches with such rows."),
    ("malformed", "hps_update_malformed_total", "counter",
     "Messages or files with invalid content."),
    ("failures", "hps_update_failures_total", "counter",
     "Polls, deliveries and commits that failed and were retried."),
    ("pending_rows", "hps_update_pending_rows", "gauge",
     "Received rows that are neither stored nor rejected yet."),
    ("waiting", "hps_update_waiting", "gauge",
     "Messages or files that existed at the last poll and are not received yet."),
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
  for field, name, kind, what in _OUTAGE_VALUES:
    head(name, kind, what)
    for tier, found in metrics["tiers"].items():
      if found is not None:
        lines.append('%s{tier="%s",type="%s"} %d' %
                     (name, tier, _label(found["type"]), found[field]))
  for field, name, kind, what in _UPDATE_VALUES:
    head(name, kind, what)
    for reader in metrics["updates"]:
      value = (_pending_rows(reader) if field == "pending_rows" else reader[field])
      if value >= 0:  # -1: the source does not know how much is waiting
        lines.append('%s{group="%s"} %d' % (name, _label(reader["group"]), value))
  return "\n".join(lines) + "\n"


def health(tiers):
  """Returns (is_healthy, text): whether lookups are answered, and a line per problem.

  Args:
    tiers: serving.health().
  """
  is_healthy, lines = True, []
  for tier, found in tiers.items():
    if found is None or not found["away"]:
      continue
    is_healthy = is_healthy and found["skips"]
    lines.append("the %s tier, %s, is unavailable, and lookups %s: %s" %
                 (tier, found["type"], "skip it" if found["skips"] else "fail",
                  found["last_error"]))
  return is_healthy, "\n".join(lines or ["ok"]) + "\n"


class _Handler(http.server.BaseHTTPRequestHandler):
  """Handles /metrics and /healthz."""

  # Seconds allowed for a client to send its request.
  timeout = 10

  def do_GET(self):  # pylint: disable=invalid-name
    path = self.path.split("?")[0]
    if path not in ("/", "/metrics", "/healthz"):
      self.send_error(404)
      return
    try:
      if path == "/healthz":
        is_healthy, body = health(serving.health())
        self._answer(200 if is_healthy else 503, "text/plain; charset=utf-8", body)
      else:
        self._answer(200, "text/plain; version=0.0.4", text(serving.metrics()))
    except tf.errors.OpError as e:
      self._answer(503, "text/plain; charset=utf-8", e.message.split("\n\t [[")[0] + "\n")

  def _answer(self, code, kind, body):
    body = body.encode("utf-8")
    self.send_response(code)
    self.send_header("Content-Type", kind)
    self.send_header("Content-Length", str(len(body)))
    self.end_headers()
    self.wfile.write(body)

  def log_message(self, format, *args):  # pylint: disable=redefined-builtin
    pass


class _Server(http.server.ThreadingHTTPServer):
  """Uses a thread per request, so a slow client does not block others."""

  daemon_threads = True

  def __init__(self, port, address):
    if ":" in address:
      self.address_family = socket.AF_INET6
    super().__init__((address, port), _Handler)


def serve_metrics(port, address="127.0.0.1"):
  """Serves metrics and health of this process's parameter server over HTTP.

  /metrics (and /) is Prometheus' text. /healthz is 200 while lookups are answered. It
  is 503 if no parameter server runs, or if a tier is unavailable whose `on_unavailable`
  is "error". Its text has the reason, also for an unavailable tier that lookups skip.
  There is no authentication: use an address other than the default only in a network
  whose members may read this.

  Args:
    port: int; 0 selects a free one.
    address: string, the interface to listen on; "0.0.0.0" is all of IPv4, "::" all of
      IPv6.

  Returns:
    An http.server.HTTPServer: `server_port` is the port, `shutdown()` stops it.

  Raises:
    OSError: the port is in use, or the address is not one of this machine.
  """
  server = _Server(port, address)
  thread = threading.Thread(target=server.serve_forever, daemon=True)
  thread.start()
  return server
