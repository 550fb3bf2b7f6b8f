// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests the contract of TableSet's growth itself. table_set_test checks all
// other calls on tables that grow. A plain program, like table_set_test.

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <string>
#include <unordered_map>

#include "kernels/engine/table/gpu/table_fixture.h"
#include "kernels/engine/table/gpu/table_set.h"
#include "kernels/engine/testing/exit_without_gpu.h"

namespace ev {
namespace gpu {
namespace {

// slot -> (key, score)
using Contents = std::map<int64_t, std::pair<int64_t, uint64_t>>;

Contents ContentsOf(Fixture* f, int table, bool scores) {
  Contents contents;
  const Listed all = f->Export(table);
  for (size_t i = 0; i < all.keys.size(); ++i) {
    contents[all.slots[i]] = {all.keys[i], scores ? all.scores[i] : 0};
  }
  return contents;
}

// Computes the expected contents after a growth from those before it and from
// the keys in new slots. No other key may have changed its slot or score.
void MovesOnlyToNewSlots(Eviction eviction, double load) {
  const bool scores = eviction != Eviction::kNone;
  Fixture f({64, g_small ? 2000 : 100000, 64}, eviction, 0, 9);
  const int64_t wanted =
      static_cast<int64_t>(load * 1.1 * f.set().num_slots(1));
  f.FindOrInsert({RandomKeys(30, 1 << 30, 1), RandomKeys(wanted, 1 << 30, 2),
                  RandomKeys(50, 1 << 30, 3)});
  f.FindOrInsert({{}, RandomKeys(wanted / 2, 1 << 30, 2), {}});
  Contents others[2] = {ContentsOf(&f, 0, scores), ContentsOf(&f, 2, scores)};
  std::mt19937_64 random(4);
  for (int growths = 0; growths < 8; ++growths) {
    Growth planned;
    // at its maximum size
    if (!f.set().PlanGrowth(1, 32, &planned).ok()) break;
    Contents before = ContentsOf(&f, 1, scores);
    const int64_t size = f.size(1), rejected = f.rejected(1);
    const Growth g =
        f.Grow(1, 32 + static_cast<int64_t>(random() % f.set().num_slots(1)));
    const Contents after = ContentsOf(&f, 1, scores);
    EXPECT(f.size(1) == size && f.rejected(1) == rejected);
    int64_t moved = 0;
    for (const auto& entry : after) {
      const bool is_new = entry.first >= g.first_slot;
      moved += is_new;
      const auto was =
          before.find(is_new ? entry.first - g.distance : entry.first);
      EXPECT(was != before.end() && was->second == entry.second);
      if (was != before.end()) before.erase(was);
    }
    EXPECT(before.empty());
    // About half of the keys of as many slots, if there are many.
    if (g.num_slots > 5000 && growths == 0) {
      EXPECT(moved > load * .4 * g.num_slots &&
             moved < load * .6 * g.num_slots);
    }
    Keys keys, slots;
    for (const auto& entry : after) {
      slots.push_back(entry.first);
      keys.push_back(entry.second.first);
    }
    EXPECT(f.Find({{}, keys, {}}) == slots);
  }
  EXPECT(ContentsOf(&f, 0, scores) == others[0]);
  EXPECT(ContentsOf(&f, 2, scores) == others[1]);
}

void MovesOnlyToNewSlots() {
  for (Eviction eviction : {Eviction::kNone, Eviction::kLru, Eviction::kLfu}) {
    MovesOnlyToNewSlots(eviction, .7);
    MovesOnlyToNewSlots(eviction, 1);
  }
}

void ManySmallGrowthsAreOneLargeOne() {
  for (Eviction eviction : {Eviction::kNone, Eviction::kLru}) {
    Fixture f({2000}, eviction, 0, 8);
    f.FindOrInsert(RandomKeys(1990, 1 << 30, 1));
    // Only a copy could have the same keys in the same slots. So compare the
    // growths by what they do to each key.
    const Listed before = f.Export(0);
    std::unordered_map<int64_t, int64_t> slot_of;
    for (size_t i = 0; i < before.keys.size(); ++i) {
      slot_of[before.keys[i]] = before.slots[i];
    }
    const int64_t first = f.set().num_slots(0);
    while (f.set().num_slots(0) < 2 * first) f.Grow(0, 96);
    const Listed small = f.Export(0);
    EXPECT(small.keys.size() == before.keys.size());
    // A key that has the same slot in both tables must move by the same rule;
    // its buckets are those of the key's chain.
    Fixture g({2000}, eviction, 0, 8);
    g.FindOrInsert(RandomKeys(1990, 1 << 30, 1));
    g.Grow(0, first);
    const Listed large = g.Export(0);
    std::unordered_map<int64_t, int64_t> bucket_of;
    for (size_t i = 0; i < large.keys.size(); ++i) {
      bucket_of[large.keys[i]] = large.slots[i] / 16;
    }
    int64_t elsewhere = 0;
    for (size_t i = 0; i < small.keys.size(); ++i) {
      elsewhere += bucket_of[small.keys[i]] != small.slots[i] / 16;
      EXPECT((small.slots[i] - slot_of[small.keys[i]]) % first == 0);
    }
    // In tables that evict the buckets are deterministic.
    if (eviction == Eviction::kLru) EXPECT(elsewhere == 0);
  }
}

void TakesTheKeysThatItRefusedBefore() {
  Fixture f({1000}, Eviction::kNone, 0, 64);
  const Keys keys = RandomKeys(20000, int64_t{1} << 40, 5);
  int64_t placed = 0;
  for (int round = 0; round < 60; ++round) {
    const Inserted r = f.FindOrInsert(keys);
    placed = 0;
    for (int64_t s : r.slots) placed += s >= 0;
    EXPECT(placed == f.size());
    EXPECT(f.Find(keys) == r.slots);
    if (placed == static_cast<int64_t>(keys.size())) break;
    f.Grow(0, f.set().num_slots(0) / 4);
  }
  EXPECT(placed == static_cast<int64_t>(keys.size()));
  OK(f.set().Clear(StreamView()));
  EXPECT(f.size() == 0);
  for (int64_t s : f.Find(keys)) EXPECT(s == -1);
  EXPECT(f.Export(0).keys.empty());
}

// Reads the marks directly, since they affect nothing except time.
void RestoredSlotsAreEmpty() {
  Fixture f({3000}, Eviction::kNone, 0, 2);
  const Keys keys = RandomKeys(3500, 1 << 30, 8);
  f.FindOrInsert(keys);
  f.Grow(0, f.set().num_slots(0));
  Keys half(keys.begin(), keys.begin() + 1500);
  f.Erase(half);
  const Contents before = ContentsOf(&f, 0, false);
  OK(f.set().RestoreEmptySync(0, StreamView()));
  EXPECT(ContentsOf(&f, 0, false) == before);
  std::unordered_map<int64_t, int64_t> slot_of;
  for (const auto& entry : before) slot_of[entry.second.first] = entry.first;
  const Keys found = f.Find(keys);
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto it = slot_of.find(keys[i]);
    EXPECT(found[i] == (it == slot_of.end() ? -1 : it->second));
  }
  // Each free slot is marked empty, unless a key is beyond its bucket.
  const TableView* const device = f.set().device_tables().views;
  TableView view;
  EXPECT(cudaMemcpy(&view, device, sizeof(view), cudaMemcpyDeviceToHost) ==
         cudaSuccess);
  Keys slots(f.set().num_slots(0));
  EXPECT(cudaMemcpy(slots.data(), view.keys, slots.size() * 8,
                    cudaMemcpyDeviceToHost) == cudaSuccess);
  std::vector<bool> passed(slots.size() / 16, false);
  for (const auto& entry : slot_of) {
    Chain chain(MixKey(entry.first), view);
    while (chain.first_slot() / 16 != entry.second / 16) {
      passed[chain.first_slot() / 16] = true;
      chain.Next();
    }
  }
  int64_t erased = 0;
  for (size_t s = 0; s < slots.size(); ++s) {
    const uint32_t parity = (s / 16) & 1;
    EXPECT(slots[s] != ErasedMark(parity) || passed[s / 16]);
    EXPECT(slots[s] != EmptyMark(parity) || !passed[s / 16]);
    erased += slots[s] == ErasedMark(parity);
  }
  EXPECT(erased > 0);
}

// Allocates all memory of the device except 'left' bytes; frees it in the
// destructor.
class FullDevice {
 public:
  explicit FullDevice(size_t left) {
    size_t free_bytes = 0, total_bytes = 0;
    EXPECT(cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess);
    for (size_t piece = size_t{1} << 34; piece >= (size_t{1} << 20);) {
      cudaMemGetInfo(&free_bytes, &total_bytes);
      if (free_bytes < left + piece) {
        piece /= 2;
        continue;
      }
      held_.emplace_back();
      if (!held_.back().Allocate(piece, "ballast").ok()) piece /= 2;
    }
  }

 private:
  std::vector<DeviceBuffer> held_;
};

void WithoutMemoryAllStaysAsItWas() {
  if (g_small) {
    std::printf("skipped (takes all of the device's memory, not --small): ");
    return;
  }
  for (Eviction eviction : {Eviction::kNone, Eviction::kLru}) {
    const bool scores = eviction != Eviction::kNone;
    const int64_t slots = int64_t{1} << 24;  // 128 MiB of keys
    Fixture f({slots}, eviction, 0, 8);
    const Keys keys = RandomKeys(100000, int64_t{1} << 60, 6);
    f.FindOrInsert(keys);
    const Contents before = ContentsOf(&f, 0, scores);
    const int64_t num_slots = f.set().num_slots(0);
    const int64_t bytes = f.set().index_bytes();
    {
      // With scores: enough memory for the keys, but not for their scores.
      FullDevice full(scores ? (192 << 20) : (64 << 20));
      size_t free_before = 0, free_after = 0, total = 0;
      EXPECT(cudaMemGetInfo(&free_before, &total) == cudaSuccess);
      Growth growth;
      growth.first_slot = -7;
      const Status status =
          f.set().GrowSync(0, num_slots, &growth, StreamView());
      EXPECT(status.code() == StatusCode::kResourceExhausted);
      EXPECT(status.message().find("table 't'") != std::string::npos);
      EXPECT(status.message().find("bytes of device memory") !=
             std::string::npos);
      EXPECT(status.message().find("are free") != std::string::npos);
      std::printf("  %s\n", status.message().c_str());
      EXPECT(growth.first_slot == -7);
      EXPECT(cudaMemGetInfo(&free_after, &total) == cudaSuccess);
      EXPECT(free_after == free_before);
      EXPECT(cudaGetLastError() == cudaSuccess);
    }
    EXPECT(f.set().num_slots(0) == num_slots);
    EXPECT(f.set().index_bytes() == bytes);
    EXPECT(ContentsOf(&f, 0, scores) == before);
    const Growth growth = f.Grow(0, num_slots);
    EXPECT(growth.num_slots == num_slots);
    EXPECT(f.size() == static_cast<int64_t>(before.size()));
    for (int64_t s : f.Find(keys)) EXPECT(s >= 0);
  }
}

void GrowsBeyond31Bits() {
  size_t free_bytes = 0, total_bytes = 0;
  cudaMemGetInfo(&free_bytes, &total_bytes);
  const int64_t slots = 1200000000LL;
  if (g_small || free_bytes < 2 * slots * 8 + (4ULL << 30)) {
    std::printf("skipped (needs 23 GB of device memory, not --small): ");
    return;
  }
  Fixture f({slots}, Eviction::kNone, 0, 2);
  const int64_t n = 300000;
  const Keys keys = RandomKeys(n, int64_t{1} << 60, 9);
  Keys slots_before = f.FindOrInsert(keys).slots;
  const Growth g = f.Grow(0, 2 * slots);
  EXPECT(g.first_slot + g.num_slots > std::numeric_limits<int32_t>::max());
  const Keys after = f.Find(keys);
  int64_t beyond = 0, moved = 0;
  for (int64_t i = 0; i < n; ++i) {
    const bool stays = after[i] == slots_before[i];
    EXPECT(stays || after[i] == slots_before[i] + g.distance);
    moved += !stays;
    beyond += after[i] > std::numeric_limits<int32_t>::max();
  }
  EXPECT(moved > n / 2 - n / 50 && moved < n / 2 + n / 50);
  EXPECT(beyond > n / 100);
  EXPECT(f.FindOrInsert(keys).slots == after);
}

void ReportsErrors() {
  std::unique_ptr<TableSet> set;
  TableSetOptions options;
  options.tables.push_back({"user", 1000, 500});
  const Status bad = TableSet::Create(options, StreamView(), &set);
  EXPECT(bad.code() == StatusCode::kInvalidArgument);
  EXPECT(bad.message().find("max_capacity") != std::string::npos);
  EXPECT(bad.message().find("'user'") != std::string::npos);
  options.tables[0].max_capacity = 1200;
  options.tables.push_back({"fixed", 640});
  OK(TableSet::Create(options, StreamView(), &set));
  const int64_t slots = set->num_slots(0);
  EXPECT(set->GrowSync(0, 31, nullptr, StreamView()).code() ==
         StatusCode::kInvalidArgument);
  EXPECT(set->GrowSync(2, 32, nullptr, StreamView()).code() ==
         StatusCode::kInvalidArgument);
  const Status fixed = set->GrowSync(1, 1000, nullptr, StreamView());
  EXPECT(fixed.code() == StatusCode::kFailedPrecondition);
  EXPECT(fixed.message().find("'fixed'") != std::string::npos);
  EXPECT(set->num_slots(0) == slots);
  Growth planned, growth;
  OK(set->PlanGrowth(0, 100000, &planned));
  EXPECT(set->num_slots(0) == slots);
  OK(set->GrowSync(0, 100000, &growth, StreamView()));
  EXPECT(set->num_slots(0) == 1216);  // 1200 in whole pairs
  EXPECT(growth.num_slots == planned.num_slots &&
         growth.first_slot == planned.first_slot &&
         growth.distance == planned.distance);
  EXPECT(set->GrowSync(0, 32, nullptr, StreamView()).code() ==
         StatusCode::kFailedPrecondition);
  options.tables[0].max_capacity = int64_t{1} << 36;  // 512 GiB of addresses
  OK(TableSet::Create(options, StreamView(), &set));
  EXPECT(set->index_bytes() < (64 << 20));
}

const Test kTests[] = {
    TEST(ReportsErrors),
    TEST(MovesOnlyToNewSlots),
    TEST(ManySmallGrowthsAreOneLargeOne),
    TEST(TakesTheKeysThatItRefusedBefore),
    TEST(RestoredSlotsAreEmpty),
    TEST(WithoutMemoryAllStaysAsItWas),
    TEST(GrowsBeyond31Bits),
};

int Main(int argc, char** argv) {
  if (const int status = testing::ExitWithoutGpu()) return status;
  return RunTests(kTests, argc, argv);
}

}  // namespace
}  // namespace gpu
}  // namespace ev

int main(int argc, char** argv) { return ev::gpu::Main(argc, argv); }
