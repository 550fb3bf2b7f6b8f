// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Journal of what a call does to a table's keys before it is sure to succeed;
// EmbeddingTable::Impl::TakeBack undoes it. Each thread writes a part of its
// own, which joins the journal when the thread has finished, without
// allocating.

#ifndef KERNELS_ENGINE_EMBEDDING_TABLE_JOURNAL_H_
#define KERNELS_ENGINE_EMBEDDING_TABLE_JOURNAL_H_

#include <cstdint>
#include <list>
#include <mutex>
#include <utility>
#include <vector>

namespace ev {

struct JournalPart {
  // A key whose exact counter was changed, and its previous value.
  struct Counter {
    int64_t key;
    bool existed;
    int64_t count, version;  // before
    int64_t occurrences;     // added by the call
  };
  std::vector<int64_t> inserted;  // keys that got a row
  std::vector<Counter> counted;   // keys that the filter keeps out
  // Keys that got a row. Their counters are removed only when the call is sure
  // to succeed, since there may be no memory to create them again.
  std::vector<int64_t> admitted;
  // Keys that a Bloom filter has counted, and how often.
  std::vector<std::pair<int64_t, int64_t>> added;
};

class TableJournal {
 public:
  // A part of the journal, which joins it on destruction. Throws
  // std::bad_alloc.
  class Writer {
   public:
    explicit Writer(TableJournal* journal) : journal_(journal), part_(1) {}
    ~Writer() {
      std::lock_guard<std::mutex> lock(journal_->mu_);
      journal_->parts_.splice(journal_->parts_.end(), part_);
    }
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;
    JournalPart* part() { return &part_.front(); }

   private:
    TableJournal* const journal_;
    std::list<JournalPart> part_;
  };

  // REQUIRES: no thread writes.
  const std::list<JournalPart>& parts() const { return parts_; }

 private:
  std::mutex mu_;
  std::list<JournalPart> parts_;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_TABLE_JOURNAL_H_
