# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Computes the platform tag of shared libraries from the symbol versions they need."""

import platform
import struct

# Each tag with the newest version of each name that its systems have (PEP 600 and the
# profiles of auditwheel). The first sufficient tag is used.
_PROFILES = (
    ("manylinux2014", {"GLIBC": "2.17", "GLIBCXX": "3.4.19", "CXXABI": "1.3.7",
                       "GCC": "4.8.0"}),
    ("manylinux_2_27", {"GLIBC": "2.27", "GLIBCXX": "3.4.24", "CXXABI": "1.3.11",
                        "GCC": "7.0.0"}),
    ("manylinux_2_31", {"GLIBC": "2.31", "GLIBCXX": "3.4.28", "CXXABI": "1.3.12",
                        "GCC": "7.0.0"}),
    ("manylinux_2_34", {"GLIBC": "2.34", "GLIBCXX": "3.4.29", "CXXABI": "1.3.13",
                        "GCC": "7.0.0"}),
    ("manylinux_2_35", {"GLIBC": "2.35", "GLIBCXX": "3.4.30", "CXXABI": "1.3.13",
                        "GCC": "12.0.0"}),
)

# Section types of ELF.
_SHT_VERNEED = 0x6ffffffe


def needed_versions(library):
  """Returns the versions of symbols that a library needs of other libraries.

  Args:
    library: bytes of a 64-bit little-endian ELF file.

  Returns:
    set of strings such as "GLIBC_2.17".

  Raises:
    ValueError: the bytes are not such a file.
  """
  if library[:6] != b"\x7fELF\x02\x01":
    raise ValueError("not a 64-bit little-endian ELF file, it begins with %r" %
                     library[:6])
  table, = struct.unpack_from("<Q", library, 0x28)
  entry_size, count = struct.unpack_from("<HH", library, 0x3a)
  # Type, offset, the section with the strings, number of entries.
  sections = []
  for i in range(count):
    _, kind, _, _, offset, _, link, info = struct.unpack_from(
        "<IIQQQQII", library, table + i * entry_size)
    sections.append((kind, offset, link, info))
  found = set()
  for kind, offset, link, files in sections:
    if kind != _SHT_VERNEED:
      continue
    names = sections[link][1]
    for _ in range(files):
      _, versions, _, first, following = struct.unpack_from("<HHIII", library, offset)
      at = offset + first
      for _ in range(versions):
        _, _, _, name, after = struct.unpack_from("<IHHII", library, at)
        begin = names + name
        found.add(library[begin:library.index(b"\0", begin)].decode("ascii"))
        at += after
      offset += following
  return found


def _number(version):
  return tuple(int(part) for part in version.split("."))


def _suffices(newest, versions):
  for version in versions:
    name, _, number = version.rpartition("_")
    # Other names belong to libraries that are not part of any profile.
    if name in newest and (
        not number.replace(".", "").isdigit() or
        _number(number) > _number(newest[name])):
      return False
  return True


def of_versions(versions, machine):
  """Returns the tag of a library that needs these versions, "linux_…" if none fits."""
  for tag, newest in _PROFILES:
    if _suffices(newest, versions):
      return "%s_%s" % (tag, machine)
  return "linux_" + machine


def of_libraries(libraries):
  """Returns the platform tag of libraries, given as bytes, that were built on this
  machine.

  The names of the libraries they link to are not checked. Their own tests allow only
  TensorFlow's library, which TensorFlow loads, and libraries that every profile has.
  """
  machine = platform.machine()
  if machine != "x86_64":
    return "linux_" + machine  # Other machines have not been tested.
  needed = set().union(*[needed_versions(library) for library in libraries])
  return of_versions(needed, machine)
