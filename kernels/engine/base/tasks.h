// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// How the engine cuts work into tasks of some ten to a hundred microseconds: by
// size alone, never by the number of threads.

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

// Runs body(task) for each task by parallel->For, or on the calling thread if
// parallel is null or there is only one task.
template <typename Body>  // void(int64_t task)
void RunTasks(Parallel* parallel, int64_t num_tasks, const Body& body) {
  if (num_tasks == 1 || parallel == nullptr) {
    for (int64_t i = 0; i < num_tasks; ++i) body(i);
  } else if (num_tasks > 1) {
    parallel->For(num_tasks, body);
  }
}

// Calls body(begin, end) over [0, count) in ranges of 'piece'.
template <typename Body>  // void(int64_t begin, int64_t end)
void ForRanges(Parallel* parallel, int64_t count, int64_t piece,
               const Body& body) {
  RunTasks(parallel, (count + piece - 1) / piece, [&](int64_t task) {
    body(task * piece, std::min(count, (task + 1) * piece));
  });
}

// Runs the body and turns bad_alloc into an error. A task must not throw: it
// may run on a thread that the engine does not own.
template <typename Body>  // Status()
Status CatchBadAlloc(const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("out of memory");
  }
}

// RunTasks for a body that can fail. Returns the first error in task order.
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

// Elements [begin, end) of an item: rows, samples or ids, for instance. The
// caller decides what an item is.
struct Piece {
  int item;
  int64_t begin, end;
};

// Cuts work on several items into tasks of a total weight of about 'weight'. A
// larger item is cut into pieces; small items share a task. Task i consists of
// pieces [starts[i], starts[i + 1]).
class TaskList {
 public:
  explicit TaskList(int64_t weight) : weight_(std::max<int64_t>(1, weight)) {}

  // Adds elements [0, count) of an item; each weighs 'unit', >= 1.
  void Add(int item, int64_t count, int64_t unit) {
    const int64_t at_once = std::max<int64_t>(1, weight_ / unit);
    for (int64_t begin = 0; begin < count; begin += at_once) {
      const int64_t end = std::min(count, begin + at_once);
      AddPiece(item, begin, end, (end - begin) * unit);
    }
  }
  // Adds elements [begin, end) of an item as one piece.
  void AddPart(int item, int64_t begin, int64_t end, int64_t weight) {
    AddPiece(item, begin, end, weight);
  }
  // Adds all of an item as one piece, whose begin and end are 0.
  void AddWhole(int item, int64_t weight) { AddPiece(item, 0, 0, weight); }
  // Adds elements [0, count) of an item; each 'at_once' of them are a task of
  // their own.
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

// Calls body(piece) for every piece. If the body returns a Status, a task stops
// at its first error, and the result is the first error in task order.
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
