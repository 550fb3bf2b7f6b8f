// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Reads the rows of a table as they were at one moment, while updates go on.
//
// One thread, the reader, reads every row once. An update that is about to
// change a row copies it first, if the row existed at the moment and is still
// unread; the reader takes the copy. So each row is copied at most once, hot
// rows early on, and for a row that has been read an update only checks its
// marks. Copies have a limit. At the limit, updates of rows that need another
// copy wait until the reader has taken some copies or has read those rows. The
// reader never waits for an update.
//
// If a copy fails, the reader gets the error, not the update: a save that
// cannot be complete fails, and training goes on.

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
  // columns: columns to read (0: the value, 1 + c: slot column c). kept_bytes:
  // limit of copies and their bookkeeping; at least one copy is kept. Updates
  // and inserts find this object in table.frozen_rows.
  FrozenRows(const EmbeddingTable::Impl& table, const std::vector<int>& columns,
             int64_t kept_bytes);

  // --- Called by updates, under the table lock; thread-safe ---

  // Marks a row as created after the moment. REQUIRES: no key has the handle
  // yet.
  void AddNew(RowHandle handle);
  // Returns when all of these rows may be changed. Handles without a row are
  // ignored.
  void BeforeChange(Span<const RowHandle> handles);

  // --- Called by the reader, one thread at a time ---

  // Reads rows, each row at most once. out[c] gets [N, width] of the c-th
  // column, metas[i] the metadata of row i, zeros if the table has none. After
  // an error, of this call or of an update's copy, every call returns it.
  Status Read(Span<const RowHandle> handles, Span<float* const> out,
              RowMeta* metas);
  // Ends reading. Waiting updates go on, and no more copies are made.
  void Close();

  // Rows created after the moment have mark kFirst.
  const HandleMarks& marks() const { return marks_; }
  Status status() const;
  int waiting() const;  // updates that wait for the reader now

 private:
  static constexpr HandleMarks::Mark kNew = HandleMarks::kFirst;
  // The row has been read or copied, so an update may change it.
  static constexpr HandleMarks::Mark kSafe = HandleMarks::kSecond;

  size_t row_floats() const { return begins_.back(); }
  size_t WidthOf(size_t c) const { return begins_[c + 1] - begins_[c]; }
  float* Copy(uint32_t place) const {
    return copies_[place / copies_at_once_].get() +
           place % copies_at_once_ * copy_floats_;
  }
  // The following REQUIRE mu_.
  Status CopyColumns(Span<const RowHandle> handles);  // into staged_
  Status Keep(Span<const RowHandle> handles);
  Status ReadLocked(Span<const RowHandle> handles, Span<float* const> out,
                    RowMeta* metas);
  RowMeta MetaOf(RowHandle handle) const;
  void CloseLocked(const Status& status);

  const EmbeddingTable::Impl& table_;
  const std::vector<int> columns_;
  // Begins of the columns in a copy, then the end of the last one.
  const std::vector<size_t> begins_;
  const size_t copy_floats_;     // a copy: its columns, then its meta
  const size_t copies_at_once_;  // allocated together
  const size_t most_copies_;
  HandleMarks marks_;

  mutable std::mutex mu_;
  std::condition_variable went_on_;  // the reader made progress
  int waiting_ = 0;
  bool closed_ = false;
  Status status_;
  std::vector<std::unique_ptr<float[]>> copies_;
  std::vector<uint32_t> free_;  // places in copies_
  std::unordered_map<RowHandle, uint32_t> kept_;
  std::vector<float> staged_;  // column after column, [rows, width]
  std::vector<RowHandle> fresh_;
  std::vector<size_t> fresh_places_;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_FROZEN_ROWS_H_
