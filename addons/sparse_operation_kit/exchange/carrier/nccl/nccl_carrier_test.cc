// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests the carrier "nccl" between the GPUs of this host, with one process per
// GPU.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "addons/sparse_operation_kit/exchange/carrier/carrier.h"
#include "addons/sparse_operation_kit/exchange/carrier/carrier_queue.h"
#include "addons/sparse_operation_kit/exchange/exchange_device.h"
#include "addons/sparse_operation_kit/exchange/testing/exchange_once.h"
#include "addons/sparse_operation_kit/exchange/testing/rank_processes.h"
#include "gtest/gtest.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/testing/skip_without_gpu.h"
#include "kernels/engine/testing/stream_under_test.h"

// Declared as in <cuda_runtime_api.h>, where the result is an enumeration: 0 is
// success.
extern "C" int cudaGetDeviceCount(int* count);
// kind: 1 to the device, 2 from it.
extern "C" int cudaMemcpy(void* to, const void* from, size_t bytes, int kind);
extern "C" int cudaMemcpyAsync(void* to, const void* from, size_t bytes,
                               int kind, void* stream);

namespace sok {
namespace {

// Counts the GPUs in a child process, since a process that has called CUDA must
// not fork. Errors as in CheckCarrier.
ev::Status CountGpus(int* gpus) {
  struct Answer {
    ev::StatusCode code;
    int gpus;
    char message[1000];
  };
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) return ev::Internal("there is no pipe");
  const pid_t child = fork();
  if (child == 0) {
    Answer answer = {};
    ev::Status status = CheckCarrier("nccl");
    if (status.ok() && cudaGetDeviceCount(&answer.gpus) != 0) {
      status = ev::Internal("cudaGetDeviceCount failed");
    }
    answer.code = status.code();
    status.message().copy(answer.message, sizeof(answer.message) - 1);
    const bool is_complete =
        write(pipe_ends[1], &answer, sizeof(answer)) == sizeof(answer);
    _exit(is_complete ? 0 : 1);
  }
  // Otherwise the read would not end if the child dies.
  close(pipe_ends[1]);
  Answer answer = {};
  const bool is_complete =
      read(pipe_ends[0], &answer, sizeof(answer)) == sizeof(answer);
  close(pipe_ends[0]);
  waitpid(child, nullptr, 0);
  if (!is_complete) {
    return ev::Internal("the process that counts GPUs ended early");
  }
  *gpus = answer.gpus;
  return ev::Status(answer.code, answer.message);
}

class NcclCarrierTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int gpus = 0;
    EV_SKIP_WITHOUT_GPU(CountGpus(&gpus));
    if (gpus < 2) {
      GTEST_SKIP() << "an exchange by NCCL needs two GPUs, and there is "
                   << gpus << " that this process sees";
    }
    num_ranks_ = std::min(4, gpus);
  }
  int num_ranks_ = 0;
};

// More than the carrier's buffers hold at first.
constexpr int64_t kMost = (9 << 20) + 5;

bool ExchangesOnce(Carrier* carrier, int round) {
  const ev::Status status = ExchangeOnce(carrier, round, kMost);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok();
}

TEST_F(NcclCarrierTest, CarriesBytesOfAnySizeBetweenAllRanks) {
  EXPECT_TRUE(
      OnRankProcesses("nccl", num_ranks_, [](std::unique_ptr<Carrier> carrier) {
        bool all = true;
        for (int round = 0; round < 12; ++round) {
          all &= ExchangesOnce(carrier.get(), round);
        }
        return all;
      }));
}

// Sends bytes to the other ranks' GPUs, and from there back.
bool ComesBack(Carrier* carrier, ExchangeDevice* device, int round) {
  const int rank = carrier->rank(), n = carrier->num_ranks();
  std::vector<int64_t> to(n), from(n);
  std::string sent;
  int64_t received_bytes = 0;
  for (int r = 0; r < n; ++r) {
    to[r] = SizeOf(round, rank, r, kMost);
    from[r] = SizeOf(round, r, rank, kMost);
    received_bytes += from[r];
    for (int64_t i = 0; i < to[r]; ++i) sent += ByteOf(round, rank, r, i);
  }
  std::string back(sent.size(), ' ');
  std::shared_ptr<char> device_memory;
  ev::Status status = device->Allocate(received_bytes, &device_memory);
  if (status.ok()) {
    status = carrier->AllToAll(sent.data(), to, device_memory.get(), from);
  }
  if (status.ok()) {
    status = carrier->AllToAll(device_memory.get(), from, &back[0], to);
  }
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok() && sent == back;
}

TEST_F(NcclCarrierTest, CarriesBetweenMemoryOfGpusAndOther) {
  EXPECT_TRUE(
      OnRankProcesses("nccl", num_ranks_, [](std::unique_ptr<Carrier> carrier) {
        ExchangeDevice* device = nullptr;
        bool all = ExchangeDevice::Get(&device).ok();
        for (int round = 0; all && round < 12; ++round) {
          all &= ComesBack(carrier.get(), device, round);
        }
        return all;
      }));
}

using Arrival =
    std::function<bool(int round, const std::atomic<bool>* aborted)>;

// Returns whether data arrives while all ranks run, and does not arrive once
// rank 1 is gone and the carrier is aborted, nor in later calls. Sets *aborted
// then.
bool EndsWhenAborted(Carrier* carrier, const Arrival& arrives) {
  if (!arrives(0, nullptr)) return false;
  if (carrier->rank() == 1) return true;
  std::atomic<bool> aborted{false};
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    carrier->Abort();
    aborted = true;
  });
  const bool arrived = arrives(1, &aborted);
  later.join();
  return !arrived && !arrives(2, nullptr);
}

TEST_F(NcclCarrierTest, AbortEndsTheWaitForARankThatIsGone) {
  EXPECT_TRUE(
      OnRankProcesses("nccl", num_ranks_, [](std::unique_ptr<Carrier> carrier) {
        return EndsWhenAborted(carrier.get(),
                               [&](int round, const std::atomic<bool>*) {
                                 return ExchangesOnce(carrier.get(), round);
                               });
      }));
}

TEST_F(NcclCarrierTest, ARankThatGoesEndsTheWaitOfTheOthers) {
  EXPECT_TRUE(
      OnRankProcesses("nccl", num_ranks_, [](std::unique_ptr<Carrier> carrier) {
        if (!ExchangesOnce(carrier.get(), 0)) return false;
        // Skips destructors, like a killed process.
        if (carrier->rank() == 1) _exit(0);
        return !ExchangesOnce(carrier.get(), 1);
      }));
}

TEST_F(NcclCarrierTest, TransfersThatComeInAnotherOrderOnEachRankMeet) {
  EXPECT_TRUE(
      OnRankProcesses("nccl", num_ranks_, [](std::unique_ptr<Carrier> carrier) {
        constexpr int kTransfers = 32;
        const int rank = carrier->rank(), n = carrier->num_ranks();
        CarrierQueue queue(std::move(carrier));
        std::vector<std::string> sent(kTransfers), out(kTransfers);
        std::mutex mu;
        std::condition_variable wake;
        int done = 0;
        bool all = true;
        for (int i = 0; i < kTransfers; ++i) {
          const int which = rank % 2 == 0 ? i : kTransfers - 1 - i;
          sent[which].assign(n, static_cast<char>('0' + which + rank));
          Transfer transfer;
          transfer.name = "call/" + std::to_string(which);
          transfer.send = sent[which].data();
          transfer.send_bytes.assign(n, 1);
          transfer.allocate = [&, which](ev::Span<const int64_t> received,
                                         char** to) {
            out[which].assign(received.size(), ' ');
            *to = &out[which][0];
            return ev::Status::OK();
          };
          transfer.done = [&](const ev::Status& status,
                              const std::shared_ptr<StreamEvent>&) {
            std::lock_guard<std::mutex> lock(mu);
            all &= status.ok();
            ++done;
            wake.notify_all();
          };
          queue.Add(std::move(transfer));
        }
        std::unique_lock<std::mutex> lock(mu);
        wake.wait(lock, [&] { return done == kTransfers; });
        for (int i = 0; i < kTransfers; ++i) {
          for (int r = 0; r < n; ++r) all &= out[i][r] == '0' + i + r;
        }
        return all;
      }));
}

// Polls until an event is reached, and calls End if the carrier is aborted
// meanwhile. Returns whether the event reports success.
bool Arrives(Carrier* carrier, StreamEvent* ready,
             const std::atomic<bool>* aborted) {
  while (!ready->IsReached()) {
    if (aborted != nullptr && *aborted) carrier->End();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return ready->Wait().ok();
}

// Sends bytes from GPU to GPU without waiting on the CPU, neither for the input
// nor for the result. After a failure all bytes must be 'when_failed'.
bool StartedBytesArrive(Carrier* carrier, ExchangeDevice* device, int round,
                        const std::atomic<bool>* aborted = nullptr) {
  constexpr int kWhenFailed = 0xff;
  const int rank = carrier->rank(), n = carrier->num_ranks();
  std::vector<int64_t> to(n), from(n);
  std::string sent, expected;
  for (int r = 0; r < n; ++r) {
    to[r] = SizeOf(round, rank, r, kMost);
    from[r] = SizeOf(round, r, rank, kMost);
    for (int64_t i = 0; i < to[r]; ++i) sent += ByteOf(round, rank, r, i);
    for (int64_t i = 0; i < from[r]; ++i) {
      expected += ByteOf(round, r, rank, i);
    }
  }
  std::shared_ptr<char> source, target;
  std::string got(expected.size(), ' ');
  std::shared_ptr<StreamEvent> after, ready;
  if (!device->Allocate(sent.size() + 1, &source).ok() ||
      !device->Allocate(got.size() + 1, &target).ok()) {
    return false;
  }
  ev::testing::GiveLate(device->stream(), [] {});
  if (cudaMemcpyAsync(source.get(), sent.data(), sent.size(), 1,
                      device->stream().native) != 0 ||
      !device->RecordEvent(device->stream(), &after).ok()) {
    return false;
  }
  const ev::Status started = carrier->StartAllToAll(
      source.get(), to, after, target.get(), from, kWhenFailed, &ready);
  if (!started.ok() || ready == nullptr) return false;
  const bool all = Arrives(carrier, ready.get(), aborted);
  if (!device->CopyDown(target.get(), got.size(), &got[0]).ok()) return false;
  if (all) return got == expected;
  const std::string failed(got.size(), static_cast<char>(kWhenFailed));
  if (got != failed) {
    std::fprintf(stderr, "bytes that never came are taken for those\n");
    std::abort();
  }
  return false;
}

// Sums tensors of these sizes in host or device memory.
bool SumsArrive(Carrier* carrier, ExchangeDevice* device, bool on_device,
                int round, const std::atomic<bool>* aborted = nullptr) {
  const int rank = carrier->rank(), n = carrier->num_ranks();
  const std::vector<int64_t> counts = {1, 0, 5, 1 << 20, 3 + round};
  Reduction reduction;
  reduction.scale = 1.0 / 8;
  std::vector<std::vector<float>> numbers;
  std::vector<std::shared_ptr<char>> device_memory;
  std::vector<float*> places;
  for (size_t k = 0; k < counts.size(); ++k) {
    numbers.emplace_back(counts[k]);
    for (int64_t i = 0; i < counts[k]; ++i) {
      numbers[k][i] = static_cast<float>(i % 1000 + rank * (round + 1));
    }
    float* place = numbers[k].data();
    if (on_device) {
      device_memory.emplace_back();
      if (!device->Allocate(counts[k] * sizeof(float) + 1, &device_memory[k])
               .ok() ||
          cudaMemcpy(device_memory[k].get(), numbers[k].data(),
                     counts[k] * sizeof(float), 1) != 0) {
        return false;
      }
      place = reinterpret_cast<float*>(device_memory[k].get());
    }
    places.push_back(place);
    char* const data = reinterpret_cast<char*>(place);
    reduction.pieces.push_back({data, data, counts[k]});
  }
  ev::Status status;
  if (on_device)
    status = carrier->RecordEvent(device->stream(), &reduction.after);
  std::shared_ptr<StreamEvent> summed;
  if (status.ok()) status = carrier->AllReduce(reduction, &summed);
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return false;
  }
  if ((summed != nullptr) != on_device) return false;
  bool all = summed == nullptr || Arrives(carrier, summed.get(), aborted);
  const bool has_failed = !all;
  for (size_t k = 0; k < counts.size(); ++k) {
    if (on_device) {
      all &= cudaMemcpy(numbers[k].data(), places[k], counts[k] * sizeof(float),
                        2) == 0;
    }
    for (int64_t i = 0; i < counts[k]; ++i) {
      float sum = 0;
      for (int r = 0; r < n; ++r) {
        sum += static_cast<float>(i % 1000 + r * (round + 1));
      }
      all &= numbers[k][i] == sum / 8;
      if (has_failed && numbers[k][i] != 0.0f) {
        std::fprintf(stderr, "a sum that failed is not zero\n");
        std::abort();
      }
    }
  }
  return all;
}

TEST_F(NcclCarrierTest, WhatIsStartedArrives) {
  EXPECT_TRUE(
      OnRankProcesses("nccl", num_ranks_, [](std::unique_ptr<Carrier> carrier) {
        ExchangeDevice* device = nullptr;
        bool all = ExchangeDevice::Get(&device).ok();
        for (int round = 0; all && round < 12; ++round) {
          all &= StartedBytesArrive(carrier.get(), device, round);
        }
        return all;
      }));
}

TEST_F(NcclCarrierTest, WhatIsStartedEndsWhenARankIsGone) {
  EXPECT_TRUE(
      OnRankProcesses("nccl", num_ranks_, [](std::unique_ptr<Carrier> carrier) {
        ExchangeDevice* device = nullptr;
        return ExchangeDevice::Get(&device).ok() &&
               EndsWhenAborted(
                   carrier.get(),
                   [&](int round, const std::atomic<bool>* aborted) {
                     return StartedBytesArrive(carrier.get(), device, round,
                                               aborted);
                   });
      }));
}

TEST_F(NcclCarrierTest, SumsTensorsInEitherMemory) {
  EXPECT_TRUE(
      OnRankProcesses("nccl", num_ranks_, [](std::unique_ptr<Carrier> carrier) {
        ExchangeDevice* device = nullptr;
        bool all = ExchangeDevice::Get(&device).ok();
        for (int round = 0; all && round < 6; ++round) {
          all &= SumsArrive(carrier.get(), device, round % 2 == 0, round);
        }
        return all;
      }));
}

TEST_F(NcclCarrierTest, AbortEndsTheWaitForSumsOfARankThatIsGone) {
  EXPECT_TRUE(
      OnRankProcesses("nccl", num_ranks_, [](std::unique_ptr<Carrier> carrier) {
        ExchangeDevice* device = nullptr;
        return ExchangeDevice::Get(&device).ok() &&
               EndsWhenAborted(
                   carrier.get(),
                   [&](int round, const std::atomic<bool>* aborted) {
                     return SumsArrive(carrier.get(), device, true, round,
                                       aborted);
                   });
      }));
}

}  // namespace
}  // namespace sok
