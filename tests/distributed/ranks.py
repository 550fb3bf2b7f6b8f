# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Starts ranks as horovodrun does, but does not end them when one fails.

horovodrun ends all ranks if one fails, which hides how a rank itself handles the loss of
another.
"""

import atexit
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

from horovod.runner.common.util import hosts as horovod_hosts
from horovod.runner.http import http_server

import horovod_job
import network
import preloaded

# Modules that are already imported when a rank's program starts. WITH_PACKAGE has all
# modules that take long to import. The other tuple leaves out the package, for programs
# that first make it load another library.
WITH_PACKAGE = ("horovod.tensorflow", "sparse_operation_kit")
WITHOUT_PACKAGE = ("horovod.tensorflow",)

_interpreters = {}
_lock = threading.Lock()


def _interpreter(modules):
  """Returns this process's preloaded.Interpreter of these modules."""
  with _lock:
    if modules not in _interpreters:
      interpreter = preloaded.Interpreter(modules, horovod_job.environment())
      atexit.register(interpreter.close)
      _interpreters[modules] = interpreter
    return _interpreters[modules]


class Ranks(object):
  """The processes of one job, and their output.

  A context manager; on exit it kills all processes that still run.
  """

  def __init__(self, num_ranks, program, *arguments, env=None, hosts=None,
               modules=WITH_PACKAGE):
    """Starts the ranks.

    Args:
      num_ranks: int, a multiple of the number of hosts.
      program: path of a Python program.
      *arguments: arguments of the program.
      env: dict, or None for `horovod_job.environment()`.
      hosts: list of `network.Host`; None: this machine.
      modules: tuple of names of modules that ranks on this machine find imported.
    """
    hosts = {h.address: h for h in hosts or [network.Localhost()]}
    first = next(iter(hosts.values()))
    self._server = http_server.RendezvousServer()
    with first.inside():
      port = self._server.start()
    each = num_ranks // len(hosts)
    plan = horovod_hosts.get_host_assignments(
        [horovod_hosts.HostInfo(address, each) for address in hosts], num_ranks)
    self._server.init(plan)
    self._processes, self._files = [], []
    for slot in plan:
      host = hosts[slot.hostname]
      rank_env = dict(env or horovod_job.environment())
      rank_env.update(
          HOROVOD_HOSTNAME=slot.hostname, HOROVOD_RANK=str(slot.rank),
          HOROVOD_SIZE=str(slot.size), HOROVOD_LOCAL_RANK=str(slot.local_rank),
          HOROVOD_LOCAL_SIZE=str(slot.local_size),
          HOROVOD_CROSS_RANK=str(slot.cross_rank),
          HOROVOD_CROSS_SIZE=str(slot.cross_size),
          HOROVOD_GLOO_RENDEZVOUS_ADDR=first.address,
          HOROVOD_GLOO_RENDEZVOUS_PORT=str(port), HOROVOD_CONTROLLER="gloo",
          HOROVOD_CPU_OPERATIONS="gloo", HOROVOD_GLOO_IFACE=host.interface,
          PYTHONUNBUFFERED="1")
      output = tempfile.TemporaryFile()
      self._files.append(output)
      words = [program] + [str(a) for a in arguments]
      if host.become is None:
        self._processes.append(_interpreter(modules).start(words, output, rank_env))
        continue
      with host.inside():
        self._processes.append(subprocess.Popen(
            [sys.executable] + words, env=rank_env, stdout=output,
            stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=host.become))

  def __enter__(self):
    return self

  def __exit__(self, *unused_exception):
    for process in self._processes:
      if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    self._server.stop()
    for output in self._files:
      output.close()

  def signal(self, rank, number):
    """Sends a signal to one rank."""
    os.kill(self._processes[rank].pid, number)

  def wait(self, rank, timeout):
    """Returns the exit code of a rank, or None if it still runs after `timeout`
    seconds."""
    try:
      return self._processes[rank].wait(timeout)
    except subprocess.TimeoutExpired:
      return None

  def wait_for(self, rank, text, timeout):
    """Returns whether a rank prints `text` before it ends and within `timeout`
    seconds."""
    end = time.time() + timeout
    while time.time() < end:
      if text in self.output(rank):
        return True
      if self._processes[rank].poll() is not None:
        break
      time.sleep(.05)
    return text in self.output(rank)

  def output(self, rank):
    """Returns what a rank has printed so far."""
    size = os.fstat(self._files[rank].fileno()).st_size
    return os.pread(self._files[rank].fileno(), size, 0).decode("utf-8", "replace")


def run(num_ranks, program, *arguments, timeout=280, env=None, modules=WITH_PACKAGE):
  """Like `horovod_job.run`, but without horovodrun, which takes seconds to start.

  If a rank fails, the others are killed after a short time for their own output.
  """
  begin, code = time.time(), 0
  with Ranks(num_ranks, program, *arguments, env=env, modules=modules) as job:
    waiting, end = list(range(num_ranks)), begin + timeout
    while waiting and time.time() < end:
      for rank in list(waiting):
        found = job.wait(rank, .1)
        if found is None:
          continue
        waiting.remove(rank)
        if found and not code:
          code, end = found, min(end, time.time() + 10)
    if waiting and not code:
      code = None
    output = "".join(
        "[%d]<stdout>:%s\n" % (rank, line)
        for rank in range(num_ranks) for line in job.output(rank).splitlines())
  return horovod_job.Result(code, output, time.time() - begin)
