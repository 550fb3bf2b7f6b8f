# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of wheel_file."""

import base64
import hashlib
import os
import zipfile

from absl.testing import absltest

import wheel_file

_TAG = "py3-none-linux_x86_64"


class WheelFileTest(absltest.TestCase):

  def write(self, files, name="w.whl"):
    path = os.path.join(self.create_tempdir().full_path, name)
    metadata = wheel_file.metadata_text([("Name", "a-b"), ("Version", "1.2")], "Text\n")
    wheel_file.write(path, "a-b", "1.2", _TAG, files, metadata, b"licence")
    return path

  def test_file_name_has_no_dash_in_the_name(self):
    self.assertEqual(
        wheel_file.file_name("a-b", "1.2", _TAG), "a_b-1.2-%s.whl" % _TAG)

  def test_record_has_the_hash_of_every_file(self):
    with zipfile.ZipFile(self.write({"p/__init__.py": b"x = 1\n"})) as wheel:
      record = wheel.read("a_b-1.2.dist-info/RECORD").decode().splitlines()
      self.assertLen(record, len(wheel.namelist()))
      for line in record[:-1]:
        path, digest, size = line.split(",")
        data = wheel.read(path)
        expected = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
        self.assertEqual(digest, "sha256=" + expected.rstrip(b"=").decode())
        self.assertEqual(int(size), len(data))
      self.assertEqual(record[-1], "a_b-1.2.dist-info/RECORD,,")
      self.assertEqual(wheel.namelist()[-1], "a_b-1.2.dist-info/RECORD")

  def test_metadata_ends_with_the_description(self):
    with zipfile.ZipFile(self.write({"p.py": b""})) as wheel:
      self.assertEqual(
          wheel.read("a_b-1.2.dist-info/METADATA").decode(),
          "Name: a-b\nVersion: 1.2\n\nText\n")
      self.assertIn("Tag: " + _TAG, wheel.read("a_b-1.2.dist-info/WHEEL").decode())
      self.assertEqual(wheel.read("a_b-1.2.dist-info/LICENSE"), b"licence")

  def test_same_contents_give_the_same_bytes(self):
    first = self.write({"a.py": b"1", "b.so": b"2"})
    second = self.write({"b.so": b"2", "a.py": b"1"})
    with open(first, "rb") as f, open(second, "rb") as g:
      self.assertEqual(f.read(), g.read())

  def test_a_library_is_executable(self):
    with zipfile.ZipFile(self.write({"a.py": b"1", "b.so": b"2"})) as wheel:
      modes = [wheel.getinfo(n).external_attr >> 16 & 0o777 for n in ("a.py", "b.so")]
      self.assertEqual(modes, [0o644, 0o755])

  def test_refuses_no_files(self):
    with self.assertRaisesRegex(ValueError, "needs files"):
      self.write({})

  def test_refuses_a_path_that_leads_out(self):
    for path in ("/etc/a", "../a", "p/../../a"):
      with self.assertRaisesRegex(ValueError, "leads out of the wheel"):
        self.write({path: b""})


if __name__ == "__main__":
  absltest.main()
