# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Creates test files: libraries without code, modules of GPU code, folders of CUDA."""

import os
import struct

_HEADER_BYTES, _SECTION_BYTES = 64, 64
_SHT_PROGBITS, _SHT_STRTAB, _SHT_DYNAMIC = 1, 3, 6
_DT_NEEDED, _DT_STRTAB, _DT_SONAME, _DT_RPATH, _DT_RUNPATH = 1, 5, 14, 15, 29


def _strings(texts):
  """Returns (bytes, {text: offset})."""
  data, at = b"\0", {}
  for text in texts:
    at[text] = len(data)
    data += text.encode() + b"\0"
  return data, at


def write_library(path, soname=None, needed=(), runpath=None, rpath=None, sections=None):
  """Writes a shared library that has tables but no code.

  Args:
    path: path of the file; its folder is created.
    soname, needed, runpath, rpath: content of the dynamic section.
    sections: {name: bytes} of others.
  """
  entries = [(_DT_NEEDED, n) for n in needed]
  entries += [(tag, text) for tag, text in
              ((_DT_SONAME, soname), (_DT_RPATH, rpath), (_DT_RUNPATH, runpath)) if text]
  strings, at = _strings([text for _, text in entries])
  dynamic = b"".join(struct.pack("<QQ", tag, at[text]) for tag, text in entries)
  dynamic += struct.pack("<QQ", _DT_STRTAB, 0) + struct.pack("<QQ", 0, 0)
  parts = [(".dynstr", _SHT_STRTAB, strings, 0), (".dynamic", _SHT_DYNAMIC, dynamic, 1)]
  parts += [(name, _SHT_PROGBITS, data, 0) for name, data in (sections or {}).items()]
  names, name_at = _strings([p[0] for p in parts] + [".shstrtab"])
  parts.append((".shstrtab", _SHT_STRTAB, names, 0))
  body, headers = b"", struct.pack("<IIQQQQIIQQ", *[0] * 10)
  for name, kind, data, link in parts:
    body += b"\0" * (-len(body) % 8)
    headers += struct.pack("<IIQQQQIIQQ", name_at[name], kind, 0, 0,
                           _HEADER_BYTES + len(body), len(data), link, 0, 8, 0)
    body += data
  body += b"\0" * (-len(body) % 8)
  head = b"\x7fELF\x02\x01\x01" + b"\0" * 9
  head += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, _HEADER_BYTES + len(body), 0,
                      _HEADER_BYTES, 0, 0, _SECTION_BYTES, len(parts) + 1, len(parts))
  os.makedirs(os.path.dirname(path), exist_ok=True)
  with open(path, "wb") as f:
    f.write(head + body + headers)


def module_bytes(ptx=(), machine_code=(), code=b"code"):
  """Returns a module of GPU code with an entry for each capability."""
  payload = b""
  for kind, archs in ((2, machine_code), (1, ptx)):
    for arch in archs:
      data = code + b"\0" * (-len(code) % 8)
      payload += struct.pack("<HHIQQII", kind, 0x101, 64, len(data), 0, 0, arch)
      payload += b"\0" * 32 + data
  return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(payload)) + payload


def write_cuda(folder, version, without=()):
  """Writes a folder of empty CUDA libraries.

  Args:
    folder: to create.
    version: 12 or 13.
    without: names of libraries to leave out.
  """
  numbers = {13: {"cublas": 13, "cufft": 12, "curand": 10, "cusolver": 12, "cusparse": 12},
             12: {"cublas": 12, "cufft": 11, "curand": 10, "cusolver": 11,
                  "cusparse": 12}}[version]
  for name, number in numbers.items():
    if name not in without:
      soname = "lib%s.so.%d" % (name, number)
      write_library(os.path.join(folder, soname), soname)


def write_tensorflow(folder, is_cuda_build=True, cuda="10", modules=(b"",)):
  """Writes the examined files of a tensorflow_core folder."""
  library = os.path.join(folder, "python", "_pywrap_tensorflow_internal.so")
  code = b"".join(modules)
  write_library(library, sections={".nv_fatbin": code} if code else {})
  about = os.path.join(folder, "python", "platform", "build_info.py")
  os.makedirs(os.path.dirname(about), exist_ok=True)
  with open(about, "w") as f:
    f.write("is_rocm_build = False\nis_cuda_build = %r\n" % is_cuda_build)
    if is_cuda_build:
      f.write("cuda_version_number = %r\ncudnn_version_number = '7'\n" % cuda)
