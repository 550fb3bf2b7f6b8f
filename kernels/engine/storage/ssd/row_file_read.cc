// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Reads records: those waiting to be written from their buffer, those in the
// page cache from there, and the rest from the disk, all at once.

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "kernels/engine/base/pages.h"
#include "kernels/engine/storage/ssd/io_threads.h"
#include "kernels/engine/storage/ssd/row_file.h"

namespace ev {

Status RowFile::Check(const RecordHeader& header, const char* floats,
                      const RecordFormat& format, RecordRead* read) const {
  if (header.handle != read->handle || header.floats != format.floats ||
      header.checksum != RecordChecksum(read->record, header, floats)) {
    return Status(StatusCode::kDataLoss,
                  At(read->record) +
                      " is damaged: it does not hold the row that was written; "
                      "restore the last checkpoint");
  }
  read->floats = format.floats;
  read->rank = header.rank;
  return Status::OK();
}

bool RowFile::ReadStored(RecordRead* read, bool may_block) const {
  const uint32_t number = read->record >> position_bits_;
  const RecordFormat& format = segment(number)->format;
  const int64_t offset = OffsetOfRecord(read->record);
  RecordHeader header;
  const auto failed = [&](ssize_t got) {
    read->status =
        Status(StatusCode::kDataLoss,
               At(read->record) + " cannot be read: " +
                   (got < 0 ? std::strerror(errno) : "the file is shorter"));
  };
  if (options_.direct) {
    const int64_t begin = offset / kSmallPage * kSmallPage;
    const size_t bytes = RoundUp(offset + format.bytes, kSmallPage) - begin;
    const Buffer pages = NewBuffer(bytes);
    size_t done = 0;
    while (done < bytes) {
      const ssize_t got =
          pread(fd_, pages.get() + done, bytes - done, begin + done);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        failed(got);
        return true;
      }
      done += got;
    }
    const char* record = pages.get() + (offset - begin);
    std::memcpy(&header, record, sizeof(header));
    std::memcpy(read->row, record + sizeof(header),
                format.bytes - sizeof(header));
  } else {
    const struct iovec parts[2] = {{&header, sizeof(header)},
                                   {read->row, format.bytes - sizeof(header)}};
    ssize_t got;
    do {
      got = may_block ? preadv(fd_, parts, 2, offset)
                      : preadv2(fd_, parts, 2, offset, RWF_NOWAIT);
    } while (got < 0 && errno == EINTR);
    if (got != static_cast<ssize_t>(format.bytes)) {
      if (!may_block) return false;  // not completely in the page cache
      failed(got);
      return true;
    }
  }
  read->status =
      Check(header, reinterpret_cast<const char*>(read->row), format, read);
  return true;
}

void RowFile::ReadCached(std::vector<RecordRead*>* reads) {
  // Rows of earlier widths are few and are read one by one.
  const size_t bytes = format_.bytes;
  std::vector<RecordRead*> some, left;
  std::vector<int64_t> offsets;
  some.reserve(reads->size());
  offsets.reserve(reads->size());
  for (RecordRead* read : *reads) {
    if (segment(read->record >> position_bits_)->format.bytes == bytes) {
      some.push_back(read);
      offsets.push_back(OffsetOfRecord(read->record));
    } else if (!ReadStored(read, /*may_block=*/false)) {
      left.push_back(read);
    }
  }
  std::vector<CachedReads::Found> found(some.size());
  cached_->Read(offsets, bytes, found.data(),
                [&](size_t i, const char* record) {
                  RecordHeader header;
                  std::memcpy(&header, record, sizeof(header));
                  const char* const floats = record + sizeof(header);
                  std::memcpy(some[i]->row, floats, bytes - sizeof(header));
                  some[i]->status = Check(header, floats, format_, some[i]);
                });
  for (size_t i = 0; i < some.size(); ++i) {
    if (found[i] == CachedReads::Found::kRead) continue;
    if (found[i] == CachedReads::Found::kAbsent ||
        !ReadStored(some[i], /*may_block=*/false)) {
      left.push_back(some[i]);
    }
  }
  reads->swap(left);
}

void RowFile::Read(Span<RecordRead> reads) {
  std::vector<RecordRead*> stored;
  std::vector<std::pair<RecordRead*, Buffer>> buffered;
  stored.reserve(reads.size());
  buffered.reserve(reads.size());
  // Each read counts as one more live record of its segment until the end, so
  // that the segment is not reused meanwhile.
  struct Visitors {
    RowFile* file;
    std::vector<uint32_t> of;
    ~Visitors() {
      for (const uint32_t number : of) file->Leave(number);
    }
  } visitors{this, {}};
  visitors.of.reserve(reads.size());
  {
    std::lock_guard<std::mutex> lock(mu_);
    for (RecordRead& read : reads) {
      const uint32_t number = read.record >> position_bits_;
      if (number >= num_segments_ || segment(number)->state.load() == kFree) {
        read.status =
            Status(StatusCode::kDataLoss, "'" + name_ + "' has no such record");
        continue;
      }
      segment(number)->live.fetch_add(1);
      visitors.of.push_back(number);
      if (segment(number)->buffer != nullptr) {
        buffered.emplace_back(&read, segment(number)->buffer);
      } else {
        stored.push_back(&read);
      }
    }
  }
  for (const auto& found : buffered) {
    RecordRead* read = found.first;
    const uint32_t number = read->record >> position_bits_;
    const RecordFormat& format = segment(number)->format;
    const char* record =
        found.second.get() +
        format.Offset(read->record - (number << position_bits_));
    RecordHeader header;
    std::memcpy(&header, record, sizeof(header));
    std::memcpy(read->row, record + sizeof(header),
                format.bytes - sizeof(header));
    read->status = Check(header, record + sizeof(header), format, read);
  }
  buffered.clear();
  std::vector<RecordRead*> blocking;
  blocking.swap(stored);
  if (cached_ != nullptr) ReadCached(&blocking);
  std::sort(blocking.begin(), blocking.end(),
            [](const RecordRead* a, const RecordRead* b) {
              return a->record < b->record;
            });
  RunBlocking(blocking.size(), [&](int64_t i) {
    try {
      ReadStored(blocking[i], /*may_block=*/true);
    } catch (const std::bad_alloc&) {
      blocking[i]->status = ResourceExhausted("no memory to read a row");
    }
  });
}

}  // namespace ev
