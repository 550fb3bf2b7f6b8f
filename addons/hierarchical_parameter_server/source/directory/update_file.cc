// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/source/directory/update_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "addons/hierarchical_parameter_server/source/update_message.h"
#include "kernels/engine/base/hash.h"

namespace hps {

const char kNextNumberFile[] = ".next_number";

namespace {

constexpr char kMagic[] = "HPSUPDT1";
constexpr size_t kMagicBytes = 8;
constexpr char kEnding[] = ".update";
constexpr size_t kDigits = 20;

struct Head {
  char magic[kMagicBytes];
  uint32_t tag_bytes;
  uint32_t width;
  uint64_t num_rows;
  uint64_t checksum;
};
static_assert(sizeof(Head) == 32, "the format of update_file.h");

uint64_t Checksum(const char* bytes, size_t size) {
  uint64_t sum = size;
  while (size > 0) {
    int64_t word = 0;
    const size_t now = std::min(size, sizeof(word));
    std::memcpy(&word, bytes, now);
    sum = ev::MixKey(static_cast<int64_t>(sum ^ static_cast<uint64_t>(word)));
    bytes += now;
    size -= now;
  }
  return sum;
}

ev::Status SystemError(const std::string& what, const std::string& path) {
  const std::string message = what + " " + path + ": " + std::strerror(errno);
  return errno == ENOENT ? ev::NotFound(message) : ev::Internal(message);
}

ev::Status SyncPath(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return SystemError("open", path);
  const bool is_good = fsync(file) == 0;
  const ev::Status status =
      is_good ? ev::Status::OK() : SystemError("fsync", path);
  close(file);
  return status;
}

}  // namespace

std::string UpdateFileName(int64_t number) {
  char name[40];
  std::snprintf(name, sizeof(name), "%020lld%s", static_cast<long long>(number),
                kEnding);
  return name;
}

int64_t NumberOfUpdateFile(const std::string& name) {
  if (name.size() != kDigits + sizeof(kEnding) - 1 ||
      name.compare(kDigits, std::string::npos, kEnding) != 0) {
    return -1;
  }
  int64_t number = 0;
  for (size_t i = 0; i < kDigits; ++i) {
    if (name[i] < '0' || name[i] > '9' || number > INT64_MAX / 10 - 1) {
      return -1;
    }
    number = number * 10 + (name[i] - '0');
  }
  return number;
}

void AppendSection(const std::string& tag, int width,
                   ev::Span<const int64_t> keys, const float* rows,
                   std::string* bytes) {
  Head head;
  std::memcpy(head.magic, kMagic, kMagicBytes);
  head.tag_bytes = static_cast<uint32_t>(tag.size());
  head.width = static_cast<uint32_t>(width);
  head.num_rows = keys.size();
  const size_t at = bytes->size();
  bytes->append(sizeof(head), '\0');
  bytes->append(tag);
  bytes->append(reinterpret_cast<const char*>(keys.data()),
                keys.size() * sizeof(int64_t));
  bytes->append(reinterpret_cast<const char*>(rows),
                keys.size() * width * sizeof(float));
  head.checksum = Checksum(bytes->data() + at + sizeof(head),
                           bytes->size() - at - sizeof(head));
  std::memcpy(&(*bytes)[at], &head, sizeof(head));
}

ev::Status ReadSections(const std::string& bytes,
                        std::vector<UpdateBatch>* batches) {
  batches->clear();
  size_t at = 0;
  const auto wrong = [&](const std::string& what) {
    batches->clear();
    return ev::Status(ev::StatusCode::kDataLoss,
                      "at byte " + std::to_string(at) + " of " +
                          std::to_string(bytes.size()) + ": " + what);
  };
  if (bytes.empty()) return wrong("an empty file");
  while (at < bytes.size()) {
    Head head;
    if (bytes.size() - at < sizeof(head))
      return wrong("the header is truncated");
    std::memcpy(&head, bytes.data() + at, sizeof(head));
    if (std::memcmp(head.magic, kMagic, kMagicBytes) != 0) {
      return wrong("expected HPSUPDT1");
    }
    const size_t left = bytes.size() - at - sizeof(head);
    if (head.tag_bytes > left) return wrong("the tag is truncated");
    UpdateBatch batch;
    const char* from = bytes.data() + at + sizeof(head);
    batch.tag.assign(from, head.tag_bytes);
    const ev::Status status = CheckUpdate(
        batch.tag, static_cast<int>(std::min<uint32_t>(head.width, 1u << 30)));
    if (!status.ok()) return wrong(status.message());
    batch.width = static_cast<int>(head.width);
    const size_t row_bytes = sizeof(int64_t) + sizeof(float) * batch.width;
    const size_t rest = left - head.tag_bytes;
    if (head.num_rows > rest / row_bytes) {
      return wrong(std::to_string(head.num_rows) +
                   " rows, but the file is shorter");
    }
    const size_t size = head.tag_bytes + head.num_rows * row_bytes;
    if (Checksum(from, size) != head.checksum) {
      return wrong("the checksum does not match");
    }
    from += head.tag_bytes;
    batch.keys.resize(head.num_rows);
    batch.rows.resize(head.num_rows * batch.width);
    if (head.num_rows > 0) {
      std::memcpy(batch.keys.data(), from, head.num_rows * sizeof(int64_t));
      std::memcpy(batch.rows.data(), from + head.num_rows * sizeof(int64_t),
                  batch.rows.size() * sizeof(float));
    }
    batches->push_back(std::move(batch));
    at += sizeof(head) + size;
  }
  return ev::Status::OK();
}

ev::Status ReadWholeFile(const std::string& path, std::string* bytes) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return SystemError("open", path);
  const off_t size = lseek(file, 0, SEEK_END);
  bytes->resize(std::max<off_t>(size, 0));
  size_t at = 0;
  while (at < bytes->size()) {
    const ssize_t got = pread(file, &(*bytes)[at], bytes->size() - at, at);
    if (got > 0) {
      at += got;
    } else if (got == 0 || errno != EINTR) {
      break;
    }
  }
  const ev::Status status = size >= 0 && at == bytes->size()
                                ? ev::Status::OK()
                                : SystemError("read", path);
  close(file);
  return status;
}

ev::Status WriteWholeFile(const std::string& folder, const std::string& name,
                          const std::string& bytes) {
  // Unique to this process and thread; readers ignore names that start with a
  // dot.
  static std::atomic<int64_t> count{0};
  const std::string made = folder + "/.writing." + std::to_string(getpid()) +
                           "." + std::to_string(count++);
  const std::string path = folder + "/" + name;
  const int file =
      open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return SystemError("create", made);
  size_t at = 0;
  bool is_good = true;
  while (at < bytes.size() && is_good) {
    const ssize_t put = write(file, bytes.data() + at, bytes.size() - at);
    if (put >= 0) {
      at += put;
    } else {
      is_good = errno == EINTR;
    }
  }
  is_good = is_good && fsync(file) == 0;
  ev::Status status = is_good ? ev::Status::OK() : SystemError("write", made);
  close(file);
  if (is_good && rename(made.c_str(), path.c_str()) != 0) {
    status = SystemError("rename to", path);
  }
  if (!status.ok()) {
    unlink(made.c_str());
    return status;
  }
  return SyncPath(folder);
}

ev::Status ListUpdateFiles(const std::string& folder,
                           std::vector<int64_t>* numbers) {
  DIR* const opened = opendir(folder.c_str());
  if (opened == nullptr) return SystemError("open the folder", folder);
  numbers->clear();
  while (const dirent* const entry = readdir(opened)) {
    const int64_t number = NumberOfUpdateFile(entry->d_name);
    if (number >= 0) numbers->push_back(number);
  }
  closedir(opened);
  std::sort(numbers->begin(), numbers->end());
  return ev::Status::OK();
}

ev::Status ReadNextNumber(const std::string& folder, int64_t* number) {
  std::string text;
  const ev::Status status =
      ReadWholeFile(folder + "/" + kNextNumberFile, &text);
  *number = 1;
  if (status.code() == ev::StatusCode::kNotFound) return ev::Status::OK();
  EV_RETURN_IF_ERROR(status);
  *number = std::atoll(text.c_str());
  if (*number >= 1) return ev::Status::OK();
  return ev::Status(ev::StatusCode::kDataLoss,
                    folder + "/" + kNextNumberFile +
                        ": expected a number, got '" + text + "'");
}

}  // namespace hps
