// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The hash of a key that only this process can compute.
//
// Ids come from outside. An attacker that knows a table's hash can choose ids
// that share a bucket, and every batch with them is then as slow as the square
// of their number. So a table's place for a key is chosen by a hash with a
// secret, which each process draws once.
//
// THE HASH. As MixKey (hash.h): a multiplication carries bits upwards, a fold
// brings them down, and a second multiplication carries them up again; but both
// factors, and what is mixed in before them, are secret. Only the upper half of
// the result is good: take bits from the top. Two multiplications and three
// simple instructions, one less than MixKey.
//
// WHY THAT IS ENOUGH. Before the second factor m1 all is a bijection of keys,
// so two keys a != b come to it different, a' != b'. Their results differ by m1
// * (a' - b') modulo 2^64, of which m1, odd and chosen at random after the
// keys, makes every odd multiple of the same power of two equally likely. So
// the chance that two keys come within the same of n equal ranges is at most
// 2/n, twice that of a random function, whichever keys they are; and so in the
// mean over secrets the number of pairs in one bucket is at most twice that of
// random keys for ANY set of keys that was chosen without the secret. (The
// first factor and the fold only make regular sets, runs and strides, behave as
// random ones in all but a few of the secrets: hash_test.cc.)
//
// WHAT IT IS NOT. A cryptographic function: an attacker that sees many results,
// or measures the time of many batches of its own very precisely, may learn the
// secret in time. Results are never shown, and it is another in each process.
//
// WHAT MUST NOT USE IT. Everything that is seen: the order of keys, which keys
// are admitted or evicted, what ranks agree about. Those use MixKey.

#ifndef KERNELS_ENGINE_BASE_KEYED_HASH_H_
#define KERNELS_ENGINE_BASE_KEYED_HASH_H_

#include <cstdint>

#if defined(__CUDACC__)
#define EV_ON_ANY_DEVICE __host__ __device__ __forceinline__
#else
#define EV_ON_ANY_DEVICE inline
#endif

namespace ev {

// A value: kernels take it as an argument.
class KeyedHash {
 public:
  // That of this process, drawn at the first call; a forked process keeps its
  // parent's. Throws std::runtime_error when the system gives no random bytes.
  static KeyedHash OfProcess();

  // Makes 'hash' that of this process, for a CUDA library, whose copy of this
  // code would draw another. Call it before OfProcess.
  static void SetOfProcess(const KeyedHash& hash);

  // A secret that is known to all, for tests.
  static KeyedHash FromSeed(uint64_t seed);

  EV_ON_ANY_DEVICE uint64_t operator()(int64_t key) const {
    uint64_t x = (static_cast<uint64_t>(key) ^ mask0_) * odd0_;
    x ^= x >> 32;
    return (x ^ mask1_) * odd1_;
  }

  // The key with this hash. For tests: what an attacker that knew the secret
  // could choose.
  int64_t KeyOf(uint64_t hash) const;

 private:
  static KeyedHash Draw();

  uint64_t mask0_ = 0, odd0_ = 1, mask1_ = 0, odd1_ = 1;
};

// While it lives OfProcess gives this. Tables that are there keep theirs.
class ScopedHashForTesting {
 public:
  explicit ScopedHashForTesting(KeyedHash hash);
  ~ScopedHashForTesting();
  ScopedHashForTesting(const ScopedHashForTesting&) = delete;
  ScopedHashForTesting& operator=(const ScopedHashForTesting&) = delete;

 private:
  const KeyedHash hash_;
  const KeyedHash* const before_;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_KEYED_HASH_H_
