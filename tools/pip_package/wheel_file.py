# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes a wheel file (PEP 427). Equal contents give equal bytes."""

import base64
import hashlib
import zipfile

# The earliest time that a zip file can express.
_TIME = (1980, 1, 1, 0, 0, 0)

_GENERATOR = "build_sok"


def normalized(name):
  """Returns a distribution name in the spelling of file names."""
  return name.replace("-", "_")


def file_name(name, version, tag):
  """Returns the wheel's file name, `name-version-tag.whl`."""
  return "%s-%s-%s.whl" % (normalized(name), version, tag)


def metadata_text(fields, description):
  """Returns METADATA.

  Args:
    fields: (field, value) pairs in order; a field may be repeated.
    description: Markdown.
  """
  lines = ["%s: %s" % field for field in fields]
  return "\n".join(lines) + "\n\n" + description


def _record_line(path, data):
  digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
  return "%s,sha256=%s,%d\n" % (path, digest.rstrip(b"=").decode(), len(data))


def write(path, name, version, tag, files, metadata, licence):
  """Writes the wheel to `path`.

  Args:
    path: the file to write.
    name: distribution name.
    version: its version.
    tag: `python-abi-platform`.
    files: {path in the wheel: bytes}.
    metadata: the text of METADATA.
    licence: bytes of the license's text.

  Raises:
    ValueError: `files` is empty, or has an absolute path or one that leaves the wheel.
  """
  if not files:
    raise ValueError("a wheel needs files, got none")
  for entry in files:
    if entry.startswith("/") or ".." in entry.split("/"):
      raise ValueError("path leads out of the wheel: %s" % entry)
  info = "%s-%s.dist-info" % (normalized(name), version)
  wheel = "Wheel-Version: 1.0\nGenerator: %s\nRoot-Is-Purelib: %s\nTag: %s\n"
  wheel_text = wheel % (_GENERATOR, "true" if tag.endswith("-any") else "false", tag)
  entries = sorted(files.items())
  # PEP 427 recommends dist-info last, with RECORD at its end.
  entries += [
      (info + "/LICENSE", licence),
      (info + "/METADATA", metadata.encode("utf-8")),
      (info + "/WHEEL", wheel_text.encode("utf-8")),
  ]
  record = "".join(_record_line(*entry) for entry in entries)
  record += "%s/RECORD,,\n" % info
  entries.append((info + "/RECORD", record.encode("utf-8")))
  with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
    for entry, data in entries:
      header = zipfile.ZipInfo(entry, _TIME)
      header.compress_type = zipfile.ZIP_DEFLATED
      mode = 0o755 if entry.endswith(".so") else 0o644
      header.external_attr = (0o100000 | mode) << 16
      archive.writestr(header, data)
