// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// HashIndex under concurrent reads, inserts, erases and growth. Also run under
// ThreadSanitizer and AddressSanitizer (make sanitize).

#include <atomic>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/base/hash.h"
#include "kernels/engine/table/cpu/hash_index.h"
#include "kernels/engine/testing/counting_row_source.h"

namespace ev {
namespace testing {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kScale = 1;
#else
constexpr int kScale = 8;
#endif

// The handle encodes the key, so a reader that gets another key's row detects
// it.
class NamedRows : public RowSource {
 public:
  static RowHandle RowOf(int64_t key) {
    return static_cast<RowHandle>(MixKey(key) >> 33);
  }
  Status NewRow(int64_t key, RowHandle* handle) override {
    *handle = RowOf(key);
    return Status::OK();
  }
};

void RunThreads(int threads, const std::function<void(int)>& body) {
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t) running.emplace_back(body, t);
  for (std::thread& thread : running) thread.join();
}

// Each thread writes its own range of keys and checks their state exactly. All
// threads read keys of any range. A fixed set of keys must always be found.
TEST(HashIndexConcurrencyTest, EachThreadSeesItsOwnKeysAndTheSharedOnes) {
  HashIndex index;
  NamedRows source;
  constexpr int kThreads = 4;
  constexpr int64_t kShared = 2000, kOwn = 3000;
  std::vector<int64_t> shared;
  for (int64_t i = 0; i < kShared; ++i) shared.push_back(-1 - i);
  std::vector<RowHandle> rows(kShared);
  ASSERT_TRUE(index.FindOrInsert(shared, &source, rows.data(), nullptr).ok());

  std::atomic<int64_t> live{kShared};
  std::atomic<int> failures{0};
  RunThreads(kThreads, [&](int t) {
    std::mt19937_64 random(t);
    std::vector<bool> present(kOwn, false);
    std::vector<int64_t> keys;
    std::vector<RowHandle> rows;
    const auto own = [&](int64_t i) { return t * kOwn + i; };
    for (int step = 0; step < 150 * kScale && failures == 0; ++step) {
      keys.resize(1 + random() % 300);
      rows.assign(keys.size(), 12345);
      const int what = static_cast<int>(random() % 5);
      for (int64_t& key : keys) {
        key = what == 0   ? shared[random() % kShared]
              : what == 1 ? static_cast<int64_t>(random() % (kThreads * kOwn))
                          : own(static_cast<int64_t>(random() % kOwn));
      }
      if (what <= 2) {
        index.Find(keys, rows.data());
        for (size_t i = 0; i < keys.size(); ++i) {
          const RowHandle right = NamedRows::RowOf(keys[i]);
          const bool found = rows[i] == right;
          bool ok = found || rows[i] == kNoRow;
          if (what == 0) ok = found;
          if (what == 2) ok = ok && found == present[keys[i] - own(0)];
          if (!ok) ++failures;
        }
      } else if (what == 3) {
        int64_t inserted = 0;
        if (!index.FindOrInsert(keys, &source, rows.data(), &inserted).ok()) {
          ++failures;
        }
        int64_t expected = 0;
        for (size_t i = 0; i < keys.size(); ++i) {
          if (rows[i] != NamedRows::RowOf(keys[i])) ++failures;
          expected += !present[keys[i] - own(0)];
          present[keys[i] - own(0)] = true;
        }
        if (inserted != expected) ++failures;
        live += inserted;
      } else {
        int64_t called = 0;
        const int64_t erased =
            index.Erase(keys, [&](int64_t key, RowHandle row) {
              ++called;
              if (row != NamedRows::RowOf(key) || !present[key - own(0)]) {
                ++failures;
              }
              present[key - own(0)] = false;
            });
        if (called != erased) ++failures;
        live -= erased;
      }
    }
  });
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(index.size(), live);
}

TEST(HashIndexConcurrencyTest, NothingIsLostWhileItGrows) {
  HashIndex index;
  NamedRows source;
  constexpr int64_t kKeys = 100000 * kScale;
  std::atomic<int64_t> published{0};
  std::atomic<int> failures{0};
  RunThreads(4, [&](int t) {
    std::vector<int64_t> keys;
    std::vector<RowHandle> rows;
    if (t == 0) {
      for (int64_t begin = 0; begin < kKeys; begin += 1000) {
        keys.clear();
        for (int64_t i = 0; i < 1000; ++i) keys.push_back((begin + i) * 7919);
        rows.resize(keys.size());
        if (!index.FindOrInsert(keys, &source, rows.data(), nullptr).ok()) {
          ++failures;
        }
        published.store(begin + 1000, std::memory_order_release);
      }
    } else if (t == 3) {
      // A walk visits at least the keys present when it began, and none twice.
      std::vector<bool> seen;
      while (published.load(std::memory_order_acquire) < kKeys) {
        const int64_t before = published.load(std::memory_order_acquire);
        seen.assign(kKeys, false);
        index.ForEach([&](int64_t key, RowHandle row) {
          if (row != NamedRows::RowOf(key) || seen[key / 7919]) ++failures;
          seen[key / 7919] = true;
        });
        for (int64_t i = 0; i < before; ++i) failures += !seen[i];
      }
    } else {
      std::mt19937_64 random(t);
      while (published.load(std::memory_order_acquire) < kKeys) {
        const int64_t num_published = published.load(std::memory_order_acquire);
        if (num_published == 0) continue;
        keys.resize(500);
        rows.resize(keys.size());
        for (int64_t& key : keys) {
          key = static_cast<int64_t>(random() % num_published) * 7919;
        }
        index.Find(keys, rows.data());
        for (size_t i = 0; i < keys.size(); ++i) {
          failures += rows[i] != NamedRows::RowOf(keys[i]);
        }
      }
    }
  });
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(index.size(), kKeys);
}

TEST(HashIndexConcurrencyTest, RacingInsertsOfOneKeyGiveOneRow) {
  HashIndex index;
  CountingRowSource source;
  constexpr int kThreads = 4;
  constexpr int64_t kKeys = 4000 * kScale;
  std::vector<std::vector<RowHandle>> rows(kThreads);
  std::atomic<int64_t> inserted{0};
  RunThreads(kThreads, [&](int t) {
    std::vector<int64_t> keys;
    for (int64_t i = 0; i < kKeys; ++i) keys.push_back(i);
    rows[t].resize(kKeys);
    int64_t n = 0;
    ASSERT_TRUE(index.FindOrInsert(keys, &source, rows[t].data(), &n).ok());
    inserted += n;
  });
  EXPECT_EQ(inserted, kKeys);
  EXPECT_EQ(source.rows(), kKeys);
  EXPECT_EQ(index.size(), kKeys);
  for (int t = 1; t < kThreads; ++t) EXPECT_EQ(rows[t], rows[0]);
}

// The same few slots are emptied and refilled all the time. A reader must never
// pair a key with the row of the slot's next key.
TEST(HashIndexConcurrencyTest, ReusedSlotsNeverMixKeysAndRows) {
  HashIndex index;
  NamedRows source;
  std::atomic<bool> stop{false};
  std::atomic<int> failures{0};
  RunThreads(3, [&](int t) {
    std::vector<int64_t> keys(64);
    std::vector<RowHandle> rows(64);
    std::mt19937_64 random(t);
    if (t == 0) {
      for (int step = 0; step < 4000 * kScale; ++step) {
        for (int64_t& key : keys) key = static_cast<int64_t>(random() % 24);
        index.Erase(keys, nullptr);
        keys.resize(8);
        if (!index.FindOrInsert(keys, &source, rows.data(), nullptr).ok()) {
          ++failures;
        }
        keys.resize(64);
      }
      stop = true;
      return;
    }
    while (!stop) {
      for (int64_t& key : keys) key = static_cast<int64_t>(random() % 24);
      index.Find(keys, rows.data());
      for (size_t i = 0; i < keys.size(); ++i) {
        failures += rows[i] != kNoRow && rows[i] != NamedRows::RowOf(keys[i]);
      }
    }
  });
  EXPECT_EQ(failures, 0);
}

}  // namespace
}  // namespace testing
}  // namespace ev
