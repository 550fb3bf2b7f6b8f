# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lists the GPU code in a library: modules with machine code for some cards and PTX.

A library built by nvcc has one section, `.nv_fatbin`, with modules one after another.
Each module is a header (magic, version, header's size, payload's size) and entries; an
entry is a header (kind, version, header's size, payload's size, then others, among them
the compute capability) and its code. The driver uses an entry of machine code that fits
the card; otherwise it compiles the newest PTX that is not newer than the card.
"""

import collections
import mmap
import struct

from embedding_variable.gpu import elf

SECTION = ".nv_fatbin"

_MAGIC = 0xBA55ED50
_HEADER = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HHIQ")
_ARCH_AT = 28
_PTX, _MACHINE_CODE = 1, 2
# Modules are aligned to this; zeros may be in between.
_ALIGNMENT = 8

# offset, bytes: position of the module in the file, including its header. ptx,
# machine_code: sorted lists of capabilities such as 70. ptx_bytes: size of the newest
# PTX, as stored.
Module = collections.namedtuple(
    "Module", ["offset", "bytes", "ptx", "machine_code", "ptx_bytes"])


def modules(path):
  """Returns the list of modules of a library, in the file's order.

  Args:
    path: path of an ELF file.

  Returns:
    list of Module; empty for a library without GPU code.

  Raises:
    OSError, ValueError: as for elf.Elf, or the section is damaged.
  """
  section = elf.Elf(path).sections.get(SECTION)
  if section is None or not section.bytes:
    return []
  found = []
  with open(path, "rb") as f:
    data = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
  try:
    at, end = section.offset, section.offset + section.bytes
    while at + _HEADER.size <= end:
      magic, _, header, payload = _HEADER.unpack_from(data, at)
      if magic != _MAGIC:
        at += _ALIGNMENT
        continue
      if at + header + payload > end:
        raise ValueError("%s: a module of GPU code at byte %d extends beyond its section" %
                         (path, at))
      found.append(_module(data, at, header, payload))
      at += header + payload
  finally:
    data.close()
  return found


def _module(data, begin, header, payload):
  ptx, machine_code = {}, set()
  at, end = begin + header, begin + header + payload
  while at + _ARCH_AT + 4 <= end:
    kind, _, entry_header, entry_payload = _ENTRY.unpack_from(data, at)
    arch, = struct.unpack_from("<I", data, at + _ARCH_AT)
    if kind == _PTX:
      ptx[arch] = entry_payload
    elif kind == _MACHINE_CODE:
      machine_code.add(arch)
    if entry_header + entry_payload == 0:
      break
    at += entry_header + entry_payload
  return Module(begin, header + payload, sorted(ptx), sorted(machine_code),
                ptx[max(ptx)] if ptx else 0)


def runs_on(module, capability):
  """Returns whether a card can run a module: by machine code or through its PTX.

  Args:
    module: a Module.
    capability: capability of the card, 10 * major + minor, such as 90.
  """
  same_major = [a for a in module.machine_code
                if a // 10 == capability // 10 and a <= capability]
  return bool(same_major) or any(a <= capability for a in module.ptx)
