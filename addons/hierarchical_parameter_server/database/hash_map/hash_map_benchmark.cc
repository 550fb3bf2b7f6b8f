// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Times fetches from the hash map on one thread. For comparison it times loops
// that copy array rows at known positions, a lower bound for any lookup.
//
//   hash_map_benchmark [rows] [width] [ids of a fetch]

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "addons/hierarchical_parameter_server/database/hash_map/hash_map.h"
#include "kernels/engine/base/pages.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/prefetch.h"

namespace hps {
namespace {

constexpr int kBatches = 64, kTurns = 400;
constexpr int64_t kPiece = 100000;

double NowUs() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void Require(const ev::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.message().c_str());
  std::exit(1);
}

// Rows in one array; key k has row k.
struct Array {
  Array(int64_t rows, int64_t width, ev::PageKind kind)
      : floats(static_cast<float*>(
            ev::MapPages(rows * width * sizeof(float), kind))),
        width(width) {
    if (floats == nullptr) std::exit(1);
    for (int64_t row = 0; row < rows; ++row) {
      std::fill_n(floats + row * width, width, static_cast<float>(row));
    }
  }
  // ahead: how many rows ahead to prefetch; 0: not at all.
  void Copy(const std::vector<int64_t>& keys, int64_t ahead, float* out) const {
    const size_t bytes = width * sizeof(float);
    const int64_t count = static_cast<int64_t>(keys.size());
    for (int64_t i = 0; i < count; ++i) {
      if (ahead > 0 && i + ahead < count) {
        ev::PrefetchBytes(floats + keys[i + ahead] * width, bytes);
      }
      std::memcpy(out + i * width, floats + keys[i] * width, bytes);
    }
  }
  float* const floats;
  const int64_t width;
};

std::vector<std::vector<int64_t>> Batches(const std::string& stream,
                                          int64_t rows, int64_t ids) {
  std::mt19937_64 random(1);
  std::vector<std::vector<int64_t>> batches(stream == "repeated" ? 1
                                                                 : kBatches);
  for (auto& batch : batches) {
    for (int64_t i = 0; i < ids; ++i) {
      if (stream != "zipf1.05") {
        batch.push_back(static_cast<int64_t>(random() % rows));
        continue;
      }
      // Inverts the integral of x^-1.05; consecutive ranks are far apart in the
      // array.
      const double share = (random() >> 11) * 0x1p-53;
      const double top = std::pow(static_cast<double>(rows), -.05) - 1;
      const auto rank =
          static_cast<int64_t>(std::pow(1 + share * top, -1 / .05)) - 1;
      batch.push_back(std::min(rank, rows - 1) * 7919 % rows);
    }
  }
  return batches;
}

void Run(int64_t rows, int width, int64_t ids) {
  std::unique_ptr<Database> map;
  Require(HashMap::Make(HashMapOptions(), &map));
  std::shared_ptr<Table> table;
  Require(map->OpenTable("hps_et.m.t", width, &table));
  Require(table->Reserve(rows));
  ev::Serial serial;
  const Array huge(rows, width, ev::PageKind::kHuge);
  const Array small(rows, width, ev::PageKind::kSmall);
  for (int64_t begin = 0; begin < rows; begin += kPiece) {
    std::vector<int64_t> keys;
    for (int64_t k = begin; k < std::min(rows, begin + kPiece); ++k) {
      keys.push_back(k);
    }
    Require(table->Insert(keys, huge.floats + begin * width, &serial));
  }
  const size_t bytes = ids * width * sizeof(float);
  float* const out = static_cast<float*>(ev::AllocateLines(bytes));
  std::vector<int64_t> missing(ids);
  using Keys = std::vector<int64_t>;
  const std::vector<std::pair<std::string, std::function<void(const Keys&)>>>
      ways = {
          {"hash map",
           [&](const Keys& keys) {
             int64_t lacking = 0;
             Require(table->Fetch(keys, Positions::All(ids), out,
                                  missing.data(), &lacking, &serial));
             if (lacking != 0) std::exit(1);
           }},
          {"array, huge pages, 24 ahead",
           [&](const Keys& keys) { huge.Copy(keys, 24, out); }},
          {"array, huge pages",
           [&](const Keys& keys) { huge.Copy(keys, 0, out); }},
          {"array, 4 KiB pages",
           [&](const Keys& keys) { small.Copy(keys, 0, out); }},
      };
  std::printf("%ld x %d, %ld ids, one thread: median us\n",
              static_cast<long>(rows), width, static_cast<long>(ids));
  for (const std::string stream : {"repeated", "zipf1.05", "uniform"}) {
    const auto batches = Batches(stream, rows, ids);
    std::vector<std::vector<double>> took(ways.size());
    for (int turn = 0; turn < kTurns; ++turn) {
      for (size_t way = 0; way < ways.size(); ++way) {
        const Keys& keys = batches[(turn * ways.size() + way) % batches.size()];
        const double begin = NowUs();
        ways[way].second(keys);
        took[way].push_back(NowUs() - begin);
        for (int64_t i = 0; i < ids; ++i) {
          if (out[i * width] != static_cast<float>(keys[i])) std::exit(1);
        }
      }
    }
    for (size_t way = 0; way < ways.size(); ++way) {
      std::sort(took[way].begin(), took[way].end());
      std::printf("%-9s %-28s %8.1f\n", stream.c_str(), ways[way].first.c_str(),
                  took[way][kTurns / 2]);
    }
  }
  ev::FreeLines(out, bytes);
}

}  // namespace
}  // namespace hps

int main(int argc, char** argv) {
  hps::Run(argc > 1 ? std::atol(argv[1]) : 4000000,
           argc > 2 ? std::atoi(argv[2]) : 128,
           argc > 3 ? std::atol(argv[3]) : 4096);
  return 0;
}
