// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Compares TableSet with host models. A plain program (RunTests documents its
// arguments), so that it runs on GPU hosts without a test library.

#include <cuda_runtime.h>

#include <cstdio>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "addons/hierarchical_parameter_server/cache/table/table_fixture.h"
#include "addons/hierarchical_parameter_server/cache/table/table_model.h"
#include "addons/hierarchical_parameter_server/cache/table/table_set.h"
#include "kernels/engine/testing/exit_without_gpu.h"

namespace ev {
namespace gpu {
namespace {

void FindsNothingInAnEmptyTable() {
  Fixture f({1000}, Eviction::kNone);
  for (int64_t n : {0, 1, 31, 32, 33, 255, 256, 257, 1000}) {
    Keys keys = RandomKeys(n, 1 << 30, n);
    for (size_t i = 0; i < keys.size() && i < ExtremeKeys().size(); ++i) {
      keys[i] = ExtremeKeys()[i];
    }
    const Keys slots = f.Find(keys);
    for (int64_t s : slots) EXPECT(s == -1);
    for (int64_t s : f.Erase(keys)) EXPECT(s == -1);
  }
  EXPECT(f.size() == 0);
}

void AnyKeyIsLegal() {
  for (Eviction eviction : {Eviction::kNone, Eviction::kLru, Eviction::kLfu}) {
    Fixture f({64}, eviction);
    const Keys& keys = ExtremeKeys();
    const Inserted r = f.FindOrInsert(keys);
    for (size_t i = 0; i < keys.size(); ++i) {
      EXPECT(r.slots[i] >= 0 && r.slots[i] < 64);
      EXPECT(r.is_new[i] == 1);
    }
    EXPECT(f.Find(keys) == r.slots);
    EXPECT(f.size() == static_cast<int64_t>(keys.size()));
    // Fill the buckets, so that no slot beside the odd keys is free.
    f.FindOrInsert(RandomKeys(1000, 1000, 3));
    Keys order = f.Export(0).keys;
    EXPECT(static_cast<int64_t>(order.size()) == f.size());
    for (int64_t key : keys) {
      const Keys before = f.Find(Keys{key});
      EXPECT(f.Erase(Keys{key}) == before);
      EXPECT(f.Find(Keys{key})[0] == -1);
    }
    for (int64_t key : keys) {
      EXPECT(f.FindOrInsert(Keys{key}).slots[0] >= 0);
      EXPECT(f.Find(Keys{key})[0] >= 0);
    }
  }
}

void DuplicatesInOneCallGetOneSlot() {
  const int64_t n = g_small ? 3000 : 1000000;
  for (Eviction eviction : {Eviction::kNone, Eviction::kLru, Eviction::kLfu}) {
    for (int64_t range : {int64_t{1}, int64_t{7}, int64_t{500}, n / 3}) {
      Fixture f({4 * n / 3 + 2000}, eviction);
      const Keys keys = RandomKeys(n, range, range);
      const Inserted r = f.FindOrInsert(keys);
      std::unordered_map<int64_t, int64_t> slot_of, news;
      for (int64_t i = 0; i < n; ++i) {
        const auto it = slot_of.emplace(keys[i], r.slots[i]);
        EXPECT(it.first->second == r.slots[i]);
        EXPECT(r.slots[i] >= 0);
        news[keys[i]] += r.is_new[i];
      }
      std::unordered_set<int64_t> distinct;
      for (const auto& e : slot_of) distinct.insert(e.second);
      EXPECT(distinct.size() == slot_of.size());
      for (const auto& e : news) EXPECT(e.second == 1);
      EXPECT(f.size() == static_cast<int64_t>(slot_of.size()));
      const Inserted again = f.FindOrInsert(keys);
      EXPECT(again.slots == r.slots);
      for (uint8_t flag : again.is_new) EXPECT(flag == 0);
    }
  }
}

// Compares random finds, inserts and erases on several tables without eviction
// with one std::unordered_map per table.
void MatchesMaps(const Keys& capacities, double max_load, int rounds,
                 int64_t max_batch, uint64_t seed) {
  const size_t tables = capacities.size();
  Fixture f(capacities, Eviction::kNone);
  std::vector<std::unordered_map<int64_t, int64_t>> model(tables);
  std::mt19937_64 random(seed);
  for (int round = 0; round < rounds; ++round) {
    std::vector<Keys> segments(tables);
    const int what = random() % 5;
    for (size_t t = 0; t < tables; ++t) {
      const int64_t n = random() % 4 == 0 ? 0 : random() % max_batch;
      segments[t] = RandomKeys(
          n, 1 + static_cast<int64_t>(max_load * f.set().num_slots(t)),
          random());
      for (int64_t& key : segments[t]) {
        if (random() % 50 == 0) key = ExtremeKeys()[random() % 11];
      }
    }
    Keys offsets;
    const Keys all = Fixture::Concat(segments, &offsets);
    if (what <= 1) {
      const Inserted r = f.FindOrInsert(segments);
      for (size_t t = 0, i = 0; t < tables; ++t) {
        std::unordered_set<int64_t> fresh;
        for (int64_t key : segments[t]) {
          const auto it = model[t].emplace(key, r.slots[i]);
          EXPECT(it.first->second == r.slots[i]);
          if (it.second) fresh.insert(key);
          if (r.is_new[i]) EXPECT(fresh.count(key) == 1);
          ++i;
        }
        int64_t flags = 0;
        for (size_t j = offsets[t]; j < static_cast<size_t>(offsets[t + 1]);
             ++j) {
          flags += r.is_new[j];
        }
        EXPECT(flags == static_cast<int64_t>(fresh.size()));
      }
    } else if (what == 2) {
      const Keys slots = f.Erase(segments);
      for (size_t t = 0, i = 0; t < tables; ++t) {
        std::unordered_map<int64_t, std::vector<int64_t>> given;
        for (int64_t key : segments[t]) given[key].push_back(slots[i++]);
        for (const auto& e : given) {
          const auto it = model[t].find(e.first);
          int64_t hits = 0;
          for (int64_t s : e.second) {
            hits += s >= 0;
            if (s >= 0) EXPECT(it != model[t].end() && it->second == s);
          }
          EXPECT(hits == (it != model[t].end() ? 1 : 0));
          model[t].erase(e.first);
        }
      }
    } else {
      const Keys slots = f.Find(segments);
      for (size_t t = 0, i = 0; t < tables; ++t) {
        for (int64_t key : segments[t]) {
          const auto it = model[t].find(key);
          EXPECT(slots[i] == (it == model[t].end() ? -1 : it->second));
          ++i;
        }
      }
    }
  }
  for (size_t t = 0; t < tables; ++t) {
    const Listed all = f.Export(t);
    EXPECT(all.keys.size() == model[t].size());
    EXPECT(f.size(t) == static_cast<int64_t>(model[t].size()));
    EXPECT(f.rejected(t) == 0);
    std::unordered_set<int64_t> distinct(all.slots.begin(), all.slots.end());
    EXPECT(distinct.size() == all.slots.size());
    for (size_t i = 0; i < all.keys.size(); ++i) {
      const auto it = model[t].find(all.keys[i]);
      EXPECT(it != model[t].end() && it->second == all.slots[i]);
    }
  }
}

void MatchesMapsOnOneTable() {
  MatchesMaps({500}, 0.8, g_small ? 20 : 200, 300, 1);
  if (!g_small) MatchesMaps({200000}, 0.85, 60, 100000, 2);
}
void MatchesMapsOnSeveralTables() {
  MatchesMaps({64, 5000, 300, 1000, 77}, 0.6, g_small ? 20 : 200, 200, 3);
  if (!g_small) {
    MatchesMaps(Keys(26, 30000), 0.8, 40, 8000, 4);
  }
}

void FullTableRefusesAndKeepsItsKeys() {
  Fixture f({64}, Eviction::kNone);
  const int64_t slots = f.set().num_slots(0);
  const Keys keys = RandomKeys(2000, 1 << 30, 5);
  const Inserted r = f.FindOrInsert(keys);
  int64_t placed = 0;
  for (int64_t s : r.slots) placed += s >= 0;
  EXPECT(placed == slots);
  EXPECT(f.size() == slots);
  EXPECT(f.rejected() == 2000 - slots);
  EXPECT(f.Find(keys) == r.slots);
  // Erase one half. The other stays, and there is room for the same number
  // again.
  Keys half, rest;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (r.slots[i] >= 0)
      (half.size() * 2 < keys.size() && i % 2 ? half : rest).push_back(keys[i]);
  }
  f.Erase(half);
  for (int64_t s : f.Find(half)) EXPECT(s == -1);
  for (int64_t s : f.Find(rest)) EXPECT(s >= 0);
  f.FindOrInsert(keys);
  EXPECT(f.size() == slots);
  OK(f.set().Clear(StreamView()));
  EXPECT(f.size() == 0 && f.rejected() == 0);
  for (int64_t s : f.Find(keys)) EXPECT(s == -1);
}

void HoldsNineTenthsWithoutRefusing() {
  const int64_t slots = g_small ? 4096 : 1 << 20;
  Fixture f({slots}, Eviction::kNone);
  const int64_t n = f.set().num_slots(0) * 85 / 100;
  Keys keys(n);
  for (int64_t i = 0; i < n; ++i) keys[i] = i;
  f.FindOrInsert(keys);
  EXPECT(f.size() == n);
  EXPECT(f.rejected() == 0);
}

void FindsAndCopiesRows() {
  for (int64_t dim : {1, 3, 4, 8, 12, 16, 32, 64, 100, 128}) {
    const int64_t stride = dim + (dim % 4 == 0 ? 8 : 1);
    Fixture f({300, 500}, Eviction::kNone);
    std::vector<std::vector<float>> rows(2);
    std::vector<std::unique_ptr<OnDevice<float>>> device;
    std::vector<RowBlock> blocks;
    for (int t = 0; t < 2; ++t) {
      rows[t].resize(f.set().num_slots(t) * stride);
      for (size_t i = 0; i < rows[t].size(); ++i) rows[t][i] = t * 1e6f + i;
      device.emplace_back(new OnDevice<float>(rows[t]));
      blocks.push_back({device[t]->get(), stride});
    }
    std::vector<float> absent(dim);
    for (int64_t d = 0; d < dim; ++d) absent[d] = -1.0f - d;
    OnDevice<float> absent_row(absent);
    OK(f.set().SetRowsSync(blocks, dim));
    f.FindOrInsert({RandomKeys(200, 400, 1), RandomKeys(300, 400, 2)});
    for (bool zeros : {false, true}) {
      const std::vector<Keys> wanted = {RandomKeys(333, 400, 4),
                                        RandomKeys(500, 400, 5)};
      Keys slots;
      const std::vector<float> out = f.FindAndCopy(
          wanted, dim, zeros ? nullptr : absent_row.get(), &slots);
      EXPECT(slots == f.Find(wanted));
      for (size_t i = 0; i < slots.size(); ++i) {
        const int t = i < 333 ? 0 : 1;
        for (int64_t d = 0; d < dim; ++d) {
          const float want = slots[i] >= 0 ? rows[t][slots[i] * stride + d]
                             : zeros       ? 0.0f
                                           : absent[d];
          EXPECT(out[i * dim + d] == want);
        }
      }
    }
  }
}

// Checks the whole contract of an evicting set against the model.
void MatchesEvictingModel(const Keys& capacities, Eviction eviction,
                          int probe_limit, int rounds, int64_t max_batch,
                          double range, uint64_t seed) {
  const size_t tables = capacities.size();
  Fixture f(capacities, eviction, probe_limit);
  std::vector<EvictingModel> model;
  for (size_t t = 0; t < tables; ++t) {
    model.emplace_back(f.set().num_slots(t) / 32, probe_limit, eviction);
  }
  std::mt19937_64 random(seed);
  std::vector<int64_t> rejected(tables, 0);
  for (int round = 0; round < rounds; ++round) {
    std::vector<Keys> segments(tables);
    for (size_t t = 0; t < tables; ++t) {
      const int64_t n = random() % max_batch;
      const int64_t width =
          1 + static_cast<int64_t>(range * f.set().num_slots(t));
      segments[t] = RandomKeys(n, width, random());
      for (int64_t& key : segments[t]) {
        if (random() % 50 == 0) key = ExtremeKeys()[random() % 11];
      }
    }
    Keys offsets;
    if (Fixture::Concat(segments, &offsets).empty()) continue;  // no call
    if (random() % 8 == 0) {
      const Keys slots = f.Erase(segments);
      for (size_t t = 0, i = 0; t < tables; ++t) {
        int64_t erased = 0, want = 0;
        for (int64_t key : segments[t]) {
          want += model[t].Erase(key);
          erased += slots[i++] >= 0;
        }
        EXPECT(erased == want);
      }
      continue;
    }
    if (tables == 1 && random() % 8 == 0) {
      // Least frequently used counts each occurrence, and so must the model.
      f.Touch(segments[0]);
      for (int64_t key : segments[0]) model[0].Touch(key);
      continue;
    }
    const Inserted r = f.FindOrInsert(segments);
    size_t evicted = 0;
    for (size_t t = 0; t < tables; ++t) {
      const EvictingModel::Result want =
          model[t].FindOrInsert(segments[t], random());
      std::map<int64_t, uint64_t> got;
      for (size_t i = 0; i < r.evicted_keys.size(); ++i) {
        if (r.evicted_tables[i] != static_cast<int32_t>(t)) continue;
        got[r.evicted_keys[i]] = r.evicted_scores[i];
        ++evicted;
        EXPECT(r.evicted_slots[i] >= 0 &&
               r.evicted_slots[i] < f.set().num_slots(t));
      }
      EXPECT(got == want.evicted);
      std::map<int64_t, int> news;
      for (int64_t i = offsets[t]; i < offsets[t + 1]; ++i) {
        const int64_t key = segments[t][i - offsets[t]];
        const int64_t bucket = model[t].Find(key);
        EXPECT((r.slots[i] >= 0) == (bucket >= 0));
        if (r.slots[i] >= 0) EXPECT(r.slots[i] / kBucketSlots == bucket);
        if (r.slots[i] < 0) ++rejected[t];
        news[key] += r.is_new[i];
      }
      for (const auto& e : news) {
        EXPECT(e.second == (want.inserted.count(e.first) ? 1 : 0));
      }
      const Listed all = f.Export(t);
      const auto contents = model[t].Contents();
      EXPECT(all.keys.size() == contents.size());
      EXPECT(f.size(t) == static_cast<int64_t>(contents.size()));
      std::unordered_map<int64_t, int64_t> slot_of;
      for (size_t i = 0; i < all.keys.size(); ++i) {
        const auto it = contents.find(all.keys[i]);
        EXPECT(it != contents.end());
        if (it == contents.end()) continue;
        EXPECT(it->second.first == all.slots[i] / kBucketSlots);
        EXPECT(it->second.second == all.scores[i]);
        slot_of[all.keys[i]] = all.slots[i];
      }
      for (int64_t i = offsets[t]; i < offsets[t + 1]; ++i) {
        const auto it = slot_of.find(segments[t][i - offsets[t]]);
        EXPECT(r.slots[i] == (it == slot_of.end() ? -1 : it->second));
      }
      EXPECT(f.rejected(t) == rejected[t]);
    }
    EXPECT(evicted == r.evicted_keys.size());
  }
}

void EvictsAsTheModel(Eviction eviction) {
  const int rounds = g_small ? 6 : 60;
  uint64_t seed = 10;
  for (int probe_limit : {1, 2, 4}) {
    // From one bucket's worth of keys to many tables' worth in one call; from
    // few evictions to a table that is replaced in every call.
    MatchesEvictingModel({64}, eviction, probe_limit, rounds, 20, 1.5, ++seed);
    MatchesEvictingModel({64}, eviction, probe_limit, rounds, 500, 30, ++seed);
    MatchesEvictingModel({1000}, eviction, probe_limit, rounds, 300, 1.2,
                         ++seed);
    MatchesEvictingModel({1000}, eviction, probe_limit, rounds, 3000, 8,
                         ++seed);
  }
  MatchesEvictingModel({64, 1000, 300, 64, 200}, eviction, 2, rounds, 200, 1.5,
                       ++seed);
  if (!g_small) {
    MatchesEvictingModel({100000}, eviction, 2, 12, 60000, 1.3, ++seed);
  }
}
void EvictsLeastRecentlyUsedAsTheModel() { EvictsAsTheModel(Eviction::kLru); }
void EvictsLeastFrequentlyUsedAsTheModel() { EvictsAsTheModel(Eviction::kLfu); }

void ExportsRangesOnce() {
  Fixture f({3000}, Eviction::kNone);
  f.FindOrInsert(RandomKeys(2000, 1 << 30, 8));
  const Listed all = f.Export(0);
  std::map<int64_t, int64_t> by_slot, pieces;
  for (size_t i = 0; i < all.keys.size(); ++i) {
    by_slot[all.slots[i]] = all.keys[i];
  }
  const int64_t slots = f.set().num_slots(0);
  for (int64_t first = 0; first < slots; first += 528) {
    const Listed piece =
        f.Export(0, first, std::min<int64_t>(528, slots - first));
    for (size_t i = 0; i < piece.keys.size(); ++i) {
      EXPECT(piece.slots[i] >= first && piece.slots[i] < first + 528);
      EXPECT(pieces.emplace(piece.slots[i], piece.keys[i]).second);
    }
  }
  EXPECT(pieces == by_slot);
}

void SlotsGoBeyond31Bits() {
  size_t free_bytes = 0, total_bytes = 0;
  cudaMemGetInfo(&free_bytes, &total_bytes);
  const int64_t slots = 2300000000LL;
  if (g_small || free_bytes < slots * 8 + (4ULL << 30)) {
    std::printf("skipped (needs 23 GB of device memory, not --small): ");
    return;
  }
  Fixture f({slots}, Eviction::kNone);
  const int64_t n = 300000;
  const Keys keys = RandomKeys(n, int64_t{1} << 60, 9);
  const Inserted r = f.FindOrInsert(keys);
  int64_t beyond = 0;
  std::unordered_set<int64_t> distinct;
  for (int64_t s : r.slots) {
    beyond += s > std::numeric_limits<int32_t>::max();
    distinct.insert(s);
  }
  EXPECT(beyond > n / 100);
  EXPECT(static_cast<int64_t>(distinct.size()) == n);
  EXPECT(f.Find(keys) == r.slots);
}

void CallsCanBeCaptured() {
  for (Eviction eviction : {Eviction::kNone, Eviction::kLru, Eviction::kLfu}) {
    Fixture f({2000}, eviction);
    OK(f.set().ReserveSync(300));
    OnDevice<int64_t> keys(300), slots(300), found(300);
    OnDevice<uint8_t> is_new(300);
    KeyBatch batch;
    batch.keys = keys.get();
    batch.num_keys = 300;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t replay;
    EXPECT(cudaStreamCreate(&stream) == cudaSuccess);
    EXPECT(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) ==
           cudaSuccess);
    OK(f.set().FindOrInsert(batch, slots.get(), is_new.get(), EvictedKeys(),
                            stream));
    OK(f.set().Find(batch, found.get(), stream));
    EXPECT(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
    EXPECT(cudaGraphInstantiate(&replay, graph, 0) == cudaSuccess);
    std::unordered_set<int64_t> all;
    for (int round = 0; round < 4; ++round) {
      const Keys given = RandomKeys(300, 400, round);
      cudaMemcpy(keys.get(), given.data(), 300 * 8, cudaMemcpyHostToDevice);
      EXPECT(cudaGraphLaunch(replay, stream) == cudaSuccess);
      EXPECT(cudaStreamSynchronize(stream) == cudaSuccess);
      all.insert(given.begin(), given.end());
      const Keys after = slots.Host();
      EXPECT(found.Host() == after);
      for (int64_t s : after) EXPECT(s >= 0);
      EXPECT(f.size() == static_cast<int64_t>(all.size()));
    }
    cudaGraphExecDestroy(replay);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
  }
}

void ReportsErrors() {
  std::unique_ptr<TableSet> set;
  TableSetOptions options;
  EXPECT(TableSet::Create(options, StreamView(), &set).code() ==
         StatusCode::kInvalidArgument);
  options.tables.push_back({"user", 0});
  const Status bad = TableSet::Create(options, StreamView(), &set);
  EXPECT(bad.code() == StatusCode::kInvalidArgument);
  EXPECT(bad.message().find("'user'") != std::string::npos);
  options.tables[0].capacity = int64_t{1} << 36;  // 512 GiB of keys
  const Status large = TableSet::Create(options, StreamView(), &set);
  EXPECT(large.code() == StatusCode::kResourceExhausted);
  EXPECT(large.message().find("bytes") != std::string::npos);
  options.tables[0].capacity = 100;
  options.probe_limit = 17;
  EXPECT(TableSet::Create(options, StreamView(), &set).code() ==
         StatusCode::kInvalidArgument);
  EXPECT(set == nullptr);
  options.probe_limit = 0;
  options.eviction = Eviction::kLru;
  OK(TableSet::Create(options, StreamView(), &set));
  OnDevice<int64_t> keys(Keys{1, 2}), slots(2);
  KeyBatch batch;
  batch.keys = keys.get();
  batch.num_keys = 2;
  EXPECT(set->FindOrInsert(batch, slots.get(), nullptr, EvictedKeys(),
                           StreamView())
             .code() == StatusCode::kFailedPrecondition);
  EXPECT(
      set->FindAndCopy(batch, nullptr, nullptr, nullptr, StreamView()).code() ==
      StatusCode::kFailedPrecondition);
  batch.num_keys = -1;
  EXPECT(set->Find(batch, slots.get(), StreamView()).code() ==
         StatusCode::kInvalidArgument);
  OnDevice<float> rows(1000);
  EXPECT(set->SetRowsSync(std::vector<RowBlock>{{rows.get(), 4}}, 8).code() ==
         StatusCode::kInvalidArgument);
  EXPECT(set->Export(0, 8, 16, ExportedKeys(), StreamView()).code() ==
         StatusCode::kOutOfRange);
  EXPECT(set->Export(1, 0, 16, ExportedKeys(), StreamView()).code() ==
         StatusCode::kInvalidArgument);
}

const Test kTests[] = {
    TEST(FindsNothingInAnEmptyTable),
    TEST(AnyKeyIsLegal),
    TEST(DuplicatesInOneCallGetOneSlot),
    TEST(MatchesMapsOnOneTable),
    TEST(MatchesMapsOnSeveralTables),
    TEST(FullTableRefusesAndKeepsItsKeys),
    TEST(HoldsNineTenthsWithoutRefusing),
    TEST(FindsAndCopiesRows),
    TEST(EvictsLeastRecentlyUsedAsTheModel),
    TEST(EvictsLeastFrequentlyUsedAsTheModel),
    TEST(ExportsRangesOnce),
    TEST(SlotsGoBeyond31Bits),
    TEST(CallsCanBeCaptured),
    TEST(ReportsErrors),
};

int Main(int argc, char** argv) {
  if (const int status = testing::ExitWithoutGpu()) return status;
  return RunTests(kTests, argc, argv);
}

}  // namespace
}  // namespace gpu
}  // namespace ev

int main(int argc, char** argv) { return ev::gpu::Main(argc, argv); }
