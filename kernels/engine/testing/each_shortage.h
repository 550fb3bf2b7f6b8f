// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Lets the first, second, ... allocation of a program's calls fail. To be
// included by one source file of a program.

#ifndef KERNELS_ENGINE_TESTING_EACH_SHORTAGE_H_
#define KERNELS_ENGINE_TESTING_EACH_SHORTAGE_H_

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <new>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/base/pages.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/testing/device_shortage.h"
#include "kernels/engine/testing/failing_allocations.h"

namespace ev {
namespace testing {

enum class Fault { kHostMemory, kDeviceMemory };

// One run of the tested calls, of which one allocation fails.
class Shortage {
 public:
  Shortage(Fault fault, int64_t at) : fault_(fault), left_(at) {
    SetAllocationHookForTesting(&HasPages);
  }
  ~Shortage() { SetAllocationHookForTesting(nullptr); }

  bool has_happened() const { return left_ < 0; }

  // Makes a call in which allocations count.
  Status Call(const std::function<Status()>& call) {
    Status status;
    bool has_thrown = false;
    Set(left_);
    try {
      status = call();
    } catch (const std::bad_alloc&) {
      has_thrown = true;
    }
    if (left_ >= 0) left_ = Left();
    Set(-1);
    EXPECT_FALSE(has_thrown) << "a call throws";
    return has_thrown ? ResourceExhausted("thrown") : status;
  }

  // Makes a step of several calls, again if a call fails.
  void Step(const char* name, const std::function<Status()>& step) {
    Status status = step();
    if (!status.ok()) {
      EXPECT_EQ(StatusCode::kResourceExhausted, status.code())
          << name << ": " << status.message();
      EXPECT_TRUE(has_happened()) << name << ": " << status.message();
      status = step();
    }
    EXPECT_TRUE(status.ok()) << name << ", again: " << status.message();
  }

 private:
  static bool HasPages(size_t) {
    int64_t& left = allocations_left;
    if (left == 0) {
      left = -1;
      return false;
    }
    if (left > 0) --left;
    return true;
  }
  void Set(int64_t left) {
    if (fault_ == Fault::kHostMemory) {
      allocations_left = left;
    } else {
      DeviceAllocationsLeft() = left;
    }
  }
  int64_t Left() const {
    return fault_ == Fault::kHostMemory ? allocations_left
                                        : DeviceAllocationsLeft().load();
  }

  const Fault fault_;
  int64_t left_;
};

// A run adds what it has computed.
using Numbers = std::vector<double>;
using Run = std::function<void(Shortage* shortage, Numbers* numbers)>;

// Makes the run once without a shortage, then with each allocation failing
// until none does, and compares the numbers. Each run is a process of its own,
// so that no buffer was allocated before. Returns the number of shortages.
inline int64_t RunWithEachShortage(Fault fault, const Run& run) {
  struct Result {
    uint64_t hash;
    bool has_happened;
  };
  Result* const result =
      static_cast<Result*>(mmap(nullptr, sizeof(Result), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const ::testing::TestResult& test =
      *::testing::UnitTest::GetInstance()->current_test_info()->result();
  const auto run_at = [&](int64_t at) {
    const int parts = test.total_part_count();
    *result = Result();
    const pid_t child = fork();
    if (child == 0) {
      Shortage shortage(fault, at);
      Numbers numbers;
      run(&shortage, &numbers);
      for (const double number : numbers) {
        result->hash = (result->hash ^ std::hash<double>()(number)) * 31 + 7;
      }
      result->has_happened = shortage.has_happened();
      std::exit(test.total_part_count() == parts ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(child, waitpid(child, &status, 0));
    EXPECT_EQ(0, status) << "allocation " << at;
    return *result;
  };
  constexpr int64_t kNever = int64_t{1} << 40;
  constexpr int kMostFailures = 20;
  const uint64_t expected = run_at(kNever).hash;
  int64_t at = 0;
  for (int failures = 0; failures < kMostFailures; ++at) {
    const Result found = run_at(at);
    if (found.hash != 0 && !found.has_happened) break;
    EXPECT_EQ(expected, found.hash) << "allocation " << at;
    failures += expected != found.hash;
  }
  munmap(result, sizeof(Result));
  return at;
}

}  // namespace testing
}  // namespace ev

#endif  // KERNELS_ENGINE_TESTING_EACH_SHORTAGE_H_
