// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/files/table_sums.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "addons/hierarchical_parameter_server/config/json.h"
#include "kernels/engine/base/tasks.h"

namespace hps {
namespace {

constexpr int64_t kMib = int64_t{1} << 20;
constexpr int64_t kDigits = 8;  // of a CRC-32
constexpr int kSlices = 8;      // bytes per step of Crc32

// table[s][b]: the CRC-32 of byte b followed by s zero bytes.
using CrcTables = std::array<std::array<uint32_t, 256>, kSlices>;

CrcTables MakeCrcTables() {
  CrcTables tables;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320u : 0u);
    }
    tables[0][byte] = crc;
  }
  for (int s = 1; s < kSlices; ++s) {
    for (int byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[s - 1][byte];
      tables[s][byte] = (before >> 8) ^ tables[0][before & 0xFF];
    }
  }
  return tables;
}

}  // namespace

uint32_t Crc32(const void* data, int64_t bytes) {
  static const CrcTables tables = MakeCrcTables();
  const uint8_t* at = static_cast<const uint8_t*>(data);
  uint32_t crc = ~0u;
  for (; bytes >= kSlices; bytes -= kSlices, at += kSlices) {
    uint64_t word;
    std::memcpy(&word, at, sizeof(word));
    word ^= crc;
    crc = 0;
    for (int s = 0; s < kSlices; ++s) {
      crc ^= tables[kSlices - 1 - s][(word >> (8 * s)) & 0xFF];
    }
  }
  for (; bytes > 0; --bytes, ++at) {
    crc = (crc >> 8) ^ tables[0][(crc ^ *at) & 0xFF];
  }
  return ~crc;
}

ev::Status Crc32OfMibs(const MappedFile& file, ev::Parallel* parallel,
                       std::vector<uint32_t>* crcs) {
  crcs->assign((file.bytes() + kMib - 1) / kMib, 0);
  return ev::ForRangesWithStatus(
      parallel, file.bytes(), kMib, [&](int64_t begin, int64_t end) {
        (*crcs)[begin / kMib] =
            Crc32(static_cast<const char*>(file.data()) + begin, end - begin);
        return ev::Status::OK();
      });
}

ev::Status TableSums::Read(const std::string& folder, TableSums* sums) {
  *sums = TableSums();
  sums->folder_ = folder;
  std::unique_ptr<MappedFile> file;
  const ev::Status status = MappedFile::Open(folder + "/hps_sums", &file);
  if (status.code() == ev::StatusCode::kNotFound) return ev::Status::OK();
  EV_RETURN_IF_ERROR(status);
  sums->text_.assign(static_cast<const char*>(file->data()),
                     static_cast<size_t>(file->bytes()));
  // An empty file is no valid JSON.
  if (sums->text_.empty()) sums->text_ = " ";
  return sums->Parse(folder);
}

ev::Status TableSums::Parse(const std::string& folder) {
  const std::string path = "'" + folder + "/hps_sums'";
  Json json;
  EV_RETURN_IF_ERROR(ParseJson(text_, path, &json));
  const Json* const files =
      json.kind == Json::Kind::kObject ? json.Find("files") : nullptr;
  if (files == nullptr || files->kind != Json::Kind::kObject) {
    return ev::InvalidArgument(path + ": expected an object with 'files'");
  }
  for (const auto& member : files->members) {
    File file;
    const Json* const bytes = member.second.Find("bytes");
    const Json* const digits = member.second.Find("crc32_of_mib");
    if (bytes != nullptr && bytes->is_integer) file.bytes = bytes->integer;
    const std::string text = digits != nullptr ? digits->text : "";
    for (size_t i = 0; i + kDigits <= text.size(); i += kDigits) {
      file.crc32_of_mib.push_back(static_cast<uint32_t>(
          std::strtoul(text.substr(i, kDigits).c_str(), nullptr, 16)));
    }
    // Checked without arithmetic on `bytes`, which may be any number.
    const int64_t mibs = static_cast<int64_t>(file.crc32_of_mib.size());
    if (bytes == nullptr || file.bytes < 0 || text.size() % kDigits != 0 ||
        file.bytes / kMib + (file.bytes % kMib != 0) != mibs) {
      return ev::InvalidArgument(
          path + ", file '" + member.first +
          "': expected 'bytes', and 'crc32_of_mib' with eight hexadecimal "
          "digits for each MiB");
    }
    files_[member.first] = std::move(file);
  }
  return ev::Status::OK();
}

ev::Status TableSums::Open(const std::string& name,
                           std::unique_ptr<MappedFile>* file) const {
  const std::string path = folder_ + "/" + name;
  ev::Status status = MappedFile::Open(path, file);
  if (!exist()) return status;
  // `convert` was interrupted, or is writing the table at this moment.
  std::unique_ptr<MappedFile> part;
  const bool has_part = MappedFile::Open(path + ".part", &part).ok();
  if (status.ok()) {
    status = has_part ? CheckAll(name, **file, nullptr)
                      : Check(name, **file, kSampled, nullptr);
  }
  if (!status.ok() && has_part && CheckAll(name, *part, nullptr).ok()) {
    *file = std::move(part);
    return ev::Status::OK();
  }
  return status;
}

ev::Status TableSums::CheckAll(const std::string& name, const MappedFile& file,
                               ev::Parallel* parallel) const {
  return Check(name, file, file.bytes() / kMib + 1, parallel);
}

ev::Status TableSums::Check(const std::string& name, const MappedFile& file,
                            int64_t count, ev::Parallel* parallel) const {
  if (!exist()) return ev::Status::OK();
  const auto found = files_.find(name);
  const auto wrong = [&](const std::string& what) {
    return ev::InvalidArgument(
        "'" + file.path() + "' " + what + ", according to '" + folder_ +
        "/hps_sums': it is damaged, or another program wrote it. In the second "
        "case, remove hps_sums");
  };
  if (found == files_.end()) return wrong("is not a file of the table");
  const File& sums = found->second;
  if (file.bytes() != sums.bytes) {
    return wrong("has " + std::to_string(file.bytes()) + " bytes, expected " +
                 std::to_string(sums.bytes));
  }
  const int64_t mibs = static_cast<int64_t>(sums.crc32_of_mib.size());
  count = std::min(count, mibs);
  return ev::RunTasksWithStatus(parallel, count, [&](int64_t i) -> ev::Status {
    const int64_t mib = count < 2 ? 0 : i * (mibs - 1) / (count - 1);
    const int64_t begin = mib * kMib;
    const uint32_t crc32 = Crc32(static_cast<const char*>(file.data()) + begin,
                                 std::min(kMib, sums.bytes - begin));
    if (crc32 == sums.crc32_of_mib[mib]) return ev::Status::OK();
    return wrong("has other content at byte " + std::to_string(begin) +
                 " and after it than expected");
  });
}

}  // namespace hps
