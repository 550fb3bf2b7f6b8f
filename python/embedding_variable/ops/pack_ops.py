# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Many tensors that go to an op on a GPU, as one.

TensorFlow hands each tensor from its CPU device to its GPU device by two ops, also where
the op wants it in CPU memory. Those of a lookup of 26 tables took .2 ms, before the
lookup began.
"""

import numbers

from tensorflow.python.framework import constant_op
from tensorflow.python.framework import device as device_lib
from tensorflow.python.framework import ops
from tensorflow.python.framework import tensor_util

from embedding_variable import _lib

_gen = _lib.load()

# Fewer tensors go as they are.
_FEWEST = 8


def cpu_of(device):
  """Returns the CPU device beside a GPU; another device as it is."""
  spec = device_lib.DeviceSpec.from_string(device or "")
  if spec.device_type != "GPU":
    return device
  spec.device_type, spec.device_index = "CPU", 0
  return spec.to_string()


def to_device(tensors, device):
  """Returns tensors as an op on a device takes them from CPU memory.

  Args:
    tensors: list of tensors that are not differentiated, on the CPU.
    device: string, where the op is. Not a GPU: nothing is done.

  Returns:
    A list of tensors with the same values and shapes: constants, and all where they are
    few, as they came; the others by way of one tensor.
  """
  if cpu_of(device) == device:
    return list(tensors)
  packed = []
  for tensor in tensors:
    # Asking for a constant's value would keep sessions from feeding over it.
    if tensor.op.type != "Const" and not any(tensor is other for other in packed):
      packed.append(tensor)
  if len(packed) < _FEWEST:
    return list(tensors)
  with ops.colocate_with(None, ignore_existing=True):
    # In the process of the op, which a pack cannot leave.
    with ops.device(cpu_of(device)):
      one = _gen.ev_pack(packed)
    with ops.device(device):
      unpacked = _gen.ev_unpack(one, T=[t.dtype.base_dtype for t in packed])
  there = {}
  for given, tensor in zip(packed, unpacked):
    tensor.set_shape(given.shape)
    there[id(given)] = tensor
  return [there.get(id(t), t) for t in tensors]


def scalars_to_device(scalars, dtype, device, ours):
  """Returns scalars as an op on a device takes them from CPU memory.

  TensorFlow keeps float and int64 constants of a GPU in the GPU's memory, and would
  bring them back for the op in every step.

  Args:
    scalars: list of scalar tensors or numbers.
    dtype: DType that constants get.
    device: string, where the op is. Not a GPU: nothing is done.
    ours: function that says of a tensor whether it was made for this op alone. Another
      may be fed over, constant or not, and stays as it is.

  Returns:
    A list of the same, in which numbers, and constants that are ours, are on the CPU
    beside the GPU.
  """
  cpu = cpu_of(device)
  if cpu == device:
    return list(scalars)
  made = []
  with ops.colocate_with(None, ignore_existing=True), ops.device(cpu):
    for scalar in scalars:
      value = scalar
      if isinstance(scalar, ops.Tensor):
        value = tensor_util.constant_value(scalar) if ours(scalar) else None
      elif not isinstance(scalar, numbers.Number):
        value = None
      made.append(scalar if value is None else
                  constant_op.constant(dtype.as_numpy_dtype(value), dtype))
  return made


ops.NotDifferentiable("EvPack")
ops.NotDifferentiable("EvUnpack")
