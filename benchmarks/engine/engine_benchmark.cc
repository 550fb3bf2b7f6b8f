// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Compares the engine's throughput with the limit of the machine's memory.
//
// The limit is the random-line probe: it reads one word of independent random
// cache lines of a large area in huge pages, and prefetches each line a few
// dozen lines ahead. No table with random keys can find more keys per second,
// since each find must read at least one line.
//
//   bazel run -c opt //benchmarks/engine:engine_benchmark -- [--full]
//       [--small] [--only=hostile|index|unique|pool] [--seconds=S]
//
// Rates are per second of processor time of a thread, so other work on the
// machine affects them little. --full uses larger tables and takes several
// minutes. --small takes a second and only tests that the program runs; its
// figures mean nothing. Prints one line per figure: millions of keys per second
// and per core, and that rate times the lines read per key, as a share of the
// probe over an area of the same size.

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/engine/bench_util.h"
#include "kernels/engine/base/hash.h"
#include "kernels/engine/base/pages.h"
#include "kernels/engine/base/prefetch.h"
#include "kernels/engine/ids/unique.h"
#include "kernels/engine/storage/dram/row_store.h"
#include "kernels/engine/table/cpu/hash_index.h"
#include "kernels/engine/testing/counting_row_source.h"
#include "kernels/engine/testing/made_keys.h"

namespace ev {
namespace bench {
namespace {

constexpr size_t kBatch = 4096;  // keys per call, as in a training step

// Key i of the tables. The values between them are absent.
int64_t KeyOf(int64_t i) { return i * 2 + 1; }

std::vector<int64_t> RandomKeys(int64_t num_keys, size_t n, uint64_t seed,
                                int64_t offset) {
  std::vector<int64_t> keys(n);
  for (size_t i = 0; i < n; ++i) {
    const uint32_t bits =
        static_cast<uint32_t>(MixKey(static_cast<int64_t>(seed + i)) >> 32);
    keys[i] = KeyOf(FastRange(bits, static_cast<uint32_t>(num_keys))) + offset;
  }
  return keys;
}

// Repeats body (which handles `keys` keys per call) for about `seconds`.
// Returns keys per second.
double Rate(double seconds, int64_t keys, const std::function<void()>& body) {
  body();  // warm up
  int64_t done = 0;
  const double start = ThreadSeconds();
  double elapsed = 0;
  do {
    body();
    done += keys;
    elapsed = ThreadSeconds() - start;
  } while (elapsed < seconds);
  return static_cast<double>(done) / elapsed;
}

void BenchIndex(const Settings& settings) {
  const int64_t num_keys = settings.full    ? 64000000
                           : settings.small ? 24000
                                            : 24000000;
  HashIndex index;
  testing::CountingRowSource source;
  std::vector<RowHandle> rows(kBatch);
  {
    std::vector<int64_t> keys(kBatch);
    const double start = ThreadSeconds();
    double slowest = 0;
    for (int64_t i = 0; i < num_keys; i += kBatch) {
      for (size_t j = 0; j < kBatch; ++j) {
        keys[j] = KeyOf(i + static_cast<int64_t>(j));
      }
      const double batch = ThreadSeconds();
      index.FindOrInsert(keys, &source, rows.data(), nullptr);
      slowest = std::max(slowest, ThreadSeconds() - batch);
    }
    const double per_second =
        static_cast<double>(index.size()) / (ThreadSeconds() - start);
    std::printf(
        "\nindex: %.1f M keys, %.0f MiB, %.1f bytes per key\n",
        static_cast<double>(index.size()) / 1e6,
        static_cast<double>(index.bytes()) / (1 << 20),
        static_cast<double>(index.bytes()) / static_cast<double>(index.size()));
    std::printf("  %-34s %7.1f M keys/s, slowest batch of %zu: %.1f ms\n",
                "insert new, growing from empty", per_second / 1e6, kBatch,
                slowest * 1e3);
  }
  const double probe =
      RandomLineProbe(static_cast<size_t>(index.bytes()), 1, settings.seconds);
  std::printf("  %-34s %7.1f M lines/s\n", "random-line probe, same area",
              probe / 1e6);

  // Far more lines than the caches hold.
  const size_t kStream = settings.small ? 2 * kBatch : 8 << 20;
  const std::vector<int64_t> present = RandomKeys(num_keys, kStream, 1, 0);
  const std::vector<int64_t> absent = RandomKeys(num_keys, kStream, 2, 1);
  std::vector<RowHandle> out(kStream);
  const auto batches = [&](const std::vector<int64_t>& keys,
                           const std::function<void(size_t)>& body) {
    return Rate(settings.seconds, static_cast<int64_t>(kStream), [&] {
      for (size_t i = 0; i < keys.size(); i += kBatch) body(i);
    });
  };
  const auto find = [&](const std::vector<int64_t>& keys) {
    return batches(keys, [&](size_t i) {
      index.Find(Span<const int64_t>(keys.data() + i, kBatch), out.data() + i);
    });
  };
  Report("find, present", find(present), 1, probe);
  Report("find, absent", find(absent), 1, probe);
  Report("find or insert, all present",
         batches(present,
                 [&](size_t i) {
                   index.FindOrInsert(
                       Span<const int64_t>(present.data() + i, kBatch), &source,
                       out.data() + i, nullptr);
                 }),
         1, probe);
  const double both =
      RandomLineProbe(static_cast<size_t>(index.bytes()), 2, settings.seconds);
  double two = 0;
  {
    std::vector<std::thread> threads;
    std::vector<double> rates(2);
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&, t] {
        const std::vector<int64_t> keys =
            RandomKeys(num_keys, kStream, 3 + t, 0);
        std::vector<RowHandle> mine(kStream);
        rates[t] = Rate(settings.seconds, static_cast<int64_t>(kStream), [&] {
          for (size_t i = 0; i < kStream; i += kBatch) {
            index.Find(Span<const int64_t>(keys.data() + i, kBatch),
                       mine.data() + i);
          }
        });
      });
    }
    for (std::thread& thread : threads) thread.join();
    two = (rates[0] + rates[1]) / 2;
  }
  Report("find, present, 2 threads, each", two, 1, both / 2);
}

class NewRows : public RowSource {
 public:
  explicit NewRows(RowStore* rows) : rows_(rows) {}
  Status NewRow(int64_t key, RowHandle* handle) override {
    EV_RETURN_IF_ERROR(rows_->Allocate(handle));
    float* row = rows_->Row(*handle);
    for (int64_t i = 0; i < rows_->floats_per_row(); ++i) row[i] = 1.0f;
    return Status::OK();
  }

 private:
  RowStore* rows_;
};

// Finds keys and sums their rows. The rows of a group are prefetched once their
// handles have been found, and read one group later.
void BenchFindAndSum(const Settings& settings, int64_t dim) {
  const int64_t num_keys = (settings.full    ? 32000000
                            : settings.small ? 8000
                                             : 8000000) *
                           16 / dim;
  HashIndex index;
  RowStore rows(dim, false);
  NewRows source(&rows);
  {
    std::vector<int64_t> keys(kBatch);
    std::vector<RowHandle> handles(kBatch);
    for (int64_t i = 0; i < num_keys; i += kBatch) {
      for (size_t j = 0; j < kBatch; ++j) {
        keys[j] = KeyOf(i + static_cast<int64_t>(j));
      }
      const Status status =
          index.FindOrInsert(keys, &source, handles.data(), nullptr);
      if (!status.ok()) {
        std::printf("no memory for dim %lld\n", static_cast<long long>(dim));
        return;
      }
    }
  }
  std::printf("\nfind + sum of the row, dim %lld: %.1f M keys, rows %.0f MiB\n",
              static_cast<long long>(dim),
              static_cast<double>(index.size()) / 1e6,
              static_cast<double>(rows.bytes()) / (1 << 20));
  const double probe =
      RandomLineProbe(static_cast<size_t>(rows.bytes()), 1, settings.seconds);
  std::printf("  %-34s %7.1f M lines/s\n", "random-line probe, area of rows",
              probe / 1e6);
  const size_t kStream = settings.small ? 2 * kBatch : 8 << 20;
  const std::vector<int64_t> keys = RandomKeys(num_keys, kStream, 5, 0);
  std::vector<RowHandle> handles(kBatch);
  std::vector<float> sum(static_cast<size_t>(dim));
  const auto add = [&](size_t begin, size_t end) {
    const SlabView view = rows.view();
    for (size_t i = begin; i < end; ++i) {
      const float* row =
          reinterpret_cast<const float*>(view.Address(handles[i]));
      for (int64_t d = 0; d < dim; ++d) sum[d] += row[d];
    }
  };
  const double rate =
      Rate(settings.seconds, static_cast<int64_t>(kStream), [&] {
        for (size_t k = 0; k < kStream; k += kBatch) {
          size_t before_begin = 0, before_end = 0;
          index.FindWith(Span<const int64_t>(keys.data() + k, kBatch),
                         handles.data(), [&](size_t begin, size_t end) {
                           const SlabView view = rows.view();
                           for (size_t i = begin; i < end; ++i) {
                             PrefetchBytes(
                                 view.Address(handles[i]),
                                 static_cast<size_t>(dim) * sizeof(float));
                           }
                           add(before_begin, before_end);
                           before_begin = begin;
                           before_end = end;
                         });
          add(before_begin, before_end);
        }
      });
  Report("find + sum", rate,
         1 + static_cast<double>(dim) * sizeof(float) / kCacheLine, probe);
  Use(sum[0]);
}

// Deduplicates one feature's ids: time per id while all data stay in the core's
// caches.
void BenchUnique(const Settings& settings) {
  std::printf("\nunique + inverse + counts, int64\n");
  for (const size_t n : {size_t{4096}, size_t{40960}, size_t{655360}}) {
    for (const char* kind : {"uniform", "Zipf", "hostile"}) {
      const bool zipf = kind[0] == 'Z', hostile = kind[0] == 'h';
      // Cycles through several batches, so that the branch predictor cannot
      // learn one.
      const size_t batches =
          settings.small ? 1 : std::max<size_t>(4, (1 << 20) / n);
      std::vector<int64_t> ids(n * batches);
      ZipfSampler sampler(2000000, 1.05);
      for (size_t i = 0; i < ids.size(); ++i) {
        const uint64_t bits = MixKey(static_cast<int64_t>(i + 99));
        ids[i] = hostile
                     ? testing::KeyOfOneLowerHalf(bits % 2000000)
                     : MixKey(zipf ? sampler.Sample(bits)
                                   : static_cast<int64_t>(bits % 2000000)) >>
                           1;
      }
      std::vector<int64_t> unique(n);
      std::vector<int32_t> inverse(n), counts(n);
      Unique dedup;
      int64_t num_unique = 0;
      size_t batch = 0;
      const double rate =
          Rate(settings.seconds / 2, static_cast<int64_t>(n), [&] {
            dedup.Run(Span<const int64_t>(&ids[batch * n], n), unique.data(),
                      inverse.data(), counts.data(), &num_unique);
            batch = (batch + 1) % batches;
          });
      std::printf(
          "  %7zu ids, %-8s %6.1f ns per id (%.0f %% distinct)\n", n, kind,
          1e9 / rate,
          100.0 * static_cast<double>(num_unique) / static_cast<double>(n));
    }
  }
}

// Tables whose keys all fall into one bucket or one segment, compared with a
// table of random keys.
void BenchHostile(const Settings& settings) {
  constexpr size_t kKeys = 60 * 1024;
  std::printf("\nan index of %zu keys that were made to collide\n", kKeys);
  for (const char* kind : {"random", "one bucket", "one segment"}) {
    std::vector<int64_t> keys(kKeys);
    for (size_t i = 0; i < kKeys; ++i) {
      keys[i] = kind[0] == 'r'   ? static_cast<int64_t>(MixKey(i))
                : kind[4] == 'b' ? testing::KeyOfOneLowerHalf(i)
                                 : testing::KeyOfOneUpperHalf(i);
    }
    std::vector<RowHandle> rows(kKeys);
    const double insert =
        Rate(settings.seconds / 2, static_cast<int64_t>(kKeys), [&] {
          HashIndex index;
          testing::CountingRowSource source;
          index.FindOrInsert(keys, &source, rows.data(), nullptr);
        });
    HashIndex index;
    testing::CountingRowSource source;
    index.FindOrInsert(keys, &source, rows.data(), nullptr);
    const double find = Rate(settings.seconds / 2, static_cast<int64_t>(kKeys),
                             [&] { index.Find(keys, rows.data()); });
    std::printf("  %-12s insert %6.1f ns, find %6.1f ns per key\n", kind,
                1e9 / insert, 1e9 / find);
  }
}

}  // namespace
}  // namespace bench
}  // namespace ev

int main(int argc, char** argv) {
  ev::bench::Settings settings;
  if (!ev::bench::ParseFlags(argc, argv, &settings)) return 1;
  ev::bench::PrintMachine();
  const auto wants = [&](const char* what) {
    return settings.only.empty() || settings.only == what;
  };
  if (wants("unique")) ev::bench::BenchUnique(settings);
  if (wants("hostile")) ev::bench::BenchHostile(settings);
  if (wants("index")) ev::bench::BenchIndex(settings);
  if (wants("pool")) {
    ev::bench::BenchFindAndSum(settings, 16);
    ev::bench::BenchFindAndSum(settings, 64);
  }
  return 0;
}
