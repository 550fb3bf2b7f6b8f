# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files of tables that are replaced together, whatever happens to the process.

Beside the files of a table lies one, its sums, that says of each how many bytes it has
and their CRC-32. New files are written as `<file>.part`, then their sums; when those get
their name the new files are the table, also while they are still called `.part`. Where
both files are there, a load takes the one that fits the sums, so that the keys of one
dump never meet the rows of another. A file that a disk has damaged is named.

Sums are JSON: {"dump": what tells one call from another, "tables": the names of the sums
of all tables of the call, "files": {name: {"bytes": N, "crc32": N}}}. The tables of a call
are replaced when the sums of the first of them have their name: until then those of the
others wait as `.part` too.
"""

import json
import os
import uuid
import zlib

_PART = ".part"
_PIECE_BYTES = 16 << 20


class Writer(object):
  """Writes one file beside its final place.

  Attributes:
    path: string, the final place.
    sums: dict, what the sums say of the file; known when it is closed.
  """

  def __init__(self, path):
    self.path = path
    self.sums = None
    self._bytes, self._crc32 = 0, 0
    self._file = open(path + _PART, "wb")

  def write(self, data):
    """Appends bytes."""
    self._file.write(data)
    self._bytes += len(data)
    self._crc32 = zlib.crc32(data, self._crc32)

  def close(self):
    """Ends writing; raises when the bytes are not on the disk."""
    self._file.flush()
    os.fsync(self._file.fileno())
    self._file.close()
    self.sums = {"bytes": self._bytes, "crc32": self._crc32}

  def discard(self):
    """Removes what was written."""
    self._file.close()
    _remove(self.path + _PART)


def commit(tables):
  """Replaces the files of tables by new ones.

  Args:
    tables: list of (path of the sums, list of closed `Writer`s of files beside them).
      All are in one folder. Files of a table that are not among them stay; its sums go
      on to know them if the first two files, keys and rows, are what they were.

  Raises:
    OSError: it cannot be written. Nothing is replaced, or the rest is by `finish`.
  """
  dump = uuid.uuid4().hex
  names = [os.path.basename(path) for path, _ in tables]
  of_sums = []
  try:
    for path, writers in tables:
      files = {os.path.basename(w.path): w.sums for w in writers}
      before = (_read(path, or_none=True) or {}).get("files", {})
      if all(before.get(os.path.basename(w.path)) == w.sums for w in writers[:2]):
        files = dict(before, **files)
      of_sums.append(Writer(path))
      of_sums[-1].write(json.dumps({"dump": dump, "tables": names, "files": files},
                                   indent=1, sort_keys=True).encode())
      of_sums[-1].close()
    _sync_folder(tables[0][0])
    os.replace(tables[0][0] + _PART, tables[0][0])
  except Exception:
    for writer in of_sums + [w for _, writers in tables for w in writers]:
      writer.discard()
    raise
  _sync_folder(tables[0][0])
  for path, _ in tables[1:]:
    os.replace(path + _PART, path)
  _sync_folder(tables[0][0])
  for _, writers in tables:
    for writer in writers:
      os.replace(writer.path + _PART, writer.path)
  _sync_folder(tables[0][0])


def finish(path):
  """Completes what an ended process had decided to replace, before it is replaced again.

  Args:
    path: string, of a table's sums. Nothing happens when nothing was interrupted.
  """
  waiting = _read(path + _PART, or_none=True) if _is_decided(path) else None
  sums = waiting or _read(path, or_none=True) or {}
  for name in sums.get("tables", ()):
    _finish_table(os.path.join(os.path.dirname(path), name))
  _finish_table(path)


def _finish_table(path):
  if _is_decided(path):
    os.replace(path + _PART, path)
  for name, sums in (_read(path, or_none=True) or {}).get("files", {}).items():
    file = os.path.join(os.path.dirname(path), name)
    if os.path.isfile(file + _PART) and _sums_of(file + _PART) == sums:
      os.replace(file + _PART, file)


def current(path, choices):
  """Returns where the files of a table are, after comparing them with the sums.

  Args:
    path: string, of a table's sums. If there are none, nothing is compared.
    choices: list of lists of strings: the final places that each file may have, the
      first one that is there being meant.

  Returns:
    list of strings, one for each file; not there if it is missing.

  Raises:
    ValueError: a file is none of those that were written together, or damaged, or lost.
  """
  sums = _read(path + _PART if _is_decided(path) else path)
  listed = sums["files"] if sums else {}
  found = []
  for places in choices:
    known = [p for p in places if os.path.basename(p) in listed]
    file = (known + [p for p in places if os.path.exists(p)] + places)[0]
    if known:
      file = _fitting(file, listed[os.path.basename(file)], path)
    elif sums and os.path.exists(file):
      raise ValueError("%s was not written together with the table's other files, as %s "
                       "says. If they belong together all the same, remove %s" %
                       (file, path, path))
    found.append(file)
  return found


def _fitting(file, sums, path):
  """Returns the file of this name that has the sums; ValueError if none has."""
  there = [f for f in (file, file + _PART) if os.path.isfile(f)]
  if not there:
    raise ValueError("there is no %s, which %s lists" % (file, path))
  found = [_sums_of(f) for f in there]
  if sums not in found:
    raise ValueError(
        "%s has %d bytes with the CRC-32 %08x, expected %d bytes with %08x, as %s says: "
        "it is damaged, or another program wrote it. If that did, remove %s" %
        (there[0], found[0]["bytes"], found[0]["crc32"], sums["bytes"], sums["crc32"],
         path, path))
  return there[found.index(sums)]


def _is_decided(path):
  """Whether sums are valid that have not got their name yet."""
  waiting = _read(path + _PART, or_none=True)
  if waiting is None:
    return False
  first = os.path.join(os.path.dirname(path), waiting["tables"][0])
  return (_read(first, or_none=True) or {}).get("dump") == waiting["dump"]


def _read(path, or_none=False):
  """Returns sums, or None if there are none.

  Args:
    path: string.
    or_none: also None if they are not whole.

  Raises:
    ValueError: they are not whole.
  """
  try:
    with open(path, "rb") as f:
      sums = json.loads(f.read().decode())
    return {"dump": str(sums["dump"]), "tables": [str(t) for t in sums["tables"]],
            "files": {str(n): {"bytes": int(f["bytes"]), "crc32": int(f["crc32"])}
                      for n, f in sums["files"].items()}}
  except (FileNotFoundError, NotADirectoryError):
    return None
  except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
    if or_none:
      return None
    raise ValueError("%s cannot be read: %s" % (path, e))


def _sums_of(path):
  count, crc32 = 0, 0
  with open(path, "rb") as f:
    for data in iter(lambda: f.read(_PIECE_BYTES), b""):
      count, crc32 = count + len(data), zlib.crc32(data, crc32)
  return {"bytes": count, "crc32": crc32}


def _sync_folder(path):
  descriptor = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
  try:
    os.fsync(descriptor)
  finally:
    os.close(descriptor)


def _remove(path):
  if os.path.isfile(path):
    os.remove(path)
