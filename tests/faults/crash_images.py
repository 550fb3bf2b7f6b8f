# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a folder looks like when a process is killed at each step that changes it.

A kill leaves what the system had done by then. So all kills of one save are seen by
running it once: inotify tells the order in which files and folders are made, written,
renamed and removed, by whatever process, and a hard link keeps what is in each file. An
image is the folder after one more of these steps; a file that is still open in it has the
first half of what it will have.

  with crash_images.Recording(folder) as recording:
    save()
  for image in recording.images:
    recording.make(image, other_folder)
"""

import collections
import ctypes
import os
import select
import shutil
import struct
import threading

_CLOSE_WRITE, _MOVED_FROM, _MOVED_TO = 0x8, 0x40, 0x80
_CREATE, _DELETE, _IS_DIRECTORY = 0x100, 0x200, 0x40000000
_EVENT = struct.Struct("iIII")
_LAST = ".the_recording_ends"

# kept: name of the link that has the file's contents; missing if it was gone too soon.
# whole: whether it was closed.
_File = collections.namedtuple("_File", ["kept", "whole"])

_libc = ctypes.CDLL(None, use_errno=True)


class Recording(object):
  """Context: what happens in a folder, which must exist, meanwhile.

  Attributes:
    images: list of dicts: path in the folder -> `_File`, or None for a folder; the
      first is what was there before, the last what is there afterwards.
  """

  def __init__(self, folder):
    self._folder = folder
    self._links = folder.rstrip("/") + ".links"
    self.images = []

  def __enter__(self):
    shutil.rmtree(self._links, ignore_errors=True)
    os.mkdir(self._links)
    self._inotify = _libc.inotify_init()
    if self._inotify < 0:
      raise OSError(ctypes.get_errno(), "inotify_init")
    self._watched, self._tree, self._count = {}, {}, 0
    self._watch("", whole=True)
    self.images = [dict(self._tree)]
    self._ended = threading.Event()
    self._moved = {}
    self._thread = threading.Thread(target=self._record, daemon=True)
    self._thread.start()
    return self

  def __exit__(self, *unused_exception):
    with open(os.path.join(self._folder, _LAST), "w"):
      pass
    self._thread.join(60)
    os.remove(os.path.join(self._folder, _LAST))
    os.close(self._inotify)
    if not self._ended.is_set():
      raise RuntimeError("the recording of %s did not end" % self._folder)

  def make(self, image, folder):
    """Makes a folder as it is in an image."""
    os.mkdir(folder)
    for path, file in sorted(image.items()):
      target = os.path.join(folder, path)
      if file is None:
        os.mkdir(target)
        continue
      data, kept = b"", os.path.join(self._links, file.kept)
      if os.path.exists(kept):
        with open(kept, "rb") as f:
          data = f.read()
      with open(target, "wb") as f:
        f.write(data if file.whole else data[:len(data) // 2])

  def _watch(self, folder, whole):
    """Watches a folder and what is in it, which is in the image from now on."""
    path = os.path.join(self._folder, folder)
    number = _libc.inotify_add_watch(
        self._inotify, path.encode(),
        ctypes.c_uint32(_CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE))
    if number < 0:
      return  # It is gone already.
    self._watched[number] = folder
    try:
      names = sorted(os.listdir(path))
    except OSError:
      names = []
    for name in names:
      self._add(os.path.join(folder, name), whole)

  def _add(self, path, whole):
    full = os.path.join(self._folder, path)
    if os.path.isdir(full):
      if path not in self._tree:
        self._tree[path] = None
        self._watch(path, whole)
    elif path not in self._tree:
      self._tree[path] = self._new_file(path, whole)

  def _new_file(self, path, whole):
    self._count += 1
    file = _File("%06d" % self._count, whole)
    self._keep(file, path)
    return file

  def _keep(self, file, path):
    """Links a file, if it still has this name and is not linked."""
    try:
      os.link(os.path.join(self._folder, path), os.path.join(self._links, file.kept))
    except OSError:
      pass

  def _record(self):
    while True:
      select.select([self._inotify], [], [])
      data, at = os.read(self._inotify, 1 << 20), 0
      while at < len(data):
        number, mask, cookie, length = _EVENT.unpack_from(data, at)
        at += _EVENT.size
        name = data[at:at + length].rstrip(b"\0").decode()
        at += length
        if name == _LAST:
          self.images.append(dict(self._tree))
          self._ended.set()
          return
        if number in self._watched and name:
          self._happened(os.path.join(self._watched[number], name), mask, cookie)
          # The step after a file was closed shows it as well.
          if not mask & _CLOSE_WRITE and self._tree != self.images[-1]:
            self.images.append(dict(self._tree))

  def _happened(self, path, mask, cookie):
    tree = self._tree
    if mask & _CREATE and mask & _IS_DIRECTORY:
      tree[path] = None
      # Without the steps in it, so that the folder is there with nothing in it too.
      self.images.append(dict(tree))
      self._watch(path, whole=False)
    elif mask & _CREATE:
      tree[path] = self._new_file(path, whole=False)
    elif mask & _CLOSE_WRITE:
      if tree.get(path):
        tree[path] = tree[path]._replace(whole=True)
    elif mask & _MOVED_FROM:
      # It has the new name in the same step, and no image is without both.
      self._moved[cookie] = path
    elif mask & _MOVED_TO:
      file = tree.pop(self._moved.pop(cookie, None), None)
      if file is None:
        file = self._new_file(path, whole=True)
      self._keep(file, path)
      # A file that has its name already is not written to. That it was closed may have been
      # missed, where a new folder was not watched yet.
      tree[path] = file._replace(whole=True)
    elif mask & _DELETE:
      for below in [p for p in tree if p == path or p.startswith(path + "/")]:
        del tree[below]
