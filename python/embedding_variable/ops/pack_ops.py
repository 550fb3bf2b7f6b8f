# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Passes many tensors to an op on a GPU as one.

TensorFlow passes each tensor from its CPU device to its GPU device through two ops,
even if the consumer reads it from CPU memory. For a lookup of 26 tables that took 0.2
ms before the lookup began.
"""

import numbers

from embedding_variable import _lib
from embedding_variable.tf_names import constant_op
from embedding_variable.tf_names import device as device_lib
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import tensor_util

_gen = _lib.load()

# Fewer tensors are passed unpacked.
_FEWEST = 8


def cpu_of(device):
  """Returns the CPU device of a GPU's task; other devices are returned unchanged."""
  spec = device_lib.DeviceSpec.from_string(device or "")
  if spec.device_type != "GPU":
    return device
  return device_lib.DeviceSpec(spec.job, spec.replica, spec.task, "CPU", 0).to_string()


def to_device(tensors, device):
  """Returns tensors for an op on a device that reads them from CPU memory.

  Args:
    tensors: list of tensors on the CPU that are not differentiated.
    device: string, the op's device. No-op unless it is a GPU.

  Returns:
    A list of tensors with the same values and shapes. Constants, and all tensors if
      they are few, are unchanged; the others are passed through one tensor.
  """
  if cpu_of(device) == device:
    return list(tensors)
  # In a tf.function, tensors of eager execution become placeholders.
  tensors = [ops.convert_to_tensor(tensor) for tensor in tensors]
  if any(isinstance(tensor, ops.EagerTensor) for tensor in tensors):
    return tensors
  packed = []
  for tensor in tensors:
    # Reading a constant's value would prevent sessions from feeding it.
    if tensor.op.type != "Const" and not any(tensor is other for other in packed):
      packed.append(tensor)
  if len(packed) < _FEWEST:
    return list(tensors)
  with ops.colocate_with(None, ignore_existing=True):
    # In the op's process, since a packed tensor cannot leave its process.
    with ops.device(cpu_of(device)):
      one = _gen.ev_pack(packed)
    with ops.device(device):
      unpacked = _gen.ev_unpack(one, T=[t.dtype.base_dtype for t in packed])
  moved = {}
  for given, tensor in zip(packed, unpacked):
    tensor.set_shape(given.shape)
    moved[id(given)] = tensor
  return [moved.get(id(t), t) for t in tensors]


def scalars_to_device(scalars, dtype, device, ours):
  """Returns scalars for an op on a device that reads them from CPU memory.

  TensorFlow keeps float and int64 constants of a GPU in GPU memory, and would copy them
  to the host for the op in every step.

  Args:
    scalars: list of scalar tensors or numbers.
    dtype: DType of new constants.
    device: string, the op's device. No-op unless it is a GPU.
    ours: function that returns whether a tensor was created for this op only. Others
      may be fed, even if constant, and stay unchanged.

  Returns:
    A list of the same, with numbers and our own constants on the CPU of the GPU's task.
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
