// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/testing/host_device_step.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>

#include "kernels/engine/combine/combiner.h"
#include "kernels/engine/ids/occurrences.h"
#include "kernels/engine/ids/sample_offsets.h"
#include "kernels/engine/optimizer/row_rule.h"
#include "kernels/engine/testing/host_device_memory.h"
#include "kernels/engine/testing/host_device_rows.h"

namespace ev {
namespace testing {
namespace {

std::atomic<int64_t> num_steps{0};
std::atomic<int64_t> num_updates{0};
std::atomic<bool> next_fetch_fails{false};
std::atomic<int64_t> num_fetches{0};

struct Table {
  GpuStepTable given;
  HostStepRows* rows = nullptr;  // valid as long as given.table
  std::shared_ptr<HostKnownKeys> keys;
  std::shared_ptr<HostCounters> counters;
  int64_t dim = 0;
  std::vector<int64_t> ids;
  std::vector<std::atomic<bool>> was_put;
  std::vector<int32_t> offsets;
  bool is_started = false;
  std::vector<int64_t> unknown;    // distinct, in order of first occurrence
  std::vector<int32_t> counts;     // occurrences of each unknown key
  std::vector<int32_t> of_ids;     // occurrences of each id; empty: 1 each
  std::vector<RowHandle> handles;  // of each id
  std::unordered_map<int64_t, size_t> unknown_of;
  std::vector<char> output;  // of a step without a stream
  int64_t num_unknown_ids = 0;
  std::atomic<bool> is_settled{false};

  bool ids_on_device() const { return given.on_device; }
};

// Adds the number of occurrences that id i stands for.
void Count(const Table& table, size_t i, int32_t* count) {
  AddOccurrences(table.of_ids.empty() ? 1 : table.of_ids[i], count);
}

class Step : public GpuStep, public std::enable_shared_from_this<Step> {
 public:
  Step(Span<const GpuStepTable> tables, const DeviceStream* stream,
       std::vector<HostStepTable> rows) {
    if (stream != nullptr) stream_.reset(new DeviceStream(*stream));
    for (size_t t = 0; t < tables.size(); ++t) {
      Check(tables[t].num_ids > 0 && tables[t].num_samples > 0,
            "a table of a step has no ids", t);
      Check(tables[t].num_defaults > 0, "a table has no default rows", t);
      Check(stream != nullptr ||
                (!tables[t].on_device && tables[t].pieces.empty()),
            "ids or pieces are in GPU memory, without a stream", t);
      for (size_t u = 0; u < t; ++u) {
        Check(tables[u].table != tables[t].table || tables[t].are_handles,
              "a table comes twice", t);
      }
      Check(!tables[t].are_handles ||
                (tables[t].is_narrow && !tables[t].on_device),
            "handles are not int32 in host memory", t);
      std::unique_ptr<Table> table(new Table);
      table->given = tables[t];
      table->rows = rows[t].rows;
      table->keys = rows[t].keys;
      table->dim = rows[t].dim;
      table->counters = rows[t].counters;
      table->ids.resize(tables[t].num_ids);
      table->was_put = std::vector<std::atomic<bool>>(tables[t].num_ids);
      tables_.push_back(std::move(table));
    }
    ++num_steps;
  }

  bool needs_put(int t) const override { return !tables_[t]->ids_on_device(); }
  Status Put(int t, int64_t begin, Span<const int64_t> ids) override {
    return PutTyped(t, begin, ids);
  }
  Status Put(int t, int64_t begin, Span<const int32_t> ids) override {
    return PutTyped(t, begin, ids);
  }
  template <typename Id>
  Status PutTyped(int t, int64_t begin, Span<const Id> ids) {
    Table* const table = tables_[t].get();
    Check(!table->ids_on_device(), "ids are put that are there", t);
    Check(table->given.is_narrow == (sizeof(Id) == 4),
          "ids have another width than was said", t);
    for (size_t i = 0; i < ids.size(); ++i) {
      Check(!table->was_put[begin + i].exchange(true), "an id is put twice",
            begin + i);
      table->ids[begin + i] = ids[i];
    }
    return Status::OK();
  }
  Status Start(int t, Span<const int32_t> offsets) override {
    Table* const table = tables_[t].get();
    for (const auto& was_put : table->was_put) {
      Check(was_put || table->ids_on_device(), "an id never came", t);
    }
    table->offsets.resize(table->given.num_samples + 1);
    if (!offsets.empty()) {
      Check(offsets.size() == table->offsets.size() &&
                !table->ids_on_device() && table->given.samples_of < 0,
            "samples are not those of the table", t);
      std::copy(offsets.begin(), offsets.end(), table->offsets.begin());
    } else if (!table->ids_on_device() && table->given.samples_of < 0) {
      Check(table->given.num_ids == table->given.num_samples,
            "a sample is not one id, and the samples did not come", t);
      std::iota(table->offsets.begin(), table->offsets.end(), 0);
    }
    if (const int64_t* const of_ids = table->given.occurrences) {
      Check(table->given.num_ids == table->given.num_samples,
            "ids stand for several, and a sample is not one id", t);
      for (int64_t i = 0; i < table->given.num_ids; ++i) {
        table->of_ids.push_back(ToOccurrences(of_ids[i]));
      }
      table->given.occurrences = nullptr;
    }
    table->is_started = true;
    ++num_started_;
    return Status::OK();
  }
  // Finds the rows of a table's ids.
  void Find(Table* table) {
    if (table->given.samples_of >= 0) {
      table->offsets = tables_[table->given.samples_of]->offsets;
    }
    for (size_t i = 0; i < table->ids.size(); ++i) {
      const int64_t id = table->ids[i];
      if (table->given.are_handles) {
        table->handles.push_back(
            static_cast<RowHandle>(static_cast<int32_t>(id)));
        continue;
      }
      table->handles.push_back(table->keys->Find(id));
      if (table->handles.back() != kNoRow) continue;
      const auto first = table->unknown_of.emplace(id, table->unknown.size());
      if (first.second) {
        table->unknown.push_back(id);
        table->counts.push_back(0);
      }
      Count(*table, i, &table->counts[first.first->second]);
      ++table->num_unknown_ids;
      const int64_t n = table->given.num_defaults;
      table->handles.back() =
          AbsentAs(table->given.first_default + (id % n + n) % n);
    }
  }
  Status Settle(int t, GpuStepUnknown* unknown) override {
    Check(is_pooled_, "keys without a row are wanted before the pooling", t);
    Table* const table = tables_[t].get();
    table->is_settled = true;
    unknown->keys = table->unknown;
    unknown->counts = table->counts.data();
    unknown->num_ids_of_step = 0;
    for (const auto& one : tables_) {
      unknown->num_ids_of_step += one->num_unknown_ids;
    }
    return Status::OK();
  }
  Status BringIds(int t, GpuStepIds* to) override {
    Check(is_pooled_, "ids are wanted before the pooling", t);
    const Table& table = *tables_[t];
    ++num_fetches;
    if (next_fetch_fails.exchange(false)) {
      return Internal("the device gives nothing back");
    }
    std::copy(table.ids.begin(), table.ids.end(), to->ids);
    std::copy(table.offsets.begin(), table.offsets.end(), to->offsets);
    std::copy(table.handles.begin(), table.handles.end(), to->handles);
    to->occurrences = table.of_ids.empty() ? nullptr : table.of_ids.data();
    return Status::OK();
  }

  Status Pool() override {
    Check(num_started_ == static_cast<int>(tables_.size()),
          "pooling begins before all tables were started", num_started_);
    EV_RETURN_IF_ERROR(ReadAll());
    for (const auto& table : tables_) {
      Find(table.get());
      std::vector<int32_t> inverse(table->ids.size());
      std::iota(inverse.begin(), inverse.end(), 0);
      HostPooling pooling;
      pooling.rows = table->handles;
      pooling.inverse = inverse;
      pooling.offsets = table->offsets;
      pooling.combiner = table->given.combiner;
      pooling.stream = stream_.get();
      if (!table->given.pieces.empty()) {
        Check(table->given.out == nullptr, "a table with pieces has an output",
              0);
        PoolPieces(*table, pooling);
        continue;
      }
      MutableFloats out = table->given.out;
      if (stream_ == nullptr) {
        table->output.resize(table->given.num_samples * table->dim *
                             FloatBytes(out.type()));
        out = MutableFloats(table->output.data(), out.type());
        ++num_to_take_;
      }
      table->rows->Pool(pooling, out);
    }
    is_pooled_ = true;
    return Status::OK();
  }

  Status TakeOutput(int t) override {
    Check(is_pooled_ && stream_ == nullptr,
          "an output is taken that is not in host memory", t);
    const Table& table = *tables_[t];
    std::copy(table.output.begin(), table.output.end(), table.given.out.data());
    --num_to_take_;
    return Status::OK();
  }

  std::function<void()> TakeRest() override {
    Check(is_pooled_, "the rest is taken before the pooling", 0);
    Check(!is_rest_taken_, "the rest is taken twice", 0);
    is_rest_taken_ = true;
    const std::shared_ptr<Step> self = shared_from_this();
    return [self] {
      Check(!self->is_rest_done_.exchange(true), "the rest is done twice", 0);
    };
  }

  bool CanUpdate(const std::string& rule,
                 Span<const int> slot_columns) const override {
    for (size_t k = 0; k < slot_columns.size(); ++k) {
      if (slot_columns[k] != static_cast<int>(k)) return false;
    }
    // Rejects one rule, so that tests cover rules that a step does not support.
    return rule != "Adadelta";
  }

  Status Update(const std::string& rule, Span<const float> hyper,
                Span<const GpuStepUpdate> updates, const DeviceStream* stream,
                std::unique_ptr<GpuMetaUpdates>* meta_updates) override {
    Check(is_pooled_ && num_to_take_ == 0,
          "an update begins before outputs are taken", num_to_take_);
    ++num_updates;
    std::unique_ptr<MetaUpdates> listed(new MetaUpdates);
    for (const GpuStepUpdate& update : updates) {
      Table* const table = tables_[update.number].get();
      const bool has_handles = !update.handles.empty();
      Check(table->is_settled || has_handles,
            "an update does not ask for keys without a row", update.number);
      Check(
          has_handles || update.unknown_handles.size() == table->unknown.size(),
          "keys without a row get none", update.number);
      Check(!has_handles || update.handles.size() == table->handles.size() ||
                table->given.num_ids == 1,
            "handles are not those of the ids", update.number);
      Check((update.put_grads == nullptr) == (stream != nullptr),
            "gradients are not in the memory of the update", update.number);
      if (!update.unknown_handles.empty()) Set(table, update.unknown_handles);
      if (has_handles) {
        table->handles.assign(update.handles.begin(), update.handles.end());
      }
      // Occurrences by row, in order; rows in order of first occurrence.
      std::unordered_map<RowHandle, size_t> number;
      std::vector<RowHandle> handles;
      std::vector<std::vector<int32_t>> samples_of;
      std::vector<int32_t> counts;
      for (int64_t s = 0; s < table->given.num_samples; ++s) {
        for (int32_t i = table->offsets[s]; i < table->offsets[s + 1]; ++i) {
          const RowHandle handle = table->handles[i];
          if (number.emplace(handle, handles.size()).second) {
            handles.push_back(handle);
            samples_of.emplace_back();
            counts.push_back(0);
          }
          Count(*table, i, &counts[number[handle]]);
          samples_of[number[handle]].push_back(static_cast<int32_t>(s));
        }
      }
      Check((update.counters != nullptr) ==
                    (table->counters != nullptr && !has_handles) &&
                !(update.counters != nullptr && update.lists_rows),
            "an update's pending counters are not where the table's are",
            update.number);
      if (update.lists_rows) listed->Add(update.number, handles, counts);
      if (update.counters != nullptr) table->counters->Begin();
      for (size_t k = 0; update.counters != nullptr && k < handles.size();
           ++k) {
        if (handles[k] >= kFirstReservedHandle) continue;
        table->counters->Add(handles[k], *update.counters, counts[k]);
      }
      std::vector<int32_t> ends, samples;
      for (const auto& of : samples_of) {
        samples.insert(samples.end(), of.begin(), of.end());
        ends.push_back(static_cast<int32_t>(samples.size()));
      }
      std::vector<float> factors;
      if (Divides(table->given.combiner)) {
        for (int64_t s = 0; s < table->given.num_samples; ++s) {
          const int32_t n = table->offsets[s + 1] - table->offsets[s];
          factors.push_back(n == 0 ? 1.0f
                                   : 1.0f / DivisorOf(table->given.combiner,
                                                      static_cast<float>(n)));
        }
      }
      std::vector<int> columns(NumSlots(rule, hyper));
      std::iota(columns.begin(), columns.end(), 0);
      HostPooledUpdate to_do;
      to_do.rule = rule;
      to_do.hyper = hyper;
      to_do.rows = handles;
      to_do.slot_columns = columns;
      to_do.ends = ends;
      to_do.samples = samples;
      to_do.factors = factors;
      to_do.num_samples = table->given.num_samples;
      to_do.grads = update.grads;
      to_do.put_grads = update.put_grads;
      to_do.stream = stream;
      to_do.salt = update.salt;
      auto* const rows = dynamic_cast<HostStepRows*>(update.table);
      Check(rows != nullptr, "a table has no rows on a device", update.number);
      EV_RETURN_IF_ERROR(rows->Update(to_do));
      if (update.counters != nullptr) table->counters->End();
    }
    if (!listed->is_of_a_table) return Status::OK();
    listed->is_handed_out = true;
    *meta_updates = std::move(listed);
    return Status::OK();
  }

 private:
  // Aborts the process if Wait of meta_updates that were returned is not
  // called.
  struct MetaUpdates : GpuMetaUpdates {
    bool is_of_a_table = false, is_handed_out = false, is_asked = false;
    std::vector<int32_t> numbers;
    std::vector<RowHandle> rows;
    std::vector<uint32_t> counts;

    ~MetaUpdates() override {
      Check(is_asked || !is_handed_out, "a step is not asked for its rows", 0);
    }
    Status Wait(GpuStepRows* listed) override {
      is_asked = true;
      listed->numbers = numbers;
      listed->rows = rows;
      listed->counts = counts;
      return Status::OK();
    }
    void Add(int number, const std::vector<RowHandle>& handles,
             const std::vector<int32_t>& counts_of) {
      is_of_a_table = true;
      // Reversed, because a device may list rows in any order.
      for (size_t k = handles.size(); k > 0; --k) {
        if (handles[k - 1] >= kFirstReservedHandle) continue;
        numbers.push_back(number);
        rows.push_back(handles[k - 1]);
        counts.push_back(counts_of[k - 1]);
      }
    }
  };

  static int NumSlots(const std::string& rule, Span<const float> hyper);

  // Reads the ids and samples of all tables in GPU memory.
  Status ReadAll() {
    for (auto& table : tables_) {
      if (table->ids_on_device()) EV_RETURN_IF_ERROR(Read(table.get()));
    }
    return Status::OK();
  }

  // Pools a table whose outputs are in pieces.
  static void PoolPieces(const Table& table, const HostPooling& whole) {
    int64_t at = 0;
    for (const GpuStepPiece& piece : table.given.pieces) {
      Check(piece.begin == at, "pieces do not follow each other", at);
      at += piece.count;
      if (piece.count == 0) continue;
      std::vector<int32_t> numbers(piece.count + 1);
      std::iota(numbers.begin(), numbers.end(), 0);
      HostPooling pooling = whole;
      pooling.rows = whole.rows.subspan(piece.begin, piece.count);
      pooling.inverse = Span<const int32_t>(numbers.data(), piece.count);
      pooling.offsets = numbers;
      table.rows->Pool(pooling, piece.out);
    }
    Check(at == table.given.num_samples, "samples are in no piece", at);
  }

  // Reads a table's ids and samples in GPU memory.
  Status Read(Table* table) const {
    HostStream::Wait(*stream_);
    const GpuStepTable& given = table->given;
    const auto reached = [&](const int64_t* array) {
      const int64_t* const at = Reach(array);
      Check(at != nullptr, "ids or samples are not in the device's memory", 0);
      return at;
    };
    if (given.is_narrow) {
      const int32_t* const ids = Reach(static_cast<const int32_t*>(given.ids));
      Check(ids != nullptr, "ids are not in the device's memory", 0);
      table->ids.assign(ids, ids + given.num_ids);
    } else {
      const int64_t* const ids =
          reached(static_cast<const int64_t*>(given.ids));
      table->ids.assign(ids, ids + given.num_ids);
    }
    const Status status =
        given.splits != nullptr
            ? OffsetsFromSplits(reached(given.splits), given.num_samples,
                                given.num_ids, "", table->offsets.data())
            : OffsetsFromIndices(reached(given.indices), given.num_samples,
                                 given.num_ids, "", table->offsets.data());
    return status.ok() ? status
                       : Status(StatusCode::kUnimplemented, status.message());
  }

  void Set(Table* table, Span<const RowHandle> handles) {
    Check(handles.size() == table->unknown.size(),
          "handles are not those of the unknown keys", handles.size());
    for (size_t i = 0; i < table->ids.size(); ++i) {
      const auto found = table->unknown_of.find(table->ids[i]);
      if (found != table->unknown_of.end()) {
        table->handles[i] = handles[found->second];
      }
    }
  }

  std::unique_ptr<const DeviceStream> stream_;  // null: outputs on the host
  std::vector<std::unique_ptr<Table>> tables_;
  std::atomic<int> num_started_{0}, num_to_take_{0};
  bool is_pooled_ = false, is_rest_taken_ = false;
  std::atomic<bool> is_rest_done_{false};
};

int Step::NumSlots(const std::string& rule, Span<const float> hyper) {
  std::unique_ptr<const RowRule> made;
  const Status status = MakeRowRule(rule, hyper, &made);
  Check(status.ok(), "a step gets no such rule", 0);
  return made->num_slots();
}

}  // namespace

std::shared_ptr<GpuStep> MakeHostDeviceStep(Span<const GpuStepTable> tables,
                                            const DeviceStream* stream,
                                            std::vector<HostStepTable> rows) {
  return std::make_shared<Step>(tables, stream, std::move(rows));
}

void FailNextHostDeviceFetch() { next_fetch_fails = true; }
int64_t HostDeviceFetches() { return num_fetches; }
int64_t HostDeviceSteps() { return num_steps; }
int64_t HostDeviceStepUpdates() { return num_updates; }

}  // namespace testing
}  // namespace ev
