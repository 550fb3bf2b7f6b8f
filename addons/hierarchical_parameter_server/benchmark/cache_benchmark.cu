// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Measures lookups through the GPU cache with ids and rows in GPU memory, as
// the op kernels of a framework's GPU device have them.
//
//   cache_benchmark [--rows=32700000] [--width=128] [--share=0.2]
//       [--type=multi_process_hash_map] [--folder=/dev/shm/hps_cache]
//       [--seconds=2] [--threads=16] [--callers=64] [--host]
//       [--policy=lru|lfu] [--refresh=0] [--row_type=float32]
//
// For each stream and batch size it prints: median and 99th percentile of a
// lookup, from the call until the stream has the rows; the hit rate of the
// cache; the rate of the rows copied over the link. Before a measurement each
// stream is looked up in large batches, with twice as many ids as the cache has
// rows, to bring the cache into its steady state. Then it compares one caller
// with many.
//
// Options: --host: ids and rows in pinned host memory. --share=0: no cache.
// --policy, --refresh, --row_type: embedding_cache_policy, refresh_interval and
// row_type_per_table; counts of the refreshing are printed at the end. Before
// any measurement, rows are compared with those written. Exit code: 0, 1 with a
// message, or 77 without a GPU.

#include <cuda_runtime_api.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "addons/hierarchical_parameter_server/cache/device_cache.h"
#include "addons/hierarchical_parameter_server/cache/make_device_cache.h"
#include "addons/hierarchical_parameter_server/config/config.h"
#include "addons/hierarchical_parameter_server/rows/row_format.h"
#include "addons/hierarchical_parameter_server/server/databases.h"
#include "addons/hierarchical_parameter_server/server/parameter_server.h"
#include "kernels/engine/testing/thread_pool.h"

namespace {

using hps::CacheBatch;

struct Flags {
  int64_t rows = 32700000;
  int width = 128;
  double share = 0.2;
  std::string type = "multi_process_hash_map";
  std::string row_type = "float32";
  std::string folder = "/dev/shm/hps_cache";
  double seconds = 2;
  int threads = 16, callers = 64;
  bool host = false;
  std::string policy = "lru";
  double refresh = 0;
};

constexpr int64_t kMostIds = 131072;
constexpr int64_t kBatches = 64;  // minimum
// Most ids of a stream that does not repeat.
constexpr int64_t kMostDrawn = 1 << 25;

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}
void Must(const ev::Status& status) {
  if (!status.ok()) Die(status.message());
}
void Must(cudaError_t error) {
  if (error != cudaSuccess) Die(cudaGetErrorString(error));
}

double Now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

hps::RowFormat FormatOf(const Flags& flags) {
  hps::RowFormat format(flags.width);
  if (!hps::ParseRowType(flags.row_type, &format.type)) {
    Die("--row_type: expected float32, float16 or uint8");
  }
  return format;
}

// From 0 to 1.
float Value(int64_t key, int column) {
  const uint64_t mixed =
      (static_cast<uint64_t>(key) * 1024 + column) * 0x9e3779b97f4a7c15ULL;
  return static_cast<float>(mixed >> 40) / (1 << 24);
}

void WriteTable(const Flags& flags) {
  mkdir(flags.folder.c_str(), 0755);
  mkdir((flags.folder + "/t").c_str(), 0755);
  std::ofstream keys(flags.folder + "/t/key", std::ios::binary);
  const hps::RowFormat format = FormatOf(flags);
  std::ofstream rows(
      flags.folder + "/t/emb_vector" +
          (format.is_packed() ? "_" + flags.row_type : std::string()),
      std::ios::binary);
  std::vector<int64_t> numbers;
  std::vector<float> piece, stored;
  for (int64_t begin = 0; begin < flags.rows; begin += 65536) {
    piece.clear();
    numbers.clear();
    for (int64_t key = begin; key < std::min(flags.rows, begin + 65536);
         ++key) {
      numbers.push_back(key);
      for (int c = 0; c < flags.width; ++c) piece.push_back(Value(key, c));
    }
    stored.resize(numbers.size() * format.width());
    Must(hps::PackRows(format, numbers, piece.data(), stored.data()));
    keys.write(reinterpret_cast<const char*>(numbers.data()),
               numbers.size() * 8);
    rows.write(reinterpret_cast<const char*>(stored.data()), stored.size() * 4);
  }
  keys.close();
  rows.close();
  if (!keys || !rows) Die("no room for the table in " + flags.folder);
}

std::unique_ptr<hps::ParameterServer> Serve(const Flags& flags,
                                            ev::Parallel* parallel) {
  const std::string text =
      "{\"models\": [{\"model\": \"m\", \"sparse_files\": [\"t\"], "
      "\"embedding_vecsize_per_table\": [" +
      std::to_string(flags.width) +
      "], \"maxnum_catfeature_query_per_table_per_sample\": [1], "
      "\"default_value_for_each_table\": [0], \"deployed_device_list\": [0], "
      "\"max_batch_size\": " +
      std::to_string(kMostIds) +
      ", \"gpucache\": " + (flags.share > 0 ? "true" : "false") +
      ", \"gpucacheper\": " + std::to_string(flags.share) +
      (flags.share > 0 && flags.share < 1
           ? ", \"embedding_cache_policy\": \"" + flags.policy + "\""
           : std::string()) +
      ", \"row_type_per_table\": [\"" + flags.row_type +
      "\"], \"refresh_interval\": " + std::to_string(flags.refresh) +
      "}], \"volatile_db\": {\"type\": \"" + flags.type + "\"}}";
  hps::Config config;
  Must(hps::ParseConfig(text, "the configuration", flags.folder,
                        hps::DatabaseTypes(), &config));
  std::unique_ptr<hps::ParameterServer> server;
  Must(hps::ParameterServer::Make(config, parallel, &server));
  for (const std::string& note : server->notes()) std::puts(note.c_str());
  return server;
}

// Draws the ids of a stream, batch after batch. They are at least twice as many
// as the cache has rows, since fewer would all be cached after the first round.
// A key is numbered by its rank; ranks are spread over the table.
std::vector<int64_t> MakeIds(const std::string& stream, const Flags& flags,
                             int64_t batch) {
  const int64_t rows = flags.rows;
  const int64_t cached = static_cast<int64_t>(flags.share * rows);
  const int64_t wanted = std::min(2 * cached, kMostDrawn);
  const int64_t batches =
      stream == "repeated" ? 1
                           : std::max(kBatches, (wanted + batch - 1) / batch);
  std::mt19937_64 random(5);
  const double exponent =
      stream.rfind("zipf", 0) == 0 ? std::atof(stream.c_str() + 4) : 0;
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<int64_t> ids(batches * batch);
  for (int64_t& id : ids) {
    uint64_t rank;
    if (exponent > 0) {
      // Inverts the continuous distribution, cut off at the number of rows.
      const double tail = std::pow(static_cast<double>(rows), 1 - exponent);
      rank = static_cast<uint64_t>(
          std::pow(1 - uniform(random) * (1 - tail), 1 / (1 - exponent)));
    } else {
      rank = random();
    }
    id = static_cast<int64_t>(rank % rows * uint64_t{0x9e3779b1} %
                              static_cast<uint64_t>(rows));
  }
  return ids;
}

// One caller: its ids, rows and stream.
class Caller {
 public:
  Caller(const Flags& flags, hps::ServedTable* table, ev::Parallel* parallel)
      : flags_(flags), table_(table), parallel_(parallel) {
    Must(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    device_stream_.native = stream_;
    const size_t bytes = kMostIds * flags.width * sizeof(float);
    Must(flags.host ? cudaMallocHost(&rows_, bytes)
                    : cudaMalloc(&rows_, bytes));
  }
  ~Caller() {
    Must(flags_.host ? cudaFreeHost(rows_) : cudaFree(rows_));
    Must(cudaStreamDestroy(stream_));
    Forget();
  }
  // Uses the ids in batches of `count`.
  void Take(const std::vector<int64_t>& ids, int64_t count) {
    Forget();
    void* device_ids = nullptr;
    const size_t bytes = ids.size() * sizeof(int64_t);
    Must(flags_.host ? cudaMallocHost(&device_ids, bytes)
                     : cudaMalloc(&device_ids, bytes));
    Must(cudaMemcpyAsync(device_ids, ids.data(), bytes, cudaMemcpyDefault,
                         stream_));
    Must(cudaStreamSynchronize(stream_));
    ids_ = static_cast<int64_t*>(device_ids);
    count_ = count;
    batches_ = static_cast<int64_t>(ids.size()) / count;
  }
  int64_t batches() const { return batches_; }
  // Returns the seconds of the lookup of batch number i.
  double Lookup(int64_t i) {
    CacheBatch batch;
    batch.ids = ids_ + i % batches_ * count_;
    batch.count = count_;
    batch.ids_on_device = batch.rows_on_device = !flags_.host;
    batch.rows = static_cast<float*>(rows_);
    batch.stream = &device_stream_;
    const double begin = Now();
    if (flags_.host) {
      Must(table_->Lookup(
          ev::Span<const int64_t>(static_cast<const int64_t*>(batch.ids),
                                  batch.count),
          batch.rows, parallel_));
    } else {
      Must(table_->LookupOnDevice(batch, parallel_));
      Must(cudaStreamSynchronize(stream_));
    }
    return Now() - begin;
  }
  // Compares the rows of the last lookup, which had these keys, with those
  // written.
  void Compare(const int64_t* keys) {
    std::vector<float> rows(count_ * flags_.width);
    Must(cudaMemcpy(rows.data(), rows_, rows.size() * sizeof(float),
                    cudaMemcpyDefault));
    const hps::RowFormat format = FormatOf(flags_);
    std::vector<float> row(flags_.width), stored(format.width());
    for (int64_t i = 0; i < count_; ++i) {
      for (int c = 0; c < flags_.width; ++c) row[c] = Value(keys[i], c);
      Must(hps::PackRows(format, ev::Span<const int64_t>(keys + i, 1),
                         row.data(), stored.data()));
      hps::UnpackRow(format, stored.data(), row.data());
      if (!std::equal(row.begin(), row.end(), &rows[i * flags_.width])) {
        Die("a wrong row of key " + std::to_string(keys[i]));
      }
    }
  }

 private:
  void Forget() {
    Must(flags_.host ? cudaFreeHost(ids_) : cudaFree(ids_));
    ids_ = nullptr;
  }
  const Flags flags_;
  hps::ServedTable* const table_;
  ev::Parallel* const parallel_;
  cudaStream_t stream_ = nullptr;
  ev::DeviceStream device_stream_;
  void* rows_ = nullptr;
  int64_t* ids_ = nullptr;
  int64_t count_ = 0, batches_ = 0;
};

void MeasureStreams(const Flags& flags, hps::ServedTable* table,
                    ev::Parallel* parallel) {
  Caller caller(flags, table, parallel);
  std::printf("%-9s %7s %10s %10s %8s %9s\n", "stream", "batch", "p50 us",
              "p99 us", "hits %", "link GB/s");
  for (const std::string stream :
       {"repeated", "zipf1.05", "zipf1.2", "uniform"}) {
    // Large batches first, to bring the cache into its steady state.
    caller.Take(MakeIds(stream, flags, kMostIds), kMostIds);
    for (int64_t i = 0; i < caller.batches(); ++i) caller.Lookup(i);
    for (const int64_t batch : {32, 256, 1024, 4096, 16384, 65536, 131072}) {
      const std::vector<int64_t> ids = MakeIds(stream, flags, batch);
      caller.Take(ids, batch);
      for (int64_t b = 0; b < std::min<int64_t>(4, caller.batches()); ++b) {
        caller.Lookup(b);
        caller.Compare(ids.data() + b * batch);
      }
      const hps::Served before = table->served();
      std::vector<double> took;
      const double begin = Now();
      while (Now() - begin < flags.seconds || took.size() < 20) {
        took.push_back(caller.Lookup(static_cast<int64_t>(took.size())));
      }
      const double total = Now() - begin;
      const hps::Served after = table->served();
      const double asked = static_cast<double>(after.keys - before.keys);
      const double hits =
          static_cast<double>(after.from_cache - before.from_cache);
      std::sort(took.begin(), took.end());
      std::printf("%-9s %7lld %10.1f %10.1f %8.2f %9.2f\n", stream.c_str(),
                  static_cast<long long>(batch), took[took.size() / 2] * 1e6,
                  took[took.size() * 99 / 100] * 1e6, 100 * hits / asked,
                  (asked - hits) * FormatOf(flags).width() * 4e-9 / total);
      std::fflush(stdout);
    }
  }
}

// Returns the lookups per second of concurrent callers.
double Throughput(const Flags& flags, hps::ServedTable* table, int callers,
                  const std::vector<int64_t>& ids, int64_t batch) {
  std::vector<std::unique_ptr<Caller>> all;
  std::vector<std::unique_ptr<ev::Serial>> serial;
  for (int c = 0; c < callers; ++c) {
    serial.push_back(std::make_unique<ev::Serial>());
    all.push_back(std::make_unique<Caller>(flags, table, serial.back().get()));
    all.back()->Take(ids, batch);
    all.back()->Lookup(c);
  }
  std::vector<int64_t> done(callers, 0);
  std::vector<std::thread> threads;
  const double begin = Now(), end = begin + flags.seconds;
  for (int c = 0; c < callers; ++c) {
    threads.emplace_back([&, c] {
      while (Now() < end) all[c]->Lookup(c * 7 + done[c]++);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double took = Now() - begin;
  int64_t sum = 0;
  for (const int64_t one : done) sum += one;
  return static_cast<double>(sum) / took;
}

bool Read(const char* argument, Flags* flags) {
  const std::string text = argument;
  const size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const std::string value =
      equals == std::string::npos ? "" : text.substr(equals + 1);
  if (name == "--rows") {
    flags->rows = std::atoll(value.c_str());
  } else if (name == "--width") {
    flags->width = std::atoi(value.c_str());
  } else if (name == "--share") {
    flags->share = std::atof(value.c_str());
  } else if (name == "--type") {
    flags->type = value;
  } else if (name == "--row_type") {
    flags->row_type = value;
  } else if (name == "--folder") {
    flags->folder = value;
  } else if (name == "--seconds") {
    flags->seconds = std::atof(value.c_str());
  } else if (name == "--threads") {
    flags->threads = std::atoi(value.c_str());
  } else if (name == "--callers") {
    flags->callers = std::atoi(value.c_str());
  } else if (name == "--policy") {
    flags->policy = value;
  } else if (name == "--refresh") {
    flags->refresh = std::atof(value.c_str());
  } else if (name == "--host") {
    flags->host = true;
  } else {
    return false;
  }
  return flags->rows > 0 && flags->width > 0 && flags->threads > 0 &&
         flags->callers > 0;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    if (!Read(argv[i], &flags)) Die("not understood: " + std::string(argv[i]));
  }
  std::shared_ptr<hps::DeviceCache> device;
  const ev::Status status = hps::MakeDeviceCache(&device);
  if (status.code() == ev::StatusCode::kFailedPrecondition) {
    std::puts(status.message().c_str());
    return 77;
  }
  Must(status);
  ev::testing::ThreadPool pool(flags.threads);
  WriteTable(flags);
  double begin = Now();
  const std::unique_ptr<hps::ParameterServer> server = Serve(flags, &pool);
  std::shared_ptr<hps::ServedTable> table;
  Must(server->Find("m", 0, flags.width, &table));
  std::printf("%lld x %d, %s, cache %.3g %s, %s, started in %.2f s\n",
              static_cast<long long>(flags.rows), flags.width,
              flags.type.c_str(), flags.share, flags.policy.c_str(),
              flags.host ? "host memory" : device->name().c_str(),
              Now() - begin);
  if (table->cache() != nullptr) {
    hps::CacheStatistics statistics;
    Must(table->cache()->Statistics(&statistics));
    std::vector<std::string> problems;
    std::printf("device bytes %lld; the plan: %s\n",
                static_cast<long long>(statistics.device_bytes),
                hps::PlanJson(server->config(), &problems).c_str());
  }
  MeasureStreams(flags, table.get(), &pool);
  Flags drawn = flags;  // each caller needs only few ids
  drawn.share = 0;
  const std::vector<int64_t> ids = MakeIds("zipf1.05", drawn, 4096);
  for (const int callers : {1, 4, 16, flags.callers}) {
    std::printf("%2d callers: %.0f lookups/s of 4096\n", callers,
                Throughput(flags, table.get(), callers, ids, 4096));
  }
  if (flags.refresh > 0) {
    const hps::Refreshed refreshed = table->refreshed();
    std::printf("refreshed: %lld walks, %lld rows, the last walk %.2f s\n",
                static_cast<long long>(refreshed.walks),
                static_cast<long long>(refreshed.rows),
                static_cast<double>(refreshed.last_walk_nanoseconds) * 1e-9);
    if (refreshed.failures > 0) Die(refreshed.last_failure);
  }
  return 0;
}
