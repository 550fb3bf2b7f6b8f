# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""A model of an embedding variable in plain Python, with dictionaries and loops.

Defines the result of any sequence of lookups, updates, evictions, saves and restores. It
is slow and simple.
"""

import collections

import numpy as np

# State of a key that has a row.
Row = collections.namedtuple("Row", ["value", "slot", "freq", "version"])
# State of a key that an exact filter has counted but not admitted.
Counted = collections.namedtuple("Counted", ["count", "version"])


def mix_key(key):
  """Returns the engine's hash of a key, which breaks ties among rows of equal rank."""
  odd, mask = 0x9e3779b97f4a7c15, 2**64 - 1
  x = key & mask
  for _ in range(2):
    x = x * odd & mask
    x ^= x >> 32
  return x


class Model(object):
  """A table with one Adagrad slot.

  Attributes:
    rows: dict key -> `Row`.
    counted: dict key -> `Counted`.
    evicted: int.
  """

  def __init__(self, policy, default_rows, rate, initial):
    """Creates an empty table.

    Args:
      policy: `handle_ops.TableOptions`; a Bloom filter is modelled without false positives.
      default_rows: float32 `[R, D]`.
      rate: Adagrad's learning rate.
      initial: initial value of the slot.
    """
    self._policy = policy
    self._defaults = default_rows
    self._rate = np.float32(rate)
    self._initial = np.float32(initial)
    self.rows = {}
    self.counted = {}
    self._bloom = collections.Counter()
    self.evicted = 0
    # Number of the call that inserted each row; FIFO ranks rows by it.
    self._first = {}
    self._calls = self._last_import = 0

  def _new_row(self, key, freq, version=-1):
    value = self._defaults[key % len(self._defaults)]
    return Row(value, np.full_like(value, self._initial), freq, version)

  def look(self, key):
    """Returns the row that a lookup reads."""
    if key in self.rows:
      return self.rows[key].value
    if self._policy.filter != "none":
      return np.full_like(self._defaults[0], self._policy.no_permission)
    return self._defaults[key % len(self._defaults)]

  def frequency(self, key):
    if key in self.rows:
      return self.rows[key].freq
    if key in self.counted:
      return self.counted[key].count
    return self._bloom[key]

  def version(self, key):
    if key in self.rows:
      return self.rows[key].version
    return self.counted[key].version if key in self.counted else -1

  def train(self, ids, grad, step):
    """Applies one update with the gradient `grad` for every occurrence in `ids`."""
    self._calls += 1
    for key, times in collections.Counter(ids).items():
      if key not in self.rows and not self._admit(key, times, step):
        continue
      row = self.rows[key]
      g = np.float32(grad * times)
      slot = row.slot + g * g
      self.rows[key] = Row(row.value - self._rate * g / np.sqrt(slot), slot,
                           row.freq + times, step)
      self._first.setdefault(key, self._calls)
    self._evict_excess(step, self._calls)

  def _admit(self, key, times, step):
    policy, before = self._policy, 0
    if policy.filter == "counter":
      before = self.counted.pop(key, Counted(0, -1)).count
      if before + times < policy.filter_freq:
        self.counted[key] = Counted(before + times, step)
        return False
    elif policy.filter == "bloom":
      before = self._bloom[key]
      self._bloom[key] += times
      if before + times < policy.filter_freq:
        return False
    self.rows[key] = self._new_row(key, before)
    return True

  def _evict_excess(self, step, call=None):
    def rank(key):
      row = self.rows[key]
      if self._policy.cache_strategy == "FIFO":
        first = self._first[key]
        spared = 2 if first == call else int(row.version == step >= 0)
        return spared, first, row.version, mix_key(key)
      if self._policy.cache_strategy == "LRU":
        return row.version, mix_key(key)
      return row.version == step, row.freq, row.version, mix_key(key)

    if self._policy.max_rows:
      excess = len(self.rows) - self._policy.max_rows
      self._evict(sorted(self.rows, key=rank)[:max(0, excess)])

  def _evict(self, keys):
    for key in list(keys):
      self._forget(key)
      self.evicted += 1

  def _forget(self, key):
    self.rows.pop(key, None)
    self._first.pop(key, None)

  def _stamp_imported(self):
    """Gives all imported rows the same age."""
    if self._calls != self._last_import or not self._calls:
      self._calls += 1
      self._last_import = self._calls
    for key in self.rows:
      self._first.setdefault(key, self._calls)

  def evict_stale(self, step, steps_to_live):
    self._evict([k for k, row in self.rows.items()
                 if step - row.version > steps_to_live])
    self.counted = {k: c for k, c in self.counted.items()
                    if step - c.version <= steps_to_live}

  def evict_weak(self, threshold):
    self._evict([k for k, row in self.rows.items()
                 if 0.5 * np.sum(row.value.astype(np.float64)**2) < threshold])

  def erase(self, keys):
    for key in keys:
      self._forget(key)
      self.counted.pop(key, None)

  def save(self, step):
    """Evicts as the options demand and returns the content of a checkpoint."""
    if self._policy.steps_to_live:
      self.evict_stale(step, self._policy.steps_to_live)
    if self._policy.l2_weight_threshold > 0:
      self.evict_weak(self._policy.l2_weight_threshold)
    return dict(self.rows), dict(self.counted)

  def content(self):
    """Returns the content that an incremental checkpoint is computed from."""
    return dict(self.rows), dict(self.counted)

  def restore_chain(self, chain):
    """Restores a full checkpoint and its deltas, given as a list of contents."""
    self.restore(chain[0])
    for before, after in zip(chain, chain[1:]):
      self._apply(before, after)

  def _apply(self, before, after):
    """Applies a delta, subject to this table's own policy."""
    gone = (set(before[0]) | set(before[1])) - set(after[0]) - set(after[1])
    rows = {k: r for k, r in after[0].items()
            if k not in before[0] or not self._same(r, before[0][k])}
    counted = {k: c for k, c in after[1].items() if before[1].get(k) != c}
    self.erase(gone)
    self.erase(counted)
    freq = self._policy.filter_freq
    for key, row in rows.items():
      self.rows[key] = row._replace(freq=max(row.freq, freq))
      self.counted.pop(key, None)
      if self._policy.filter == "bloom":
        self._bloom[key] = max(self._bloom[key], freq)
    self._stamp_imported()
    self._evict_excess(-1)
    if self._policy.filter != "none":
      for key, (count, version) in counted.items():
        if self._policy.filter == "bloom":
          self._bloom[key] = max(self._bloom[key], count)
        if count >= freq:
          self.rows[key] = self._new_row(key, count, version)
        elif self._policy.filter == "counter":
          self.counted[key] = Counted(count, version)
    self._stamp_imported()
    self._evict_excess(-1)

  @staticmethod
  def _same(a, b):
    return (a.freq == b.freq and a.version == b.version and
            np.array_equal(a.value, b.value) and np.array_equal(a.slot, b.slot))

  def restore(self, saved):
    """Restores a checkpoint, subject to this table's own policy."""
    rows, counted = saved
    freq = self._policy.filter_freq
    self.counted, self._bloom, self._first = {}, collections.Counter(), {}
    self.rows = {
        k: row._replace(freq=max(row.freq, freq)) for k, row in rows.items()
    }
    if self._policy.filter == "bloom":
      self._bloom.update({k: freq for k in rows})
    self._stamp_imported()
    self._evict_excess(-1)
    if self._policy.filter != "none":
      for key, (count, version) in counted.items():
        if self._policy.filter == "bloom":
          self._bloom[key] += count
        if count >= freq:
          self.rows[key] = self._new_row(key, count, version)
        elif self._policy.filter == "counter":
          self.counted[key] = Counted(count, version)
    self._stamp_imported()
    self._evict_excess(-1)
