// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/gpu/new_rows.h"

#include <algorithm>
#include <new>

namespace ev {
namespace gpu {
namespace {

using Row = NewRows::Row;
using Key = NewRows::Key;

RowHandle IdOf(const Row& row) { return row.handle; }
RowHandle IdOf(RowHandle handle) { return handle; }
int64_t IdOf(const Key& key) { return key.key; }
int64_t IdOf(int64_t key) { return key; }
void MarkRemoved(Row* row) { row->default_row = -1; }
void MarkRemoved(Key* key) { key->handle = kNoRow; }
bool IsRemoved(const Row& row) { return row.default_row == -1; }
bool IsRemoved(const Key& key) { return key.handle == kNoRow; }

// Removes the entries that have an id in 'with'; returns how many there were.
// Changes the order of the rest. Allocates nothing.
template <typename Entry, typename With>
int64_t Remove(const With& with, std::vector<Entry>* entries) {
  if (entries->empty()) return 0;
  std::sort(entries->begin(), entries->end(),
            [](const Entry& a, const Entry& b) { return IdOf(a) < IdOf(b); });
  for (const auto& one : with) {
    const auto id = IdOf(one);
    auto entry = std::lower_bound(
        entries->begin(), entries->end(), id,
        [](const Entry& a, decltype(id) b) { return IdOf(a) < b; });
    for (; entry != entries->end() && IdOf(*entry) == id; ++entry) {
      MarkRemoved(&*entry);
    }
  }
  const auto kept =
      std::remove_if(entries->begin(), entries->end(),
                     [](const Entry& entry) { return IsRemoved(entry); });
  const int64_t removed = entries->end() - kept;
  entries->erase(kept, entries->end());
  return removed;
}

template <typename T>
void RemoveFirst(size_t n, std::vector<T>* all) {
  if (n == all->size()) {
    std::vector<T>().swap(*all);  // frees the memory of a long queue
  } else {
    all->erase(all->begin(), all->begin() + n);
  }
}

}  // namespace

NewRows::Writing::Writing(NewRows* rows)
    : rows_(rows), writer_(rows->writer_mu_) {
  std::lock_guard<std::mutex> lock(rows_->mu_);
  rows_->TakeAll();
}

NewRows::Writing::~Writing() {
  RemoveFirst(num_rows_, &rows_->taken_.rows);
  RemoveFirst(num_keys_, &rows_->taken_.keys);
  std::lock_guard<std::mutex> lock(rows_->mu_);
  rows_->UpdateHasAny();
}

Status NewRows::Add(const int64_t* key, RowHandle handle, int64_t default_row) {
  try {
    std::lock_guard<std::mutex> lock(mu_);
    if (key != nullptr) queue_.keys.push_back(Key{*key, handle});
    try {
      queue_.rows.push_back(Row{handle, default_row});
    } catch (const std::bad_alloc&) {
      if (key != nullptr) queue_.keys.pop_back();
      throw;
    }
    has_any_.store(true, std::memory_order_release);
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("no memory to remember a new row");
  }
  return Status::OK();
}

void NewRows::TakeAll() {
  if (taken_.empty()) {
    std::swap(taken_, queue_);
    return;
  }
  // The last writer failed.
  taken_.rows.reserve(taken_.rows.size() + queue_.rows.size());
  taken_.keys.reserve(taken_.keys.size() + queue_.keys.size());
  // A row may have been renewed again, and a kernel must not write it twice.
  Remove(queue_.rows, &taken_.rows);
  taken_.rows.insert(taken_.rows.end(), queue_.rows.begin(), queue_.rows.end());
  taken_.keys.insert(taken_.keys.end(), queue_.keys.begin(), queue_.keys.end());
  queue_ = Queue();
}

void NewRows::ForgetRows(Span<const RowHandle> handles) {
  Remove(handles, &taken_.rows);
  Remove(handles, &queue_.rows);
  UpdateHasAny();
}

int64_t NewRows::ForgetKeys(Span<const int64_t> keys) {
  const int64_t removed =
      Remove(keys, &taken_.keys) + Remove(keys, &queue_.keys);
  UpdateHasAny();
  return removed;
}

void NewRows::Clear() {
  queue_ = Queue();
  taken_ = Queue();
  UpdateHasAny();
}

void NewRows::UpdateHasAny() {
  has_any_.store(!queue_.empty() || !taken_.empty(), std::memory_order_release);
}

}  // namespace gpu
}  // namespace ev
