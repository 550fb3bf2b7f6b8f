// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Measures one exchange between the ranks of a host.
//
//   bazel run -c opt //benchmarks/engine:carrier_benchmark -- --kind=memory
//   ... --kind=nccl --ranks=2
//   ... --max_bytes=67108864: the largest message size to send

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "addons/sparse_operation_kit/exchange/carrier/carrier.h"
#include "addons/sparse_operation_kit/exchange/testing/rank_processes.h"
#include "benchmarks/engine/bench_util.h"

namespace {

double Ms(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

bool Measure(sok::Carrier* carrier, int64_t bytes_per_pair) {
  const int n = carrier->num_ranks();
  const std::vector<int64_t> sizes(n, bytes_per_pair);
  std::vector<char> send(n * bytes_per_pair, 'x'), out(n * bytes_per_pair);
  std::vector<double> ms;
  for (int i = 0; i < 25; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const ev::Status status =
        carrier->AllToAll(send.data(), sizes, out.data(), sizes);
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", status.message().c_str());
      return false;
    }
    if (i >= 5) ms.push_back(Ms(std::chrono::steady_clock::now() - begin));
  }
  if (out.back() != 'x') return false;
  std::sort(ms.begin(), ms.end());
  const double median = ms[ms.size() / 2];
  if (carrier->rank() == 0) {
    std::printf(
        "%12lld bytes to each rank  %9.3f ms  %7.2f GB/s out of a rank\n",
        static_cast<long long>(bytes_per_pair), median,
        (n - 1) * bytes_per_pair / median * 1e-6);
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::string kind = "memory";
  int ranks = 2;
  int64_t max_bytes = 64 << 20;
  if (!ev::bench::Flags()
           .Add("kind", &kind)
           .Add("ranks", &ranks)
           .Add("max_bytes", &max_bytes)
           .Parse(argc, argv)) {
    return 1;
  }
  std::printf("%s, %d ranks\n", kind.c_str(), ranks);
  std::fflush(stdout);
  const bool all = sok::OnRankProcesses(
      kind, ranks, [max_bytes](std::unique_ptr<sok::Carrier> carrier) {
        for (const int64_t bytes : {8, 64 << 10, 1 << 20, 16 << 20, 64 << 20}) {
          if (bytes <= max_bytes && !Measure(carrier.get(), bytes))
            return false;
        }
        return true;
      });
  return all ? 0 : 1;
}
