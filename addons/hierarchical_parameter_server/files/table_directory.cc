// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/files/table_directory.h"

#include <sys/stat.h>
#include <time.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hps {
namespace {

constexpr int kTries = 50;
constexpr int64_t kPauseNs = 2000000;

// Identifies the files of a folder: renaming one changes the folder's time.
struct FolderState {
  explicit FolderState(const std::string& folder) {
    struct stat about;
    if (stat(folder.c_str(), &about) != 0) return;
    inode = about.st_ino;
    seconds = about.st_mtim.tv_sec;
    nanoseconds = about.st_mtim.tv_nsec;
  }
  bool operator==(const FolderState& other) const {
    return inode == other.inode && seconds == other.seconds &&
           nanoseconds == other.nanoseconds;
  }
  uint64_t inode = 0;
  int64_t seconds = 0, nanoseconds = 0;
};

std::string VectorsName(RowType type) {
  return type == RowType::kFloat32
             ? std::string("emb_vector")
             : std::string("emb_vector_") + RowTypeName(type);
}

}  // namespace

ev::Status TableDirectory::OpenFiles() {
  EV_RETURN_IF_ERROR(sums_.Open("key", &keys_));
  EV_RETURN_IF_ERROR(OpenVectors());
  return CheckSizes();
}

ev::Status TableDirectory::OpenVectors() {
  ev::Status status = sums_.Open(VectorsName(format_.type), &vectors_);
  if (status.code() != ev::StatusCode::kNotFound) return status;
  if (format_.is_packed()) {
    std::unique_ptr<MappedFile> wide;
    EV_RETURN_IF_ERROR(sums_.Open(VectorsName(RowType::kFloat32), &wide));
    vectors_ = std::move(wide);
    format_.type = RowType::kFloat32;
    return ev::Status::OK();
  }
  for (const RowType type : {RowType::kFloat16, RowType::kUint8}) {
    std::unique_ptr<MappedFile> packed;
    if (!sums_.Open(VectorsName(type), &packed).ok()) continue;
    return ev::InvalidArgument(
        "'" + folder_ +
        "': expected float32 rows in the file emb_vector, got " +
        VectorsName(type) + "; add row_type_per_table with " +
        RowTypeName(type) + " to the configuration");
  }
  return status;
}

ev::Status TableDirectory::Open(const std::string& folder,
                                const RowFormat& format,
                                std::unique_ptr<TableDirectory>* directory) {
  for (int tries = 0; tries < kTries; ++tries) {
    std::unique_ptr<TableDirectory> made(new TableDirectory);
    made->folder_ = folder;
    made->format_ = format;
    const FolderState before(folder);
    EV_RETURN_IF_ERROR(TableSums::Read(folder, &made->sums_));
    const ev::Status status = made->OpenFiles();
    TableSums now;
    EV_RETURN_IF_ERROR(TableSums::Read(folder, &now));
    if (now == made->sums_ && FolderState(folder) == before) {
      if (status.ok()) *directory = std::move(made);
      return status;
    }
    const struct timespec pause = {0, kPauseNs};
    nanosleep(&pause, nullptr);
  }
  return ev::Unavailable("'" + folder +
                         "': its files were replaced while they were opened, " +
                         std::to_string(kTries) + " times in a row");
}

ev::Status TableDirectory::CheckContent(ev::Parallel* parallel) const {
  EV_RETURN_IF_ERROR(sums_.CheckAll("key", *keys_, parallel));
  return sums_.CheckAll(VectorsName(format_.type), *vectors_, parallel);
}

ev::Status TableDirectory::ContentId(ev::Parallel* parallel,
                                     std::string* id) const {
  *id = std::to_string(rows()) + "x" + FormatText(format_);
  for (const MappedFile* file : {keys_.get(), vectors_.get()}) {
    std::vector<uint32_t> crcs;
    EV_RETURN_IF_ERROR(Crc32OfMibs(*file, parallel, &crcs));
    *id += ":" + std::to_string(
                     Crc32(crcs.data(), static_cast<int64_t>(crcs.size() * 4)));
  }
  return ev::Status::OK();
}

ev::Status TableDirectory::CheckSizes() const {
  const int64_t key_bytes = keys_->bytes();
  const int64_t row_bytes =
      int64_t{format_.width()} * static_cast<int64_t>(sizeof(float));
  if (key_bytes == 0 ||
      key_bytes % static_cast<int64_t>(sizeof(int64_t)) != 0) {
    return ev::InvalidArgument(
        "'" + keys_->path() +
        "': expected int64 keys, one at least, so a multiple "
        "of 8 bytes; got " +
        std::to_string(key_bytes) + " bytes");
  }
  const int64_t bytes = vectors_->bytes();
  if (bytes != rows() * row_bytes) {
    return ev::InvalidArgument(
        "'" + vectors_->path() + "': the " + std::to_string(rows()) +
        " keys of '" + keys_->path() + "' with " + Describe(format_) +
        " each need " + std::to_string(rows() * row_bytes) + " bytes, got " +
        std::to_string(bytes) +
        (bytes % row_bytes == 0
             ? ", which is " + std::to_string(bytes / row_bytes) + " rows"
             : ""));
  }
  return ev::Status::OK();
}

}  // namespace hps
