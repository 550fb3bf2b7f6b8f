// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The loops vectorise because they are compiled without errno from sqrtf and
// without trapping arithmetic (see BUILD); neither changes a result. For common
// dims the trip count is a constant, so the loop over a row is unrolled.

#include "kernels/engine/optimizer/row_rule.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "kernels/engine/optimizer/narrow_row.h"
#include "kernels/engine/optimizer/row_squares.h"
#include "kernels/engine/optimizer/rule_list.h"

namespace ev {
namespace {

constexpr int64_t kFloatsPerLine = 16;

// Cache lines that are prefetched ahead of their use. A core keeps about this
// many misses in flight; more would evict earlier lines from the L1 cache.
constexpr int64_t kLinesAhead = 24;

// Always inlined: GCC drops calls of a function that only prefetches, since it
// has no result.
inline __attribute__((always_inline)) void PrefetchFloats(const float* begin,
                                                          int64_t count) {
  for (int64_t j = 0; j < count; j += kFloatsPerLine) {
    __builtin_prefetch(begin + j, 1, 3);
  }
  // A range that starts within a cache line ends in one more line.
  __builtin_prefetch(begin + count - 1, 1, 3);
}

// Applies a rule to one row, whose value is at 'value' as float32. kDim: the
// dim if it is a compile-time constant, else 0.
template <int kDim, typename Rule, size_t... kSlot>
inline void ApplyToRow(const Rule& rule, const float* grad, float* value,
                       float* row, const int64_t* offsets, int64_t dim,
                       std::index_sequence<kSlot...>) {
  const int64_t n = kDim != 0 ? kDim : dim;
  (void)row;
  (void)offsets;
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) {
    rule(grad[j], value + j, (row + offsets[kSlot] + j)...);
  }
}

// AdagradDecay: a row without an element whose decay is due, as nearly every
// row is, takes a loop without branches.
template <int kDim, size_t... kSlot>
inline void ApplyToRow(const AdagradDecayRule& rule, const float* grad,
                       float* value, float* row, const int64_t* offsets,
                       int64_t dim, std::index_sequence<kSlot...>) {
  const int64_t n = kDim != 0 ? kDim : dim;
  float* const accumulator = row + offsets[0];
  float* const power = row + offsets[1];
  int due = 0;
  for (int64_t j = 0; j < n; ++j) due |= rule.DecayIsDue(power[j]) ? 1 : 0;
  if (due != 0) {
    for (int64_t j = 0; j < n; ++j) {
      rule(grad[j], value + j, accumulator + j, power + j);
    }
    return;
  }
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) {
    rule.Update(grad[j], value + j, accumulator + j);
  }
}

// F4 of base/row_math.h, which may be at any address of a float, without that.
typedef float AlignedF4 __attribute__((vector_size(16)));

// Returns the squares of four quads (row_squares.h).
inline F4 SquaresOfQuads(const F4* g) {
#if defined(__SSE3__)
  // Sums of neighbours, twice: element q is (0 + 1) + (2 + 3) of quad q.
  return __builtin_ia32_haddps(__builtin_ia32_haddps(g[0] * g[0], g[1] * g[1]),
                               __builtin_ia32_haddps(g[2] * g[2], g[3] * g[3]));
#else
  F4 sums;
  for (int q = 0; q < 4; ++q) {
    sums[q] = SquaresOfQuad(g[q][0], g[q][1], g[q][2], g[q][3]);
  }
  return sums;
#endif
}

// Returns sums 4k to 4k + 3 of row_squares.h for grad[0, n) times 'factor'.
inline F4 SquareSums(const float* grad, int64_t n, float factor, int64_t k) {
  constexpr int64_t kGroups = kSquareSums / 4;
  const auto quad = [&](int64_t q) {
    return *reinterpret_cast<const F4*>(grad + 4 * q) * factor;
  };
  F4 sums = {};
  const int64_t blocks = n / 16;  // of four quads
  for (int64_t b = k; b < blocks; b += kGroups) {
    const F4 g[4] = {quad(4 * b), quad(4 * b + 1), quad(4 * b + 2),
                     quad(4 * b + 3)};
    sums += SquaresOfQuads(g);
  }
  if (n % 16 != 0 && blocks % kGroups == k) {
    const int64_t whole = n / 4, rest = n % 4;
    const float* const end = grad + 4 * whole;
    const F4 last = {rest > 0 ? end[0] * factor : 0.0f,
                     rest > 1 ? end[1] * factor : 0.0f,
                     rest > 2 ? end[2] * factor : 0.0f, 0.0f};
    F4 g[4];
    for (int64_t i = 0; i < 4; ++i) {
      const int64_t q = 4 * blocks + i;
      g[i] = q < whole ? quad(q) : q == whole ? last : F4{};
    }
    sums += SquaresOfQuads(g);
  }
  return sums;
}

// Returns the sum of squares of grad[0, n) times 'factor' in the order of
// row_squares.h.
inline float SumOfRowSquares(const float* grad, int64_t n, float factor) {
  const auto at = [&](int64_t k) { return SquareSums(grad, n, factor, k); };
  F4 sum;
  if (n <= 16) {  // the other sums are zeros
    sum = at(0);
  } else if (n <= 32) {
    sum = at(0) + at(1);
  } else if (n <= 64) {
    sum = (at(0) + at(2)) + (at(1) + at(3));
  } else {
    sum = ((at(0) + at(4)) + (at(2) + at(6))) +
          ((at(1) + at(5)) + (at(3) + at(7)));
  }
  return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

// Adds the squares of a row's gradient to its accumulator; returns its rate.
template <typename Rule>
inline float Accumulate(const Rule& rule, const float* grad, float factor,
                        int64_t n, float* accumulator) {
  *accumulator =
      rule.Accumulate(*accumulator, SumOfRowSquares(grad, n, factor), n);
  return rule.Rate(*accumulator);
}

// Updates the elements of a value by a per-row rule.
template <typename Rule>
inline void ApplyRate(const Rule& rule, float rate, const float* grad,
                      float factor, int64_t n, float* value) {
  for (int64_t q = 0; q < n / 4; ++q) {
    F4* const at = reinterpret_cast<F4*>(value + 4 * q);
    // A template's parameter loses the attribute that allows any address.
    AlignedF4 four = *at;
    rule(AlignedF4(*reinterpret_cast<const F4*>(grad + 4 * q) * factor), rate,
         &four);
    *at = four;
  }
  for (int64_t j = n / 4 * 4; j < n; ++j) {
    rule(grad[j] * factor, rate, value + j);
  }
}

// Gives a rule the values of some rows at a time as float32: where they are, or
// copies that Store rounds.
class ValuesInPlace {
 public:
  static constexpr int64_t kBytes = sizeof(float);
  // Square roots and divisions of a per-row rule overlap.
  static constexpr int64_t kRowsAtOnce = 4;
  ValuesInPlace(const RowBlock& block, int64_t) : block_(block) {}
  void Begin(int64_t, int64_t) {}
  float* Of(int64_t i) { return block_.rows[i]; }
  void Store(int64_t) {}

 private:
  const RowBlock& block_;
};
template <typename Rounding>
class NarrowValues {
 public:
  using Number = typename Rounding::Number;
  static constexpr int64_t kBytes = sizeof(Number);
  // Rounding is so much work that the processor would not reach the next row's
  // loads. This many rows are read before, which overlaps their cache misses.
  static constexpr int64_t kRowsAtOnce = 16;
  NarrowValues(const RowBlock& block, int64_t dim)
      : block_(block), dim_(dim), copies_(kRowsAtOnce * dim) {}
  // Copies rows [begin, end).
  void Begin(int64_t begin, int64_t end) {
    begin_ = begin;
    for (int64_t i = begin; i < end; ++i) WidenRow(Stored(i), dim_, Of(i));
  }
  float* Of(int64_t i) { return copies_.data() + (i - begin_) * dim_; }
  void Store(int64_t i) {
    const bool overflows = RoundRow<Rounding>(
        Of(i), dim_, block_.salts == nullptr ? nullptr : block_.salts + i,
        Stored(i));
    if (overflows && block_.overflows != nullptr) ++*block_.overflows;
  }

 private:
  Number* Stored(int64_t i) const {
    return reinterpret_cast<Number*>(block_.rows[i]);
  }

  const RowBlock& block_;
  const int64_t dim_;
  int64_t begin_ = 0;
  std::vector<float> copies_;
};

// Multiplies the gradients by factor, which is 1 unless the rule is a per-row
// rule.
template <typename Values, int kDim, typename Rule>
void ApplyToRows(const Rule& rule_in, const RowBlock& block, float factor) {
  // Local copies, so that the compiler can rule out that a store to a row
  // changes them.
  const Rule rule = rule_in;
  const int64_t dim = kDim != 0 ? kDim : block.dim;
  Values values(block, dim);
  int64_t offsets[Rule::kNumSlots + 1] = {};
  for (int k = 0; k < Rule::kNumSlots; ++k) {
    offsets[k] = block.slot_offsets[k];
  }
  constexpr bool kPerRow = IsPerRow<Rule>::value;
  constexpr int64_t kRows = Values::kRowsAtOnce;
  const int64_t value_floats = (dim * Values::kBytes + 3) / 4;
  const auto lines_of = [](int64_t floats) {
    return (floats + kFloatsPerLine - 1) / kFloatsPerLine;
  };
  const int64_t lines =
      lines_of(value_floats) + (kPerRow ? 1 : lines_of(dim) * Rule::kNumSlots);
  const int64_t ahead = std::max<int64_t>(2, kLinesAhead / lines);
  const auto prefetch = [&](float* row) __attribute__((always_inline)) {
    PrefetchFloats(row, value_floats);
    for (int k = 0; k < Rule::kNumSlots; ++k) {
      PrefetchFloats(row + offsets[k], kPerRow ? 1 : dim);
    }
  };
  const int64_t n = block.num_rows;
  for (int64_t i = 0; i < std::min(ahead, n); ++i) prefetch(block.rows[i]);
  for (int64_t i = 0; i < n; i += kRows) {
    const int64_t end = std::min(i + kRows, n);
    values.Begin(i, end);
    float rates[kRows];
    for (int64_t k = i; kPerRow && k < end; ++k) {
      if (k + ahead < n) prefetch(block.rows[k + ahead]);
      if constexpr (kPerRow) {
        rates[k - i] = Accumulate(rule, block.grads + k * dim, factor, dim,
                                  block.rows[k] + offsets[0]);
      }
    }
    for (int64_t k = i; k < end; ++k) {
      if constexpr (kPerRow) {
        ApplyRate(rule, rates[k - i], block.grads + k * dim, factor, dim,
                  values.Of(k));
      } else {
        if (k + ahead < n) prefetch(block.rows[k + ahead]);
        ApplyToRow<kDim>(rule, block.grads + k * dim, values.Of(k),
                         block.rows[k], offsets, dim,
                         std::make_index_sequence<Rule::kNumSlots>());
      }
      values.Store(k);
    }
  }
}

template <typename Rule>
class TypedRowRule : public RowRule {
 public:
  static_assert(Rule::kNumSlots <= kMaxRuleSlots, "");
  TypedRowRule(const Rule& rule, Span<const float> hyper)
      : RowRule(hyper), rule_(rule), factor_(GradFactor<Rule>(hyper)) {}
  const char* name() const override { return Rule::kName; }
  int num_slots() const override { return Rule::kNumSlots; }
  bool is_per_row() const override { return IsPerRow<Rule>::value; }
  void Apply(const RowBlock& block) const override {
    if (is_per_row()) return ApplyTo(block, factor_);
    if (factor_ == 1.0f) return ApplyTo(block, 1.0f);
    // Parts of rows, so that the products need no memory.
    float grads[256];
    const bool is_narrow = block.value_type != FloatType::kFloat32;
    std::vector<float> whole(is_narrow ? block.dim : 0);
    float* const products = is_narrow ? whole.data() : grads;
    RowBlock part = block;
    part.grads = products;
    part.num_rows = 1;
    for (int64_t i = 0; i < block.num_rows; ++i) {
      if (block.salts != nullptr) part.salts = block.salts + i;
      for (int64_t c = 0; c < block.dim; c += part.dim) {
        float* const row = block.rows[i] + c;
        part.rows = &row;
        part.dim =
            is_narrow ? block.dim : std::min<int64_t>(block.dim - c, 256);
        const float* const from = block.grads + i * block.dim + c;
        for (int64_t j = 0; j < part.dim; ++j) products[j] = from[j] * factor_;
        ApplyTo(part, 1.0f);
      }
    }
  }

 private:
  void ApplyTo(const RowBlock& block, float factor) const {
    switch (block.value_type) {
      case FloatType::kFloat32:
        return ApplyWith<ValuesInPlace>(block, factor);
      case FloatType::kFloat16:
        return ApplyWith<NarrowValues<RoundingToFloat16>>(block, factor);
      case FloatType::kBFloat16:
        return ApplyWith<NarrowValues<RoundingToBFloat16>>(block, factor);
    }
  }
  template <typename Values>
  void ApplyWith(const RowBlock& block, float factor) const {
    switch (block.dim) {
      case 8:
        return ApplyToRows<Values, 8>(rule_, block, factor);
      case 16:
        return ApplyToRows<Values, 16>(rule_, block, factor);
      case 32:
        return ApplyToRows<Values, 32>(rule_, block, factor);
      case 64:
        return ApplyToRows<Values, 64>(rule_, block, factor);
      case 128:
        return ApplyToRows<Values, 128>(rule_, block, factor);
      default:
        return ApplyToRows<Values, 0>(rule_, block, factor);
    }
  }

  const Rule rule_;
  const float factor_;
};

struct MakeTyped {
  Span<const float> hyper;
  std::unique_ptr<const RowRule>* out;
  template <typename Rule>
  void operator()(const Rule& rule) const {
    out->reset(new TypedRowRule<Rule>(rule, hyper));
  }
};

}  // namespace

Status MakeRowRule(const std::string& name, Span<const float> hyper,
                   std::unique_ptr<const RowRule>* rule) {
  return VisitRule(name, hyper, MakeTyped{hyper, rule});
}

}  // namespace ev
