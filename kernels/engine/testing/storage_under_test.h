// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Lets one test program be built twice: as it is, for rows in CPU memory, and
// with EV_TEST_ON_GPU for rows in a GPU's. There every case is skipped, by
// name, when the process sees no GPU.

#ifndef KERNELS_ENGINE_TESTING_STORAGE_UNDER_TEST_H_
#define KERNELS_ENGINE_TESTING_STORAGE_UNDER_TEST_H_

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "kernels/engine/embedding/device_rows.h"
#include "kernels/engine/embedding/embedding_table.h"

namespace ev {
namespace testing {

// Why there are no rows on a device; empty when there are.
inline const std::string& WhyNoGpu() {
  static const std::string* const why = [] {
    const float row = 0.0f;
    DeviceRowsOptions options;
    options.dim = 1;
    options.default_rows = Span<const float>(&row, 1);
    std::unique_ptr<DeviceRows> rows;
    return new std::string(MakeDeviceRows(options, &rows).message());
  }();
  return *why;
}

// Skips each case before it begins; its fixture is made, but not set up.
class SkipWithoutGpu : public ::testing::EmptyTestEventListener {
 public:
  void OnTestStart(const ::testing::TestInfo&) override {
    if (!WhyNoGpu().empty()) GTEST_SKIP() << WhyNoGpu();
  }
};

#ifdef EV_TEST_ON_GPU

inline RowStorage StorageUnderTest() {
  return WhyNoGpu().empty() ? RowStorage::kHbm : RowStorage::kDram;
}

namespace {
const bool kSkips = [] {
  ::testing::UnitTest::GetInstance()->listeners().Append(new SkipWithoutGpu);
  return true;
}();
}  // namespace

#else

inline RowStorage StorageUnderTest() { return RowStorage::kDram; }

#endif

}  // namespace testing
}  // namespace ev

#endif  // KERNELS_ENGINE_TESTING_STORAGE_UNDER_TEST_H_
