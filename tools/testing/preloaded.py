# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Starts Python programs as forks of a process that has already imported TensorFlow.

Importing TensorFlow takes about two seconds of CPU time. A test that starts many programs
pays for it once:

  programs = preloaded.Interpreter(["tensorflow"])
  program = programs.start(["job.py", "--steps=3"], stdout=log)
  program.wait(60)

A program runs as the `__main__` module of its own process and session, with its own
arguments, environment, working directory and unbuffered output. It ends like any
interpreter, through its exit handlers. Unlike a program that `subprocess` starts, it
finds the listed modules imported, and TensorFlow's deprecation warnings are off. Use
`subprocess` to test how these modules are imported, an environment variable that they
read during the import, or Python's flags.

The interpreter only imports modules. It has one thread, so a fork inherits no held lock.
"""

import array
import gc
import importlib
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading

# Maximum bytes of a request, which is one packet: a program's words and environment as
# JSON.
_MAX_REQUEST = 1 << 18


class Error(Exception):
  """The interpreter has ended, or could not import its modules."""


class Program(object):
  """A running program, with the interface of subprocess.Popen.

  Attributes:
    pid: int, its process, which leads its own process group.
    returncode: None until `poll` or `wait` has seen its end; then its exit status, or
      minus the number of the signal that ended it.
  """

  def __init__(self, words, status):
    self._words = words
    # The program writes its pid, and the interpreter later its exit status, each on a line.
    self._status = os.fdopen(status, "rb", 0)
    self.returncode = None
    self.pid = self._number()

  def _number(self):
    line = self._status.readline()
    if not line:
      raise Error("the interpreter that runs %s has ended" % self._words)
    return int(line)

  def wait(self, timeout=None):
    """Returns the exit status; raises subprocess.TimeoutExpired after `timeout`
    seconds."""
    if self.returncode is None:
      if not select.select([self._status], [], [], timeout)[0]:
        raise subprocess.TimeoutExpired(self._words, timeout)
      self.returncode = self._number()
    return self.returncode

  def poll(self):
    """Returns the exit status, or None while the program runs."""
    try:
      return self.wait(0)
    except subprocess.TimeoutExpired:
      return None

  def send_signal(self, number):
    """Sends a signal to the program, unless its end has been seen."""
    if self.poll() is None:
      os.kill(self.pid, number)

  def kill(self):
    self.send_signal(signal.SIGKILL)


class Interpreter(object):
  """A Python process with imported modules, from which programs are forked.

  Thread-safe. It ends with this process; running programs continue.
  """

  def __init__(self, modules, env=None, flags=("-W", "ignore")):
    """Starts the process; `start` waits until it has imported the modules.

    Args:
      modules: list of names.
      env: dict, or None for this process's.
      flags: Python's own, such as those for warnings.
    """
    self._lock = threading.Lock()
    self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
      self._process = subprocess.Popen(
          [sys.executable] + list(flags) + [
              os.path.abspath(__file__), str(theirs.fileno())] + list(modules),
          # Python reads PYTHONUNBUFFERED when it starts.
          env=dict(os.environ if env is None else env, PYTHONUNBUFFERED="1"),
          stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])

  def close(self):
    """Ends the process. Running programs continue, and their `wait` raises Error."""
    self._socket.close()
    self._process.wait()

  def start(self, words, stdout, env=None, cwd=None):
    """Starts a program; returns a Program.

    Args:
      words: list of strings: a path and arguments, or "-c", a script and arguments.
      stdout: file for its output and errors.
      env: dict of strings, or None for this process's environment.
      cwd: path, or None for this process's.

    Raises:
      Error: the modules could not be imported.
    """
    request = json.dumps({
        "words": [str(w) for w in words],
        "env": dict(os.environ if env is None else env),
        "cwd": os.path.abspath(cwd or os.getcwd()),
    }).encode("utf-8")
    status, theirs = os.pipe()
    try:
      descriptors = array.array("i", [stdout.fileno(), theirs])
      with self._lock:
        self._socket.sendmsg(
            [request], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)])
    except OSError as e:
      os.close(status)
      raise Error("the interpreter has ended: %s" % e)
    finally:
      os.close(theirs)
    return Program(words, status)

  def run(self, words, env=None, cwd=None, timeout=None):
    """Runs a program until it ends, as subprocess.run does.

    Args:
      words, env, cwd: as in `start`.
      timeout: seconds after which it is killed; None: no limit.

    Returns:
      A subprocess.CompletedProcess; `stdout` is a string with its output and errors.

    Raises:
      subprocess.TimeoutExpired: it was killed.
    """
    with tempfile.TemporaryFile() as out:
      program = self.start(words, out, env, cwd)
      try:
        code = program.wait(timeout)
      finally:
        program.kill()
      out.seek(0)
      return subprocess.CompletedProcess(
          words, code, out.read().decode("utf-8", "replace"))


def _receive(requests):
  """Returns (request, stdout, status) of one message, or None at the end."""
  descriptors = array.array("i")
  message, ancillary, _, _ = requests.recvmsg(
      _MAX_REQUEST, socket.CMSG_SPACE(2 * descriptors.itemsize))
  if not message:
    return None
  descriptors.frombytes(ancillary[0][2])
  return (json.loads(message.decode("utf-8")),) + tuple(descriptors)


def _report_ends(running):
  """Writes the exit status of every program that has ended, and closes its pipe."""
  while running:
    pid, status = os.waitpid(-1, os.WNOHANG)
    if not pid:
      return
    descriptor = running.pop(pid)
    code = (-os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))
    try:
      os.write(descriptor, b"%d\n" % code)
    except BrokenPipeError:
      pass  # The test has dropped the Program.
    os.close(descriptor)


def _become(request, stdout):
  """Turns this fork into a program's process; returns (its code, its file or None)."""
  os.dup2(stdout, 1)
  os.dup2(stdout, 2)
  os.close(stdout)
  os.chdir(request["cwd"])
  os.environ.clear()
  os.environ.update(request["env"])
  # Each program draws different numbers, as in a new process.
  random.seed()
  if "numpy" in sys.modules:
    sys.modules["numpy"].random.seed()
  words = request["words"]
  if words[0] == "-c":
    sys.argv, sys.path[0] = ["-c"] + words[2:], ""
    return compile(words[1], "<string>", "exec"), None
  sys.argv, sys.path[0] = words, os.path.dirname(os.path.abspath(words[0]))
  with open(words[0], "rb") as source:
    return compile(source.read(), words[0], "exec"), words[0]


def _serve(requests):
  """Forks a program for each request.

  Returns:
    In a program, the result of `_become`; in the interpreter, None at its end.
  """
  woken, wake = os.pipe()
  os.set_blocking(wake, False)
  signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
  signal.signal(signal.SIGCHLD, lambda *unused: None)
  running = {}  # pid of a program -> its status pipe
  while True:
    ready, _, _ = select.select([requests, woken], [], [])
    if woken in ready:
      os.read(woken, 4096)
      _report_ends(running)
    if requests not in ready:
      continue
    received = _receive(requests)
    if received is None:
      return None
    request, stdout, status = received
    pid = os.fork()
    if not pid:
      # The pid is written by the program, so that it leads its group once `start` returns.
      os.setsid()
      os.write(status, b"%d\n" % os.getpid())
      signal.set_wakeup_fd(-1)
      signal.signal(signal.SIGCHLD, signal.SIG_DFL)
      requests.close()
      for descriptor in [woken, wake, status] + list(running.values()):
        os.close(descriptor)
      return _become(request, stdout)
    running[pid] = status
    os.close(stdout)


def _interpret(descriptor, modules):
  """Imports modules and serves requests; returns the result of `_serve`."""
  for name in modules:
    importlib.import_module(name)
  if "tensorflow" in sys.modules:
    importlib.import_module("deprecations").silence()
  # Forks share the modules' memory unless the garbage collector writes to it.
  gc.collect()
  gc.freeze()
  # The many objects of a graph stay alive while it is built, so collect more seldom than by
  # default.
  gc.set_threshold(20000, 20, 20)
  return _serve(socket.socket(fileno=descriptor))


def _execute(code, path):
  """Runs a program as the `__main__` module, with only Python's own names."""
  names = sys.modules["__main__"].__dict__
  for name in [n for n in names if not n.startswith("__")]:
    del names[name]
  names.update(__doc__=None, __file__=path)
  if path is None:
    del names["__file__"], names["__cached__"]
  exec(code, names)  # pylint: disable=exec-used


if __name__ == "__main__":
  _program = _interpret(int(sys.argv[1]), sys.argv[2:])
  if _program is not None:
    _execute(*_program)
