// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Rows in one file, written as a log. The file is cut into segments of one
// size. Rows are appended to a segment in memory; a full one is written by a
// thread, in one piece, and its memory used again. A record never changes: a
// row that is written again gets a new one, and its old one is dead. A segment
// in which all are dead is used again.
//
// What waits to be written is bounded: a call that appends when all buffers
// wait for the disk waits too.
//
// FULL DISK. The file's blocks are taken when a segment is begun, before any
// row is put there; so when there are none, a call fails and no row has moved.
// Reserve takes them for rows that are to be appended later.
//
// The page cache of the system serves reads, unless the file was opened
// 'direct': then every read and write goes to the device.

#ifndef KERNELS_ENGINE_STORAGE_SSD_ROW_FILE_H_
#define KERNELS_ENGINE_STORAGE_SSD_ROW_FILE_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/storage/dram/slab_array.h"
#include "kernels/engine/storage/ssd/cached_reads.h"
#include "kernels/engine/storage/ssd/record.h"
#include "kernels/engine/storage/ssd/row_directory.h"

namespace ev {

struct RowFileOptions {
  std::shared_ptr<RowDirectory> directory;
  // Bytes of the memory that rows have: segments are a 64th of it, within
  // bounds.
  int64_t memory_bytes = 0;
  bool direct = false;
};

// A record to read. In: record, handle, row (room for the widest rows there
// are). Out: status; the first 'floats' floats of row, and rank.
struct RecordRead {
  RecordNumber record = 0;
  RowHandle handle = 0;
  float* row = nullptr;
  int64_t floats = 0;
  uint32_t rank = 0;
  Status status;
};

// A row to append. Out: record.
struct RecordWrite {
  RowHandle handle = 0;
  uint32_t rank = 0;
  const float* row = nullptr;
  RecordNumber record = kNoRecord;
};

// Thread-safe but for SetFloats and Clear, which REQUIRE that no other call is
// running.
class RowFile {
 public:
  // FailedPrecondition: the file cannot be made.
  static Status Create(const RowFileOptions& options,
                       std::unique_ptr<RowFile>* file);
  ~RowFile();
  RowFile(const RowFile&) = delete;
  RowFile& operator=(const RowFile&) = delete;

  // Rows that are appended from now on have that many floats. Unimplemented:
  // they do not fit a segment any more, since the first ones were much smaller.
  Status SetFloats(int64_t floats);

  // Appends rows, the first *done of them if not all. is_reserved: they were
  // reserved. ResourceExhausted, naming the file: the disk is full, or it
  // cannot be written.
  Status Append(Span<RecordWrite> writes, bool is_reserved, size_t* done);
  // One row.
  Status Append(RowHandle handle, uint32_t rank, const float* row,
                bool is_reserved, RecordNumber* record);
  // Room for so many rows more, until Unreserve.
  Status Reserve(int64_t rows);
  void Unreserve(int64_t rows);

  // Reads many records at once. Of one that is dropped meanwhile, either what
  // it was or DataLoss. Else DataLoss, naming file and place: what is there is
  // not that record.
  void Read(Span<RecordRead> reads);

  // The records are dead.
  void Drop(Span<const RecordNumber> records);
  // Whether a read would go to the file; else the row is in a buffer.
  bool IsStored(RecordNumber record) const;

  // Whether more than half of the segments' records are dead.
  bool IsSparse() const;
  // Copies the segment with the fewest live records, if it is worth while:
  // 'move' is called for each record that may be alive. The segment is used
  // again when they are dead. *found: whether there was such a segment.
  struct Record {
    RecordNumber number;
    RowHandle handle;
    uint32_t rank;
    const float* row;
    int64_t floats;
  };
  Status Visit(const std::function<Status(const Record&)>& move, bool* found);

  // Forgets all records.
  void Clear();
  // Waits until everything is written.
  Status Sync();

  const std::string& name() const { return name_; }
  int64_t segment_bytes() const { return segment_bytes_; }
  int64_t file_bytes() const { return file_bytes_.load(); }
  int64_t buffer_bytes() const;
  int64_t live_records() const { return live_records_.load(); }
  int64_t written_bytes() const { return written_bytes_.load(); }
  int64_t read_records() const { return read_records_.load(); }

  // Tests only: whether so many bytes may be taken on the disk. Null: always.
  static void SetSpaceHookForTesting(bool (*allow)(int64_t bytes));

 private:
  enum State : uint8_t { kFree, kOpen, kSealed, kStored };
  using Buffer = std::shared_ptr<char>;

  struct Segment {
    std::atomic<int32_t> live{0};  // records, and reads under way
    std::atomic<uint8_t> state{kFree};
    bool damaged = false;
    int32_t appended = 0;
    int filling = 0;  // calls that are still copying rows to the buffer
    RecordFormat format;
    Buffer buffer;  // while kOpen or kSealed; under mu_
  };

  static Buffer NewBuffer(size_t bytes);
  explicit RowFile(const RowFileOptions& options) : options_(options) {}
  Segment* segment(uint32_t number) const {
    return reinterpret_cast<Segment*>(segments_.Address(number));
  }
  int64_t OffsetOf(uint32_t segment) const {
    return int64_t{segment} * segment_bytes_;
  }

  // All under mu_, some letting go of it while they wait.
  int64_t Room() const;
  Status TakeSegment();
  Status TakeBlocks(uint32_t segment);
  std::string FreeBytes() const;
  Status OpenSegment(std::unique_lock<std::mutex>* lock);
  // Not under mu_: writes go to the places from 'first' on.
  void Fill(Span<RecordWrite> writes, uint32_t number, int32_t first,
            char* buffer) const;
  void FreeIfDead(uint32_t number);
  void Leave(uint32_t number);  // not under mu_: one live less
  void StartWriter();
  void Seal();
  void ClearLocked(std::unique_lock<std::mutex>* lock);

  void Write();  // the thread
  Status WriteSegment(uint32_t number, const char* data, size_t bytes);
  int64_t OffsetOfRecord(RecordNumber record) const;
  // Reads what the page cache has; the others are left in reads.
  void ReadCached(std::vector<RecordRead*>* reads);
  // False: it would have blocked, and did nothing.
  bool ReadStored(RecordRead* read, bool may_block) const;
  Status Check(const RecordHeader& header, const char* floats,
               const RecordFormat& format, RecordRead* read) const;
  std::string At(RecordNumber record) const;

  const RowFileOptions options_;
  std::string name_;
  int fd_ = -1;
  int64_t segment_bytes_ = 0;
  int place_bits_ = 0;
  RecordFormat format_;
  std::unique_ptr<CachedReads> cached_;  // null: direct
  SlabArray segments_{sizeof(Segment), /*rows_log2=*/10};

  mutable std::mutex mu_;
  std::condition_variable to_write_, written_;
  uint32_t num_segments_ = 0;     // in use or free
  uint32_t made_segments_ = 0;    // objects
  std::vector<uint32_t> ready_;   // free, with blocks
  std::vector<uint32_t> bare_;    // free, without
  std::vector<uint32_t> sealed_;  // first in, first out
  int64_t open_ = -1;
  int buffers_used_ = 0;
  std::vector<Buffer> idle_buffers_;
  int64_t reserved_ = 0;
  Status write_error_;
  int64_t write_attempts_ = 0;
  bool retry_ = false, is_writing_ = false, stop_ = false;
  std::thread writer_;

  std::atomic<int64_t> file_bytes_{0}, live_records_{0}, used_records_{0};
  std::atomic<int64_t> segment_records_{0};
  std::atomic<int64_t> written_bytes_{0};
  mutable std::atomic<int64_t> read_records_{0};
};

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_SSD_ROW_FILE_H_
