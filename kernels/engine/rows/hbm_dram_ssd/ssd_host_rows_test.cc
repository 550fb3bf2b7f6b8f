// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/hbm_dram_ssd/ssd_host_rows.h"

#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/rows/ssd/open_tiered_rows.h"

namespace ev {
namespace {

#define ASSERT_OK(expression)                             \
  do {                                                    \
    const Status ev_status_ = (expression);               \
    ASSERT_TRUE(ev_status_.ok()) << ev_status_.message(); \
  } while (0)

constexpr int64_t kDim = 2;

class SsdHostRowsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    static int next = 0;
    RowHomeOptions options;
    options.name = "v";
    options.dim = kDim;
    options.default_rows = defaults_;
    options.path = ::testing::TempDir() + "/host-rows-" +
                   std::to_string(getpid()) + "-" + std::to_string(next++);
    std::unique_ptr<TieredRows> tiers;
    ASSERT_OK(OpenTieredRows(options, 10 * (kDim * sizeof(float) + 20),
                             std::make_shared<UseRanks>(CacheStrategy::kLru),
                             &tiers));
    rows_.reset(new SsdHostRows(kDim, std::move(tiers)));
    for (RowHandle h = 0; h < 100; ++h) {
      ASSERT_OK(rows_->AddHandle(h));
      RowHandle row;
      ASSERT_OK(rows_->Allocate(h, false, &row));
      all_.push_back(row);
    }
    std::vector<float> floats;
    std::vector<uint32_t> ranks;
    for (RowHandle h = 0; h < 100; ++h) {
      floats.insert(floats.end(), kDim, static_cast<float>(h));
      ranks.push_back(h + 1);
    }
    ASSERT_OK(rows_->Write(all_, false, floats.data(), ranks.data()));
  }

  // Expects row h to be [h, h, slots...].
  void ExpectRows(const std::vector<float>& slots) {
    const size_t width = kDim * (1 + slots.size());
    std::vector<float> floats(all_.size() * width);
    std::vector<uint32_t> ranks(all_.size());
    ASSERT_OK(rows_->Read(all_, floats.data(), ranks.data()));
    const auto expect = [&](size_t h, const float* row) {
      EXPECT_EQ(row[0], static_cast<float>(h));
      for (size_t s = 0; s < slots.size(); ++s) {
        EXPECT_EQ(row[kDim * (1 + s)], slots[s]);
        EXPECT_EQ(row[kDim * (1 + s) + 1], slots[s]);
      }
    };
    for (size_t h = 0; h < all_.size(); ++h) {
      expect(h, floats.data() + h * width);
      EXPECT_EQ(ranks[h], h + 1);
    }
    const HostRows::ReadLock lock = rows_->KeepContents();
    size_t visited = 0;
    ASSERT_OK(rows_->Visit(all_, [&](size_t k, const float* row) {
      expect(k, row);
      ++visited;
    }));
    EXPECT_EQ(visited, all_.size());
  }

  const std::vector<float> defaults_ = std::vector<float>(kDim, 0.5f);
  std::unique_ptr<SsdHostRows> rows_;
  std::vector<RowHandle> all_;
};

TEST_F(SsdHostRowsTest, ReadsWhatWasWritten) {
  ExpectRows({});
  TierStats stats, below;
  rows_->AddStats(&stats, &below);
  EXPECT_EQ(stats.stored_rows, 10);
  EXPECT_EQ(below.memory_rows, 10);
  EXPECT_EQ(below.stored_rows, 90);
  EXPECT_EQ(below.hits, 10);
  EXPECT_EQ(below.misses, 90);
}

TEST_F(SsdHostRowsTest, SlotsComeAndGo) {
  ASSERT_OK(rows_->AddSlots(std::vector<float>{7}));
  ExpectRows({7});
  ASSERT_OK(rows_->AddSlots(std::vector<float>{8, 9}));
  ExpectRows({7, 8, 9});
  ASSERT_OK(rows_->RemoveSlots(2));
  ExpectRows({7});
  ASSERT_OK(rows_->AddSlots(std::vector<float>{4}));
  ExpectRows({7, 4});
}

TEST_F(SsdHostRowsTest, FreedRowsTakeNoRoom) {
  rows_->Free(all_);
  TierStats stats, below;
  rows_->AddStats(&stats, &below);
  EXPECT_EQ(below.memory_rows + below.stored_rows, 0);
  rows_->Clear(3);
  rows_->Clear(0);
}

TEST_F(SsdHostRowsTest, AHandleThatDoesNotFitIntoARowStateIsAnError) {
  const Status status = rows_->AddHandle(kFirstReservedHandle - 1);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("2147483648"), std::string::npos);
}

}  // namespace
}  // namespace ev
