# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Cuts a lookup of many tables whose rows are in GPU memory into parts of tables.

One op gives out all its outputs at once, when the last has come down, and so does its
gradient take them. In parts, what the graph does with one part's outputs runs beside the
next part's way over the link, and one part's gradients go up while others are written.
"""

from tensorflow.python.framework import device as device_lib

from embedding_variable.variables import options

_MAX_PARTS = 4
_TABLES_PER_PART = 4
# Floats of one part's outputs: 16 MB, which take the link 0.3 ms, some ten times what
# another op costs.
_FLOATS_PER_PART = 1 << 22
# With ten, parts took a fifth longer than one op: then most of the time goes into ids,
# and nothing is beside them.
_IDS_PER_SAMPLE = 2


def cut(requests):
  """Returns the requests of one op, cut into a list of lists, one for each op.

  One list unless the graph knows that outputs are large and ids few.

  Args:
    requests: list of `pooled.Request`s of whole tables, all on one device of TensorFlow's.
  """
  count = _num_parts(requests)
  ends = [len(requests) * k // count for k in range(count + 1)]
  return [requests[begin:end] for begin, end in zip(ends, ends[1:])]


def _num_parts(requests):
  tables = [r.parts[0] for r in requests]
  if any(t.storage_type not in options.MAYBE_ON_A_DEVICE for t in tables):
    return 1
  # With weights rows come down and are pooled here. A table that comes twice is looked up
  # by one op, so that its update, if it is made of one of the two, comes after both.
  if any(r.weights is not None for r in requests) or len(set(tables)) < len(tables):
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
