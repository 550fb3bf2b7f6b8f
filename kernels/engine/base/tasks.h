// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// How this room cuts work: by its size alone, into tasks of some ten to a
// hundred microseconds, never by the number of threads.

#ifndef KERNELS_ENGINE_BASE_TASKS_H_
#define KERNELS_ENGINE_BASE_TASKS_H_

#include <algorithm>
#include <cstdint>
#include <new>
#include <type_traits>
#include <vector>

#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/status.h"

namespace ev {

// parallel->For, or the calling thread when there is nothing to share.
template <typename Body>  // void(int64_t task)
void RunTasks(Parallel* parallel, int64_t num_tasks, const Body& body) {
  if (num_tasks == 1 || parallel == nullptr) {
    for (int64_t i = 0; i < num_tasks; ++i) body(i);
  } else if (num_tasks > 1) {
    parallel->For(num_tasks, body);
  }
}

// body(begin, end) over [0, count) in pieces of 'piece'.
template <typename Body>  // void(int64_t begin, int64_t end)
void ForRanges(Parallel* parallel, int64_t count, int64_t piece,
               const Body& body) {
  RunTasks(parallel, (count + piece - 1) / piece, [&](int64_t task) {
    body(task * piece, std::min(count, (task + 1) * piece));
  });
}

// A task must not throw: it may run on a thread that the engine does not own.
template <typename Body>  // Status()
Status CatchBadAlloc(const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("out of memory");
  }
}

// RunTasks of a body that can fail: the first task's error, in task order.
template <typename Body>  // Status(int64_t task)
Status RunTasksWithStatus(Parallel* parallel, int64_t num_tasks,
                          const Body& body) {
  std::vector<Status> statuses(num_tasks);
  RunTasks(parallel, num_tasks, [&](int64_t task) {
    statuses[task] = CatchBadAlloc([&] { return body(task); });
  });
  for (const Status& status : statuses) EV_RETURN_IF_ERROR(status);
  return Status::OK();
}

template <typename Body>  // Status(int64_t begin, int64_t end)
Status ForRangesWithStatus(Parallel* parallel, int64_t count, int64_t piece,
                           const Body& body) {
  return RunTasksWithStatus(
      parallel, (count + piece - 1) / piece, [&](int64_t task) {
        return body(task * piece, std::min(count, (task + 1) * piece));
      });
}

// A part of one table's work: rows, samples or ids [begin, end) of item 'item'.
struct Piece {
  int item;
  int64_t begin, end;
};

// Work on several items as tasks of about 'weight' units: an item of more is
// cut into pieces, small ones share a task. Task i is pieces [starts[i],
// starts[i + 1]).
class TaskList {
 public:
  explicit TaskList(int64_t weight) : weight_(std::max<int64_t>(1, weight)) {}

  // count units of item; a unit weighs 'unit', >= 1.
  void Add(int item, int64_t count, int64_t unit) {
    const int64_t at_once = std::max<int64_t>(1, weight_ / unit);
    for (int64_t begin = 0; begin < count; begin += at_once) {
      const int64_t end = std::min(count, begin + at_once);
      AddPiece(item, begin, end, (end - begin) * unit);
    }
  }
  // Units [begin, end) of item as one piece.
  void AddPart(int item, int64_t begin, int64_t end, int64_t weight) {
    AddPiece(item, begin, end, weight);
  }
  // All of an item as one piece.
  void AddWhole(int item, int64_t weight) { AddPiece(item, 0, 0, weight); }
  // count units of item, at_once in a task of their own.
  void AddAlone(int item, int64_t count, int64_t at_once) {
    for (int64_t begin = 0; begin < count; begin += at_once) {
      AddPiece(item, begin, std::min(count, begin + at_once), weight_);
    }
  }

  int64_t num_tasks() const { return static_cast<int64_t>(starts_.size()); }
  template <typename Body>  // void(const Piece&)
  void ForEachPiece(int64_t task, const Body& body) const {
    const size_t end =
        task + 1 < num_tasks() ? starts_[task + 1] : pieces_.size();
    for (size_t p = starts_[task]; p < end; ++p) body(pieces_[p]);
  }

 private:
  void AddPiece(int item, int64_t begin, int64_t end, int64_t weight) {
    if (starts_.empty() || filled_ + weight > weight_) {
      starts_.push_back(pieces_.size());
      filled_ = 0;
    }
    pieces_.push_back(Piece{item, begin, end});
    filled_ += weight;
  }

  const int64_t weight_;
  int64_t filled_ = 0;
  std::vector<Piece> pieces_;
  std::vector<size_t> starts_;
};

// body(piece) for every piece. The body returns nothing, or a Status: then the
// result is the first task's error, in task order, and a task stops at its
// first.
template <typename Body>
auto RunPieces(Parallel* parallel, const TaskList& list, const Body& body)
    -> decltype(body(Piece{})) {
  if constexpr (std::is_void<decltype(body(Piece{}))>::value) {
    RunTasks(parallel, list.num_tasks(),
             [&](int64_t task) { list.ForEachPiece(task, body); });
  } else {
    return RunTasksWithStatus(parallel, list.num_tasks(), [&](int64_t task) {
      Status status;
      list.ForEachPiece(task, [&](const Piece& piece) {
        if (status.ok()) status = body(piece);
      });
      return status;
    });
  }
}

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_TASKS_H_
