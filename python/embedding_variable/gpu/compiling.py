# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes the driver compile TensorFlow's kernels before a program needs them.

TensorFlow 1.15.0 contains machine code for cards up to compute capability 7.0, and PTX
for 7.0. For a newer card the driver compiles the PTX at the process's first kernel
call: all modules, one after another, on one core. This module instead loads the modules
in several processes, largest first, to use many cores. The driver stores compiled code
in its cache, keyed by the code, its own version and the card.

TensorFlow's first run afterwards still compiles about a tenth of the code; the reason
is unknown. Loading all modules a second time adds nothing to the cache.
"""

import collections
import os
import subprocess
import sys
import threading

from embedding_variable.gpu import errors
from embedding_variable.gpu import fatbin
from embedding_variable.gpu import places as places_lib
from embedding_variable.gpu import progress

_WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "compile_worker.py")

# Memory for a process's context and a large module.
_GPU_BYTES_PER_PROCESS = 1 << 30
_MOST_PROCESSES = 32

# compiled, refused: numbers of modules; without_code: modules without code for cards
# this new; seconds: duration; processes: number of workers.
Result = collections.namedtuple(
    "Result", ["compiled", "refused", "without_code", "seconds", "processes"])


def process_count(gpu, jobs=None):
  """Returns the number of compiling processes: one per core, limited by GPU memory.

  Args:
    gpu: driver.Gpu.
    jobs: a number to use instead of the cores', or None.
  """
  cores = jobs or len(os.sched_getaffinity(0))
  room = gpu.memory // 2 // _GPU_BYTES_PER_PROCESS
  return max(1, min(cores, room, _MOST_PROCESSES))


class _Queue(object):
  """Modules that are left, and results of the others. Shared by threads."""

  def __init__(self, modules):
    # Largest first, so that the last ones to finish are small.
    self._left = collections.deque(sorted(modules, key=lambda m: -m.ptx_bytes))
    self._lock = threading.Lock()
    self.total = len(modules)
    self.results = []
    self.messages = []

  def take(self):
    with self._lock:
      return self._left.popleft() if self._left else None

  def put_back(self, module):
    with self._lock:
      self._left.append(module)

  def done(self, result):
    with self._lock:
      self.results.append(result)

  def failed(self, message):
    with self._lock:
      self.messages.append(message)


def _feed(process, queue):
  """Passes modules to one process until none is left. Runs in a thread."""
  while True:
    module = queue.take()
    if module is None:
      break
    try:
      process.stdin.write("%d %d\n" % (module.offset, module.bytes))
      process.stdin.flush()
      answer = process.stdout.readline()
    except OSError:
      answer = ""
    if not answer:
      # The worker has died; the others continue with the remaining modules.
      queue.put_back(module)
      break
    queue.done(int(answer))
  try:
    process.stdin.close()
  except OSError:
    pass
  message = process.stderr.read().strip()
  if process.wait() != 0:
    queue.failed(message.splitlines()[-1] if message else
                 "ended with status %d" % process.returncode)


def _tell(queue, places):
  return "%d of %d modules, %s in %s" % (
      len(queue.results), queue.total,
      progress.mebibytes(places_lib.cache_bytes(places)), places.cache)


def _load_all(queue, command, count, environ):
  """Starts `count` processes that load the modules of a queue, and waits for them."""
  processes = [
      subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, env=environ, universal_newlines=True)
      for _ in range(count)
  ]
  threads = [threading.Thread(target=_feed, args=(p, queue)) for p in processes]
  try:
    for thread in threads:
      thread.start()
    for thread in threads:
      thread.join()
  except BaseException:
    for process in processes:
      process.kill()
    raise


def compile_for(gpu, build, places, jobs=None, worker=_WORKER):
  """Fills the cache with TensorFlow's kernels for a GPU; fast if they are in it.

  Args:
    gpu: driver.Gpu.
    build: tensorflow_build.Build.
    places: places.Places; its cache folder is created if needed.
    jobs: number of processes, or None: by cores and GPU memory.
    worker: path of the worker's program; replaced in tests.

  Returns:
    Result.

  Raises:
    GpuError: no process could load a module.
  """
  modules = [m for m in build.modules if fatbin.runs_on(m, gpu.capability)]
  count = min(process_count(gpu, jobs), max(1, len(modules)))
  environ = dict(os.environ)
  environ.update(places_lib.variables(places))
  # Compiles a module when it is loaded, not when one of its kernels is called.
  environ["CUDA_MODULE_LOADING"] = "EAGER"
  os.makedirs(places.cache, exist_ok=True)
  command = [sys.executable, "-S", worker, build.library, str(gpu.ordinal)]
  if not modules:
    return Result(0, 0, len(build.modules), 0.0, count)
  queue = _Queue(modules)
  with progress.ElapsedLine("compiling for " + gpu.name,
                            lambda: _tell(queue, places)) as line:
    _load_all(queue, command, count, environ)
  compiled = sum(1 for r in queue.results if r == 0)
  if not compiled:
    raise errors.GpuError(
        "the NVIDIA driver loads none of TensorFlow's kernels on %s: %s" %
        (gpu.name, "; ".join(sorted(set(queue.messages))) or
         "it says %s" % ", ".join(map(str, sorted(set(queue.results))))))
  return Result(compiled, len(modules) - compiled, len(build.modules) - len(modules),
                line.seconds, count)
