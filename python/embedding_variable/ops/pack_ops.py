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
    A list of tensors with the same values and shapes: constants on the CPU; others as
    they came where they are few, else by way of one tensor.
  """
  cpu = cpu_of(device)
  if cpu == device:
    return list(tensors)
  packed, there = [], {}
  with ops.colocate_with(None, ignore_existing=True):
    for tensor in tensors:
      if id(tensor) in there or any(tensor is other for other in packed):
        continue
      value = tensor_util.constant_value(tensor)
      if value is None:
        packed.append(tensor)
      elif cpu_of(tensor.device) != tensor.device:
        with ops.device(cpu):
          there[id(tensor)] = constant_op.constant(value, tensor.dtype.base_dtype)
    # In the process of the op, which a pack cannot leave.
    if len(packed) >= _FEWEST:
      with ops.device(cpu):
        one = _gen.ev_pack(packed)
      with ops.device(device):
        unpacked = _gen.ev_unpack(one, T=[t.dtype.base_dtype for t in packed])
      for given, tensor in zip(packed, unpacked):
        tensor.set_shape(given.shape)
        there[id(given)] = tensor
  return [there.get(id(t), t) for t in tensors]


def scalars_to_device(scalars, dtype, device):
  """Returns scalars as an op on a device takes them from CPU memory.

  TensorFlow keeps float and int64 constants of a GPU in the GPU's memory, and would
  bring them back for the op in every step.

  Args:
    scalars: list of scalar tensors or numbers.
    dtype: DType that constants get.
    device: string, where the op is. Not a GPU: nothing is done.

  Returns:
    A list of the same, in which constants are on the CPU beside the GPU. What is no
    constant stays as it is.
  """
  cpu = cpu_of(device)
  if cpu == device:
    return list(scalars)
  made = []
  with ops.colocate_with(None, ignore_existing=True), ops.device(cpu):
    for scalar in scalars:
      value = scalar
      if isinstance(scalar, ops.Tensor):
        value = tensor_util.constant_value(scalar)
      elif not isinstance(scalar, numbers.Number):
        value = None
      made.append(scalar if value is None else
                  constant_op.constant(dtype.as_numpy_dtype(value), dtype))
  return made


ops.NotDifferentiable("EvPack")
ops.NotDifferentiable("EvUnpack")
