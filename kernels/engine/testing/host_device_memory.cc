// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/testing/host_device_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <utility>

namespace ev {
namespace testing {
namespace {

struct Block {
  size_t bytes = 0;
  char* reached = nullptr;
};

struct Blocks {
  std::mutex mu;
  std::map<const char*, Block> by_address;
};

// Never destroyed, because a framework's tensors may outlive static objects.
Blocks* AllBlocks() {
  static Blocks* const blocks = new Blocks;
  return blocks;
}

}  // namespace

void* AllocateHostDeviceMemory(size_t bytes) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  bytes = (bytes / page + 1) * page;
  char* const reached =
      static_cast<char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (reached == MAP_FAILED) return nullptr;
  char* const given = static_cast<char*>(
      mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (given == MAP_FAILED) {
    munmap(reached, bytes);
    return nullptr;
  }
  std::memset(reached, 0xff, bytes);
  Blocks* const blocks = AllBlocks();
  std::lock_guard<std::mutex> lock(blocks->mu);
  blocks->by_address[given] = Block{bytes, reached};
  return given;
}

void FreeHostDeviceMemory(void* memory) {
  Block block;
  {
    Blocks* const blocks = AllBlocks();
    std::lock_guard<std::mutex> lock(blocks->mu);
    const auto found = blocks->by_address.find(static_cast<char*>(memory));
    if (found == blocks->by_address.end()) return;
    block = found->second;
    blocks->by_address.erase(found);
  }
  munmap(memory, block.bytes);
  munmap(block.reached, block.bytes);
}

void* ReachHostDeviceMemory(const void* memory) {
  const char* const at = static_cast<const char*>(memory);
  Blocks* const blocks = AllBlocks();
  std::lock_guard<std::mutex> lock(blocks->mu);
  auto after = blocks->by_address.upper_bound(at);
  if (after == blocks->by_address.begin()) return nullptr;
  --after;
  const size_t offset = at - after->first;
  return offset < after->second.bytes ? after->second.reached + offset
                                      : nullptr;
}

void HostStream::Point::Reach() {
  std::call_once(once_, [this] {
    if (before_ != nullptr) before_->Reach();
    before_.reset();
    for (const std::function<void()>& work : works_) work();
    works_.clear();
    is_reached_ = true;
  });
}

void HostStream::Give(std::function<void()> work) {
  std::lock_guard<std::mutex> lock(mu_);
  works_.push_back(std::move(work));
}

std::shared_ptr<HostStream::Point> HostStream::Record() {
  std::lock_guard<std::mutex> lock(mu_);
  if (last_ == nullptr || !works_.empty()) {
    const auto point = std::make_shared<Point>();
    if (last_ != nullptr && !last_->is_reached()) point->before_ = last_;
    point->works_.swap(works_);
    last_ = point;
  }
  return last_;
}

}  // namespace testing
}  // namespace ev
