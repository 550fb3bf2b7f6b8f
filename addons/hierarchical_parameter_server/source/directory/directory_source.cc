// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/source/directory/directory_source.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "addons/hierarchical_parameter_server/source/directory/update_file.h"
#include "addons/hierarchical_parameter_server/source/update_message.h"
#include "kernels/engine/base/locked_file.h"

namespace hps {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kLookAgainMs = 10;
constexpr size_t kPendingBytes = size_t{64} << 20;
constexpr int64_t kLockMs = 30000;
constexpr char kLockFile[] = ".lock";
constexpr char kStream[] = "directory";  // of marks

bool IsGroup(const std::string& group) {
  if (group.empty() || group.size() > 120) return false;
  for (const char c : group) {
    const bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                      (c >= '0' && c <= '9') || c == '.' || c == '_' ||
                      c == '-';
    if (!good) return false;
  }
  return true;
}

std::string PositionFile(const std::string& group) {
  return ".position." + group;
}

void Breathe() {
  std::this_thread::sleep_for(std::chrono::milliseconds(kLookAgainMs));
}

int64_t MsSince(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() -
                                                               start)
      .count();
}

// Lets one producer at a time choose a file number.
class FolderLock {
 public:
  ev::Status Take(const std::string& folder, int64_t timeout_ms) {
    const std::string path = folder + "/" + kLockFile;
    file_ = ev::LockedFile(path, O_RDWR | O_CREAT, 0666);
    if (file_.number() < 0) {
      return ev::Internal("create " + path + ": " + std::strerror(errno));
    }
    const Clock::time_point start = Clock::now();
    while (flock(file_.number(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) {
        return ev::Internal("lock " + path + ": " + std::strerror(errno));
      }
      if (MsSince(start) >= timeout_ms) {
        return ev::Internal("another producer holds " + path + " for " +
                            std::to_string(timeout_ms) + " ms");
      }
      Breathe();
    }
    return ev::Status::OK();
  }

 private:
  ev::LockedFile file_;
};

}  // namespace

ev::Status DirectorySource::Open(const DirectorySourceOptions& options,
                                 std::unique_ptr<UpdateSource>* source) {
  if (!IsGroup(options.group)) {
    return ev::InvalidArgument(
        "update source directory: the group '" + options.group +
        "': expected 1 to 120 letters, digits, '.', '_' and '-'");
  }
  if (options.max_batch_size < 1) {
    return ev::InvalidArgument(
        "update source directory: max_batch_size: expected 1 or more, got " +
        std::to_string(options.max_batch_size));
  }
  std::unique_ptr<DirectorySource> made(new DirectorySource(options));
  EV_RETURN_IF_ERROR(TagFilter::Make(options.filters, &made->filter_));
  struct stat about;
  if (stat(options.path.c_str(), &about) != 0 || !S_ISDIR(about.st_mode)) {
    return ev::NotFound("update source directory: there is no folder '" +
                        options.path + "'");
  }
  EV_RETURN_IF_ERROR(made->ReadPosition());
  EV_RETURN_IF_ERROR(made->CheckNumbers());
  *source = std::move(made);
  return ev::Status::OK();
}

ev::Status DirectorySource::ReadPosition() {
  const std::string path = options_.path + "/" + PositionFile(options_.group);
  std::string text;
  const ev::Status status = ReadWholeFile(path, &text);
  if (status.code() == ev::StatusCode::kNotFound) return ev::Status::OK();
  EV_RETURN_IF_ERROR(status);
  char* end = nullptr;
  given_ = committed_ = std::strtoll(text.c_str(), &end, 10);
  if (committed_ >= 0 && end != text.c_str() && *end == '\n') {
    return ev::Status::OK();
  }
  return ev::Status(ev::StatusCode::kDataLoss,
                    path + ": expected a number, got '" + text + "'");
}

ev::Status DirectorySource::CheckNumbers() const {
  int64_t next = 0;
  EV_RETURN_IF_ERROR(ReadNextNumber(options_.path, &next));
  std::vector<int64_t> numbers;
  EV_RETURN_IF_ERROR(ListUpdateFiles(options_.path, &numbers));
  if (!numbers.empty()) next = std::max(next, numbers.back() + 1);
  if (given_ < next) return ev::Status::OK();
  return ev::FailedPrecondition(
      "update source directory " + options_.path + ": group " + options_.group +
      " has read up to file " + std::to_string(given_) +
      ", but the next file will be " + std::to_string(next) +
      ": the folder was recreated; remove " + PositionFile(options_.group) +
      " to read it from the beginning");
}

ev::Status DirectorySource::Next(bool* is_one,
                                 std::vector<UpdateBatch>* batches) {
  *is_one = false;
  std::vector<int64_t> numbers;
  EV_RETURN_IF_ERROR(ListUpdateFiles(options_.path, &numbers));
  const auto next = std::upper_bound(numbers.begin(), numbers.end(), given_);
  statistics_.waiting = numbers.end() - next;
  if (next == numbers.end()) return CheckNumbers();
  const std::string path = options_.path + "/" + UpdateFileName(*next);
  std::string bytes;
  const ev::Status status = ReadWholeFile(path, &bytes);
  // The file was removed after the folder was listed.
  if (status.code() == ev::StatusCode::kNotFound) return ev::Status::OK();
  EV_RETURN_IF_ERROR(status);
  *is_one = true;
  const int64_t number = *next;
  std::vector<UpdateBatch> sections;
  const ev::Status good = ReadSections(bytes, &sections);
  if (!good.ok()) {
    given_ = number;
    --statistics_.waiting;
    ++statistics_.malformed;
    statistics_.last_malformed = path + " " + good.message();
    return ev::Status::OK();
  }
  std::map<std::string, ReadMark> marks;
  for (const UpdateBatch& section : sections) {
    if (options_.marks == nullptr || !filter_.Matches(section.tag) ||
        marks.count(section.tag) > 0) {
      continue;
    }
    ReadMark mark;
    EV_RETURN_IF_ERROR(options_.marks->Load(section.tag, kStream, &mark));
    // A mark behind the last file is one of a folder that was replaced.
    if (mark.next > numbers.back() + 1) mark.next = 0;
    marks[section.tag] = mark;
  }
  for (UpdateBatch& section : sections) {
    if (!filter_.Matches(section.tag) || section.keys.empty()) continue;
    if (options_.marks != nullptr) {
      ReadMark mark = marks[section.tag];
      if (number < mark.next) continue;  // the database has these rows
      mark.next = number + 1;
      marks_[section.tag] = mark;
    }
    const int64_t count = static_cast<int64_t>(section.keys.size());
    statistics_.rows += count;
    for (int64_t begin = 0; begin < count; begin += options_.max_batch_size) {
      const int64_t end = std::min(count, begin + options_.max_batch_size);
      ++statistics_.batches;
      if (end - begin == count) {
        batches->push_back(std::move(section));
        break;
      }
      UpdateBatch part;
      part.tag = section.tag;
      part.width = section.width;
      part.keys.assign(section.keys.begin() + begin,
                       section.keys.begin() + end);
      part.rows.assign(section.rows.begin() + begin * section.width,
                       section.rows.begin() + end * section.width);
      batches->push_back(std::move(part));
    }
  }
  // Updated last: if memory runs out for its rows, the file is read again.
  given_ = number;
  --statistics_.waiting;
  return ev::Status::OK();
}

ev::Status DirectorySource::Poll(int64_t timeout_ms,
                                 std::vector<UpdateBatch>* batches) {
  const Clock::time_point start = Clock::now();
  for (;;) {
    bool is_one = false;
    EV_RETURN_IF_ERROR(Next(&is_one, batches));
    if (!batches->empty()) return ev::Status::OK();
    if (is_one) continue;  // nothing in it for this group
    if (MsSince(start) >= timeout_ms) return ev::Status::OK();
    Breathe();
  }
}

ev::Status DirectorySource::Commit() {
  for (const auto& mark : marks_) {
    EV_RETURN_IF_ERROR(options_.marks->Store(mark.first, kStream, mark.second));
  }
  marks_.clear();
  if (!options_.commits) return ev::Status::OK();
  if (given_ == committed_) return ev::Status::OK();
  EV_RETURN_IF_ERROR(WriteWholeFile(options_.path, PositionFile(options_.group),
                                    std::to_string(given_) + "\n"));
  committed_ = given_;
  return ev::Status::OK();
}

ev::Status DirectoryProducer::Open(const std::string& path,
                                   std::unique_ptr<UpdateProducer>* producer) {
  if (mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) {
    return ev::NotFound("update source directory: cannot make '" + path +
                        "': " + std::strerror(errno));
  }
  producer->reset(new DirectoryProducer(path));
  return ev::Status::OK();
}

DirectoryProducer::~DirectoryProducer() { Flush(kLockMs); }

ev::Status DirectoryProducer::Send(const std::string& tag, int width,
                                   ev::Span<const int64_t> keys,
                                   const float* rows) {
  EV_RETURN_IF_ERROR(CheckUpdate(tag, width));
  std::lock_guard<std::mutex> lock(mutex_);
  AppendSection(tag, width, keys, rows, &pending_);
  return pending_.size() < kPendingBytes ? ev::Status::OK()
                                         : WriteFile(kLockMs);
}

ev::Status DirectoryProducer::Flush(int64_t timeout_ms) {
  std::lock_guard<std::mutex> lock(mutex_);
  return pending_.empty() ? ev::Status::OK() : WriteFile(timeout_ms);
}

ev::Status DirectoryProducer::WriteFile(int64_t timeout_ms) {
  FolderLock lock;
  EV_RETURN_IF_ERROR(lock.Take(path_, timeout_ms));
  int64_t number = 0;
  EV_RETURN_IF_ERROR(ReadNextNumber(path_, &number));
  std::vector<int64_t> numbers;
  EV_RETURN_IF_ERROR(ListUpdateFiles(path_, &numbers));
  if (!numbers.empty()) number = std::max(number, numbers.back() + 1);
  // Writes the counter first: a skipped number does no harm, a reused one
  // would.
  EV_RETURN_IF_ERROR(WriteWholeFile(path_, kNextNumberFile,
                                    std::to_string(number + 1) + "\n"));
  EV_RETURN_IF_ERROR(WriteWholeFile(path_, UpdateFileName(number), pending_));
  pending_.clear();
  return ev::Status::OK();
}

}  // namespace hps
