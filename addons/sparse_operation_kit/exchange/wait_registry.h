// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Lists the exchanges of this process that wait for other ranks, with their
// start times. A collective that some rank never joins does not end by itself;
// a thread that reads this registry can end it.

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
  // Never destroyed: waits may end during process exit.
  static WaitRegistry& Global();

  // Records that 'what' waits from now until End with the returned number.
  uint64_t Begin(std::string what);
  void End(uint64_t number);

  // Returns the age of the oldest wait in seconds and its name; 0 and "" if
  // there is none.
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

// A scoped entry: one wait at a time, which ends at the latest with the object.
// Not thread-safe.
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
