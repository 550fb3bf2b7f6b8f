# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Splits a lookup of many tables into a few ops, each for some of the tables.

One op returns all its outputs at once and takes all their gradients at once. With
several ops, the graph can process the outputs of one while the next one runs:

- Rows in CPU memory: outputs are read, and gradients taken, while they are still in the
  CPU's caches. One op for 26 tables of a usual batch writes 7 to 27 MB first.
- Rows in GPU memory: outputs of one op are used while those of the next are copied over
  the link, and gradients of one op are copied while others are written.

The split only affects speed: each table's output has the same bits.
"""

from embedding_variable.tf_names import device as device_lib
from embedding_variable.variables import storages

_TABLES_PER_PART = 4

# Limit for rows in CPU memory. More ops, up to one per table, gained nothing with one
# id per sample, and an op costs some ten microseconds.
_MAX_CPU_PARTS = 8
_MAX_CPU_PARTS_OF_UNKNOWN_SIZE = 4
# Floats of one op's outputs: 256 KB. Less stays in the caches anyway.
_CPU_FLOATS_PER_PART = 1 << 16

# Limit for rows in GPU memory.
_MAX_PARTS = 4
# Floats of one op's outputs: 16 MB. Copying them takes 0.3 ms, about ten times the cost
# of another op.
_FLOATS_PER_PART = 1 << 22
# With ten ids per sample, several ops took a fifth longer than one: most of the time is
# then spent on ids, and nothing overlaps with that.
_IDS_PER_SAMPLE = 2


def cut(requests):
  """Splits requests into a list of lists, one per op.

  Args:
    requests: list of `pooled.Request`s of whole tables, all on one TensorFlow device.
  """
  count = _num_parts(requests)
  ends = [len(requests) * k // count for k in range(count + 1)]
  return [requests[begin:end] for begin, end in zip(ends, ends[1:])]


def _num_parts(requests):
  tables = [r.parts[0] for r in requests]
  # A table that occurs twice is looked up by one op, so that its update, which may be
  # formed by only one of the two, comes after both.
  if len(set(tables)) < len(tables):
    return 1
  kinds = [storages.of_variable(t) for t in tables]
  if all(kind is storages.DRAM for kind in kinds):
    return _num_cpu_parts(requests)
  if all(kind.may_use_gpu for kind in kinds):
    return _num_gpu_parts(requests, tables)
  # An SSD reads for all tables together.
  return 1


def _num_cpu_parts(requests):
  most = len(requests) // _TABLES_PER_PART
  if any(r.static_batch is None for r in requests):
    return max(1, min(_MAX_CPU_PARTS_OF_UNKNOWN_SIZE, most))
  floats = sum(r.static_batch * r.dim for r in requests)
  return max(1, min(_MAX_CPU_PARTS, most, floats // _CPU_FLOATS_PER_PART))


def _num_gpu_parts(requests, tables):
  """Returns 1 unless outputs are known to be large and ids few."""
  # With weights, rows are copied to the host and pooled there.
  if any(r.weights is not None for r in requests):
    return 1
  # On a GPU of TensorFlow's no output crosses the link.
  device = device_lib.DeviceSpec.from_string(tables[0].device or "")
  if device.device_type == "GPU":
    return 1
  floats = 0
  for request in requests:
    batch, num_ids = request.static_batch, request.ids.shape.num_elements()
    if batch is None or num_ids is None or num_ids > _IDS_PER_SAMPLE * batch:
      return 1
    floats += batch * request.dim
  return max(1, min(_MAX_PARTS, len(requests) // _TABLES_PER_PART,
                    floats // _FLOATS_PER_PART))
