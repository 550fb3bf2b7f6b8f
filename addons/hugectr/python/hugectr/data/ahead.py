# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs work in threads ahead of its consumer, and keeps the order of results."""

import collections
import concurrent.futures


def in_order(tasks, threads):
  """Yields the results of tasks, in their order.

  Args:
    tasks: iterable of functions without arguments, consumed at most `threads` tasks
      ahead.
    threads: int of at least 1, tasks that run concurrently.
  """
  with concurrent.futures.ThreadPoolExecutor(threads) as pool:
    pending = collections.deque()
    try:
      for task in tasks:
        pending.append(pool.submit(task))
        if len(pending) > threads:
          yield pending.popleft().result()
      while pending:
        yield pending.popleft().result()
    finally:
      for future in pending:
        future.cancel()


def chained(iterators, threads):
  """Yields the items of iterators, one iterator after the other.

  The next items of the first `threads` iterators are computed ahead, each in a thread.

  Args:
    iterators: list of iterators.
    threads: int of at least 1.
  """
  end = object()
  with concurrent.futures.ThreadPoolExecutor(threads) as pool:
    waiting = collections.deque(iterators)
    running = collections.deque()
    try:
      while waiting or running:
        while waiting and len(running) < threads:
          iterator = waiting.popleft()
          running.append((iterator, pool.submit(next, iterator, end)))
        iterator, future = running.popleft()
        item = future.result()
        if item is not end:
          running.appendleft((iterator, pool.submit(next, iterator, end)))
          yield item
    finally:
      for _, future in running:
        future.cancel()
