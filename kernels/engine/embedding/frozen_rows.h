// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The rows of a table as they were at one moment, while updates go on.
//
// One thread reads every row once. An update that is about to change a row
// which belongs to the moment and has not been read yet keeps a copy of it
// first, and the reader takes the copy. So each row is copied at most once, the
// hot ones early on, and a row that has been read costs an update nothing but a
// look at its marks. Copies have a limit: when it is reached, updates of rows
// that would need another wait until the reader has taken some, or has read
// those rows. The reader never waits for an update.
//
// What fails while a copy is made is the reader's error, not the update's: a
// save that cannot be whole fails, and training goes on.

#ifndef KERNELS_ENGINE_EMBEDDING_FROZEN_ROWS_H_
#define KERNELS_ENGINE_EMBEDDING_FROZEN_ROWS_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/embedding/parts/handle_marks.h"
#include "kernels/engine/embedding/table_impl.h"

namespace ev {

class FrozenRows {
 public:
  // columns: those of a row that are to be read (0: the value, 1 + c: slot
  // column c). kept_bytes: of copies, their bookkeeping included; one copy at
  // least. Updates and inserts come to the moment by table.frozen_rows.
  FrozenRows(const EmbeddingTable::Impl& table, const std::vector<int>& columns,
             int64_t kept_bytes);

  // --- By updates, in the gate updating; any number of threads ---

  // The handle is of a row made after the moment, which no key leads to yet.
  void AddNew(RowHandle handle);
  // Returns when all of these rows may be changed. Handles may be of no row.
  void BeforeChange(Span<const RowHandle> handles);

  // --- By the reader, one thread at a time ---

  // Reads rows, each of them once in the life of this: out[c] gets [N, dim] of
  // the c-th column, metas[i] row i's meta, zeros where the table has none.
  // What went wrong in an update, or here, is the answer from then on.
  Status Read(Span<const RowHandle> handles, Span<float* const> out,
              RowMeta* metas);
  // No more is read; updates that wait go on, and no copies are made any more.
  void Close();

  // kFirst: made after the moment.
  const HandleMarks& marks() const { return marks_; }
  Status status() const;
  int waiting() const;  // updates that wait for the reader now

 private:
  static constexpr HandleMarks::Mark kNew = HandleMarks::kFirst;
  // Read, or kept: an update may change it.
  static constexpr HandleMarks::Mark kSafe = HandleMarks::kSecond;

  size_t row_floats() const { return columns_.size() * table_.dim(); }
  float* Copy(uint32_t place) const {
    return copies_[place / copies_at_once_].get() +
           place % copies_at_once_ * copy_floats_;
  }
  // All below REQUIRE mu_.
  Status CopyColumns(Span<const RowHandle> handles);  // to staged_
  Status Keep(Span<const RowHandle> handles);
  Status ReadLocked(Span<const RowHandle> handles, Span<float* const> out,
                    RowMeta* metas);
  RowMeta MetaOf(RowHandle handle) const;
  void CloseLocked(const Status& status);

  const EmbeddingTable::Impl& table_;
  const std::vector<int> columns_;
  const size_t copy_floats_;     // a copy: its columns, then its meta
  const size_t copies_at_once_;  // are allocated
  const size_t most_copies_;
  HandleMarks marks_;

  mutable std::mutex mu_;
  std::condition_variable went_on_;  // the reader
  int waiting_ = 0;
  bool closed_ = false;
  Status status_;
  std::vector<std::unique_ptr<float[]>> copies_;
  std::vector<uint32_t> free_;  // places in copies_
  std::unordered_map<RowHandle, uint32_t> kept_;
  std::vector<float> staged_;  // [columns, rows, dim]
  std::vector<RowHandle> fresh_;
  std::vector<size_t> fresh_places_;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_FROZEN_ROWS_H_
