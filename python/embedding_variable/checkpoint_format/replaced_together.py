# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Replaces the files of tables together, even if the process is killed.

A table has one more file, its sums, with the size and CRC-32 of each of its files. New
files are written as `<file>.part`, and their sums after them. Renaming the sums
replaces the table: from then on the new files are valid, even those still named
`.part`. If both files exist, a load reads the one that matches the sums, so keys of one
dump never meet rows of another. A damaged file is reported by name.

Sums are JSON: {"dump": an id of the call, "tables": the names of the sums of all tables
of the call, "variable": the name of the table, "files": {name: {"bytes": N, "crc32":
N}}}. Two variables may have one file name, as "a/b" and "a_b"; the name of the table
keeps them apart. Sums of earlier releases have none. All tables of a call are
replaced by the rename of the first table's sums; until then the sums of the others stay
`.part` too.
"""

import json
import os
import uuid
import zlib

from . import durable

_PIECE_BYTES = 16 << 20


class Writer(object):
  """Writes one file under a temporary name beside its final path.

  Attributes:
    path: string, the final path.
    sums: dict, the file's entry in the sums; set by `close`.
  """

  def __init__(self, path):
    self.path = path
    self.sums = None
    self._bytes, self._crc32 = 0, 0
    # A new file: a server may have mapped the one that an earlier call left.
    _remove(path + durable.PART)
    self._file = open(path + durable.PART, "wb")

  def write(self, data):
    """Appends bytes."""
    self._file.write(data)
    self._bytes += len(data)
    self._crc32 = zlib.crc32(data, self._crc32)

  def close(self):
    """Closes the file; raises an error if the bytes cannot be stored on disk."""
    self._file.close()
    durable.sync(self.path + durable.PART)
    self.sums = {"bytes": self._bytes, "crc32": self._crc32}

  def discard(self):
    """Removes the written file."""
    self._file.close()
    _remove(self.path + durable.PART)


def commit(tables):
  """Replaces the files of tables by new ones.

  Args:
    tables: list of (path of the sums, name of the variable, list of closed `Writer`s in
      the same folder). All tables are in one folder. Other files of a table stay; its
      sums keep listing them if the first two files, keys and rows, are unchanged.

  Raises:
    OSError: a file cannot be written. Either nothing is replaced, or `finish` replaces
      the rest.
  """
  dump = uuid.uuid4().hex
  names = [path for path, _, _ in tables]
  of_sums = []
  try:
    for path, variable, writers in tables:
      files = {os.path.basename(w.path): w.sums for w in writers}
      before = (_read(path, or_none=True) or {}).get("files", {})
      if all(before.get(os.path.basename(w.path)) == w.sums for w in writers[:2]):
        files = dict(before, **files)
      of_sums.append(Writer(path))
      of_sums[-1].write(json.dumps(
          {"dump": dump, "tables": [os.path.basename(n) for n in names], "variable": variable,
           "files": files}, indent=1, sort_keys=True).encode())
      of_sums[-1].close()
    durable.sync(os.path.dirname(names[0]) or ".")
  except Exception:
    for writer in of_sums + [w for _, _, writers in tables for w in writers]:
      writer.discard()
    raise
  durable.give_names(names[:1])
  durable.give_names(names[1:])
  durable.give_names([w.path for _, _, writers in tables for w in writers])


def finish(path):
  """Completes an interrupted replacement, before the files are replaced again.

  Args:
    path: string, path of a table's sums. Does nothing if nothing was interrupted.
  """
  waiting = _read(path + durable.PART, or_none=True) if _is_decided(path) else None
  sums = waiting or _read(path, or_none=True) or {}
  for name in sums.get("tables", ()):
    _finish_table(os.path.join(os.path.dirname(path), name))
  _finish_table(path)


def check_variable(path, variable):
  """Raises ValueError if the files are those of another table.

  Args:
    path: string, path of a table's sums. Without sums, nothing is checked.
    variable: string, the name of the variable that is to read or replace the files.
  """
  sums = _read(path + durable.PART if _is_decided(path) else path, or_none=True) or {}
  if sums.get("variable") not in (None, variable):
    raise ValueError("the files of %s are those of variable '%s', which has the same file "
                     "name as '%s'; use another folder for each. If they do belong "
                     "together, remove %s" % (path, sums["variable"], variable, path))


def _finish_table(path):
  if _is_decided(path):
    durable.give_names([path])
  for name, sums in (_read(path, or_none=True) or {}).get("files", {}).items():
    file = os.path.join(os.path.dirname(path), name)
    if os.path.isfile(file + durable.PART) and _sums_of(file + durable.PART) == sums:
      durable.give_names([file])


def current(path, choices):
  """Returns the paths of a table's files, after comparing them with the sums.

  Args:
    path: string, path of a table's sums. Without sums, nothing is compared.
    choices: list of lists of strings: the possible final paths of each file, of which
      the first existing one is used.

  Returns:
    list of strings, one per file; the path may not exist if the file is missing.

  Raises:
    ValueError: a file was not written together with the others, is damaged, or is lost.
  """
  sums = _read(path + durable.PART if _is_decided(path) else path)
  listed = sums["files"] if sums else {}
  found = []
  for places in choices:
    known = [p for p in places if os.path.basename(p) in listed]
    file = (known + [p for p in places if os.path.exists(p)] + places)[0]
    if known:
      file = _fitting(file, listed[os.path.basename(file)], path)
    elif sums and os.path.exists(file):
      raise ValueError("%s was not written together with the table's other files, "
                       "according to %s. If they do belong together, remove %s" %
                       (file, path, path))
    found.append(file)
  return found


def _fitting(file, sums, path):
  """Returns the path of the file that matches the sums; ValueError if there is none."""
  existing = [f for f in (file, file + durable.PART) if os.path.isfile(f)]
  if not existing:
    raise ValueError("there is no %s, which %s lists" % (file, path))
  found = [_sums_of(f) for f in existing]
  if sums not in found:
    raise ValueError(
        "%s has %d bytes with the CRC-32 %08x, expected %d bytes with %08x, according to "
        "%s: it is damaged, or another program wrote it. In the second case, remove %s" %
        (existing[0], found[0]["bytes"], found[0]["crc32"], sums["bytes"], sums["crc32"],
         path, path))
  return existing[found.index(sums)]


def _is_decided(path):
  """Whether new sums are valid that are still named `.part`."""
  waiting = _read(path + durable.PART, or_none=True)
  if waiting is None:
    return False
  first = os.path.join(os.path.dirname(path), waiting["tables"][0])
  return (_read(first, or_none=True) or {}).get("dump") == waiting["dump"]


def _read(path, or_none=False):
  """Returns sums, or None if there are none.

  Args:
    path: string.
    or_none: bool; also return None if the sums are incomplete.

  Raises:
    ValueError: the sums are incomplete.
  """
  try:
    with open(path, "rb") as f:
      sums = json.loads(f.read().decode())
    return {"dump": str(sums["dump"]), "tables": [str(t) for t in sums["tables"]],
            "variable": sums.get("variable"),
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


def _remove(path):
  if os.path.isfile(path):
    os.remove(path)
