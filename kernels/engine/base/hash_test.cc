// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/hash.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/base/keyed_hash.h"
#include "kernels/engine/testing/made_keys.h"

namespace ev {
namespace {

// Throws n keys into n cells by the bits of the hash that choose a bucket.
// Returns (pairs in one cell) / n, which is 1/2 for a random function.
template <typename Key, typename Hash>
double Collisions(const Key& key, int64_t n, int shift, const Hash& hash) {
  std::vector<int> cells(n, 0);
  double pairs = 0;
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits =
        static_cast<uint32_t>(hash(static_cast<int64_t>(key(i))) >> shift);
    pairs += cells[FastRange(bits, static_cast<uint32_t>(n))]++;
  }
  return pairs / static_cast<double>(n);
}

constexpr int64_t kKeys = 1 << 14;

// Returns the worst result over keys made of two bit fields anywhere in the
// word: runs, strides, ids with a feature number in the high bits.
template <typename Hash>
double WorstPattern(const Hash& hash, const std::vector<int>& shifts) {
  double worst = 0;
  for (int bits = 2; bits <= 14; bits += 3) {
    const uint64_t period = uint64_t{1} << bits;
    for (int low = 0; low < 64 - bits; low += 3) {
      for (int high = 0; high <= 50; high += 5) {
        const bool apart = low >= high + 14 - bits || high >= low + bits;
        if (!apart) continue;
        const auto key = [&](int64_t i) {
          const uint64_t u = static_cast<uint64_t>(i);
          return u % period << low ^ u / period << high;
        };
        for (int shift : shifts) {
          worst = std::max(worst, Collisions(key, kKeys, shift, hash));
        }
      }
    }
  }
  return worst;
}

template <typename Hash>
void ExpectSpreadsStrides(const Hash& hash, const std::vector<int>& shifts,
                          double most) {
  for (uint64_t stride : {1ull, 3ull, 10ull, 1000ull, 65537ull, 1000003ull,
                          0x100000001ull, ~0ull}) {
    const auto key = [&](int64_t i) {
      return static_cast<uint64_t>(i) * stride;
    };
    for (int shift : shifts) {
      EXPECT_LT(Collisions(key, kKeys, shift, hash), most) << stride;
    }
  }
}

TEST(MixKeyTest, SpreadsPatternsAsWellAsRandomKeys) {
  // Both halves of the hash are used to choose something.
  EXPECT_LT(WorstPattern(MixKey, {0, 32}), 1.5);
  ExpectSpreadsStrides(MixKey, {0, 32}, 0.6);
}

TEST(MixKeyTest, DistinctKeysHaveDistinctHashes) {
  std::unordered_set<uint64_t> hashes;
  for (int64_t i = -50000; i < 50000; ++i)
    hashes.insert(MixKey(i * (int64_t{1} << 17)));
  EXPECT_EQ(hashes.size(), 100000u);
}

TEST(KeyedHashTest, SpreadsPatternsAsWellAsRandomKeys) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(seed);
    const KeyedHash hash = KeyedHash::FromSeed(seed);
    EXPECT_LT(WorstPattern(hash, {32}), 1.5);
    ExpectSpreadsStrides(hash, {32}, 0.6);
  }
}

TEST(KeyedHashTest, KeysThatWereMadeToCollideDoNot) {
  using testing::KeyOfMix;
  for (const int64_t h : {int64_t{0}, int64_t{1}, int64_t{12345678901}}) {
    ASSERT_EQ(MixKey(KeyOfMix(h)), static_cast<uint64_t>(h));
  }
  // Keys that share a lower half, share an upper half, or differ only in the
  // middle bits.
  const auto low = testing::KeyOfOneLowerHalf;
  const auto high = testing::KeyOfOneUpperHalf;
  const auto mid = [](int64_t i) { return KeyOfMix(uint64_t(i) << 24); };
  EXPECT_GT(Collisions(low, kKeys, 0, MixKey), kKeys / 3);
  EXPECT_GT(Collisions(high, kKeys, 32, MixKey), kKeys / 3);
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const KeyedHash hash = KeyedHash::FromSeed(seed);
    EXPECT_LT(Collisions(low, kKeys, 32, hash), 1.0) << seed;
    EXPECT_LT(Collisions(high, kKeys, 32, hash), 1.0) << seed;
    EXPECT_LT(Collisions(mid, kKeys, 32, hash), 1.0) << seed;
    // Keys that collide under one secret do not under another.
    const auto known = [&](int64_t i) {
      return hash.KeyOf(uint64_t{123456789} << 32 | i);
    };
    EXPECT_GT(Collisions(known, kKeys, 32, hash), kKeys / 3) << seed;
    const KeyedHash other = KeyedHash::FromSeed(seed + 1000);
    EXPECT_LT(Collisions(known, kKeys, 32, other), 1.0) << seed;
  }
}

TEST(KeyedHashTest, OneSecretPerProcess) {
  const KeyedHash hash = KeyedHash::OfProcess();
  const KeyedHash again = KeyedHash::OfProcess();
  bool as_seed = true;
  for (int64_t key = 0; key < 100; ++key) {
    EXPECT_EQ(hash(key), again(key));
    as_seed = as_seed && hash(key) == KeyedHash::FromSeed(0)(key);
  }
  EXPECT_FALSE(as_seed);
  // A forked process keeps it; any other process draws its own.
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const uint64_t in_child = KeyedHash::OfProcess()(42);
    _exit(write(ends[1], &in_child, sizeof(in_child)) == sizeof(in_child) ? 0
                                                                          : 1);
  }
  uint64_t in_child = 0;
  ASSERT_EQ(read(ends[0], &in_child, sizeof(in_child)), sizeof(in_child));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(in_child, hash(42));
  {
    const ScopedHashForTesting given(KeyedHash::FromSeed(3));
    EXPECT_EQ(KeyedHash::OfProcess()(42), KeyedHash::FromSeed(3)(42));
  }
  EXPECT_EQ(KeyedHash::OfProcess()(42), hash(42));
}

TEST(FastRangeTest, CoversItsRangeInOrder) {
  for (uint32_t n : {1u, 2u, 3u, 1000u, 4194303u}) {
    EXPECT_EQ(FastRange(0, n), 0u);
    EXPECT_EQ(FastRange(~0u, n), n - 1);
    uint32_t last = 0;
    for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 104729) {
      const uint32_t at = FastRange(static_cast<uint32_t>(bits), n);
      ASSERT_GE(at, last);
      ASSERT_LT(at, n);
      last = at;
    }
  }
}

}  // namespace
}  // namespace ev
