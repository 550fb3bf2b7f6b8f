// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Carrier::AllReduce in terms of AllToAll: every rank sends its numbers to all
// ranks and sums the received ones in rank order.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_TESTING_SUM_OVER_RANKS_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_TESTING_SUM_OVER_RANKS_H_

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "addons/sparse_operation_kit/exchange/carrier/carrier.h"
#include "kernels/engine/base/float_math.h"
#include "kernels/engine/base/status.h"

namespace sok {

template <typename Number, typename Load, typename Store>
void SumInRankOrder(const std::string& all, int num_ranks, int64_t count,
                    double scale, const Load& load, const Store& store,
                    char* to) {
  for (int64_t i = 0; i < count; ++i) {
    Number sum = load(all.data(), i);
    for (int r = 1; r < num_ranks; ++r) {
      sum = sum + load(all.data(), r * count + i);
    }
    store(to, i, static_cast<Number>(sum * static_cast<Number>(scale)));
  }
}

template <typename Number>
void SumNumbers(const std::string& all, int num_ranks, int64_t count,
                double scale, char* to) {
  const auto load = [](const char* from, int64_t i) {
    Number number;
    std::memcpy(&number, from + i * sizeof(Number), sizeof(Number));
    return number;
  };
  const auto store = [](char* out, int64_t i, Number number) {
    std::memcpy(out + i * sizeof(Number), &number, sizeof(Number));
  };
  SumInRankOrder<Number>(all, num_ranks, count, scale, load, store, to);
}

inline void SumHalves(const std::string& all, int num_ranks, int64_t count,
                      double scale, char* to) {
  const auto load = [](const char* from, int64_t i) {
    uint16_t half;
    std::memcpy(&half, from + 2 * i, 2);
    return ev::FromFloat16(half);
  };
  const auto store = [](char* out, int64_t i, float number) {
    const uint16_t half = ev::ToFloat16(number);
    std::memcpy(out + 2 * i, &half, 2);
  };
  SumInRankOrder<float>(all, num_ranks, count, scale, load, store, to);
}

// Pieces must be in host memory.
inline ev::Status SumOverRanks(Carrier* carrier, const Reduction& reduction) {
  const int n = carrier->num_ranks();
  for (const ReducedPiece& piece : reduction.pieces) {
    const int64_t bytes = piece.count * ReducedBytes(reduction.type);
    std::string sent, all(n * bytes, ' ');
    for (int r = 0; r < n; ++r) sent.append(piece.from, bytes);
    const std::vector<int64_t> sizes(n, bytes);
    EV_RETURN_IF_ERROR(carrier->AllToAll(sent.data(), sizes, &all[0], sizes));
    switch (reduction.type) {
      case ReducedType::kFloat16:
        SumHalves(all, n, piece.count, reduction.scale, piece.to);
        break;
      case ReducedType::kFloat32:
        SumNumbers<float>(all, n, piece.count, reduction.scale, piece.to);
        break;
      case ReducedType::kFloat64:
        SumNumbers<double>(all, n, piece.count, reduction.scale, piece.to);
        break;
    }
  }
  return ev::Status::OK();
}

// Forwards to another carrier; subclasses change single calls.
class CarrierOver : public Carrier {
 public:
  explicit CarrierOver(std::unique_ptr<Carrier> carrier)
      : carrier_(std::move(carrier)) {}
  int rank() const override { return carrier_->rank(); }
  int num_ranks() const override { return carrier_->num_ranks(); }
  ev::Status AllToAll(const char* send, ev::Span<const int64_t> send_bytes,
                      char* out,
                      ev::Span<const int64_t> received_bytes) override {
    return carrier_->AllToAll(send, send_bytes, out, received_bytes);
  }
  void Abort() override { carrier_->Abort(); }

 protected:
  const std::unique_ptr<Carrier> carrier_;
};

// A carrier with AllReduce over one without.
class SummingCarrier : public CarrierOver {
 public:
  using CarrierOver::CarrierOver;
  ev::Status AllReduce(const Reduction& reduction,
                       std::shared_ptr<StreamEvent>*) override {
    return SumOverRanks(carrier_.get(), reduction);
  }
};

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_TESTING_SUM_OVER_RANKS_H_
