// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Which exchanges of this process wait for other ranks, and since when. A
// collective that not all ranks take part in never ends by itself; a reader of
// this registry can end it.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_WAIT_REGISTRY_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_WAIT_REGISTRY_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace sok {

// Thread-safe.
class WaitRegistry {
 public:
  // Never destroyed: waits may end while the process does.
  static WaitRegistry& Global();

  // 'what' waits from now on, until End of the number returned.
  uint64_t Begin(std::string what);
  void End(uint64_t number);

  // Seconds since the oldest wait began, and what it is; 0 and "" when none is.
  double Longest(std::string* what) const;

 private:
  struct Entry {
    std::string what;
    int64_t begin_ns;
  };

  mutable std::mutex mu_;
  uint64_t next_ = 1;
  std::map<uint64_t, Entry> entries_;  // numbers ascend with time
};

// One wait at a time; it ends with the object at the latest. Not thread-safe.
class Wait {
 public:
  Wait() {}
  ~Wait() { End(); }
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

  void Begin(std::string what) {
    End();
    number_ = WaitRegistry::Global().Begin(std::move(what));
  }
  void End() {
    if (number_ != 0) WaitRegistry::Global().End(number_);
    number_ = 0;
  }

 private:
  uint64_t number_ = 0;
};

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_WAIT_REGISTRY_H_
