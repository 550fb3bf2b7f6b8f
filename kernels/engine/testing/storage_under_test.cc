// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Compiled once per storage; the test cases are compiled once for all.

#include "kernels/engine/testing/storage_under_test.h"

#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <memory>

#include "gtest/gtest.h"
#include "kernels/engine/rows/gpu_row_home.h"
#include "kernels/engine/testing/skip_without_gpu.h"

namespace ev {
namespace testing {

const std::string& WhyNoGpu() {
  static const std::string* const why = [] {
    const float row = 0.0f;
    GpuRowHomeOptions options;
    options.dim = 1;
    options.default_rows = Span<const float>(&row, 1);
    std::unique_ptr<GpuRowHome> rows;
    const Status status = MakeGpuRowHome(options, &rows);
    if (!status.ok() && !IsWithoutGpu(status)) {
      // An existing GPU that fails is no reason to skip.
      std::fprintf(stderr, "%s\n", status.message().c_str());
      abort();
    }
    return new std::string(status.message());
  }();
  return *why;
}

// Skips each case before it starts; its fixture is constructed, but not set up.
class SkipWithoutGpu : public ::testing::EmptyTestEventListener {
 public:
  void OnTestStart(const ::testing::TestInfo&) override {
    if (!WhyNoGpu().empty()) GTEST_SKIP() << WhyNoGpu();
  }
};

#if defined(EV_TEST_ON_DEVICE) || defined(EV_TEST_ON_DEVICE_AND_HOST) || \
    defined(EV_TEST_ON_DEVICE_AND_SSD)

RowStorage StorageUnderTest() {
  if (!WhyNoGpu().empty()) return RowStorage::kDram;
#ifdef EV_TEST_ON_DEVICE
  return RowStorage::kHbm;
#elif defined(EV_TEST_ON_DEVICE_AND_SSD)
  return RowStorage::kHbmDramSsd;
#else
  return RowStorage::kHbmDram;
#endif
}

namespace {
#ifndef EV_TEST_ON_DEVICE_AND_SSD
// A small limit, so that steps of several waves are tested, too.
const bool kHasWaves = setenv("TF_EV_GPU_WAVE_IDS", "300", 1) == 0;
#endif
const bool kSkips = [] {
  ::testing::UnitTest::GetInstance()->listeners().Append(new SkipWithoutGpu);
  return true;
}();
}  // namespace

#elif defined(EV_TEST_ON_SSD)

RowStorage StorageUnderTest() { return RowStorage::kDramSsd; }

#else

RowStorage StorageUnderTest() { return RowStorage::kDram; }

#endif

std::string FreshDirectory() {
  static std::atomic<int> next{0};
  return ::testing::TempDir() + "/rows-" + std::to_string(getpid()) + "-" +
         std::to_string(next.fetch_add(1));
}

void PutUnderTest(TableOptions* options) {
  options->storage = StorageUnderTest();
  // Bytes of the value and one slot, plus the overhead of a place.
  const int64_t place_bytes = 2 * options->dim * sizeof(float) + 20;
  if (options->storage == RowStorage::kDramSsd) {
    options->path = FreshDirectory();
    options->memory_bytes = 64 * place_bytes;
  } else if (options->storage == RowStorage::kHbmDram) {
    options->memory_bytes = 64 * options->dim * sizeof(float);
  } else if (options->storage == RowStorage::kHbmDramSsd) {
    options->path = FreshDirectory();
    options->memory_bytes = 64 * options->dim * sizeof(float);
    options->second_memory_bytes = 64 * place_bytes;
  }
}

}  // namespace testing
}  // namespace ev
