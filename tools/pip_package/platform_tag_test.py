# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of platform_tag."""

import os
import re
import subprocess
import sys

from absl.testing import absltest
from absl.testing import parameterized

import platform_tag


class PlatformTagTest(parameterized.TestCase):

  def test_reads_what_readelf_reads(self):
    path = os.path.realpath(sys.executable)
    output = subprocess.check_output(["readelf", "-VW", path], universal_newlines=True)
    needs = output[output.index("Version needs section"):]
    with open(path, "rb") as f:
      self.assertEqual(platform_tag.needed_versions(f.read()),
                       set(re.findall(r"Name: (\S+)", needs)))

  @parameterized.parameters(b"", b"MZ", b"\x7fELF\x01\x01", b"\x7fELF\x02\x02")
  def test_refuses_another_file(self, data):
    with self.assertRaisesRegex(ValueError, "64-bit little-endian ELF"):
      platform_tag.needed_versions(data)

  @parameterized.parameters(
      ((), "manylinux2014"),
      (("GLIBC_2.2.5", "GLIBC_2.17", "GLIBCXX_3.4.19", "CXXABI_1.3", "GCC_3.0"),
       "manylinux2014"),
      (("GLIBC_2.18",), "manylinux_2_27"),
      (("GLIBC_2.17", "CXXABI_1.3.8"), "manylinux_2_27"),
      (("GLIBC_2.2.5", "GLIBCXX_3.4.25"), "manylinux_2_31"),
      (("GLIBC_2.34",), "manylinux_2_34"),
      (("GLIBC_2.34", "GLIBCXX_3.4.30"), "manylinux_2_35"),
      (("GLIBC_2.36",), "linux"),
      (("GLIBC_PRIVATE",), "linux"),
      (("OTHER_9.9",), "manylinux2014"))
  def test_takes_the_oldest_that_suffices(self, versions, expected):
    self.assertEqual(platform_tag.of_versions(set(versions), "x86_64"),
                     expected + "_x86_64")


if __name__ == "__main__":
  absltest.main()
