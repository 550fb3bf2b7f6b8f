# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Two network namespaces, connected by a virtual cable, as two hosts on one machine.

A process in a namespace has no other network interface than its end of the cable, so all
traffic between ranks passes through it.
"""

import contextlib
import ctypes
import os
import subprocess

_CLONE_NEWNET = 0x40000000
_CLONE_NEWUTS = 0x04000000

_libc = ctypes.CDLL(None, use_errno=True)


class Unavailable(Exception):
  """This machine does not allow network namespaces; the message has the reason."""


def _set_namespace(path):
  descriptor = os.open(path, os.O_RDONLY)
  try:
    if _libc.setns(descriptor, _CLONE_NEWNET):
      raise OSError(ctypes.get_errno(), "setns(%s)" % path)
  finally:
    os.close(descriptor)


class Host(object):
  """One end of the cable.

  Attributes:
    address: string, its IP address.
    interface: string, its network interface.
  """

  def __init__(self, namespace, address, interface):
    self._path = "/var/run/netns/" + namespace
    self._namespace = namespace
    self.address = address
    self.interface = interface

  @contextlib.contextmanager
  def inside(self):
    """Context: sockets and processes that this thread creates belong to this host."""
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
      _set_namespace(self._path)
      yield
    finally:
      _libc.setns(before, _CLONE_NEWNET)
      os.close(before)

  def become(self):
    """Gives the calling process this host's name; for Popen's preexec_fn.

    Some of Horovod's connections go to the address that the machine's name resolves to,
    whatever its interface is. An address as a name resolves to itself.
    """
    if _libc.unshare(_CLONE_NEWUTS):
      raise OSError(ctypes.get_errno(), "unshare")
    name = self.address.encode("ascii")
    if _libc.sethostname(name, len(name)):
      raise OSError(ctypes.get_errno(), "sethostname")

  def sent_bytes(self):
    """Returns the number of bytes that this host has sent."""
    output = _ip("netns", "exec", self._namespace, "cat",
                 "/sys/class/net/%s/statistics/tx_bytes" % self.interface)
    return int(output)


class Localhost(object):
  """This machine, through its loopback interface."""

  address = "127.0.0.1"
  interface = "lo"
  become = None

  @contextlib.contextmanager
  def inside(self):
    yield


def _ip(*arguments):
  try:
    return subprocess.check_output(
        ("ip",) + arguments, stderr=subprocess.STDOUT, universal_newlines=True)
  except OSError as e:
    raise Unavailable("there is no ip command: %s" % e)
  except subprocess.CalledProcessError as e:
    raise Unavailable("ip %s: %s" % (" ".join(arguments), e.output.strip()))


@contextlib.contextmanager
def two_hosts():
  """Context: yields two hosts that exist inside the with block.

  Yields:
    A list of two Hosts.

  Raises:
    Unavailable: this machine does not allow it.
  """
  names = ["sok_%d_%d" % (os.getpid(), i) for i in range(2)]
  interfaces = ["sokwire0", "sokwire1"]
  made = []
  try:
    for name in names:
      _ip("netns", "add", name)
      made.append(name)
    # Both ends are created inside the namespaces, so the machine's network is unchanged.
    _ip("-n", names[0], "link", "add", interfaces[0], "type", "veth", "peer", "name",
        interfaces[1], "netns", names[1])
    hosts = []
    for i, (name, interface) in enumerate(zip(names, interfaces)):
      address = "10.77.0.%d" % (i + 1)
      _ip("-n", name, "addr", "add", address + "/24", "dev", interface)
      for device in ("lo", interface):
        _ip("-n", name, "link", "set", device, "up")
      hosts.append(Host(name, address, interface))
    try:
      with hosts[0].inside():
        pass
    except OSError as e:
      raise Unavailable(str(e))
    yield hosts
  finally:
    for name in made:
      subprocess.call(["ip", "netns", "del", name])
