// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/ssd/ssd_rows.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdlib>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "kernels/engine/base/row_shape.h"
#include "kernels/engine/base/typed_columns.h"
#include "kernels/engine/combine/pooling.h"
#include "kernels/engine/optimizer/row_rule.h"
#include "kernels/engine/policy/eviction.h"
#include "kernels/engine/storage/ssd/tiered_rows.h"

namespace ev {
namespace {

// Rows held at a time. Their addresses, and most of their lines, are still in
// the cache when they are used. All of them that are in the file are read at
// once.
constexpr size_t kRowsAtOnce = 512;

std::string Lower(const char* text) {
  std::string lower = text == nullptr ? "" : text;
  for (char& c : lower) c = static_cast<char>(std::tolower(c));
  return lower;
}

bool CompactsInThread() {
  const std::string value = Lower(std::getenv("TF_SSDHASH_ASYNC_COMPACTION"));
  return value != "0" && value != "false" && value != "no" && value != "off";
}

// Returns this process's subdirectory of the directory given to all ranks.
std::string OfRank(const std::string& path) {
  for (const char* name : {"HOROVOD_RANK", "OMPI_COMM_WORLD_RANK"}) {
    const char* value = std::getenv(name);
    if (value != nullptr) {
      return path + "/rank_" + std::to_string(std::atoi(value));
    }
  }
  return path;
}

Status Open(const RowHomeOptions& options, std::unique_ptr<TieredRows>* rows) {
  constexpr size_t kMaxDefaultRows = size_t{1} << 30;
  if (options.default_rows.size() / options.dim >= kMaxDefaultRows) {
    return InvalidArgument(
        "rows on an SSD need fewer than 2^30 default rows, got " +
        std::to_string(options.default_rows.size() / options.dim));
  }
  TieredRowsOptions tiers;
  EV_RETURN_IF_ERROR(
      RowDirectory::Open(OfRank(options.path), options.name, &tiers.directory));
  tiers.dim = options.dim;
  tiers.value_type = options.value_type;
  tiers.default_rows = options.default_rows;
  tiers.memory_bytes = options.memory_bytes;
  tiers.strategy = options.tier_strategy;
  tiers.direct = Lower(std::getenv("TF_SSDHASH_IO_SCHEME")) == "directio";
  tiers.compacts_in_thread = CompactsInThread();
  return TieredRows::Create(tiers, rows);
}

TierStats StatsOf(const TieredRows& rows) {
  const TieredRowsStats from = rows.stats();
  TierStats stats;
  stats.memory_rows = from.memory_rows;
  stats.stored_rows = from.file_rows;
  stats.stored_bytes = from.file_bytes;
  stats.hits = from.hits;
  stats.misses = from.misses;
  stats.written_bytes = from.written_bytes;
  return stats;
}

RowHomeCosts MakeCosts() {
  RowHomeCosts costs = RowHomeCosts::OfDistantMemory();
  // Large enough that the disk serves many reads at once.
  costs.rows_per_hold = 4096;
  return costs;
}

// Rows that a lookup holds until it has pooled them.
class HeldRows : public RowHold {
 public:
  Status Hold(TieredRows* from, Span<const RowHandle> handles,
              const float** rows, bool* all) {
    return from->Keep(handles, rows, all, &holding_);
  }

 private:
  TieredRows::Holding holding_;
};

class SsdRows : public RowHome, public RowTiers {
 public:
  // shape: without slots.
  SsdRows(const RowShape& shape, std::unique_ptr<TieredRows> rows)
      : shape_(shape), rows_(std::move(rows)) {}

  Status NewRow(RowHandle handle, int64_t default_row) override {
    return rows_->NewRow(handle, default_row);
  }

  Status Read(Span<const RowHandle> handles, int column, float* out) override {
    const int64_t offset = shape_.offset(column), width = shape_.width(column);
    return WithRows(handles, Use::kReads, [&](size_t begin, Stretch* stretch) {
      float* const to = out + begin * width;
      for (size_t i = 0; i < stretch->size; ++i) {
        // Without a row the output is copied onto itself.
        stretch->from[i] = stretch->rows[i] == nullptr
                               ? to + i * width
                               : stretch->rows[i] + offset;
      }
      CopyRows(stretch->from, 0, stretch->size, width, to, shape_.type(column));
    });
  }

  Status Hold(Span<const RowHandle> handles, const float** rows,
              std::unique_ptr<RowHold>* hold, bool* held) override {
    try {
      std::unique_ptr<HeldRows> made(new HeldRows);
      EV_RETURN_IF_ERROR(made->Hold(rows_.get(), handles, rows, held));
      if (*held) *hold = std::move(made);
      return Status::OK();
    } catch (const std::bad_alloc&) {
      return ResourceExhausted("out of memory");
    }
  }

  Status SquaredNorms(Span<const RowHandle> handles, double* out) override {
    try {
      const int64_t dim = shape_.dim(), stored = shape_.offset(1);
      std::vector<float> values(kRowsAtOnce * stored), value(dim);
      for (size_t begin = 0; begin < handles.size(); begin += kRowsAtOnce) {
        const size_t n = std::min(kRowsAtOnce, handles.size() - begin);
        EV_RETURN_IF_ERROR(
            rows_->Copy(handles.subspan(begin, n), 0, stored, values.data()));
        for (size_t i = 0; i < n; ++i) {
          const float* const row = values.data() + i * stored;
          ReadNumbers(ColumnOf(shape_, row, 0), dim, value.data());
          out[begin + i] = SumOfSquares(value.data(), dim);
        }
      }
      return Status::OK();
    } catch (const std::bad_alloc&) {
      return ResourceExhausted("out of memory");
    }
  }

  // Rows are read whole in any case.
  Status ReadColumnsOnce(Span<const RowHandle> handles, Span<const int> columns,
                         Span<float* const> out) override {
    try {
      const int last = *std::max_element(columns.begin(), columns.end());
      const int64_t floats = shape_.offset(last + 1);
      std::vector<float> rows(std::min(kRowsAtOnce, handles.size()) * floats);
      for (size_t begin = 0; begin < handles.size(); begin += kRowsAtOnce) {
        const size_t n = std::min(kRowsAtOnce, handles.size() - begin);
        EV_RETURN_IF_ERROR(
            rows_->Copy(handles.subspan(begin, n), 0, floats, rows.data()));
        for (size_t c = 0; c < columns.size(); ++c) {
          const int64_t width = shape_.width(columns[c]);
          for (size_t i = 0; i < n; ++i) {
            const float* const row = rows.data() + i * floats;
            ReadNumbers(ColumnOf(shape_, row, columns[c]), width,
                        out[c] + (begin + i) * width);
          }
        }
      }
      return Status::OK();
    } catch (const std::bad_alloc&) {
      return ResourceExhausted("out of memory");
    }
  }

  Status Prefetch(Span<const RowHandle> handles) override {
    return WithRows(handles, Use::kReads, [](size_t, Stretch*) {});
  }

  Status Write(Span<const RowHandle> handles, int column,
               const float* in) override {
    const int64_t width = shape_.width(column);
    return WithRows(handles, Use::kWrites, [&](size_t begin, Stretch* stretch) {
      for (size_t i = 0; i < stretch->size; ++i) {
        if (stretch->rows[i] == nullptr) continue;
        WriteNumbers(in + (begin + i) * width, width,
                     ColumnOf(shape_, stretch->rows[i], column));
      }
    });
  }

  Status Apply(const RowRule& rule, Span<const RowHandle> handles,
               Span<const int> slot_columns, const float* grads,
               const uint64_t* salts) override {
    int64_t offsets[kMaxRuleSlots];
    for (size_t k = 0; k < slot_columns.size(); ++k) {
      offsets[k] = shape_.offset(1 + slot_columns[k]);
    }
    RowBlock block;
    block.dim = shape_.dim();
    block.slot_offsets = offsets;
    block.value_type = shape_.value_type();
    int64_t overflows = 0;
    block.overflows = &overflows;
    const Status status =
        WithRows(handles, Use::kWrites, [&](size_t begin, Stretch* stretch) {
          // Gradients are adjacent. A run ends at a handle without a row.
          for (size_t i = 0; i < stretch->size;) {
            size_t end = i;
            while (end < stretch->size && stretch->rows[end] != nullptr) ++end;
            block.rows = stretch->rows + i;
            block.grads = grads + (begin + i) * block.dim;
            if (salts != nullptr) block.salts = salts + begin + i;
            block.num_rows = static_cast<int64_t>(end - i);
            if (end > i) rule.Apply(block);
            i = end + 1;
          }
        });
    overflows_.fetch_add(overflows, std::memory_order_relaxed);
    return status;
  }
  int64_t overflows() const override {
    return overflows_.load(std::memory_order_relaxed);
  }

  Status Reserve(int64_t rows) override {
    try {
      return rows_->Reserve(rows);
    } catch (const std::bad_alloc&) {
      return ResourceExhausted("out of memory");
    }
  }
  void Unreserve(int64_t rows) override { rows_->Unreserve(rows); }

  Status Relayout(Span<const SlotShape> slots) override {
    RowShape after = shape_.With(slots);
    EV_RETURN_IF_ERROR(rows_->SetSlots(slots));
    shape_ = std::move(after);
    return Status::OK();
  }
  void Forget(Span<const RowHandle> handles) override {
    rows_->Forget(handles);
  }
  void Clear() override { rows_->Clear(); }

  int64_t bytes() const override { return rows_->memory_bytes(); }

  const RowHomeCosts& costs() const override {
    static const RowHomeCosts costs = MakeCosts();
    return costs;
  }

  RowTiers* tiers() override { return this; }
  int TierOf(RowHandle handle) const override {
    return rows_->IsStored(handle) ? 1 : 0;
  }
  TierStats tier_stats() const override { return StatsOf(*rows_); }

 private:
  enum class Use { kReads, kWrites };
  struct Stretch {
    size_t size = 0;
    float* rows[kRowsAtOnce];
    const float* from[kRowsAtOnce];
    TieredRows::CacheSlot cache_slots[kRowsAtOnce];
  };

  // Calls body(begin, stretch) with the rows of handles [begin, begin +
  // stretch->size) held; null for a handle without a row.
  template <typename Body>
  Status WithRows(Span<const RowHandle> handles, Use use, const Body& body) {
    try {
      Stretch stretch;
      TieredRows::Holding holding;
      for (size_t begin = 0; begin < handles.size();) {
        const size_t most = std::min(kRowsAtOnce, handles.size() - begin);
        EV_RETURN_IF_ERROR(rows_->Hold(
            handles.subspan(begin, most), use == Use::kWrites, stretch.rows,
            stretch.cache_slots, &stretch.size, &holding));
        if (use == Use::kWrites) {
          rows_->Wrote(Span<const TieredRows::CacheSlot>(stretch.cache_slots,
                                                         stretch.size));
        }
        body(begin, &stretch);
        holding.Release();
        begin += stretch.size;
      }
    } catch (const std::bad_alloc&) {
      return ResourceExhausted("out of memory");
    }
    rows_->Compact();
    return Status::OK();
  }

  RowShape shape_;  // changed only by calls that run alone
  const std::unique_ptr<TieredRows> rows_;
  std::atomic<int64_t> overflows_{0};
};

}  // namespace

Status MakeSsdRows(const RowHomeOptions& options,
                   std::unique_ptr<RowHome>* rows) {
  std::unique_ptr<TieredRows> made;
  EV_RETURN_IF_ERROR(Open(options, &made));
  rows->reset(new SsdRows(RowShape(options.dim, {}, 1, options.value_type),
                          std::move(made)));
  return Status::OK();
}

}  // namespace ev
