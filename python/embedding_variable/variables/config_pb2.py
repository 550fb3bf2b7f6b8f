# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Enumerations of the storage options, with DeepRec's names and numbers.

Scripts import them from `tensorflow.core.framework.embedding.config_pb2`, where
`integration/namespace_patch.py` installs this module. It is not a protocol buffer, but
has the same methods (`Name`, `Value`, `keys`, `values`, `items`).
"""

import sys

from embedding_variable.variables import cache_strategies


class _Enum(object):
  """The methods of protobuf's EnumTypeWrapper that scripts use."""

  def __init__(self, name, numbers):
    self._name = name
    self._numbers = dict(numbers)
    for key, number in numbers:
      setattr(self, key, number)

  def Name(self, number):  # pylint: disable=invalid-name
    """Returns the name of `number`; raises ValueError if it has none."""
    for key, value in self._numbers.items():
      if value == number:
        return key
    raise ValueError("Enum %s has no name defined for value %r" %
                     (self._name, number))

  def Value(self, key):  # pylint: disable=invalid-name
    """Returns the number of `key`; raises ValueError if there is none."""
    if key not in self._numbers:
      raise ValueError("Enum %s has no value defined for name %r" %
                       (self._name, key))
    return self._numbers[key]

  def keys(self):
    return list(self._numbers)

  def values(self):
    return list(self._numbers.values())

  def items(self):
    return list(self._numbers.items())


_ENUMS = {
    "StorageType": (
        ("DEFAULT", 0),
        ("DRAM", 1),
        ("PMEM_MEMKIND", 2),
        ("PMEM_LIBPMEM", 3),
        ("SSDHASH", 4),
        ("LEVELDB", 5),
        ("HBM", 6),
        ("DRAM_PMEM", 11),
        ("DRAM_SSDHASH", 12),
        ("HBM_DRAM", 13),
        ("DRAM_LEVELDB", 14),
        ("DRAM_PMEM_SSDHASH", 101),
        ("HBM_DRAM_SSDHASH", 102),
    ),
    "CacheStrategy": tuple((s.name, s.number) for s in cache_strategies.TABLE),
    "EmbeddingVariableType": (("IMMUTABLE", 0), ("MUTABLE", 1)),
    "SlotType": (("EMBEDDING_VARIABLE", 0), ("VARIABLE", 1)),
}

# Every value is also an attribute of the module, as in a generated one.
for _name, _numbers in _ENUMS.items():
  setattr(sys.modules[__name__], _name, _Enum(_name, _numbers))
  for _key, _number in _numbers:
    setattr(sys.modules[__name__], _key, _number)
# Names from earlier releases of DeepRec.
INVALID = 0
CacheType = CacheStrategy  # pylint: disable=undefined-variable
