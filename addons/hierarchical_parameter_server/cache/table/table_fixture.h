// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Test fixture of table_set_test: a table set with host vectors as inputs and
// outputs, test keys, and expectations that need no test library.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TABLE_TABLE_FIXTURE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TABLE_TABLE_FIXTURE_H_

#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/cache/table/bucket.h"
#include "addons/hierarchical_parameter_server/cache/table/table_set.h"
#include "kernels/engine/base/gpu/device_buffer.h"

namespace ev {
namespace gpu {

using Keys = std::vector<int64_t>;

inline bool g_small = false;  // sizes for compute-sanitizer
inline int g_failures = 0;    // of the current test

#define EXPECT(condition)                                                      \
  do {                                                                         \
    if (!(condition)) {                                                        \
      if (++g_failures <= 20) {                                                \
        std::printf("  %s:%d: expected %s\n", __FILE__, __LINE__, #condition); \
      }                                                                        \
    }                                                                          \
  } while (0)

inline void Ok(const Status& status, int line) {
  if (!status.ok()) {
    ++g_failures;
    std::printf("  line %d: %s\n", line, status.message().c_str());
  }
}
#define OK(expression) Ok((expression), __LINE__)

template <typename T>
class OnDevice {
 public:
  explicit OnDevice(size_t n) : n_(n) {
    OK(buffer_.Allocate(n * sizeof(T) + 16, "test data"));
    // Poison, so that an output that no kernel writes is wrong.
    cudaMemset(buffer_.data(), 0xA5, n * sizeof(T) + 16);
  }
  explicit OnDevice(const std::vector<T>& v) : OnDevice(v.size()) {
    if (!v.empty()) {
      cudaMemcpy(get(), v.data(), n_ * sizeof(T), cudaMemcpyHostToDevice);
      cudaStreamSynchronize(nullptr);  // It may return before the data arrived.
    }
  }
  T* get() const { return buffer_.as<T>(); }
  std::vector<T> Host() const { return Host(n_); }
  std::vector<T> Host(size_t n) const {
    std::vector<T> v(n);
    const cudaError_t error =
        cudaMemcpy(v.data(), get(), n * sizeof(T), cudaMemcpyDeviceToHost);
    EXPECT(error == cudaSuccess);
    return v;
  }

 private:
  size_t n_;
  DeviceBuffer buffer_;
};

struct Inserted {
  Keys slots;
  std::vector<uint8_t> is_new;
  Keys evicted_keys, evicted_slots;
  std::vector<int32_t> evicted_tables;
  std::vector<uint64_t> evicted_scores;
};

struct Listed {
  Keys keys, slots;
  std::vector<uint64_t> scores;
};

// A table set with host vectors as inputs and outputs.
class Fixture {
 public:
  Fixture(const Keys& capacities, Eviction eviction, int probe_limit = 0)
      : eviction_(eviction) {
    TableSetOptions options;
    for (int64_t c : capacities) options.tables.push_back({"t", c});
    options.eviction = eviction;
    options.probe_limit = probe_limit;
    OK(TableSet::Create(options, StreamView(), &set_));
  }

  TableSet& set() { return *set_; }

  // segments: one vector of keys per table.
  static Keys Concat(const std::vector<Keys>& segments, Keys* offsets) {
    Keys all;
    offsets->assign(1, 0);
    for (const Keys& s : segments) {
      all.insert(all.end(), s.begin(), s.end());
      offsets->push_back(static_cast<int64_t>(all.size()));
    }
    return all;
  }

  Keys Find(const std::vector<Keys>& segments) {
    Upload(segments);
    OnDevice<int64_t> slots(n_);
    OK(set_->Find(batch_, slots.get(), StreamView()));
    return slots.Host();
  }
  Keys Find(const Keys& keys) { return Find(std::vector<Keys>{keys}); }

  Inserted FindOrInsert(const std::vector<Keys>& segments) {
    Upload(segments);
    OK(set_->ReserveSync(n_));
    OnDevice<int64_t> slots(n_), evicted_keys(n_), evicted_slots(n_), count(1);
    OnDevice<int32_t> tables(n_);
    OnDevice<uint64_t> scores(n_);
    OnDevice<uint8_t> is_new(n_);
    EvictedKeys evicted;
    if (eviction_ != Eviction::kNone) {
      evicted = {evicted_keys.get(), evicted_slots.get(), tables.get(),
                 scores.get(), count.get()};
    }
    OK(set_->FindOrInsert(batch_, slots.get(), is_new.get(), evicted,
                          StreamView()));
    Inserted r;
    r.slots = slots.Host();
    r.is_new = is_new.Host();
    if (eviction_ != Eviction::kNone) {
      const int64_t k = count.Host()[0];
      EXPECT(k >= 0 && k <= n_);
      r.evicted_keys = evicted_keys.Host(k);
      r.evicted_slots = evicted_slots.Host(k);
      r.evicted_tables = tables.Host(k);
      r.evicted_scores = scores.Host(k);
    }
    return r;
  }
  Inserted FindOrInsert(const Keys& keys) {
    return FindOrInsert(std::vector<Keys>{keys});
  }

  Keys Erase(const std::vector<Keys>& segments) {
    Upload(segments);
    OnDevice<int64_t> slots(n_);
    OK(set_->Erase(batch_, slots.get(), StreamView()));
    return slots.Host();
  }
  Keys Erase(const Keys& keys) { return Erase(std::vector<Keys>{keys}); }

  void Touch(const Keys& keys) {
    Upload({keys});
    OnDevice<int64_t> slots(n_);
    OK(set_->Find(batch_, slots.get(), StreamView()));
    OK(set_->Touch(batch_, slots.get(), StreamView()));
  }

  std::vector<float> FindAndCopy(const std::vector<Keys>& segments, int64_t dim,
                                 const float* absent_row, Keys* slots_out) {
    Upload(segments);
    OnDevice<int64_t> slots(n_);
    OnDevice<float> out(n_ * dim);
    OK(set_->FindAndCopy(batch_, absent_row, out.get(), slots.get(),
                         StreamView()));
    *slots_out = slots.Host();
    return out.Host();
  }

  Listed Export(int table, int64_t first, int64_t n) {
    OnDevice<int64_t> keys(n), slots(n), count(1);
    OnDevice<uint64_t> scores(n);
    OK(set_->Export(table, first, n,
                    {keys.get(), slots.get(), scores.get(), count.get()},
                    StreamView()));
    const int64_t k = count.Host()[0];
    EXPECT(k >= 0 && k <= n);
    return {keys.Host(k), slots.Host(k), scores.Host(k)};
  }
  Listed Export(int table) { return Export(table, 0, set_->num_slots(table)); }

  int64_t size(int table = 0) {
    std::vector<int64_t> sizes;
    OK(set_->CountsSync(&sizes, nullptr, StreamView()));
    return sizes[table];
  }
  int64_t rejected(int table = 0) {
    std::vector<int64_t> rejected;
    OK(set_->CountsSync(nullptr, &rejected, StreamView()));
    return rejected[table];
  }

 private:
  void Upload(const std::vector<Keys>& segments) {
    Keys offsets;
    const Keys all = Concat(segments, &offsets);
    n_ = static_cast<int64_t>(all.size());
    keys_.reset(new OnDevice<int64_t>(all));
    offsets_.reset(new OnDevice<int64_t>(offsets));
    batch_.keys = keys_->get();
    batch_.num_keys = n_;
    batch_.offsets = segments.size() > 1 ? offsets_->get() : nullptr;
  }

  Eviction eviction_;
  std::unique_ptr<TableSet> set_;
  std::unique_ptr<OnDevice<int64_t>> keys_, offsets_;
  KeyBatch batch_;
  int64_t n_ = 0;
};

inline Keys RandomKeys(int64_t n, int64_t range, uint64_t seed) {
  std::mt19937_64 random(seed);
  Keys keys(n);
  for (int64_t& k : keys) {
    // Spreads the keys over all 64 bits, so that they are a set, not an
    // interval.
    k = static_cast<int64_t>((random() % range) * 0x9E3779B97F4A7C15ULL);
  }
  return keys;
}

inline const Keys& ExtremeKeys() {
  static const Keys keys = {0,
                            -1,
                            1,
                            std::numeric_limits<int64_t>::min(),
                            std::numeric_limits<int64_t>::max(),
                            std::numeric_limits<int64_t>::min() + 1,
                            std::numeric_limits<int64_t>::max() - 1,
                            kEmptyInEven,
                            kEmptyInOdd,
                            kErasedInEven,
                            kErasedInOdd};
  return keys;
}

struct Test {
  const char* name;
  void (*run)();
};
#define TEST(name) \
  { #name, name }

// Runs the tests and returns main's result: 0 if all passed, 1 if any failed.
// --small: sizes for compute-sanitizer; --filter=TEXT: only tests whose name
// contains TEXT.
template <size_t n>
int RunTests(const Test (&tests)[n], int argc, char** argv) {
  std::string filter;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--small") == 0) g_small = true;
    if (std::strncmp(argv[i], "--filter=", 9) == 0) filter = argv[i] + 9;
  }
  int failed = 0, ran = 0;
  for (const Test& test : tests) {
    if (std::string(test.name).find(filter) == std::string::npos) continue;
    g_failures = 0;
    test.run();
    const cudaError_t error = cudaDeviceSynchronize();
    if (error != cudaSuccess) {
      std::printf("  %s\n", cudaGetErrorString(error));
      ++g_failures;
    }
    std::printf("%s%s\n", g_failures ? "FAILED " : "ok     ", test.name);
    std::fflush(stdout);
    failed += g_failures != 0;
    ++ran;
  }
  std::printf("%d of %d tests failed\n", failed, ran);
  return failed != 0 || ran == 0;
}

}  // namespace gpu
}  // namespace ev

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TABLE_TABLE_FIXTURE_H_
