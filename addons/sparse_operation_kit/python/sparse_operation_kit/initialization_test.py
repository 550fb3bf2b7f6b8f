# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0

import os
import subprocess
import sys
import threading
import time
import types
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from embedding_variable.deeprec import distributed
import sparse_operation_kit as sok
from sparse_operation_kit import communication
from sparse_operation_kit import initialization
from sparse_operation_kit import settings
from sparse_operation_kit import version
from sparse_operation_kit.exchange import carriers
from sparse_operation_kit.exchange import collectives
from sparse_operation_kit.exchange import sessions

_LAUNCHERS = ("HOROVOD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")


def _horovod(size, initialized=True):
  """A fake Horovod with `size` ranks."""
  module = types.ModuleType("horovod.tensorflow")
  module.init = lambda: None
  module.is_initialized = lambda: initialized
  module.size = lambda: size
  module.rank = lambda: 0
  return mock.patch.dict(sys.modules, {"horovod.tensorflow": module})


class InitTest(parameterized.TestCase):

  def setUp(self):
    super(InitTest, self).setUp()
    environ = {k: v for k, v in os.environ.items() if k not in _LAUNCHERS}
    patch = mock.patch.dict(os.environ, environ, clear=True)
    patch.start()
    self.addCleanup(patch.stop)

  def test_without_horovod_says_single_process(self):
    with mock.patch.object(tf.compat.v1.logging, "info") as info:
      sok.init()
      sok.init(comm_tool="horovod", use_legacy_optimizer=False)
    self.assertEqual(info.call_count, 2)
    self.assertIn("single process", info.call_args[0][0])
    self.assertEqual(communication.num_ranks(), 1)

  def test_horovod_with_one_rank(self):
    with _horovod(1), mock.patch.object(tf.compat.v1.logging, "info") as info:
      sok.init()
      self.assertIn("single rank", info.call_args[0][0])

  def test_imported_but_not_initialized_is_single_process(self):
    with _horovod(8, initialized=False):
      sok.init()
      self.assertEqual(communication.num_ranks(), 1)

  def test_several_ranks_say_which_one_this_is(self):
    with _horovod(2), mock.patch.object(tf.compat.v1.logging, "info") as info:
      sok.init()
      self.assertEqual(info.call_args[0][1:], (0, 2, "horovod"))

  def test_exchange_from_the_environment_unless_given(self):
    self.assertEqual(settings.wanted_exchange(None, carriers.KINDS), "horovod")
    with mock.patch.dict(os.environ, SOK_EXCHANGE="memory"):
      self.assertEqual(settings.wanted_exchange(None, carriers.KINDS), "memory")
      self.assertEqual(settings.wanted_exchange("auto", carriers.KINDS), "auto")
    with mock.patch.dict(os.environ, SOK_EXCHANGE="pigeon"):
      with self.assertRaisesRegex(ValueError, "^SOK_EXCHANGE: expected one of .*pigeon"):
        sok.init()
    with self.assertRaisesRegex(ValueError, "^sok.init: exchange: expected one of .*'mpi'"):
      sok.init(exchange="mpi")

  def test_exchange_timeout_from_the_environment_unless_given(self):
    self.addCleanup(settings.set_exchange_timeout, None)
    sok.init()
    self.assertEqual(settings.exchange_timeout(), 600)
    with mock.patch.dict(os.environ, SOK_EXCHANGE_TIMEOUT_SECONDS="7.5"):
      sok.init()
      self.assertEqual(settings.exchange_timeout(), 7.5)
      sok.init(exchange_timeout=0)
      self.assertEqual(settings.exchange_timeout(), 0)
    with mock.patch.dict(os.environ, SOK_EXCHANGE_TIMEOUT_SECONDS="soon"):
      with self.assertRaisesRegex(ValueError, "^SOK_EXCHANGE_TIMEOUT_SECONDS.*'soon'"):
        sok.init()

  def test_exchange_timeout_out_of_range(self):
    self.addCleanup(settings.set_exchange_timeout, None)
    for bad in (float("inf"), float("nan"), 2 * threading.TIMEOUT_MAX, -1, "soon"):
      with self.assertRaisesRegex(ValueError, "sok.init: exchange_timeout.*%r" % bad):
        sok.init(exchange_timeout=bad)
    sok.init(exchange_timeout=threading.TIMEOUT_MAX)
    self.assertEqual(settings.exchange_timeout(), threading.TIMEOUT_MAX)

  def _settings(self):
    return (settings.exchange_dtype(), settings.exchange_timeout(),
            settings.intra_op_threads())

  @parameterized.parameters(
      dict(comm_tool="mpi"), dict(exchange_dtype="int32"), dict(exchange_timeout=-1),
      dict(intra_op_parallelism_threads=0), dict(exchange="pigeon"))
  def test_a_call_that_fails_changes_nothing(self, **wrong):
    self.addCleanup(settings.set_all)
    sok.init(exchange_dtype="float16", exchange_timeout=7, intra_op_parallelism_threads=3)
    others = dict(exchange_dtype="bfloat16", exchange_timeout=8,
                  intra_op_parallelism_threads=4)
    with self.assertRaises(ValueError):
      sok.init(**dict(others, **wrong))
    self.assertEqual(self._settings(), ("float16", 7, 3))
    with mock.patch.dict(os.environ, HOROVOD_SIZE="3"):
      with self.assertRaisesRegex(RuntimeError, "started 3 processes"):
        sok.init(**others)
    self.assertEqual(self._settings(), ("float16", 7, 3))
    with _horovod(2), mock.patch.object(carriers, "start", side_effect=RuntimeError):
      with self.assertRaises(RuntimeError):
        sok.init(**others)
    self.assertEqual(self._settings(), ("float16", 7, 3))

  def test_threads_of_own_sessions(self):
    self.addCleanup(settings.set_intra_op_threads, None)
    sok.init()
    self.assertEqual(settings.intra_op_threads(), 0)
    session, _ = sessions.on_cpu(lambda: tf.constant(1))
    with session:
      # It is TensorFlow's default, not a number that users' sessions would inherit.
      self.assertEqual(session._config.intra_op_parallelism_threads, 0)  # pylint: disable=protected-access
    sok.init(intra_op_parallelism_threads=3)
    self.assertEqual(settings.intra_op_threads(), 3)
    sok.init(intra_op_parallelism_threads=np.int64(3))
    self.assertEqual(settings.intra_op_threads(), 3)
    for bad in (0, -1, 2.5, True, "many"):
      with self.assertRaisesRegex(ValueError, "intra_op_parallelism_threads.*%r" % bad):
        sok.init(intra_op_parallelism_threads=bad)
    self.assertEqual(settings.intra_op_threads(), 3)

  def test_one_process_exchanges_nothing(self):
    sok.init(exchange="nccl")
    self.assertEqual(settings.exchange_carrier(), "horovod")

  def test_a_distributed_strategy_keeps_the_settings_of_a_call(self):
    self.addCleanup(settings.set_exchange)
    with _horovod(2), mock.patch.object(initialization, "_initialized", False):
      sok.init(exchange_dtype=tf.bfloat16)
      distributed.initialize()
      self.assertEqual(settings.exchange_dtype(), "bfloat16")

  def test_a_distributed_strategy_calls_init(self):
    with mock.patch.object(initialization, "_initialized", False), mock.patch.object(
        sok, "init", side_effect=sok.init) as init:
      with _horovod(2, initialized=False):
        sok.init()  # before Horovod's
      with _horovod(2):
        for _ in range(2):
          distributed.initialize()
    self.assertEqual(init.call_count, 2)

  @parameterized.parameters("float64", "int32", "half a float")
  def test_unknown_exchange_dtype(self, dtype):
    with self.assertRaisesRegex(ValueError, "exchange_dtype.*%s" % dtype):
      sok.init(exchange_dtype=dtype)

  @parameterized.parameters(
      (None, "float32"), ("float16", "float16"), (tf.float16, "float16"),
      (tf.bfloat16, "bfloat16"), ("float32", "float32"))
  def test_exchange_dtype(self, dtype, expected):
    self.addCleanup(settings.set_exchange)
    sok.init(exchange_dtype=dtype)
    self.assertEqual(settings.exchange_dtype(), expected)

  @parameterized.parameters(*_LAUNCHERS)
  def test_launched_without_hvd_init(self, variable):
    with mock.patch.dict(os.environ, {variable: "3"}):
      with self.assertRaisesRegex(RuntimeError, "started 3 processes.*not"):
        sok.init()
      with _horovod(1):
        sok.init()
    with mock.patch.dict(os.environ, {variable: "1"}):
      sok.init()

  def test_other_tool(self):
    with self.assertRaisesRegex(ValueError, "expected 'horovod', got 'mpi'"):
      sok.init("mpi")


class _Session(object):
  """A session whose runs take a while."""

  def __init__(self, seconds):
    self._seconds = seconds

  def run(self, unused_fetches, unused_feed):
    time.sleep(self._seconds)
    return "done"


class CollectiveTest(parameterized.TestCase):
  """Tests how long a collective waits for other ranks."""

  def setUp(self):
    super(CollectiveTest, self).setUp()
    self.addCleanup(settings.set_exchange_timeout, None)
    patience = mock.patch.object(collectives, "_PATIENCE_SECONDS", .6)
    patience.start()
    self.addCleanup(patience.stop)
    self._channel = collectives.Channel("test")

  def _run(self, seconds, limit):
    settings.set_exchange_timeout(limit)
    self._channel._session = _Session(seconds)
    return self._channel._run([], {})

  # Limits below, equal to and above the time after which a waiting rank logs a warning.
  @parameterized.parameters((.5, .05), (.6, .05), (9, .8), (0, .8))
  def test_a_rank_that_comes_in_time(self, limit, seconds):
    with _horovod(2):
      self.assertEqual(self._run(seconds, limit), "done")

  @parameterized.parameters(.1, .6, .8)
  def test_a_rank_that_does_not_come(self, limit):
    with _horovod(2):
      sys.modules["horovod.tensorflow"].shutdown = mock.Mock()
      begin = time.monotonic()
      with self.assertRaisesRegex(
          collectives.RankError, "test: rank 0 has waited for %g s" % limit):
        self._run(9., limit)
      self.assertBetween(time.monotonic() - begin, limit, 8.)
      sys.modules["horovod.tensorflow"].shutdown.assert_called_once_with()


class RealHorovodTest(absltest.TestCase):

  def test_one_rank(self):
    script = ("import horovod.tensorflow as hvd\n"
              "from sparse_operation_kit import experiment as sok\n"
              "from sparse_operation_kit import communication\n"
              "hvd.init(); sok.init()\n"
              "assert communication.horovod_initialized()\n"
              "print('ranks', communication.num_ranks())\n")
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    out = subprocess.check_output([sys.executable, "-c", script], env=env)
    self.assertIn(b"ranks 1", out)

  def test_a_second_shutdown_waits_for_the_first(self):
    # Two concurrent shutdowns would both join Horovod's thread, and one would never
    # return.
    import horovod.tensorflow as hvd  # pylint: disable=g-import-not-at-top
    now, most = [], []

    def shut_down():
      now.append(None)
      most.append(len(now))
      time.sleep(.2)
      now.pop()

    basics = hvd.mpi_ops._basics
    library = types.SimpleNamespace(horovod_shutdown=shut_down)
    with mock.patch.object(basics, "MPI_LIB_CTYPES", library):
      calls = (hvd.shutdown, hvd.mpi_ops.shutdown, basics.shutdown)
      threads = [threading.Thread(target=call) for call in calls]
      for thread in threads:
        thread.start()
      for thread in threads:
        thread.join()
    self.assertEqual(most, [1, 1, 1])


class PackageTest(absltest.TestCase):

  def test_experiment_is_the_package(self):
    # pylint: disable=g-import-not-at-top
    from sparse_operation_kit import experiment
    import sparse_operation_kit.experiment as also
    self.assertIs(experiment, sok)
    self.assertIs(also, sok)

  def test_import_puts_deeprecs_names_on_tf(self):
    self.assertTrue(callable(tf.get_embedding_variable))
    self.assertTrue(callable(tf.compat.v1.get_embedding_variable))

  def test_public_names_exist(self):
    self.assertLen(set(sok.__all__), len(sok.__all__))
    for name in sok.__all__:
      self.assertTrue(hasattr(sok, name), name)


class SetCommToolTest(absltest.TestCase):

  def test_once_and_only_horovod(self):
    self.addCleanup(setattr, communication, "_tool", communication._tool)
    communication._tool = None
    with self.assertRaisesRegex(ValueError, "expected 'horovod', got 'mpi'"):
      sok.set_comm_tool("mpi")
    sok.set_comm_tool("horovod")
    with self.assertRaisesRegex(RuntimeError, "set already"):
      sok.set_comm_tool("horovod")


class VersionTest(absltest.TestCase):

  def test_own(self):
    self.assertRegex(sok.__version__, r"^\d+\.\d+\.\d+")

  def test_tensorflow(self):
    self.assertEqual(sok.tf_version[:2], [1, 15])
    with mock.patch.object(tf, "__version__", "1.15.0-rc3"):
      self.assertEqual(version.tf_version(), [1, 15, 0])


if __name__ == "__main__":
  absltest.main()
