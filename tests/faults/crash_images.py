# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reproduces the folders that a kill can leave at each change of a save.

A kill leaves the files as of that moment. One recorded run of a save covers all moments:
inotify reports the order in which any process creates, writes, renames and removes files
and folders, and a hard link keeps each file's contents. An image is the folder after one
more of these changes. A file that is still open in an image has the first half of its
final contents.

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

# kept: name of the link that has the file's contents; does not exist if the file was
# removed too soon. whole: whether the file was closed.
_File = collections.namedtuple("_File", ["kept", "whole"])

_libc = ctypes.CDLL(None, use_errno=True)


class Recording(object):
  """Context manager that records the changes of an existing folder.

  Attributes:
    images: list of dicts: path in the folder -> `_File`, or None for a folder. The first
      is the folder before the changes, the last the folder after them.
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
    """Creates a folder with the contents of an image."""
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
    """Watches a folder and adds its contents to the image."""
    path = os.path.join(self._folder, folder)
    number = _libc.inotify_add_watch(
        self._inotify, path.encode(),
        ctypes.c_uint32(_CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE))
    if number < 0:
      return  # the folder is already gone
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
    """Links a file, unless it was renamed or is already linked."""
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
          # Closing a file adds no image of its own; the next image includes it.
          if not mask & _CLOSE_WRITE and self._tree != self.images[-1]:
            self.images.append(dict(self._tree))

  def _happened(self, path, mask, cookie):
    tree = self._tree
    if mask & _CREATE and mask & _IS_DIRECTORY:
      tree[path] = None
      # An image of the new folder while it is still empty.
      self.images.append(dict(tree))
      self._watch(path, whole=False)
    elif mask & _CREATE:
      tree[path] = self._new_file(path, whole=False)
    elif mask & _CLOSE_WRITE:
      if tree.get(path):
        tree[path] = tree[path]._replace(whole=True)
    elif mask & _MOVED_FROM:
      # The new name follows in the next event; no image lacks both names.
      self._moved[cookie] = path
    elif mask & _MOVED_TO:
      file = tree.pop(self._moved.pop(cookie, None), None)
      if file is None:
        file = self._new_file(path, whole=True)
      self._keep(file, path)
      # A file with its final name is no longer written. Its close event may have been
      # missed if its new folder was not watched yet.
      tree[path] = file._replace(whole=True)
    elif mask & _DELETE:
      for below in [p for p in tree if p == path or p.startswith(path + "/")]:
        del tree[below]
