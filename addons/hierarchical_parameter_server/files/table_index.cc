// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/files/table_index.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <utility>

#include "kernels/engine/base/hash.h"
#include "kernels/engine/base/pages.h"

namespace hps {

struct TableIndex::Header {
  char magic[8];
  uint64_t seed;
  int64_t num_buckets;
  int64_t distinct;
  int64_t longest;  // most buckets that a key is searched in
  int64_t rows;
  uint64_t key_hash;
  uint64_t bucket_hash;
  // The hashes are not compared if the index file and the key file still are
  // these; see MappedFile. 0: always compare.
  uint64_t index_inode;
  uint64_t key_inode;
  int64_t key_changed_ns;
  uint32_t key_bits;
  uint32_t checksum;  // of the members above
  uint64_t unused[4];

  uint32_t Checksum() const {
    uint64_t sum = key_bits;
    for (const uint64_t word :
         {seed, static_cast<uint64_t>(num_buckets),
          static_cast<uint64_t>(distinct), static_cast<uint64_t>(longest),
          static_cast<uint64_t>(rows), key_hash, bucket_hash, index_inode,
          key_inode, static_cast<uint64_t>(key_changed_ns)}) {
      sum = ev::MixKey(static_cast<int64_t>(sum ^ word));
    }
    return static_cast<uint32_t>(sum >> 32);
  }

  void Trust(uint64_t inode, const MappedFile& keys) {
    index_inode = inode;
    key_inode = keys.inode();
    key_changed_ns = keys.changed_ns();
    checksum = Checksum();
  }
  bool Trusts(const MappedFile& index, const MappedFile& keys) const {
    return key_changed_ns != 0 && key_changed_ns == keys.changed_ns() &&
           key_inode == keys.inode() && index_inode == index.inode();
  }
};

namespace {

constexpr char kMagic[8] = {'H', 'P', 'S', 'I', 'N', 'D', 'X', '2'};
constexpr double kLoad = 0.85;

// Returns a hash of all words, in order. Four independent sums make it as fast
// as memory.
uint64_t HashOf(ev::Span<const int64_t> words) {
  uint64_t sums[4] = {1, 2, 3, 4};
  const auto mix = [&](int s, int64_t word) {
    sums[s] = (sums[s] ^ static_cast<uint64_t>(word)) * 0x9E3779B97F4A7C15ull;
    sums[s] ^= sums[s] >> 29;
  };
  size_t i = 0;
  for (; i + 4 <= words.size(); i += 4) {
    for (int s = 0; s < 4; ++s) mix(s, words[i + s]);
  }
  for (; i < words.size(); ++i) mix(0, words[i]);
  uint64_t hash = words.size();
  for (const uint64_t sum : sums) {
    hash = ev::MixKey(static_cast<int64_t>(hash ^ sum));
  }
  return hash;
}

uint64_t HashOfBuckets(const TableIndex::Bucket* buckets, int64_t count) {
  constexpr int64_t kWords = sizeof(TableIndex::Bucket) / sizeof(int64_t);
  return HashOf({reinterpret_cast<const int64_t*>(buckets),
                 static_cast<size_t>(count * kWords)});
}

// Draws a seed from the process's secret and a value that no other file has.
uint64_t DrawSeed(const void* somewhere) {
  static std::atomic<int64_t> count{0};
  return ev::KeyedHash::OfProcess()(static_cast<int64_t>(
      reinterpret_cast<uintptr_t>(somewhere) + 0x9E37 * ++count));
}

bool WriteAll(int descriptor, const char* data, int64_t bytes) {
  while (bytes > 0) {
    const ssize_t done =
        write(descriptor, data, std::min<int64_t>(bytes, int64_t{1} << 28));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    data += done;
    bytes -= done;
  }
  return true;
}

// Writes to a temporary file and renames it when it is complete. Calls
// prepare(inode) with the file's inode before writing. Returns an error text,
// or "".
template <typename Prepare>
std::string WriteFile(const std::string& path, const void* data, int64_t bytes,
                      const Prepare& prepare) {
  static std::atomic<int> count{0};
  const std::string part = path + ".part." + std::to_string(getpid()) + "." +
                           std::to_string(++count);
  const int descriptor =
      open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (descriptor < 0) return std::strerror(errno);
  std::string error;
  struct stat about;
  const bool is_known = fstat(descriptor, &about) == 0;
  prepare(is_known ? about.st_ino : 0);
  if (!WriteAll(descriptor, static_cast<const char*>(data), bytes) ||
      fsync(descriptor) != 0) {
    error = std::strerror(errno);
  }
  close(descriptor);
  if (error.empty() && std::rename(part.c_str(), path.c_str()) != 0) {
    error = std::strerror(errno);
  }
  if (!error.empty()) unlink(part.c_str());
  return error;
}

// Replaces the header of the index file with this inode. Other processes check
// the header's checksum. After an error the next process compares the hashes
// again.
void WriteHeader(const std::string& path, uint64_t inode, const void* header,
                 int64_t bytes) {
  const int descriptor = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) return;
  struct stat about;
  if (fstat(descriptor, &about) == 0 && about.st_ino == inode) {
    WriteAll(descriptor, static_cast<const char*>(header), bytes);
  }
  close(descriptor);
}

// Inserts every key; counts the distinct ones and the most buckets that one is
// searched in. Prefetches the buckets of keys to come.
ev::Status Fill(const TableDirectory& directory, KeyBits bits, uint64_t seed,
                int64_t num_buckets, TableIndex::Bucket* buckets,
                int64_t* distinct, int64_t* longest) {
  constexpr int64_t kAhead = 32;
  const ev::KeyedHash hash = ev::KeyedHash::FromSeed(seed);
  const ev::Span<const int64_t> keys = directory.keys();
  const int64_t rows = directory.rows();
  int64_t ahead[kAhead];
  *distinct = 0;
  *longest = 1;
  for (int64_t i = 0; i < rows + kAhead; ++i) {
    int64_t key = 0;
    if (i >= kAhead) {
      const int64_t row = i - kAhead;
      if (!NormalKey(bits, keys[row], &key)) {
        return ev::InvalidArgument(
            "'" + directory.key_file().path() + "', key " +
            std::to_string(keys[row]) + " of row " + std::to_string(row) +
            ": supportlonglong is false, expected a key of 32 bits");
      }
      int64_t searched = 1;
      for (int64_t bucket = ahead[i % kAhead];; ++searched) {
        TableIndex::Bucket& slot = buckets[bucket];
        uint32_t at = 0;
        while (at < slot.used && slot.keys[at] != key) ++at;
        if (at < TableIndex::Bucket::kKeys) {
          if (at == slot.used) {
            slot.keys[at] = key;
            ++slot.used;
            ++*distinct;
          }
          slot.rows[at] = static_cast<uint32_t>(row);
          break;
        }
        if (++bucket == num_buckets) bucket = 0;
      }
      *longest = std::max(*longest, searched);
    }
    if (i < rows) {
      NormalKey(bits, keys[i], &key);
      ahead[i % kAhead] = static_cast<int64_t>(
          (static_cast<unsigned __int128>(hash(key)) * num_buckets) >> 64);
      __builtin_prefetch(&buckets[ahead[i % kAhead]], 1);
    }
  }
  return ev::Status::OK();
}

}  // namespace

bool TableIndex::Adopt(const void* data, int64_t bytes) {
  static_assert(sizeof(Header) == 128, "two lines");
  if (bytes < static_cast<int64_t>(sizeof(Header))) return false;
  const Header& header = *static_cast<const Header*>(data);
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0 ||
      header.checksum != header.Checksum() || header.num_buckets < 1 ||
      header.num_buckets > (int64_t{1} << 40) ||
      bytes != static_cast<int64_t>(sizeof(Header) +
                                    header.num_buckets * sizeof(Bucket)) ||
      header.distinct >= header.num_buckets * Bucket::kKeys ||
      header.longest < 1 || header.longest > header.num_buckets) {
    return false;
  }
  hash_ = ev::KeyedHash::FromSeed(header.seed);
  buckets_ = reinterpret_cast<const Bucket*>(static_cast<const char*>(data) +
                                             sizeof(Header));
  num_buckets_ = header.num_buckets;
  distinct_ = header.distinct;
  longest_ = header.longest;
  rows_ = header.rows;
  bytes_ = bytes;
  return true;
}

ev::Status TableIndex::Open(const TableDirectory& directory, KeyBits bits,
                            std::unique_ptr<TableIndex>* index,
                            std::string* note) {
  note->clear();
  const int64_t rows = directory.rows();
  if (rows > int64_t{UINT32_MAX} - 1) {
    return ev::InvalidArgument("'" + directory.key_file().path() +
                               "': expected at most 4294967294 keys, got " +
                               std::to_string(rows));
  }
  const uint32_t key_bits = bits == KeyBits::k32 ? 32 : 64;
  const std::string path =
      directory.folder() + (key_bits == 32 ? "/hps_index32" : "/hps_index");
  const MappedFile& keys = directory.key_file();
  std::unique_ptr<TableIndex> made(new TableIndex);
  uint64_t key_hash = 0;
  if (MappedFile::Open(path, &made->file_).ok() &&
      made->Adopt(made->file_->data(), made->file_->bytes())) {
    const MappedFile& file = *made->file_;
    Header header = *static_cast<const Header*>(file.data());
    bool fits = header.rows == rows && header.key_bits == key_bits;
    if (fits && !header.Trusts(file, keys)) {
      key_hash = HashOf(directory.keys());
      fits = key_hash == header.key_hash &&
             header.bucket_hash ==
                 HashOfBuckets(made->buckets_, made->num_buckets_);
      // The file of a copied folder is not written to: in a layer of a
      // container's image that would copy all of it.
      if (fits && header.index_inode == file.inode() &&
          keys.changed_ns() != 0) {
        header.Trust(file.inode(), keys);
        WriteHeader(path, file.inode(), &header, sizeof(header));
      }
    }
    if (fits) {
      made->found_ = true;
      *index = std::move(made);
      return ev::Status::OK();
    }
  }
  made.reset(new TableIndex);

  const int64_t buckets = static_cast<int64_t>(static_cast<double>(rows) /
                                               (kLoad * Bucket::kKeys)) +
                          1;
  const size_t bytes = sizeof(Header) + buckets * sizeof(Bucket);
  void* const memory = ev::AllocateLines(bytes);
  if (memory == nullptr) {
    return ev::ResourceExhausted("no memory for the index of '" +
                                 directory.folder() + "', " +
                                 std::to_string(bytes) + " bytes");
  }
  made->memory_ = memory;
  made->bytes_ = static_cast<int64_t>(bytes);
  Header* const header = static_cast<Header*>(memory);
  std::memcpy(header->magic, kMagic, sizeof(kMagic));
  header->seed = DrawSeed(memory);
  header->num_buckets = buckets;
  header->rows = rows;
  header->key_bits = key_bits;
  EV_RETURN_IF_ERROR(Fill(directory, bits, header->seed, buckets,
                          reinterpret_cast<Bucket*>(header + 1),
                          &header->distinct, &header->longest));
  header->key_hash = key_hash != 0 ? key_hash : HashOf(directory.keys());
  header->bucket_hash =
      HashOfBuckets(reinterpret_cast<Bucket*>(header + 1), buckets);
  header->Trust(0, keys);
  const std::string error =
      WriteFile(path, memory, made->bytes_,
                [&](uint64_t inode) { header->Trust(inode, keys); });
  if (error.empty()) {
    // A mapped file's pages are shared with other processes; private memory is
    // not.
    std::unique_ptr<TableIndex> mapped(new TableIndex);
    if (MappedFile::Open(path, &mapped->file_).ok() &&
        mapped->Adopt(mapped->file_->data(), mapped->file_->bytes())) {
      *index = std::move(mapped);
      return ev::Status::OK();
    }
  }
  *note = "the index of '" + directory.folder() +
          "' stays in this process's memory, " + std::to_string(bytes) +
          " bytes: cannot write '" + path + "': " + error;
  made->Adopt(memory, made->bytes_);
  *index = std::move(made);
  return ev::Status::OK();
}

TableIndex::~TableIndex() {
  if (memory_ != nullptr) ev::FreeLines(memory_, static_cast<size_t>(bytes_));
}

}  // namespace hps
