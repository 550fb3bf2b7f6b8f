// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Reference model of a TableSet's tables, on the host and one key at a time,
// for table_set_test. It places keys in an order shuffled by its own seed, so
// it would not match the device if the result depended on the order.

#ifndef KERNELS_ENGINE_TABLE_GPU_TABLE_MODEL_H_
#define KERNELS_ENGINE_TABLE_GPU_TABLE_MODEL_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "kernels/engine/table/gpu/bucket.h"
#include "kernels/engine/table/gpu/table_set.h"

namespace ev {
namespace gpu {

// One evicting table.
class EvictingModel {
 public:
  EvictingModel(uint32_t num_pairs, int probe_limit, Eviction eviction)
      : base_pairs_(num_pairs),
        num_pairs_(num_pairs),
        probe_limit_(probe_limit),
        eviction_(eviction),
        buckets_(2 * static_cast<size_t>(num_pairs)) {}

  struct Entry {
    uint64_t score;  // as Export returns it
    bool is_new;
    bool used;  // kLru: inserted ranks above used
  };

  struct Result {
    std::set<int64_t> inserted;           // new keys that kept a slot
    std::map<int64_t, uint64_t> evicted;  // key -> score
  };

  // The bucket of key, or -1.
  int64_t Find(int64_t key) const {
    bool any_free;
    return Walk(key, &any_free);
  }

  Result FindOrInsert(const std::vector<int64_t>& keys, uint64_t seed) {
    ++call_;
    Result result;
    std::vector<int64_t> fill;
    evict_.clear();
    std::map<int64_t, uint64_t> absent;  // key -> occurrences
    for (int64_t key : keys) {
      bool any_free;
      const int64_t bucket = Walk(key, &any_free);
      if (bucket >= 0) {
        Entry& entry = buckets_[bucket].entries[key];
        if (eviction_ == Eviction::kLru) {
          entry.score = call_;
          entry.used = true;
        } else {
          ++entry.score;
        }
      } else {
        ++absent[key];
        (any_free ? fill : evict_).push_back(key);
      }
    }
    std::mt19937_64 random(seed);
    std::shuffle(fill.begin(), fill.end(), random);
    for (int64_t key : fill) Place(key, false, &result);
    std::shuffle(evict_.begin(), evict_.end(), random);
    const std::vector<int64_t> evict = evict_;
    for (int64_t key : evict) Place(key, true, &result);
    for (const auto& occurred : absent) {
      const int64_t key = occurred.first;
      const int64_t bucket = Find(key);
      if (bucket < 0) continue;
      result.inserted.insert(key);
      Entry& entry = buckets_[bucket].entries[key];
      entry.is_new = false;
      if (eviction_ == Eviction::kLfu) entry.score = occurred.second;
    }
    return result;
  }

  bool Erase(int64_t key) {
    const int64_t bucket = Find(key);
    if (bucket >= 0) buckets_[bucket].entries.erase(key);
    return bucket >= 0;
  }

  void Touch(int64_t key) {
    const int64_t bucket = Find(key);
    if (bucket < 0) return;
    Entry& entry = buckets_[bucket].entries[key];
    if (eviction_ == Eviction::kLfu) {
      ++entry.score;
      // else the key keeps the score of the call that inserted it
    } else if (entry.score != call_) {
      entry.score = call_;
      entry.used = true;
    }
  }

  // Adds pairs. Each key moves to the bucket at the same position of its chain
  // in the larger table.
  void Grow(uint32_t more_pairs) {
    // bucket, position in the chain
    std::map<int64_t, std::pair<size_t, size_t>> place;
    for (size_t b = 0; b < buckets_.size(); ++b) {
      for (const auto& entry : buckets_[b].entries) {
        const std::vector<uint64_t> chain = ChainOf(entry.first);
        place[entry.first] = {
            b, std::find(chain.begin(), chain.end(), b) - chain.begin()};
      }
    }
    for (uint32_t k = 0; k < more_pairs; ++k) {
      uint64_t doubling = base_pairs_;
      while (2 * doubling <= num_pairs_) doubling *= 2;
      for (uint64_t parity = 0; parity < 2; ++parity) {
        // A search may have to go past a new bucket if it had to go past its
        // other half.
        Bucket half;
        half.was_full = buckets_[2 * (num_pairs_ - doubling) + parity].was_full;
        buckets_.push_back(half);
      }
      ++num_pairs_;
    }
    for (const auto& entry : place) {
      const size_t from = entry.second.first;
      const size_t to = ChainOf(entry.first)[entry.second.second];
      if (to == from) continue;
      buckets_[to].entries[entry.first] = buckets_[from].entries[entry.first];
      buckets_[from].entries.erase(entry.first);
    }
  }

  void RestoreEmpty() {
    std::set<uint64_t> passed;
    for (size_t b = 0; b < buckets_.size(); ++b) {
      for (const auto& entry : buckets_[b].entries) {
        for (uint64_t at : ChainOf(entry.first)) {
          if (at == b) break;
          passed.insert(at);
        }
      }
    }
    for (size_t b = 0; b < buckets_.size(); ++b) {
      Bucket& bucket = buckets_[b];
      if (bucket.entries.size() < kBucketSlots && passed.count(b) == 0) {
        bucket.was_full = false;
      }
    }
  }

  // key -> (bucket, score)
  std::map<int64_t, std::pair<int64_t, uint64_t>> Contents() const {
    std::map<int64_t, std::pair<int64_t, uint64_t>> all;
    for (size_t b = 0; b < buckets_.size(); ++b) {
      for (const auto& entry : buckets_[b].entries) {
        all[entry.first] = {static_cast<int64_t>(b), entry.second.score};
      }
    }
    return all;
  }

 private:
  struct Bucket {
    std::map<int64_t, Entry> entries;
    bool was_full = false;
  };

  // Uses as many bits of the layer as lead to an existing pair.
  uint32_t PairOf(uint64_t base, uint64_t layer) const {
    uint64_t pair = base;
    for (int bits = 1; bits < 32; ++bits) {
      const uint64_t next =
          base + base_pairs_ * (layer & ((uint64_t{1} << bits) - 1));
      if (next >= num_pairs_) break;
      pair = next;
    }
    return static_cast<uint32_t>(pair);
  }

  std::vector<uint64_t> ChainOf(int64_t key) const {
    const uint64_t hash = MixKey(key);
    uint64_t base = FirstPair(hash, base_pairs_);
    const uint64_t step = PairStep(hash, base_pairs_);
    uint64_t layer = (hash & 0xFFFFFFFF) >> 1;
    std::vector<uint64_t> chain;
    for (int j = 0; j < probe_limit_; ++j) {
      chain.push_back(BucketOf(PairOf(base, layer), KeyParity(hash)));
      base = (base + step) % base_pairs_;
      layer += 2 * step + 1;
    }
    return chain;
  }

  int64_t Walk(int64_t key, bool* any_free) const {
    *any_free = false;
    for (uint64_t b : ChainOf(key)) {
      const Bucket& bucket = buckets_[b];
      if (bucket.entries.count(key)) return static_cast<int64_t>(b);
      if (bucket.entries.size() < kBucketSlots) *any_free = true;
      if (!bucket.was_full) return -1;
    }
    return -1;
  }

  // Ranks the keys that may leave a bucket; the lowest leaves.
  std::pair<std::pair<uint64_t, bool>, uint64_t> RankOf(int64_t key,
                                                        const Entry& e) const {
    if (e.is_new) return {{~0ULL, true}, MixKey(key)};
    const bool inserted = eviction_ == Eviction::kLru && !e.used;
    return {{e.score, inserted}, MixKey(key)};
  }

  void Place(int64_t key, bool evicting, Result* result) {
    std::vector<uint64_t> chain = ChainOf(key);
    size_t j = 0;
    while (j < chain.size()) {
      Bucket& bucket = buckets_[chain[j]];
      if (bucket.entries.count(key)) return;
      Entry entry = {eviction_ == Eviction::kLru ? call_ : 0, true, false};
      if (bucket.entries.size() < kBucketSlots) {
        bucket.entries[key] = entry;
        if (bucket.entries.size() == kBucketSlots) bucket.was_full = true;
        return;
      }
      const int64_t* lowest = nullptr;
      for (const auto& e : bucket.entries) {
        if (!evicting && !e.second.is_new) continue;
        if (lowest == nullptr || RankOf(e.first, e.second) <
                                     RankOf(*lowest, bucket.entries[*lowest])) {
          lowest = &e.first;
        }
      }
      if (lowest == nullptr ||
          !(RankOf(*lowest, bucket.entries[*lowest]) < RankOf(key, entry))) {
        ++j;
        continue;
      }
      const int64_t out = *lowest;
      const Entry gone = bucket.entries[out];
      bucket.entries.erase(out);
      bucket.entries[key] = entry;
      if (!gone.is_new) {
        result->evicted[out] = gone.score;
        return;
      }
      const uint64_t here = chain[j];
      key = out;
      chain = ChainOf(key);
      j = std::find(chain.begin(), chain.end(), here) - chain.begin() + 1;
    }
    if (!evicting) evict_.push_back(key);
  }

  const uint32_t base_pairs_;
  uint32_t num_pairs_;
  const int probe_limit_;
  const Eviction eviction_;
  std::vector<Bucket> buckets_;
  std::vector<int64_t> evict_;
  uint64_t call_ = 0;
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_TABLE_GPU_TABLE_MODEL_H_
