// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/keyed_hash.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <stdexcept>

#include "kernels/engine/base/hash.h"

namespace ev {
namespace {

// Replaces the drawn hash if not null.
std::atomic<const KeyedHash*> given_hash{nullptr};

// Makes the system call directly: the C library's getrandom is newer than some
// C libraries that TensorFlow runs with.
bool GetRandom(void* to, size_t bytes) {
#if defined(SYS_getrandom)
  return syscall(SYS_getrandom, to, bytes, 0) == static_cast<long>(bytes);
#else
  return false;
#endif
}

bool ReadDevice(void* to, size_t bytes) {
  std::FILE* const file = std::fopen("/dev/urandom", "rb");
  if (file == nullptr) return false;
  const bool ok = std::fread(to, 1, bytes, file) == bytes;
  std::fclose(file);
  return ok;
}

}  // namespace

KeyedHash KeyedHash::Draw() {
  uint64_t words[4];
  if (!GetRandom(words, sizeof(words)) && !ReadDevice(words, sizeof(words))) {
    throw std::runtime_error(
        "cannot read random bytes from getrandom or from /dev/urandom; tables "
        "need them for the secret of their hash, which protects against ids "
        "chosen to collide");
  }
  KeyedHash hash;
  hash.mask0_ = words[0];
  hash.odd0_ = words[1] | 1;
  hash.mask1_ = words[2];
  hash.odd1_ = words[3] | 1;
  return hash;
}

KeyedHash KeyedHash::OfProcess() {
  const KeyedHash* const given = given_hash.load(std::memory_order_acquire);
  if (given != nullptr) return *given;
  static const KeyedHash drawn = Draw();
  return drawn;
}

void KeyedHash::SetOfProcess(const KeyedHash& hash) {
  given_hash.store(new KeyedHash(hash), std::memory_order_release);
}

KeyedHash KeyedHash::FromSeed(uint64_t seed) {
  const auto word = [seed](int64_t i) {
    return MixKey(static_cast<int64_t>(MixKey(static_cast<int64_t>(seed))) + i);
  };
  KeyedHash hash;
  hash.mask0_ = word(1);
  hash.odd0_ = word(2) | 1;
  hash.mask1_ = word(3);
  hash.odd1_ = word(4) | 1;
  return hash;
}

int64_t KeyedHash::KeyOf(uint64_t hash) const {
  const auto inverse = [](uint64_t odd) {
    // correct in 3 bits, then in twice as many each time
    uint64_t result = odd;
    for (int i = 0; i < 5; ++i) result *= 2 - odd * result;
    return result;
  };
  uint64_t x = hash * inverse(odd1_) ^ mask1_;
  x ^= x >> 32;
  return static_cast<int64_t>(x * inverse(odd0_) ^ mask0_);
}

ScopedHashForTesting::ScopedHashForTesting(KeyedHash hash)
    : hash_(hash), before_(given_hash.exchange(&hash_)) {}

ScopedHashForTesting::~ScopedHashForTesting() { given_hash.store(before_); }

}  // namespace ev
