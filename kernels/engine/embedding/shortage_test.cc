// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The calls of a table when memory is short for a moment, or its home fails
// once. A call that fails changes no row, and the same call then works.

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/lookup/pooled_lookup.h"
#include "kernels/engine/embedding/lookup/presence.h"
#include "kernels/engine/embedding/table_impl.h"
#include "kernels/engine/embedding/update/row_update.h"
#include "kernels/engine/testing/device_shortage.h"
#include "kernels/engine/testing/failing_allocations.h"
#include "kernels/engine/testing/storage_under_test.h"
#include "kernels/engine/testing/unique_keys.h"

namespace ev {
namespace {

using testing::allocations_left;
using testing::DeviceAllocationsLeft;
using Keys = std::vector<int64_t>;
using Floats = std::vector<float>;

constexpr int64_t kDim = 2;
constexpr int64_t kRows = 100;

#define ASSERT_OK(expression)                             \
  do {                                                    \
    const Status ev_status_ = (expression);               \
    ASSERT_TRUE(ev_status_.ok()) << ev_status_.message(); \
  } while (0)

// A home of which one call fails, without doing anything.
class FailingHome : public RowHome {
 public:
  FailingHome(std::unique_ptr<RowHome> home, int64_t* left)
      : home_(std::move(home)), left_(left) {}

  Status NewRow(RowHandle handle, int64_t default_row) override {
    EV_RETURN_IF_ERROR(Next());
    return home_->NewRow(handle, default_row);
  }
  Status Read(Span<const RowHandle> handles, int column, float* out) override {
    EV_RETURN_IF_ERROR(Next());
    return home_->Read(handles, column, out);
  }
  Status ReadColumnsOnce(Span<const RowHandle> handles, Span<const int> columns,
                         Span<float* const> out) override {
    EV_RETURN_IF_ERROR(Next());
    return home_->ReadColumnsOnce(handles, columns, out);
  }
  Status SquaredNorms(Span<const RowHandle> handles, double* out) override {
    EV_RETURN_IF_ERROR(Next());
    return home_->SquaredNorms(handles, out);
  }
  Status Write(Span<const RowHandle> handles, int column,
               const float* in) override {
    EV_RETURN_IF_ERROR(Next());
    return home_->Write(handles, column, in);
  }
  Status Reserve(int64_t rows) override {
    EV_RETURN_IF_ERROR(Next());
    return home_->Reserve(rows);
  }
  void Unreserve(int64_t rows) override { home_->Unreserve(rows); }
  Status Relayout(Span<const SlotShape> slots) override {
    EV_RETURN_IF_ERROR(Next());
    return home_->Relayout(slots);
  }
  void Forget(Span<const RowHandle> handles) override {
    home_->Forget(handles);
  }
  void Clear() override { home_->Clear(); }
  int64_t bytes() const override { return home_->bytes(); }
  Status Hold(Span<const RowHandle> handles, const float** rows,
              std::unique_ptr<RowHold>* hold, bool* held) override {
    EV_RETURN_IF_ERROR(Next());
    return home_->Hold(handles, rows, hold, held);
  }
  Status Apply(const RowRule& rule, Span<const RowHandle> handles,
               Span<const int> slot_columns, const float* grads,
               const uint64_t* salts) override {
    EV_RETURN_IF_ERROR(Next());
    return home_->Apply(rule, handles, slot_columns, grads, salts);
  }
  const RowHomeCosts& costs() const override { return home_->costs(); }
  RowTiers* tiers() override { return home_->tiers(); }

 private:
  Status Next() {
    if (*left_ < 0 || --*left_ >= 0) return Status::OK();
    return ResourceExhausted("the home fails once");
  }

  const std::unique_ptr<RowHome> home_;
  int64_t* const left_;  // calls before the one that fails; negative: none
};

enum class Fault { kHostMemory, kDeviceMemory, kHome };

std::string Printed(const ::testing::TestParamInfo<Fault>& info) {
  return info.param == Fault::kHostMemory     ? "HostMemory"
         : info.param == Fault::kDeviceMemory ? "DeviceMemory"
                                              : "Home";
}

class ShortageTest : public ::testing::TestWithParam<Fault> {
 protected:
  using Table = std::shared_ptr<EmbeddingTable>;
  // Prepares a call, calls start(), then makes the call.
  using Call =
      std::function<Status(const Table&, const std::function<void()>& start)>;

  void SetUp() override {
    const RowStorage storage = testing::StorageUnderTest();
    const bool on_cpu =
        storage == RowStorage::kDram || storage == RowStorage::kDramSsd;
    // The stand-in of a device allocates host memory of its own.
    if (on_cpu == (GetParam() == Fault::kDeviceMemory)) {
      GTEST_SKIP() << "the storage under test has no such fault";
    }
    if (GetParam() != Fault::kDeviceMemory) return;
    DeviceAllocationsLeft() = 1 << 20;
    MakeTable();
    if (DeviceAllocationsLeft().exchange(-1) == 1 << 20) {
      GTEST_SKIP() << "allocations of a GPU cannot be made to fail";
    }
  }

  // A table with rows, of which some have been trained.
  Table MakeTable() {
    TableOptions options;
    options.name = "user";
    options.dim = kDim;
    options.record_frequency = options.record_version = true;
    testing::PutUnderTest(&options);
    auto table = std::make_shared<EmbeddingTable>(options);
    EXPECT_TRUE(table->Initialize(Floats{0.5f, 1.5f}, 1).ok());
    if (GetParam() == Fault::kHome) {
      EmbeddingTable::Impl* const impl = table->impl();
      impl->home.reset(new FailingHome(std::move(impl->home), &home_calls_));
    }
    Keys keys(kRows);
    Floats values(kRows * kDim);
    for (int64_t i = 0; i < kRows; ++i) {
      keys[i] = 3 * i;
      values[i * kDim] = i + 1;
    }
    const Status status = table->WriteRows(
        keys, kSlots, values.data(), std::vector<const float*>{values.data()},
        nullptr, 1, nullptr);
    EXPECT_TRUE(status.ok()) << status.message();
    return table;
  }

  static void ExpectEqual(const TableSnapshot& a, const TableSnapshot& b) {
    EXPECT_EQ(a.keys, b.keys);
    EXPECT_EQ(a.values, b.values);
    EXPECT_EQ(a.slots, b.slots);
    EXPECT_EQ(a.versions, b.versions);
    EXPECT_EQ(a.frequencies, b.frequencies);
  }

  static TableSnapshot All(const EmbeddingTable& table) {
    TableSnapshot all;
    const Status status = table.Export(std::vector<std::string>{"A"}, &all);
    EXPECT_TRUE(status.ok()) << status.message();
    return all;
  }

  void Start(int64_t at) {
    is_started_ = true;
    Set(at);
  }
  void Set(int64_t at) {
    if (GetParam() == Fault::kHostMemory) allocations_left = at;
    if (GetParam() == Fault::kDeviceMemory) DeviceAllocationsLeft() = at;
    if (GetParam() == Fault::kHome) home_calls_ = at;
  }
  // Ends the fault if one was started; returns whether it has happened.
  bool End() {
    if (!is_started_) return false;
    is_started_ = false;
    const int64_t left = GetParam() == Fault::kHostMemory ? allocations_left
                         : GetParam() == Fault::kDeviceMemory
                             ? DeviceAllocationsLeft().load()
                             : home_calls_;
    Set(-1);
    return left < 0;
  }

  // Lets the first, second, ... allocation, or call of the home, fail during
  // the call, until none does. changes_nothing: also after an error.
  void FailEach(const Call& call, bool changes_nothing = true) {
    const Table good = MakeTable();
    const TableSnapshot before = All(*good);
    ASSERT_OK(call(good, [] {}));
    const TableSnapshot expected = All(*good);
    int faults = 0;
    bool failed = true;
    for (int64_t at = 0; failed; ++at) {
      SCOPED_TRACE(at);
      const Table table = MakeTable();
      failed_ = false;
      const Status status = call(table, [&] { Start(at); });
      failed = End() || failed_;
      faults += failed;
      if (!status.ok()) {
        ASSERT_EQ(StatusCode::kResourceExhausted, status.code())
            << status.message();
        if (changes_nothing) ExpectEqual(before, All(*table));
        ASSERT_OK(call(table, [] {}));
      }
      ExpectEqual(expected, All(*table));
      if (HasFailure()) return;
    }
    // Some calls need no device memory, and no home refuses to forget rows.
    if (GetParam() == Fault::kHostMemory) {
      EXPECT_GT(faults, 0);
    }
  }

  // Ids of rows, new ids, and repeated ids.
  static Keys Ids() {
    Keys ids;
    for (int64_t i = 0; i < 60; ++i) ids.push_back(i * 5 % 140);
    return ids;
  }

  // Looks up Ids(), as samples of one id each.
  static Status Look(const Table& table, const std::function<void()>& start,
                     Floats* out, std::shared_ptr<const LookupPlan>* plan) {
    const Keys ids = Ids();
    PooledInput in;
    in.table = table.get();
    in.batch_size = in.num_ids = ids.size();
    in.ids64 = ids.data();
    std::vector<int64_t> splits(ids.size() + 1);
    for (size_t i = 0; i < splits.size(); ++i) splits[i] = i;
    in.row_splits = splits.data();
    const std::vector<PooledInput> inputs = {in};
    const std::vector<Table> owners = {table};
    out->assign(ids.size() * kDim, -1.0f);
    const std::vector<float*> outputs = {out->data()};
    start();
    return PooledForward(inputs, owners, outputs, nullptr, plan);
  }

  const std::vector<SlotSpec> kSlots = {{"A", 0.25f}};
  int64_t home_calls_ = -1;
  bool is_started_ = false;
  bool failed_ = false;  // the fault has happened
};

TEST_P(ShortageTest, Lookup) {
  Floats expected;
  FailEach([&](const Table& table, const std::function<void()>& start) {
    Floats out;
    std::shared_ptr<const LookupPlan> plan;
    const Status status = Look(table, start, &out, &plan);
    failed_ = End();
    if (!status.ok()) return status;
    if (expected.empty()) expected = out;
    EXPECT_EQ(expected, out);
    return status;
  });
}

TEST_P(ShortageTest, UpdateOfALookup) {
  FailEach([&](const Table& table, const std::function<void()>& start) {
    Floats out;
    std::shared_ptr<const LookupPlan> plan;
    EV_RETURN_IF_ERROR(Look(
        table, [] {}, &out, &plan));
    for (float& x : out) x = 1 - x / 64;
    UpdateInput update;
    update.table = table.get();
    update.plan = plan.get();
    update.pooled_grads = out.data();
    const std::vector<UpdateInput> updates = {update};
    const std::vector<std::vector<SlotSpec>> slots = {kSlots};
    const Floats hyper = {0.5f};
    const std::string rule = "Adagrad";
    start();
    return ApplyRule(rule, hyper, updates, slots, 7, nullptr);
  });
}

TEST_P(ShortageTest, UpdateOfKeys) {
  FailEach([&](const Table& table, const std::function<void()>& start) {
    const Keys ids = Ids();
    const Floats grads(ids.size() * kDim, 0.75f);
    UpdateInput update;
    update.table = table.get();
    update.keys = ids;
    update.grads = grads.data();
    const std::vector<UpdateInput> updates = {update};
    const std::vector<std::vector<SlotSpec>> slots = {kSlots};
    const Floats hyper = {0.5f};
    const std::string rule = "Adagrad";
    start();
    return ApplyRule(rule, hyper, updates, slots, 7, nullptr);
  });
}

TEST_P(ShortageTest, WriteRows) {
  FailEach(
      [&](const Table& table, const std::function<void()>& start) {
        const Keys keys = {-1, 3, 6, 7};
        const Floats values = {1, 2, 3, 4, 5, 6, 7, 8};
        const std::vector<const float*> slots = {values.data()};
        start();
        // Versions and frequencies of written rows may have been counted.
        return table->WriteRows(keys, kSlots, values.data(), slots, nullptr, 2,
                                nullptr);
      },
      /*changes_nothing=*/false);
}

TEST_P(ShortageTest, Erase) {
  FailEach([&](const Table& table, const std::function<void()>& start) {
    Keys keys;
    for (int64_t i = 0; i < 200; i += 2) keys.push_back(i);
    int64_t erased = -1;
    start();
    const Status status = table->Erase(keys, &erased);
    failed_ = End();
    if (status.ok()) {
      EXPECT_EQ(34, erased);
    }
    return status;
  });
}

TEST_P(ShortageTest, EvictWeak) {
  FailEach([&](const Table& table, const std::function<void()>& start) {
    int64_t evicted = -1;
    start();
    const Status status = table->EvictWeak(200.0f, &evicted);
    failed_ = End();
    if (status.ok()) {
      EXPECT_GT(evicted, 5);
    }
    return status;
  });
}

TEST_P(ShortageTest, InsertAbsent) {
  FailEach([&](const Table& table, const std::function<void()>& start) {
    const Keys keys = {-1, 3, -1, 7, 8};
    const Floats values = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    int64_t inserted = -1;
    start();
    const Status status =
        InsertAbsent(table.get(), keys, values.data(), &inserted);
    failed_ = End();
    EXPECT_EQ(status.ok() ? 3 : 0, inserted);
    return status;
  });
}

TEST_P(ShortageTest, ReadAndEvict) {
  FailEach([&](const Table& table, const std::function<void()>& start) {
    const Keys keys = {-1, 3, 7, 8};
    Floats out(keys.size() * kDim), values;
    Keys evicted;
    start();
    return table->ReadAndEvict(keys, 3, out.data(), &evicted, &values);
  });
}

TEST_P(ShortageTest, NewSlot) {
  FailEach([&](const Table& table, const std::function<void()>& start) {
    const std::vector<SlotSpec> slots = {{"B", 0.5f}};
    start();
    return table->EnsureSlots(slots, nullptr);
  });
}

// An erased row's handle goes to one new key.
TEST_P(ShortageTest, EraseThenInsert) {
  FailEach(
      [&](const Table& table, const std::function<void()>& start) {
        Keys keys, fresh;
        Floats values;
        for (int64_t i = 0; i < kRows; ++i) {
          if (i % 2 == 0) keys.push_back(3 * i);
          fresh.push_back(10000 + i);
          values.insert(values.end(), kDim, i);
        }
        int64_t inserted;
        start();
        EV_RETURN_IF_ERROR(table->Erase(keys, nullptr));
        return InsertAbsent(table.get(), fresh, values.data(), &inserted);
      },
      /*changes_nothing=*/false);
}

INSTANTIATE_TEST_SUITE_P(All, ShortageTest,
                         ::testing::Values(Fault::kHostMemory,
                                           Fault::kDeviceMemory, Fault::kHome),
                         Printed);

}  // namespace
}  // namespace ev
