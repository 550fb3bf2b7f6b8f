# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests reading libraries and their GPU code, against readelf and by hand."""

import os
import re
import subprocess

from absl.testing import absltest

from embedding_variable.gpu import elf
from embedding_variable.gpu import fatbin
from embedding_variable.gpu import links
from embedding_variable.gpu import testing


class ElfTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.path = os.path.join(self.create_tempdir().full_path, "liba.so")

  def test_agrees_with_readelf(self):
    for name in ("libev_cudart10.so", "libev_cublas10.so"):
      path = links.our_library(name)
      text = subprocess.check_output(["readelf", "--wide", "--dynamic", "--sections", path],
                                     universal_newlines=True)
      library = elf.Elf(path)
      self.assertEqual(library.needed, re.findall(r"\(NEEDED\).*\[(.*)\]", text))
      self.assertEqual([library.soname], re.findall(r"\(SONAME\).*\[(.*)\]", text))
      found = {n: (int(o, 16), int(s, 16)) for n, o, s in re.findall(
          r"\[ *\d+\] (\.\S+) +\S+ +[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+)", text)}
      self.assertGreater(len(found), 10)
      for section, where in found.items():
        self.assertEqual(tuple(library.sections[section]), where, section)

  def test_reads_what_was_written(self):
    testing.write_library(self.path, "liba.so.1", ["libb.so.2", "libc.so.6"],
                          sections={".nv_fatbin": b"12345678"})
    library = elf.Elf(self.path)
    self.assertEqual(library.soname, "liba.so.1")
    self.assertEqual(library.needed, ["libb.so.2", "libc.so.6"])
    section = library.sections[".nv_fatbin"]
    with open(self.path, "rb") as f:
      f.seek(section.offset)
      self.assertEqual(f.read(section.bytes), b"12345678")

  def test_origin_is_the_folder_of_the_file_behind_a_link(self):
    testing.write_library(self.path, runpath="$ORIGIN:${ORIGIN}/../x:/opt/y", rpath="/no")
    link = os.path.join(self.create_tempdir().full_path, "link.so")
    os.symlink(self.path, link)
    folder = os.path.dirname(os.path.realpath(self.path))
    self.assertEqual(elf.Elf(link).search_path,
                     [folder, os.path.join(os.path.dirname(folder), "x"), "/opt/y"])
    testing.write_library(self.path, rpath="/old")
    self.assertEqual(elf.Elf(self.path).search_path, ["/old"])

  def test_finds_nothing_without_a_dynamic_entry(self):
    testing.write_library(self.path)
    library = elf.Elf(self.path)
    self.assertIsNone(library.soname)
    self.assertEqual((library.needed, library.search_path), ([], []))

  def test_refuses_other_files(self):
    with open(self.path, "w") as f:
      f.write("GROUP ( libcublas.so.13 )")
    with self.assertRaisesRegex(ValueError, "not a 64-bit little-endian ELF file"):
      elf.Elf(self.path)

  def test_any_cut_is_an_error_or_harmless(self):
    testing.write_library(self.path, "liba.so.1", ["libb.so.2"], sections={".x": b"1"})
    with open(self.path, "rb") as f:
      data = f.read()
    refused = 0
    for length in range(16, len(data)):
      with open(self.path, "wb") as f:
        f.write(data[:length])
      try:
        elf.Elf(self.path)
      except ValueError:
        refused += 1
    self.assertGreater(refused, len(data) - 100)


class FatbinTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.path = os.path.join(self.create_tempdir().full_path, "liba.so")

  def write(self, *parts):
    testing.write_library(self.path, sections={".nv_fatbin": b"".join(parts)})

  def test_finds_modules_and_their_code(self):
    first = testing.module_bytes(ptx=[60, 70], machine_code=[60, 70], code=b"x" * 21)
    second = testing.module_bytes(machine_code=[80])
    self.write(first, b"\0" * 16, second)
    found = fatbin.modules(self.path)
    self.assertLen(found, 2)
    self.assertEqual(found[0].ptx, [60, 70])
    self.assertEqual(found[0].machine_code, [60, 70])
    self.assertEqual(found[0].ptx_bytes, 24)
    self.assertEqual((found[1].ptx, found[1].ptx_bytes), ([], 0))
    with open(self.path, "rb") as f:
      data = f.read()
    for module, expected in zip(found, (first, second)):
      self.assertEqual(data[module.offset:module.offset + module.bytes], expected)

  def test_what_a_card_runs(self):
    self.write(testing.module_bytes(ptx=[70], machine_code=[60, 70]),
               testing.module_bytes(machine_code=[60, 70, 80]),
               testing.module_bytes(ptx=[100]))
    runs = [[fatbin.runs_on(m, c) for m in fatbin.modules(self.path)]
            for c in (61, 75, 86, 90, 120)]
    self.assertEqual(runs, [[True, True, False], [True, True, False],
                            [True, True, False], [True, False, False],
                            [True, False, True]])

  def test_no_section_means_no_module(self):
    testing.write_library(self.path)
    self.assertEqual(fatbin.modules(self.path), [])

  def test_refuses_a_module_that_leads_out(self):
    self.write(testing.module_bytes(ptx=[70])[:-8])
    with self.assertRaisesRegex(ValueError, "extends beyond its section"):
      fatbin.modules(self.path)


if __name__ == "__main__":
  absltest.main()
