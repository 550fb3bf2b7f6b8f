// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Reference model of a TableSet's tables, on the host and one key at a time,
// for table_set_test. It places keys in an order shuffled by its own seed, so
// it would not match the device if the result depended on the order.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TABLE_TABLE_MODEL_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TABLE_TABLE_MODEL_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "addons/hierarchical_parameter_server/cache/table/bucket.h"
#include "addons/hierarchical_parameter_server/cache/table/table_set.h"

namespace ev {
namespace gpu {

// One evicting table.
class EvictingModel {
 public:
  EvictingModel(uint32_t num_pairs, int probe_limit, Eviction eviction)
      : num_pairs_(num_pairs),
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

  std::vector<uint64_t> ChainOf(int64_t key) const {
    const uint64_t hash = MixKey(key);
    uint64_t pair = FirstPair(hash, num_pairs_);
    const uint64_t step = PairStep(hash, num_pairs_);
    std::vector<uint64_t> chain;
    for (int j = 0; j < probe_limit_; ++j) {
      chain.push_back(BucketOf(static_cast<uint32_t>(pair), KeyParity(hash)));
      pair = (pair + step) % num_pairs_;
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
      const uint64_t common_bucket = chain[j];
      key = out;
      chain = ChainOf(key);
      j = std::find(chain.begin(), chain.end(), common_bucket) - chain.begin() +
          1;
    }
    if (!evicting) evict_.push_back(key);
  }

  const uint32_t num_pairs_;
  const int probe_limit_;
  const Eviction eviction_;
  std::vector<Bucket> buckets_;
  std::vector<int64_t> evict_;
  uint64_t call_ = 0;
};

}  // namespace gpu
}  // namespace ev

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TABLE_TABLE_MODEL_H_
