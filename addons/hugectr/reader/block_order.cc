// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hugectr/reader/block_order.h"

#include <random>
#include <utility>

namespace hugectr {
namespace {

// Returns a random number in [0, last]: draws numbers with as many bits as
// `last` until one fits.
uint64_t UpTo(uint64_t last, std::mt19937* random) {
  uint64_t mask = last;
  for (int shift = 1; shift < 64; shift *= 2) mask |= mask >> shift;
  uint64_t value;
  do {
    value = (*random)();
    // The first number drawn is the upper half.
    if (last > 0xffffffffu) value = value << 32 | (*random)();
    value &= mask;
  } while (value > last);
  return value;
}

}  // namespace

std::vector<int64_t> Shuffled(int64_t count, uint32_t seed) {
  std::vector<int64_t> order(count);
  for (int64_t i = 0; i < count; ++i) order[i] = i;
  std::mt19937 random(seed);
  for (int64_t i = count - 1; i > 0; --i) {
    std::swap(order[i], order[UpTo(i, &random)]);
  }
  return order;
}

std::shared_ptr<const std::vector<int64_t>> BlockOrder::OfPass(int64_t pass) {
  std::lock_guard<std::mutex> hold(lock_);
  Kept& kept = kept_[pass & 1];
  if (kept.pass != pass) {
    kept.order = std::make_shared<const std::vector<int64_t>>(
        Shuffled(blocks_, static_cast<uint32_t>(seed_ + pass)));
    kept.pass = pass;
  }
  return kept.order;
}

}  // namespace hugectr
