// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The hash of a key that only this process can compute.
//
// Ids come from outside. An attacker that can compute a table's hash can choose
// ids that share a bucket; every batch of n such ids then takes time
// proportional to n^2. Therefore a table places its keys by a hash with a
// secret that each process draws once.
//
// THE HASH works like MixKey (hash.h): a multiplication carries bits upwards, a
// fold brings them down, and a second multiplication carries them up again. But
// both factors, and what is mixed in before them, are secret. Only the upper
// half of the result is good: take bits from the top. It costs two
// multiplications and three simple instructions, one less than MixKey.
//
// WHY THAT IS ENOUGH. Everything before the second factor m1 is a bijection of
// keys, so two keys a != b reach it as a' != b'. Their results differ by m1 *
// (a' - b') modulo 2^64. Since m1 is odd and drawn after the keys were chosen,
// every odd multiple of the same power of two is equally likely. So the chance
// that two keys fall into the same of n equal ranges is at most 2/n, twice that
// of a random function, whichever keys they are. Hence the number of pairs in
// one bucket, averaged over secrets, is at most twice that of random keys for
// ANY set of keys that was chosen without the secret. (The first factor and the
// fold only make regular sets, runs and strides, behave like random ones under
// all but a few secrets: hash_test.cc.)
//
// WHAT IT IS NOT: a cryptographic function. An attacker that sees many results,
// or very precisely measures the time of many of its own batches, may recover
// the secret eventually. Results are never shown, and every process has another
// secret.
//
// WHAT MUST NOT USE IT: everything that is visible outside, such as the order
// of keys, which keys are admitted or evicted, or what ranks agree on. Those
// use MixKey.

#ifndef KERNELS_ENGINE_BASE_KEYED_HASH_H_
#define KERNELS_ENGINE_BASE_KEYED_HASH_H_

#include <cstdint>

#if defined(__CUDACC__)
#define EV_ON_ANY_DEVICE __host__ __device__ __forceinline__
#else
#define EV_ON_ANY_DEVICE inline
#endif

namespace ev {

// Passed by value: kernels take it as an argument.
class KeyedHash {
 public:
  // Returns the hash of this process, drawn at the first call. A forked process
  // keeps its parent's. Throws std::runtime_error if the system returns no
  // random bytes.
  static KeyedHash OfProcess();

  // Makes 'hash' the hash of this process. A CUDA library calls it before
  // OfProcess, since its copy of this code would draw another secret.
  static void SetOfProcess(const KeyedHash& hash);

  // Returns a hash with a fixed secret, for tests.
  static KeyedHash FromSeed(uint64_t seed);

  EV_ON_ANY_DEVICE uint64_t operator()(int64_t key) const {
    uint64_t x = (static_cast<uint64_t>(key) ^ mask0_) * odd0_;
    x ^= x >> 32;
    return (x ^ mask1_) * odd1_;
  }

  // Returns the key with this hash. For tests: such keys are what an attacker
  // with the secret could choose.
  int64_t KeyOf(uint64_t hash) const;

 private:
  static KeyedHash Draw();

  uint64_t mask0_ = 0, odd0_ = 1, mask1_ = 0, odd1_ = 1;
};

// OfProcess returns this hash while the object lives. Existing tables keep
// theirs.
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
