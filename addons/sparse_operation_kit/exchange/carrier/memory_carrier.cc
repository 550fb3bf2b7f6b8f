// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The carrier "memory": connects ranks of one host through a file in shared
// memory.
//
// LAYOUT. A header, then some rings of bytes ("rings") for every ordered pair
// of ranks. Each ring has a count of all bytes written to it and a count of all
// bytes read from it. It has one writer and one reader, so these two counts are
// enough to synchronize them. Long data is cut into one part per ring; the cut
// depends on the length alone, so both sides cut alike.
//
// THREADS. The work is copying, and one thread does not use the full memory
// bandwidth. If there are enough CPUs, several threads share the streams of a
// long call, including what a rank sends to itself.
//
// WAITING. A rank that can neither write nor read polls, first without a pause,
// then after sleeps of up to 200 us, since there may be more ranks than CPUs.
//
// ENDINGS. The file's name is removed once all ranks have opened it, so nothing
// is left behind however they end later. Each rank locks one byte of the file,
// and the system releases the lock with the process. A rank that waits too long
// checks the lock, and so detects a death within a tenth of a second. A rank
// that fails records it in the header. A lock lasts as long as any copy of its
// file descriptor or mapping, and a forked process inherits both. So the locked
// descriptor is not the mapped one, and a forked process closes it.
//
// The process that creates the file locks another byte until it has opened the
// file as a rank. So a file without any lock belongs to ranks that died before
// all had opened it; the process that creates the next file removes it.

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "addons/sparse_operation_kit/exchange/carrier/carrier.h"
#include "kernels/engine/base/locked_file.h"
#include "kernels/engine/base/tasks.h"

namespace sok {
namespace {

using ev::LockedFile;

constexpr char kFolder[] = "/dev/shm";
constexpr char kPrefix[] = "sok_exchange_";
constexpr int64_t kRingBytes = 1 << 20, kLeastRingBytes = 64 << 10;
constexpr int64_t kMostBytes = 32 << 20;
constexpr int kMostRings = 4;    // per pair of ranks
constexpr int kMostThreads = 4;  // per rank
// Shorter data uses one ring per pair of ranks; a shorter call uses one thread.
constexpr int64_t kLongBytes = 1 << 20;
constexpr int kLooksAtOnce = 2000;
constexpr auto kLookForTheDead = std::chrono::milliseconds(50);
constexpr auto kLookForLeavers = std::chrono::milliseconds(1);

struct alignas(64) Ring {
  std::atomic<uint64_t> written;
  alignas(64) std::atomic<uint64_t> read;
};

// Only the first ranks can record that they have left; others count as gone.
constexpr int kMostLeavers = 256;

struct alignas(64) Header {
  std::atomic<uint32_t> attached;  // ranks that have opened it
  // 0, or 1 + the rank that failed first; with kGone if another rank found it
  // gone.
  std::atomic<uint32_t> failed;
  // 0: the rank has not left; 1 + its calls.
  std::atomic<uint64_t> left[kMostLeavers];
};

// With more ranks, threads have enough rings anyway.
int NumRings(int num_ranks) {
  int rings = kMostRings;
  while (rings > 1 && rings * (num_ranks - 1) > kMostRings) rings /= 2;
  return rings;
}

// Bytes of a ring: a power of two, so that positions wrap when the counts
// overflow.
int64_t RingBytes(int num_ranks) {
  int64_t bytes = kRingBytes;
  while (bytes > kLeastRingBytes &&
         bytes * num_ranks * num_ranks > kMostBytes) {
    bytes /= 2;
  }
  return bytes / NumRings(num_ranks);
}

// Number of threads by the number of CPUs, assuming that all ranks run on this
// host.
int NumThreads(int num_ranks) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return std::min(kMostThreads, std::max(1, cores / num_ranks));
}

int64_t FileBytes(int num_ranks) {
  const int64_t pairs = int64_t{num_ranks} * num_ranks;
  return sizeof(Header) +
         pairs * NumRings(num_ranks) * (sizeof(Ring) + RingBytes(num_ranks));
}

std::string Because() { return std::string(": ") + strerror(errno); }

class File {
 public:
  explicit File(int number = -1) : number_(number) {}
  ~File() {
    if (number_ >= 0) close(number_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  File& operator=(File&& other) {
    std::swap(number_, other.number_);
    return *this;
  }
  int number() const { return number_; }
  int Release() {
    const int number = number_;
    number_ = -1;
    return number;
  }

 private:
  int number_;
};

// A lock on `bytes` bytes of a file from byte `first`; they need not exist.
struct flock LockOf(int64_t first, int64_t bytes) {
  struct flock lock;
  memset(&lock, 0, sizeof(lock));
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = first;
  lock.l_len = bytes;
  return lock;
}

// Beyond the byte of any rank.
constexpr int64_t kMakersByte = int64_t{1} << 40;

// Holds the file that this process created last until it has opened it as a
// rank.
class MadeFile {
 public:
  // Never destroyed: threads may end while the process does.
  static MadeFile& Global() {
    static MadeFile* const made = new MadeFile;
    return *made;
  }
  void Keep(int number) {
    std::lock_guard<std::mutex> lock(mu_);
    if (number_ >= 0) close(number_);
    number_ = number;
  }

 private:
  std::mutex mu_;
  int number_ = -1;
};

// Locks the file as its creator. Returns false if another process took the file
// for a left one, and has removed it or will. Returns true on systems without
// such locks, where no process removes left files.
bool TakeAsMaker(int number) {
  struct flock lock = LockOf(kMakersByte, 1);
  if (fcntl(number, F_OFD_SETLK, &lock) != 0) {
    return errno != EAGAIN && errno != EACCES;
  }
  struct stat about;
  return fstat(number, &about) == 0 && about.st_nlink > 0;
}

// Removes files of ranks that died before all had opened them. Skips files that
// cannot be opened, since they belong to other users.
void RemoveLeftFiles() {
  DIR* const folder = opendir(kFolder);
  if (folder == nullptr) return;
  while (const dirent* entry = readdir(folder)) {
    if (strncmp(entry->d_name, kPrefix, sizeof(kPrefix) - 1) != 0) continue;
    const std::string path = std::string(kFolder) + "/" + entry->d_name;
    const File file(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (file.number() < 0) continue;
    struct flock of_maker = LockOf(kMakersByte, 1);
    if (fcntl(file.number(), F_OFD_SETLK, &of_maker) != 0) continue;
    struct flock of_ranks = LockOf(0, kMakersByte);
    if (fcntl(file.number(), F_OFD_GETLK, &of_ranks) == 0 &&
        of_ranks.l_type == F_UNLCK) {
      unlink(path.c_str());
    }
  }
  closedir(folder);
}

ev::Status Check() {
  if (access(kFolder, W_OK) == 0) return ev::Status::OK();
  return ev::FailedPrecondition("an exchange through memory needs the folder " +
                                std::string(kFolder) + Because());
}

ev::Status MakeId(int num_ranks, std::string* id) {
  RemoveLeftFiles();
  std::string path;
  File file;
  do {
    path = std::string(kFolder) + "/" + kPrefix + "XXXXXX";
    file = File(mkostemp(&path[0], O_CLOEXEC));
    if (file.number() < 0) {
      return ev::FailedPrecondition(
          "an exchange through memory needs a file in " + std::string(kFolder) +
          Because());
    }
  } while (!TakeAsMaker(file.number()));
  // Allocate blocks, not only length: otherwise a lack of memory raises SIGBUS
  // at the first write.
  const int error = posix_fallocate(file.number(), 0, FileBytes(num_ranks));
  if (error != 0) {
    unlink(path.c_str());
    return ev::ResourceExhausted(
        "an exchange through memory between " + std::to_string(num_ranks) +
        " ranks needs " + std::to_string(FileBytes(num_ranks)) + " bytes in " +
        kFolder + ": " + strerror(error));
  }
  MadeFile::Global().Keep(file.Release());
  *id = path;
  return ev::Status::OK();
}

class MemoryCarrier : public Carrier {
 public:
  MemoryCarrier(const CarrierOptions& options, LockedFile locked, char* memory)
      : rank_(options.rank),
        num_ranks_(options.num_ranks),
        num_rings_(NumRings(options.num_ranks)),
        num_threads_(options.num_threads > 0 ? options.num_threads
                                             : NumThreads(options.num_ranks)),
        ring_bytes_(RingBytes(options.num_ranks)),
        longest_nap_(options.longest_nap_us),
        locked_(std::move(locked)),
        memory_(memory) {}

  // Bytes already sent stay readable. A rank that waits for more detects that
  // this rank is gone.
  ~MemoryCarrier() override { munmap(memory_, FileBytes(num_ranks_)); }

  static ev::Status Make(const CarrierOptions& options,
                         std::unique_ptr<Carrier>* carrier) {
    const File file(open(options.id.c_str(), O_RDWR | O_CLOEXEC));
    LockedFile locked(options.id, O_RDWR);
    struct stat about;
    if (file.number() < 0 || locked.number() < 0 ||
        fstat(file.number(), &about) != 0) {
      return ev::FailedPrecondition(
          "rank " + std::to_string(options.rank) +
          " does not see the memory that rank 0 shares, " + options.id +
          " (is it on another host?)" + Because());
    }
    const int64_t bytes = FileBytes(options.num_ranks);
    if (about.st_size != bytes) {
      return ev::FailedPrecondition(options.id + " has " +
                                    std::to_string(about.st_size) +
                                    " bytes, but an exchange between " +
                                    std::to_string(options.num_ranks) +
                                    " ranks needs " + std::to_string(bytes));
    }
    // On systems without such locks only the time limit detects a death.
    struct flock lock = LockOf(options.rank, 1);
    fcntl(locked.number(), F_OFD_SETLK, &lock);
    if (options.rank == 0) MadeFile::Global().Keep(-1);
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                        file.number(), 0);
    if (memory == MAP_FAILED) {
      return ev::ResourceExhausted("mapping " + std::to_string(bytes) +
                                   " bytes of shared memory" + Because());
    }
    std::unique_ptr<MemoryCarrier> made(new MemoryCarrier(
        options, std::move(locked), static_cast<char*>(memory)));
    // Fresh pages are zero, the initial value of all counters.
    const uint32_t attached = made->header()->attached.fetch_add(1) + 1;
    if (attached == static_cast<uint32_t>(options.num_ranks)) {
      unlink(options.id.c_str());
    }
    *carrier = std::move(made);
    return ev::Status::OK();
  }

  int rank() const override { return rank_; }
  int num_ranks() const override { return num_ranks_; }

  ev::Status AllToAll(const char* send, ev::Span<const int64_t> send_bytes,
                      char* out,
                      ev::Span<const int64_t> received_bytes) override {
    std::vector<Stream> streams;
    int64_t total = 0;
    for (int r = 0; r < num_ranks_; ++r) {
      if (r == rank_) {
        if (send_bytes[r] != received_bytes[r]) {
          return ev::Internal(
              "a rank sends itself " + std::to_string(send_bytes[r]) +
              " bytes and expects " + std::to_string(received_bytes[r]));
        }
      }
      for (int ring = 0; ring < num_rings_; ++ring) {
        const Part to = PartOf(send_bytes[r], ring);
        const Part from = PartOf(received_bytes[r], ring);
        Stream out_stream{rank_, r, ring, const_cast<char*>(send) + to.begin,
                          to.bytes};
        if (r == rank_) {
          out_stream.to_self = out + to.begin;
        } else if (from.bytes > 0) {
          streams.push_back(
              Stream{r, rank_, ring, out + from.begin, from.bytes});
        }
        if (to.bytes > 0) streams.push_back(out_stream);
      }
      total += send_bytes[r] + received_bytes[r];
      send += send_bytes[r];
      out += received_bytes[r];
    }
    return total < kLongBytes ? MoveAll(std::move(streams))
                              : MoveByThreads(streams);
  }

  ev::Status CheckRanks(int64_t call) override {
    const uint32_t failed = header()->failed.load();
    if (failed != 0) return Ended(failed);
    for (int other = 0; other < num_ranks_; ++other) {
      if (other == rank_ || CallsOf(other) > call) continue;
      EV_RETURN_IF_ERROR(CheckRank(other));
    }
    return ev::Status::OK();
  }

  void Leave(int64_t calls, std::chrono::milliseconds limit) override {
    if (rank_ < kMostLeavers) header()->left[rank_] = 1 + calls;
    const auto last = std::chrono::steady_clock::now() + limit;
    while (!AllHaveLeft() && CheckRanks(-1).ok() &&
           std::chrono::steady_clock::now() < last) {
      std::this_thread::sleep_for(kLookForLeavers);
    }
  }

  void Abort() override { Fail(1 + rank_); }

 private:
  static constexpr uint32_t kGone = uint32_t{1} << 31;

  // Only the first failure is kept; all ranks report it.
  void Fail(uint32_t failed) {
    uint32_t none = 0;
    header()->failed.compare_exchange_strong(none, failed);
  }
  // The remaining bytes of one ring between this rank and another. If this rank
  // is both source and target, they go to 'to_self'.
  struct Stream {
    int source, target, ring;
    char* at;
    int64_t left;
    char* to_self = nullptr;
  };

  struct Part {
    int64_t begin, bytes;
  };

  // Returns the part of a message of 'bytes' bytes that a ring carries.
  Part PartOf(int64_t bytes, int ring) const {
    if (bytes < kLongBytes) return ring == 0 ? Part{0, bytes} : Part{0, 0};
    const int64_t each = (bytes / num_rings_ + 63) / 64 * 64;
    const int64_t begin = std::min(bytes, ring * each);
    return Part{begin, ring + 1 == num_rings_ ? bytes - begin
                                              : std::min(each, bytes - begin)};
  }

  ev::Status MoveByThreads(const std::vector<Stream>& streams) {
    const size_t most =
        std::min(streams.size(), static_cast<size_t>(num_threads_));
    if (most <= 1) return MoveAll(streams);
    std::vector<std::vector<Stream>> shares(most);
    for (size_t i = 0; i < streams.size(); ++i) {
      shares[i % most].push_back(streams[i]);
    }
    std::vector<ev::Status> statuses(most);
    std::vector<std::thread> threads;
    threads.reserve(most);
    for (size_t k = 1; k < most; ++k) {
      try {
        threads.emplace_back([&, k] {
          statuses[k] =
              ev::CatchBadAlloc([&] { return MoveAll(std::move(shares[k])); });
        });
      } catch (const std::exception&) {  // no thread available
        shares[0].insert(shares[0].end(), shares[k].begin(), shares[k].end());
      }
    }
    // The threads use local variables, so do not throw before they are joined.
    statuses[0] =
        ev::CatchBadAlloc([&] { return MoveAll(std::move(shares[0])); });
    for (std::thread& thread : threads) thread.join();
    // Threads that only read the header's failure return a less specific status
    // than the one that detected it.
    const ev::Status reported = Ended(header()->failed.load());
    ev::Status worst;
    for (const ev::Status& status : statuses) {
      if (status.ok()) continue;
      if (worst.ok() || worst.message() == reported.message()) worst = status;
    }
    return worst;
  }

  ev::Status MoveAll(std::vector<Stream> streams) {
    Patience patience(this);
    ev::Status lost;
    while (!streams.empty()) {
      bool moved = false;
      for (size_t i = 0; i < streams.size();) {
        moved |= Move(&streams[i]);
        if (streams[i].left == 0) {
          streams[i] = streams.back();
          streams.pop_back();
        } else {
          ++i;
        }
      }
      if (moved) {
        patience.Renew();
        lost = ev::Status::OK();
        continue;
      }
      // Return the error only after another pass: bytes that a rank wrote
      // before it left may have arrived.
      EV_RETURN_IF_ERROR(lost);
      lost = patience.Lose(streams);
    }
    return ev::Status::OK();
  }

  static ev::Status Ended(uint32_t failed) {
    return ev::Internal(
        "rank " + std::to_string((failed & ~kGone) - 1) +
        ((failed & kGone) != 0 ? " is gone" : " ended the exchange"));
  }

  class Patience {
   public:
    explicit Patience(MemoryCarrier* carrier) : carrier_(carrier) { Renew(); }
    void Renew() {
      looks_ = 0;
      nap_ = std::chrono::microseconds(5);
    }
    // Waits a little. Returns an error if there is nothing left to wait for.
    ev::Status Lose(const std::vector<Stream>& streams) {
      // Counts no further: a wait without a time limit may last for days.
      if (looks_ < kLooksAtOnce) {
        ++looks_;
        return ev::Status::OK();
      }
      const uint32_t failed = carrier_->header()->failed.load();
      if (failed != 0) return Ended(failed);
      const auto now = std::chrono::steady_clock::now();
      if (now - looked_for_the_dead_ > kLookForTheDead) {
        looked_for_the_dead_ = now;
        for (const Stream& s : streams) {
          EV_RETURN_IF_ERROR(carrier_->CheckRank(
              s.source == carrier_->rank_ ? s.target : s.source));
        }
      }
      std::this_thread::sleep_for(nap_);
      nap_ = std::min(2 * nap_, carrier_->longest_nap_);
      return ev::Status::OK();
    }

   private:
    MemoryCarrier* const carrier_;
    int looks_ = 0;
    std::chrono::microseconds nap_{0};
    // Starts now: a rank may still be about to open the file.
    std::chrono::steady_clock::time_point looked_for_the_dead_ =
        std::chrono::steady_clock::now();
  };

  Header* header() const { return reinterpret_cast<Header*>(memory_); }
  int64_t RingNumber(const Stream& s) const {
    return (int64_t{s.source} * num_ranks_ + s.target) * num_rings_ + s.ring;
  }
  Ring* ring(const Stream& s) const {
    return reinterpret_cast<Ring*>(memory_ + sizeof(Header)) + RingNumber(s);
  }
  char* bytes(const Stream& s) const {
    const int64_t rings = int64_t{num_ranks_} * num_ranks_ * num_rings_;
    return memory_ + sizeof(Header) + rings * sizeof(Ring) +
           RingNumber(s) * ring_bytes_;
  }

  // Checks a rank that this rank waits for. Returns an error if it is gone or
  // has left, since it will send nothing more.
  ev::Status CheckRank(int other) {
    if (CallsOf(other) < 0 && !IsGone(other)) return ev::Status::OK();
    Fail((1 + other) | kGone);
    return ev::Internal("rank " + std::to_string(other) + " is gone");
  }

  // Number of calls that a rank had made when it left; -1 if it has not left.
  int64_t CallsOf(int other) const {
    return other < kMostLeavers
               ? static_cast<int64_t>(header()->left[other].load()) - 1
               : -1;
  }
  bool AllHaveLeft() const {
    for (int r = 0; r < num_ranks_; ++r) {
      if (CallsOf(r) < 0) return false;
    }
    return true;
  }

  // Returns whether a rank that had opened the file is gone.
  bool IsGone(int other) const {
    if (header()->attached.load() < static_cast<uint32_t>(num_ranks_)) {
      return false;
    }
    struct flock lock = LockOf(other, 1);
    return fcntl(locked_.number(), F_OFD_GETLK, &lock) == 0 &&
           lock.l_type == F_UNLCK;
  }

  // Copies as much as possible now. Returns whether any byte was copied.
  bool Move(Stream* stream) {
    if (stream->to_self != nullptr) {
      const int64_t n = std::min(stream->left, ring_bytes_ / 4);
      memcpy(stream->to_self, stream->at, n);
      stream->to_self += n;
      stream->at += n;
      stream->left -= n;
      return true;
    }
    Ring* const numbers = ring(*stream);
    const bool writes = stream->source == rank_;
    const uint64_t written = numbers->written.load(std::memory_order_acquire);
    const uint64_t read = numbers->read.load(std::memory_order_acquire);
    const int64_t full = static_cast<int64_t>(written - read);
    // At most a quarter, so that the other side can work in parallel.
    const int64_t n = std::min(
        {stream->left, ring_bytes_ / 4, writes ? ring_bytes_ - full : full});
    if (n == 0) return false;
    char* const ring_begin = bytes(*stream);
    const int64_t at = (writes ? written : read) & (ring_bytes_ - 1);
    const int64_t first = std::min(n, ring_bytes_ - at);
    if (writes) {
      memcpy(ring_begin + at, stream->at, first);
      memcpy(ring_begin, stream->at + first, n - first);
      numbers->written.store(written + n, std::memory_order_release);
    } else {
      memcpy(stream->at, ring_begin + at, first);
      memcpy(stream->at + first, ring_begin, n - first);
      numbers->read.store(read + n, std::memory_order_release);
    }
    stream->at += n;
    stream->left -= n;
    return true;
  }

  const int rank_, num_ranks_;
  const int num_rings_, num_threads_;
  const int64_t ring_bytes_;
  const std::chrono::microseconds longest_nap_;
  const LockedFile locked_;
  char* const memory_;
};

const bool kRegistered = RegisterCarrier(
    "memory", CarrierKind{&Check, &MakeId, &MemoryCarrier::Make});

}  // namespace
}  // namespace sok
