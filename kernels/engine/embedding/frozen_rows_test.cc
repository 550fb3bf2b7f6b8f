// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/frozen_rows.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/embedding/table_reader.h"

namespace ev {
namespace {

// A home whose rows can be written but, while 'broken', not be read.
class BrokenRows : public RowHome {
 public:
  static std::atomic<bool> broken;
  Status NewRow(RowHandle, int64_t) override { return Status::OK(); }
  Status Read(Span<const RowHandle>, int, float*) override {
    return broken ? Status(StatusCode::kDataLoss, "the disk is broken")
                  : Status::OK();
  }
  Status SquaredNorms(Span<const RowHandle>, double*) override {
    return Unimplemented("");
  }
  Status Write(Span<const RowHandle>, int, const float*) override {
    return Status::OK();
  }
  Status Hold(Span<const RowHandle>, const float**, std::unique_ptr<RowHold>*,
              bool* held) override {
    *held = false;
    return Status::OK();
  }
  Status Apply(const RowRule&, Span<const RowHandle>, Span<const int>,
               const float*, const uint64_t*) override {
    return Status::OK();
  }
  Status Relayout(Span<const SlotShape>) override { return Status::OK(); }
  void Forget(Span<const RowHandle>) override {}
  void Clear() override {}
  int64_t bytes() const override { return 0; }
  const RowHomeCosts& costs() const override {
    static const RowHomeCosts costs = RowHomeCosts::OfDistantMemory();
    return costs;
  }
};

std::atomic<bool> BrokenRows::broken{false};

class FrozenRowsTest : public ::testing::Test {
 protected:
  FrozenRowsTest() : table_(Options()) {
    EXPECT_TRUE(table_.Initialize(std::vector<float>{0.0f}, 1).ok());
    table_.impl()->home.reset(new BrokenRows);
    BrokenRows::broken = false;
  }
  static TableOptions Options() {
    TableOptions options;
    options.name = "t";
    options.dim = 1;
    return options;
  }
  // On another thread, as the reader's thread must not write.
  void Write(const std::vector<int64_t>& keys) {
    std::thread([&] {
      const std::vector<float> values(keys.size());
      EXPECT_TRUE(
          table_.WriteRows(keys, {}, values.data(), {}, nullptr, 1, nullptr)
              .ok());
    }).join();
  }
  static Status Ignore(const RowPiece&) { return Status::OK(); }

  EmbeddingTable table_;
};

TEST_F(FrozenRowsTest, AFailedCopyIsTheReadersErrorNotTheUpdates) {
  Write({1, 2, 3});
  std::unique_ptr<TableReader> reader;
  ASSERT_TRUE(TableReader::Open(table_, {}, &reader).ok());
  BrokenRows::broken = true;
  Write({2});
  BrokenRows::broken = false;
  // The row has changed, so the error stays although it can be read again.
  const Status status = reader->Rows(Ignore);
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_EQ(status.message(), "the disk is broken, table 't'");
  Write({1, 2, 3, 4});
  reader.reset();
  ASSERT_TRUE(TableReader::Open(table_, {}, &reader).ok());
  EXPECT_TRUE(reader->Rows(Ignore).ok());
}

TEST_F(FrozenRowsTest, AnErrorOfTheReaderLetsUpdatesGo) {
  Write({1, 2, 3});
  TableReader::Limits limits;
  limits.kept_bytes = 0;
  std::unique_ptr<TableReader> reader;
  ASSERT_TRUE(TableReader::Open(table_, {}, &reader, limits).ok());
  std::thread update([&] { Write({1, 2, 3}); });
  while (table_.impl()->frozen_rows[0]->waiting() == 0) {
    std::this_thread::yield();
  }
  BrokenRows::broken = true;
  EXPECT_EQ(reader->Rows(Ignore).code(), StatusCode::kDataLoss);
  update.join();
}

}  // namespace
}  // namespace ev
