// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/storage/ssd/row_file.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include "kernels/engine/base/pages.h"
#include "kernels/engine/base/prefetch.h"

namespace ev {
namespace {

constexpr int64_t kMaxSegment = 4 << 20;
// Segments in memory: one being filled, the others being written.
constexpr int kMaxBuffers = 4;
// How many times wider than the first rows later rows may be.
constexpr size_t kMaxWidening = 16;

std::atomic<bool (*)(int64_t bytes)> space_hook{nullptr};

}  // namespace

// Returns a page-aligned buffer, as direct I/O requires. Zeroed, so that no
// other memory of the process gets into the file. Throws std::bad_alloc.
RowFile::Buffer RowFile::NewBuffer(size_t bytes) {
  void* data = nullptr;
  if (posix_memalign(&data, kSmallPage, bytes) != 0) throw std::bad_alloc();
  std::memset(data, 0, bytes);
  return std::shared_ptr<char>(static_cast<char*>(data),
                               [](char* p) { std::free(p); });
}

void RowFile::SetSpaceHookForTesting(bool (*allow)(int64_t bytes)) {
  space_hook.store(allow);
}

Status RowFile::Create(const RowFileOptions& options,
                       std::unique_ptr<RowFile>* file) {
  std::unique_ptr<RowFile> made(new RowFile(options));
  made->name_ = options.directory->NewFile();
  // Only the owner may read a model's rows.
  made->fd_ = open(
      made->name_.c_str(),
      O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | (options.direct ? O_DIRECT : 0),
      0600);
  if (made->fd_ < 0) {
    const int error = errno;
    unlink(made->name_.c_str());
    return FailedPrecondition("'" + made->name_ + "' cannot be created" +
                              (options.direct ? " for direct access" : "") +
                              ": " + std::strerror(error));
  }
  // Rows are read at random, so read-ahead does not help.
  posix_fadvise(made->fd_, 0, 0, POSIX_FADV_RANDOM);
  // Allocated now, so that neither Append nor the writer thread fails half-way.
  made->sealed_.reserve(kMaxBuffers);
  made->idle_buffers_.reserve(kMaxBuffers);
  if (!options.direct) made->cached_.reset(new CachedReads(made->fd_));
  *file = std::move(made);
  return Status::OK();
}

RowFile::~RowFile() {
  {
    std::lock_guard<std::mutex> lock(mu_);
    stop_ = true;
  }
  to_write_.notify_all();
  if (writer_.joinable()) writer_.join();
  for (uint32_t s = 0; s < made_segments_; ++s) segment(s)->~Segment();
  if (fd_ >= 0) {
    close(fd_);
    unlink(name_.c_str());
  }
}

Status RowFile::SetFloats(int64_t floats) {
  std::unique_lock<std::mutex> lock(mu_);
  if (live_records_.load() == 0) {
    ClearLocked(&lock);
    const size_t record = sizeof(RecordHeader) + floats * sizeof(float);
    const int64_t wanted = std::min<int64_t>(
        kMaxSegment, std::max<int64_t>(0, options_.memory_bytes / 64));
    segment_bytes_ =
        RoundUp(std::max<size_t>(wanted, kMaxWidening * record), kSmallPage);
    format_ = RecordFormat::Of(floats, segment_bytes_);
    position_bits_ = 0;
    while ((int32_t{1} << position_bits_) < format_.records) ++position_bits_;
    segment_records_ = format_.records;
    return Status::OK();
  }
  const RecordFormat format = RecordFormat::Of(floats, segment_bytes_);
  if (format.records < 1) {
    return Unimplemented("rows of " + std::to_string(floats) +
                         " floats do not fit the segments of '" + name_ +
                         "', which were made for rows of " +
                         std::to_string(format_.floats));
  }
  if (open_ >= 0) Seal();
  format_ = format;
  segment_records_ = format.records;
  return Status::OK();
}

void RowFile::Seal() {
  segment(open_)->state.store(kSealed);
  // within the reserved capacity
  sealed_.push_back(static_cast<uint32_t>(open_));
  open_ = -1;
  to_write_.notify_one();
}

int64_t RowFile::Room() const {
  const int64_t in_open =
      open_ < 0 ? 0 : segment(open_)->format.records - segment(open_)->appended;
  return in_open + static_cast<int64_t>(ready_.size()) * format_.records;
}

Status RowFile::TakeBlocks(uint32_t number) {
  bool (*hook)(int64_t) = space_hook.load();
  int error = hook != nullptr && !hook(segment_bytes_) ? ENOSPC : 0;
  while (error == 0 &&
         fallocate(fd_, 0, OffsetOf(number), segment_bytes_) != 0) {
    if (errno == EINTR) continue;
    // A file system without preallocation fails when the data is written.
    if (errno != EOPNOTSUPP && errno != ENOSYS) error = errno;
    break;
  }
  if (error == 0) return Status::OK();
  return ResourceExhausted("storage_path '" + options_.directory->path() +
                           "' is full: '" + name_ + "' needs " +
                           std::to_string(segment_bytes_) + " bytes more, " +
                           FreeBytes() + " are free (" + std::strerror(error) +
                           "); rows stay in memory and none is lost");
}

std::string RowFile::FreeBytes() const {
  struct statvfs volume;
  if (fstatvfs(fd_, &volume) != 0) return "unknown";
  return std::to_string(static_cast<uint64_t>(volume.f_bavail) *
                        volume.f_frsize);
}

Status RowFile::TakeSegment() {
  const bool is_new = bare_.empty();
  const uint32_t number = is_new ? num_segments_ : bare_.back();
  if (is_new) {
    if ((uint64_t{number} + 1) << position_bits_ >= kNoRecord) {
      return ResourceExhausted("'" + name_ + "' has " + std::to_string(number) +
                               " segments, its maximum");
    }
    ready_.reserve(number + 1);
    bare_.reserve(number + 1);
    if (number >= made_segments_) {
      const size_t slab = number >> segments_.rows_log2();
      if (!segments_.has_slab(slab) && !segments_.AddSlab(slab)) {
        return ResourceExhausted("no memory for another segment of '" + name_ +
                                 "'");
      }
      new (segments_.Address(number)) Segment;
      ++made_segments_;
    }
  }
  EV_RETURN_IF_ERROR(TakeBlocks(number));
  if (is_new) {
    ++num_segments_;
  } else {
    bare_.pop_back();
  }
  file_bytes_ += segment_bytes_;
  ready_.push_back(number);
  return Status::OK();
}

Status RowFile::OpenSegment(std::unique_lock<std::mutex>* lock) {
  while (open_ < 0) {
    if (buffers_used_ >= kMaxBuffers) {
      const int64_t before = write_attempts_;
      retry_ = true;
      to_write_.notify_one();
      written_.wait(*lock, [&] {
        return buffers_used_ < kMaxBuffers ||
               (write_attempts_ != before && !write_error_.ok());
      });
      if (buffers_used_ >= kMaxBuffers) return write_error_;
      continue;  // another call may have opened one meanwhile
    }
    if (ready_.empty()) EV_RETURN_IF_ERROR(TakeSegment());
    Buffer buffer;
    if (idle_buffers_.empty()) {
      buffer = NewBuffer(segment_bytes_);
    } else {
      buffer = std::move(idle_buffers_.back());
      idle_buffers_.pop_back();
    }
    StartWriter();
    open_ = ready_.back();
    ready_.pop_back();
    ++buffers_used_;
    Segment* opened = segment(open_);
    opened->format = format_;
    opened->appended = 0;
    opened->damaged = false;
    opened->buffer = std::move(buffer);
    opened->state.store(kOpen);
  }
  return Status::OK();
}

Status RowFile::Append(RowHandle handle, uint32_t rank, const float* row,
                       bool is_reserved, RecordNumber* record) {
  RecordWrite write;
  write.handle = handle;
  write.rank = rank;
  write.row = row;
  size_t done = 0;
  EV_RETURN_IF_ERROR(Append(Span<RecordWrite>(&write, 1), is_reserved, &done));
  *record = write.record;
  return Status::OK();
}

Status RowFile::Append(Span<RecordWrite> writes, bool is_reserved,
                       size_t* done) {
  *done = 0;
  try {
    std::unique_lock<std::mutex> lock(mu_);
    while (*done < writes.size()) {
      if (!is_reserved && Room() <= reserved_) {
        EV_RETURN_IF_ERROR(TakeSegment());
      }
      EV_RETURN_IF_ERROR(OpenSegment(&lock));
      // The rows that fit into this segment get their positions and are copied,
      // while other calls append after them.
      const uint32_t number = static_cast<uint32_t>(open_);
      Segment* const to = segment(number);
      int64_t count = std::min<int64_t>(writes.size() - *done,
                                        to->format.records - to->appended);
      if (!is_reserved) {
        // Other calls may have taken the room while this one waited for a
        // segment.
        const int64_t left = Room() - reserved_;
        if (left <= 0) continue;
        count = std::min(count, left);
      }
      const int32_t first = to->appended;
      to->appended += static_cast<int32_t>(count);
      ++to->filling;
      to->live.fetch_add(static_cast<int32_t>(count));
      live_records_.fetch_add(count);
      used_records_.fetch_add(count);
      if (to->appended == to->format.records) Seal();
      char* const data = to->buffer.get();
      lock.unlock();
      Fill(writes.subspan(*done, count), number, first, data);
      lock.lock();
      *done += count;
      if (--to->filling == 0 && to->state.load() == kSealed) {
        to_write_.notify_one();
      }
    }
    return Status::OK();
  } catch (const std::exception&) {  // no memory or no thread
    return ResourceExhausted("no memory or thread to write to '" + name_ + "'");
  }
}

void RowFile::Fill(Span<RecordWrite> writes, uint32_t number, int32_t first,
                   char* buffer) const {
  constexpr size_t kAhead = 4;
  const RecordFormat& format = segment(number)->format;
  for (size_t i = 0; i < writes.size(); ++i) {
    if (i + kAhead < writes.size()) {
      PrefetchBytes(writes[i + kAhead].row, format.floats * sizeof(float));
    }
    const int32_t position = first + static_cast<int32_t>(i);
    writes[i].record =
        (number << position_bits_) + static_cast<RecordNumber>(position);
    RecordHeader header;
    header.handle = writes[i].handle;
    header.rank = writes[i].rank;
    header.floats = static_cast<uint32_t>(format.floats);
    char* const data = buffer + format.Offset(position);
    std::memcpy(data + sizeof(header), writes[i].row,
                header.floats * sizeof(float));
    header.checksum =
        RecordChecksum(writes[i].record, header, data + sizeof(header));
    std::memcpy(data, &header, sizeof(header));
  }
}

Status RowFile::Reserve(int64_t rows) {
  try {
    std::lock_guard<std::mutex> lock(mu_);
    reserved_ += rows;
    while (Room() < reserved_) {
      const Status status = TakeSegment();
      if (status.ok()) continue;
      reserved_ -= rows;
      return status;
    }
    return Status::OK();
  } catch (const std::bad_alloc&) {
    std::lock_guard<std::mutex> lock(mu_);
    reserved_ -= rows;
    return ResourceExhausted("no memory to reserve room in '" + name_ + "'");
  }
}

void RowFile::Unreserve(int64_t rows) {
  std::lock_guard<std::mutex> lock(mu_);
  reserved_ -= rows;
}

void RowFile::StartWriter() {
  if (!writer_.joinable()) writer_ = std::thread([this] { Write(); });
}

void RowFile::Write() {
  std::unique_lock<std::mutex> lock(mu_);
  for (;;) {
    to_write_.wait(lock, [this] {
      return stop_ || (!sealed_.empty() && (write_error_.ok() || retry_) &&
                       segment(sealed_.front())->filling == 0);
    });
    if (stop_) return;
    retry_ = false;
    const uint32_t number = sealed_.front();
    Segment* from = segment(number);
    Buffer data = from->buffer;
    const size_t bytes = from->live.load() == 0
                             ? 0
                             : RoundUp(from->format.Offset(from->appended - 1) +
                                           from->format.bytes,
                                       kSmallPage);
    is_writing_ = true;
    lock.unlock();
    const Status status = WriteSegment(number, data.get(), bytes);
    lock.lock();
    is_writing_ = false;
    ++write_attempts_;
    write_error_ = status;
    if (status.ok()) {
      written_bytes_ += bytes;
      sealed_.erase(sealed_.begin());
      from->buffer.reset();
      // A buffer that a reader still uses is freed by the reader.
      if (data.use_count() == 1) idle_buffers_.push_back(std::move(data));
      --buffers_used_;
      from->state.store(kStored);
      FreeIfDead(number);
    }
    written_.notify_all();
  }
}

Status RowFile::WriteSegment(uint32_t number, const char* data, size_t bytes) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t wrote =
        pwrite(fd_, data + done, bytes - done, OffsetOf(number) + done);
    if (wrote > 0) {
      done += wrote;
    } else if (wrote < 0 && errno != EINTR) {
      return ResourceExhausted(
          "'" + name_ + "' cannot be written: " + std::strerror(errno) + ", " +
          std::to_string(bytes - done) + " bytes are needed, " + FreeBytes() +
          " are free; rows stay in memory and none is lost");
    }
  }
  return Status::OK();
}

void RowFile::FreeIfDead(uint32_t number) {
  Segment* dead = segment(number);
  if (dead->state.load() != kStored || dead->live.load() != 0) return;
  dead->state.store(kFree);
  used_records_.fetch_sub(dead->appended);
  // Keeps some free segments for the next rows and returns the others to the
  // disk.
  if (Room() >= reserved_ && ready_.size() > std::max(16u, num_segments_ / 4) &&
      fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                OffsetOf(number), segment_bytes_) == 0) {
    bare_.push_back(number);
    file_bytes_ -= segment_bytes_;
  } else {
    ready_.push_back(number);
  }
}

void RowFile::Drop(Span<const RecordNumber> records) {
  if (records.empty()) return;
  live_records_.fetch_sub(static_cast<int64_t>(records.size()));
  for (const RecordNumber record : records) Leave(record >> position_bits_);
}

bool RowFile::IsStored(RecordNumber record) const {
  return segment(record >> position_bits_)->state.load() == kStored;
}

bool RowFile::IsSparse() const {
  return used_records_.load() >
         2 * live_records_.load() + 4 * segment_records_.load();
}

int64_t RowFile::OffsetOfRecord(RecordNumber record) const {
  const uint32_t number = record >> position_bits_;
  return OffsetOf(number) +
         segment(number)->format.Offset(record - (number << position_bits_));
}

std::string RowFile::At(RecordNumber record) const {
  return "'" + name_ + "' at byte " + std::to_string(OffsetOfRecord(record));
}

void RowFile::Leave(uint32_t number) {
  if (segment(number)->live.fetch_sub(1) != 1) return;
  std::lock_guard<std::mutex> lock(mu_);
  FreeIfDead(number);
}

Status RowFile::Visit(const std::function<Status(const Record&)>& move,
                      bool* found) {
  *found = false;
  uint32_t number = 0;
  {
    std::lock_guard<std::mutex> lock(mu_);
    double least = 0.75;
    for (uint32_t s = 0; s < num_segments_; ++s) {
      const Segment* candidate = segment(s);
      const int32_t live = candidate->live.load();
      if (candidate->state.load() != kStored || candidate->damaged ||
          live == 0) {
        continue;
      }
      const double part = static_cast<double>(live) / candidate->appended;
      if (part > least) continue;
      least = part;
      number = s;
      *found = true;
    }
    if (!*found) return Status::OK();
    segment(number)->live.fetch_add(1);
  }
  Segment* from = segment(number);
  const auto visit = [&]() -> Status {
    const size_t bytes =
        RoundUp(from->format.Offset(from->appended - 1) + from->format.bytes,
                kSmallPage);
    const Buffer data = NewBuffer(bytes);
    size_t done = 0;
    while (done < bytes) {
      const ssize_t got =
          pread(fd_, data.get() + done, bytes - done, OffsetOf(number) + done);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        return Status(
            StatusCode::kDataLoss,
            At(number << position_bits_) + " cannot be read: " +
                (got < 0 ? std::strerror(errno) : "the file is shorter"));
      }
      done += got;
    }
    for (int32_t position = 0; position < from->appended; ++position) {
      const char* record = data.get() + from->format.Offset(position);
      RecordHeader header;
      std::memcpy(&header, record, sizeof(header));
      RecordRead read;
      read.record =
          (number << position_bits_) + static_cast<uint32_t>(position);
      read.handle = header.handle;
      if (!Check(header, record + sizeof(header), from->format, &read).ok()) {
        continue;  // the call that needs that row gets the error
      }
      EV_RETURN_IF_ERROR(
          move({read.record, read.handle, read.rank,
                reinterpret_cast<const float*>(record + sizeof(header)),
                read.floats}));
    }
    return Status::OK();
  };
  Status status;
  try {
    status = visit();
  } catch (const std::bad_alloc&) {
    status = ResourceExhausted("no memory to read a segment");
  }
  std::lock_guard<std::mutex> lock(mu_);
  const bool some_left = from->live.fetch_sub(1) != 1;
  // These records could not be read and are not tried again.
  if (some_left && status.code() != StatusCode::kResourceExhausted) {
    from->damaged = true;
  }
  FreeIfDead(number);
  return status;
}

void RowFile::Clear() {
  std::unique_lock<std::mutex> lock(mu_);
  ClearLocked(&lock);
}

void RowFile::ClearLocked(std::unique_lock<std::mutex>* lock) {
  written_.wait(*lock, [this] { return !is_writing_; });
  sealed_.clear();
  ready_.clear();
  bare_.clear();
  for (uint32_t s = 0; s < num_segments_; ++s) {
    Segment* gone = segment(s);
    gone->state.store(kFree);
    gone->live.store(0);
    gone->buffer.reset();
  }
  num_segments_ = 0;
  open_ = -1;
  buffers_used_ = 0;
  idle_buffers_.clear();
  reserved_ = 0;
  write_error_ = Status::OK();
  live_records_ = used_records_ = 0;
  file_bytes_ = 0;
  // If the blocks cannot be returned, they are reused.
  if (ftruncate(fd_, 0) != 0) return;
}

Status RowFile::Sync() {
  std::unique_lock<std::mutex> lock(mu_);
  if (open_ >= 0 && segment(open_)->appended > 0) Seal();
  while (!sealed_.empty()) {
    const int64_t before = write_attempts_;
    retry_ = true;
    to_write_.notify_one();
    written_.wait(lock,
                  [&] { return sealed_.empty() || write_attempts_ != before; });
    if (!write_error_.ok()) return write_error_;
  }
  return Status::OK();
}

int64_t RowFile::buffer_bytes() const {
  std::lock_guard<std::mutex> lock(mu_);
  return (buffers_used_ + static_cast<int64_t>(idle_buffers_.size())) *
         segment_bytes_;
}

}  // namespace ev
