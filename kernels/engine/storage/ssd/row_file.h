// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Rows in one file, written as a log. The file is cut into segments of equal
// size. Rows are appended to a segment in memory. A thread writes a full
// segment in one piece, and its memory is reused. A record never changes: a row
// that is written again gets a new record, and its old one is dead. A segment
// whose records are all dead is reused.
//
// The memory waiting to be written is bounded: when all buffers wait for the
// disk, Append waits, too.
//
// FULL DISK. The file's blocks are allocated when a segment is started, before
// any row is put into it. So if the disk is full, a call fails and no row has
// moved. Reserve allocates blocks for rows that are to be appended later.
//
// Reads are served by the system's page cache, unless the file was opened
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
  // Memory for the table's rows. A segment is a 64th of it, within limits.
  int64_t memory_bytes = 0;
  bool direct = false;
};

// A record to read. In: record, handle, and row, a buffer with room for the
// widest existing rows. Out: status, rank, floats (the record's number of
// floats), and that many floats in row.
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

// Thread-safe except for SetFloats and Clear, which REQUIRE that no other call
// is running.
class RowFile {
 public:
  // FailedPrecondition: the file cannot be created.
  static Status Create(const RowFileOptions& options,
                       std::unique_ptr<RowFile>* file);
  ~RowFile();
  RowFile(const RowFile&) = delete;
  RowFile& operator=(const RowFile&) = delete;

  // Sets the number of floats of rows appended from now on. Unimplemented: such
  // a row does not fit into a segment, because the first rows were much
  // smaller.
  Status SetFloats(int64_t floats);

  // Appends rows. On an error only the first *done rows were appended.
  // is_reserved: Reserve was called for these rows. ResourceExhausted, naming
  // the file: the disk is full, or the file cannot be written.
  Status Append(Span<RecordWrite> writes, bool is_reserved, size_t* done);
  // Appends one row.
  Status Append(RowHandle handle, uint32_t rank, const float* row,
                bool is_reserved, RecordNumber* record);
  // Reserves room for that many more rows, until Unreserve.
  Status Reserve(int64_t rows);
  void Unreserve(int64_t rows);

  // Reads many records at once and sets the status of each. If a record is
  // dropped meanwhile, its read returns either the old contents or DataLoss.
  // Otherwise DataLoss, naming file and position, means that the file does not
  // hold that record. ResourceExhausted: no memory for this read. Throws
  // std::bad_alloc; then the statuses are unspecified. Waits for the disk.
  void Read(Span<RecordRead> reads);

  // Marks the records as dead.
  void Drop(Span<const RecordNumber> records);
  // Returns whether a read of the record would go to the file. If not, its row
  // is still in a buffer in memory.
  bool IsStored(RecordNumber record) const;

  // Returns whether compacting is worthwhile: dead records outnumber live ones
  // by more than four segments hold.
  bool IsSparse() const;
  // Compacts the segment with the smallest share of live records, if that is at
  // most three quarters. Calls move() for each record that may be live. If the
  // record is still in use, move() appends its row again and drops the old
  // record. The segment is reused when all of its records are dead. *found:
  // whether there was such a segment.
  struct Record {
    RecordNumber number;
    RowHandle handle;
    uint32_t rank;
    const float* row;
    int64_t floats;
  };
  Status Visit(const std::function<Status(const Record&)>& move, bool* found);

  // Deletes all records.
  void Clear();
  // Waits until everything is written.
  Status Sync();

  const std::string& name() const { return name_; }
  int64_t segment_bytes() const { return segment_bytes_; }
  int64_t file_bytes() const { return file_bytes_.load(); }
  int64_t buffer_bytes() const;
  int64_t live_records() const { return live_records_.load(); }
  int64_t written_bytes() const { return written_bytes_.load(); }

  // Tests only: 'allow' returns whether that many bytes may be allocated on the
  // disk. Null: always.
  static void SetSpaceHookForTesting(bool (*allow)(int64_t bytes));

 private:
  enum State : uint8_t { kFree, kOpen, kSealed, kStored };
  using Buffer = std::shared_ptr<char>;

  struct Segment {
    std::atomic<int32_t> live{0};  // live records, plus reads in flight
    std::atomic<uint8_t> state{kFree};
    bool damaged = false;
    int32_t appended = 0;
    int filling = 0;  // calls that are still copying rows into the buffer
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

  // All are called under mu_; some release it while they wait.
  int64_t Room() const;
  Status TakeSegment();
  Status TakeBlocks(uint32_t segment);
  std::string FreeBytes() const;
  Status OpenSegment(std::unique_lock<std::mutex>* lock);
  // Copies the rows to their positions from 'first' on. Not called under mu_.
  void Fill(Span<RecordWrite> writes, uint32_t number, int32_t first,
            char* buffer) const;
  void FreeIfDead(uint32_t number);
  void Leave(uint32_t number);  // decrements live; not called under mu_
  void StartWriter();
  void Seal();
  void ClearLocked(std::unique_lock<std::mutex>* lock);

  void Write();  // body of the writer thread
  Status WriteSegment(uint32_t number, const char* data, size_t bytes);
  int64_t OffsetOfRecord(RecordNumber record) const;
  // Reads the records that are in the page cache; leaves the others in reads.
  void ReadCached(std::vector<RecordRead*>* reads);
  // Returns false, without effect, if it would have blocked.
  bool ReadStored(RecordRead* read, bool may_block) const;
  Status Check(const RecordHeader& header, const char* floats,
               const RecordFormat& format, RecordRead* read) const;
  std::string At(RecordNumber record) const;

  const RowFileOptions options_;
  std::string name_;
  int fd_ = -1;
  int64_t segment_bytes_ = 0;
  int position_bits_ = 0;
  RecordFormat format_;
  std::unique_ptr<CachedReads> cached_;  // null: direct
  SlabArray segments_{sizeof(Segment), /*rows_log2=*/10};

  mutable std::mutex mu_;
  std::condition_variable to_write_, written_;
  uint32_t num_segments_ = 0;     // in use or free
  uint32_t made_segments_ = 0;    // constructed
  std::vector<uint32_t> ready_;   // free, with blocks
  std::vector<uint32_t> bare_;    // free, without blocks
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
};

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_SSD_ROW_FILE_H_
