# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Cuts a lookup of many tables into a few ops, each for a part of the tables.

One op gives out all its outputs at once and takes all their gradients at once. What the
graph does with the outputs of one part can be done before, or beside, the next part:

- Rows in CPU memory: outputs are read, and gradients taken, while they are still in a
  processor's cache. One op for 26 tables of a usual batch writes 7 to 27 MB first.
- Rows in GPU memory: one part's outputs are used while the next one's are on the link,
  and one part's gradients go up while others are written.

Parts are for speed alone: each table's output has the same bits.
"""

from tensorflow.python.framework import device as device_lib

from embedding_variable.variables import storages

_TABLES_PER_PART = 4

# Rows in CPU memory. More parts, down to an op per table, gained nothing where each
# sample has one id, and ops cost some ten microseconds each.
_MAX_CPU_PARTS = 8
_MAX_CPU_PARTS_OF_UNKNOWN_SIZE = 4
# Floats of one part's outputs: 256 KB. Less is in a cache anyway.
_CPU_FLOATS_PER_PART = 1 << 16

# Rows in GPU memory.
_MAX_PARTS = 4
# Floats of one part's outputs: 16 MB, which take the link 0.3 ms, some ten times what
# another op costs.
_FLOATS_PER_PART = 1 << 22
# With ten, parts took a fifth longer than one op: then most of the time goes into ids,
# and nothing is beside them.
_IDS_PER_SAMPLE = 2


def cut(requests):
  """Returns the requests of one op, cut into a list of lists, one for each op.

  Args:
    requests: list of `pooled.Request`s of whole tables, all on one device of TensorFlow's.
  """
  count = _num_parts(requests)
  ends = [len(requests) * k // count for k in range(count + 1)]
  return [requests[begin:end] for begin, end in zip(ends, ends[1:])]


def _num_parts(requests):
  tables = [r.parts[0] for r in requests]
  # A table that comes twice is looked up by one op, so that its update, if it is made of
  # one of the two, comes after both.
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
  """One unless the graph knows that outputs are large and ids few."""
  # With weights rows come down and are pooled here.
  if any(r.weights is not None for r in requests):
    return 1
  # A GPU of TensorFlow's: no output crosses the link.
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
