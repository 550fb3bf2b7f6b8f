# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads a shared library's sections and its dependencies.

Supports only 64-bit little-endian ELF files, as all CUDA libraries on Linux are.
"""

import collections
import mmap
import os
import struct

_MAGIC = b"\x7fELF\x02\x01"

_SHT_DYNAMIC = 6
_DT_NULL, _DT_NEEDED, _DT_STRTAB, _DT_SONAME, _DT_RPATH, _DT_RUNPATH = 0, 1, 5, 14, 15, 29

Section = collections.namedtuple("Section", ["offset", "bytes"])


class Elf(object):
  """A library's tables. The file is not kept open.

  Attributes:
    path: as given.
    sections: {name: Section}, offsets in the file.
    needed: list of names of libraries that it needs (DT_NEEDED).
    soname: its own name (DT_SONAME), or None.
    search_path: list of folders that it searches first (DT_RUNPATH or DT_RPATH), with
      $ORIGIN replaced by the real folder of the file.
  """

  def __init__(self, path):
    """Reads `path`.

    Args:
      path: path of a file.

    Raises:
      OSError: the file cannot be read.
      ValueError: it is not such an ELF file, or is damaged.
    """
    self.path = path
    self.sections = {}
    self.needed = []
    self.soname = None
    self.search_path = []
    with open(path, "rb") as f:
      if f.read(len(_MAGIC)) != _MAGIC:
        raise ValueError("%s is not a 64-bit little-endian ELF file" % path)
      data = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
    try:
      self._read(data)
    except (struct.error, IndexError) as e:
      raise ValueError("%s is damaged: %s" % (path, e))
    finally:
      data.close()

  def _read(self, data):
    table, = struct.unpack_from("<Q", data, 0x28)
    entry_size, count, names_at = struct.unpack_from("<HHH", data, 0x3a)
    headers = [struct.unpack_from("<IIQQQQII", data, table + i * entry_size)
               for i in range(count)]
    if not headers:
      return
    names = headers[names_at][4]
    for header in headers:
      name, kind, _, _, offset, size, link, _ = header
      self.sections[_string(data, names + name)] = Section(offset, size)
      if kind == _SHT_DYNAMIC:
        self._read_dynamic(data, offset, size, headers[link][4])

  def _read_dynamic(self, data, offset, size, strings):
    paths = {}
    for at in range(offset, offset + size, 16):
      tag, value = struct.unpack_from("<QQ", data, at)
      if tag == _DT_NULL:
        break
      if tag in (_DT_NEEDED, _DT_SONAME, _DT_RPATH, _DT_RUNPATH):
        text = _string(data, strings + value)
        if tag == _DT_NEEDED:
          self.needed.append(text)
        elif tag == _DT_SONAME:
          self.soname = text
        else:
          paths[tag] = text
    # DT_RUNPATH takes precedence if both exist.
    text = paths.get(_DT_RUNPATH, paths.get(_DT_RPATH, ""))
    origin = os.path.dirname(os.path.realpath(self.path))
    self.search_path = [
        os.path.normpath(p.replace("${ORIGIN}", "$ORIGIN").replace("$ORIGIN", origin))
        for p in text.split(":") if p
    ]


def _string(data, at):
  end = data.find(b"\0", at)
  if end < 0 or at >= len(data):
    raise IndexError("an unterminated name at byte %d" % at)
  return data[at:end].decode("utf-8", "replace")
