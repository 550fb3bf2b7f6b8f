// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests the carrier "memory" and the control carrier.

#include "addons/sparse_operation_kit/exchange/carrier/carrier.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "addons/sparse_operation_kit/exchange/carrier/control_carrier.h"
#include "addons/sparse_operation_kit/exchange/testing/exchange_once.h"
#include "addons/sparse_operation_kit/exchange/testing/rank_threads.h"
#include "gtest/gtest.h"

namespace sok {
namespace {

#define ASSERT_OK(expression)                               \
  do {                                                      \
    const ev::Status sok_status_ = (expression);            \
    ASSERT_TRUE(sok_status_.ok()) << sok_status_.message(); \
  } while (0)

void OnRanks(
    int num_ranks, const RankBody& body,
    const std::function<int(int rank)>& threads_of = [](int) { return 0; }) {
  ASSERT_OK(RunOnRanks(num_ranks, body, threads_of));
}

constexpr int64_t kMost = (1 << 20) + 5;

TEST(MemoryCarrierTest, CarriesBytesOfAnySizeBetweenAllRanks) {
  for (const int num_ranks : {1, 2, 4}) {
    OnRanks(num_ranks, [](int, std::unique_ptr<Carrier> carrier) {
      for (int round = 0; round < 6; ++round) {
        ASSERT_OK(ExchangeOnce(carrier.get(), round, kMost));
      }
    });
  }
}

// With any number of threads per rank.
TEST(MemoryCarrierTest, SeveralThreadsCarryWhatIsLong) {
  for (const int num_ranks : {1, 2, 3}) {
    OnRanks(
        num_ranks,
        [](int, std::unique_ptr<Carrier> carrier) {
          for (int round = 0; round < 6; ++round) {
            ASSERT_OK(ExchangeOnce(carrier.get(), round, (5 << 20) + 13));
          }
        },
        [](int rank) { return 5 - 2 * rank; });
  }
}

TEST(MemoryCarrierTest, ARankThatGoesEndsTheWaitOfAllThreads) {
  OnRanks(
      2,
      [](int rank, std::unique_ptr<Carrier> carrier) {
        ASSERT_OK(ExchangeOnce(carrier.get(), 0, kMost));
        if (rank == 1) return;
        const std::vector<int64_t> sizes = {4 << 20, 4 << 20};
        std::string send(8 << 20, 'x'), out(8 << 20, ' ');
        const ev::Status status =
            carrier->AllToAll(send.data(), sizes, &out[0], sizes);
        EXPECT_EQ(ev::StatusCode::kInternal, status.code());
        EXPECT_EQ("rank 1 is gone", status.message());
      },
      [](int) { return 4; });
}

TEST(MemoryCarrierTest, ARankThatGoesEndsTheWaitOfTheOthers) {
  OnRanks(3, [](int rank, std::unique_ptr<Carrier> carrier) {
    ASSERT_OK(ExchangeOnce(carrier.get(), 0, kMost));
    if (rank == 1) return;
    const std::vector<int64_t> sizes = {8, 8, 8};
    std::string send(24, 'x'), out(24, ' ');
    ev::Status status;
    // Bytes that were sent before the rank ended may still arrive.
    for (int i = 0; i < 3 && status.ok(); ++i) {
      status = carrier->AllToAll(send.data(), sizes, &out[0], sizes);
    }
    EXPECT_EQ(ev::StatusCode::kInternal, status.code());
    // The first of the remaining ranks to notice records which rank is gone.
    EXPECT_EQ("rank 1 is gone", status.message());
  });
}

// A rank that has left raises an error only for later calls, whether its
// process still runs or not. Ranks that leave wait for the others.
TEST(MemoryCarrierTest, ARankThatHasLeftIsMissedByLaterCallsAlone) {
  std::atomic<int> left{0};
  OnRanks(3, [&](int rank, std::unique_ptr<Carrier> carrier) {
    const auto begin = std::chrono::steady_clock::now();
    const auto took = [&] { return std::chrono::steady_clock::now() - begin; };
    if (rank > 0) {
      carrier->Leave(5, std::chrono::milliseconds(50 * rank));
      EXPECT_GE(took(), std::chrono::milliseconds(50 * rank));
      if (rank == 1) carrier.reset();
      ++left;
      while (left < 3) std::this_thread::yield();
      return;
    }
    while (left < 2) std::this_thread::yield();
    ASSERT_OK(carrier->CheckRanks(4));
    carrier->Leave(5, std::chrono::seconds(20));
    EXPECT_LT(took(), std::chrono::seconds(10));
    EXPECT_EQ("rank 1 is gone", carrier->CheckRanks(5).message());
    ++left;
  });
}

TEST(MemoryCarrierTest, ACallEndsWhenARankHasLeft) {
  std::atomic<bool> has_ended{false};
  OnRanks(2, [&](int rank, std::unique_ptr<Carrier> carrier) {
    if (rank == 1) {
      carrier->Leave(0, std::chrono::milliseconds(1));
      while (!has_ended) std::this_thread::yield();
      return;
    }
    EXPECT_EQ("rank 1 is gone",
              ExchangeOnce(carrier.get(), 5, kMost).message());
    has_ended = true;
  });
}

TEST(MemoryCarrierTest, ARankThatGoesIsSeenByThoseThatLook) {
  OnRanks(2, [](int rank, std::unique_ptr<Carrier> carrier) {
    ASSERT_OK(ExchangeOnce(carrier.get(), 0, kMost));
    if (rank == 1) return;
    ev::Status status;
    for (int i = 0; i < 1000 && status.ok(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      status = carrier->CheckRanks();
    }
    EXPECT_EQ("rank 1 is gone", status.message());
  });
}

TEST(MemoryCarrierTest, AKilledProcessIsNoticed) {
  std::string id;
  ASSERT_OK(MakeCarrierId("memory", 2, &id));
  CarrierOptions options;
  options.id = id;
  options.num_ranks = 2;
  const pid_t child = fork();
  if (child == 0) {
    options.rank = 1;
    std::unique_ptr<Carrier> carrier;
    if (!MakeCarrier("memory", options, &carrier).ok()) _exit(1);
    const std::vector<int64_t> to = {1, 0}, from = {0, 0};
    char byte = 'x';
    // Sends a byte to rank 0 to show that it runs, then dies silently.
    _exit(carrier->AllToAll(&byte, to, nullptr, from).ok() ? 0 : 1);
  }
  std::unique_ptr<Carrier> carrier;
  ASSERT_OK(MakeCarrier("memory", options, &carrier));
  char byte = ' ';
  const std::vector<int64_t> none = {0, 0}, one = {0, 1};
  ASSERT_OK(carrier->AllToAll(nullptr, none, &byte, one));
  EXPECT_EQ('x', byte);
  // The child is a zombie until waitpid; a zombie must count as dead.
  const auto begin = std::chrono::steady_clock::now();
  const ev::Status status = carrier->AllToAll(nullptr, none, &byte, one);
  EXPECT_EQ(ev::StatusCode::kInternal, status.code());
  EXPECT_EQ("rank 1 is gone", status.message());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  int how = 0;
  waitpid(child, &how, 0);
  EXPECT_EQ(0, how);
}

TEST(MemoryCarrierTest, ARankThatDiesIsNoticedWhileItsChildRuns) {
  std::string id;
  ASSERT_OK(MakeCarrierId("memory", 2, &id));
  CarrierOptions options;
  options.id = id;
  options.num_ranks = 2;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    options.rank = 1;
    std::unique_ptr<Carrier> carrier;
    if (!MakeCarrier("memory", options, &carrier).ok()) _exit(1);
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      // Runs until the test ends, and then drops what it inherited.
      close(ends[1]);
      char none;
      const bool has_ended = read(ends[0], &none, 1) == 0;
      carrier.reset();
      _exit(has_ended ? 0 : 1);
    }
    const std::vector<int64_t> to = {1, 0}, from = {0, 0};
    char byte = 'x';
    _exit(grandchild > 0 && carrier->AllToAll(&byte, to, nullptr, from).ok()
              ? 0
              : 1);
  }
  std::unique_ptr<Carrier> carrier;
  ASSERT_OK(MakeCarrier("memory", options, &carrier));
  char byte = ' ';
  const std::vector<int64_t> none = {0, 0}, one = {0, 1};
  ASSERT_OK(carrier->AllToAll(nullptr, none, &byte, one));
  EXPECT_EQ('x', byte);
  int how = 0;
  waitpid(child, &how, 0);
  EXPECT_EQ(0, how);
  const auto begin = std::chrono::steady_clock::now();
  const auto look = [&] { return carrier->CheckRanks(-1); };
  ev::Status status = look();
  while (status.ok() &&
         std::chrono::steady_clock::now() - begin < std::chrono::seconds(5)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    status = look();
  }
  EXPECT_EQ("rank 1 is gone", status.message());
  close(ends[0]);
  close(ends[1]);  // ends the grandchild
}

// Runs body in a process that then ends as if it were killed.
void InAProcess(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  int how = 0;
  ASSERT_EQ(waitpid(child, &how, 0), child);
  EXPECT_TRUE(WIFEXITED(how));
  EXPECT_EQ(WEXITSTATUS(how), 0);
}

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

TEST(MemoryCarrierTest, WhatRanksLeftThatDiedTooEarlyIsRemoved) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  // Ranks die before any rank, or after one rank, has opened the file.
  for (const int ranks : {0, 1}) {
    InAProcess([&] {
      std::string id;
      if (!MakeCarrierId("memory", 2, &id).ok()) return false;
      CarrierOptions options;
      options.id = id;
      options.num_ranks = 2;
      std::unique_ptr<Carrier> carrier;
      if (ranks > 0 && !MakeCarrier("memory", options, &carrier).ok()) {
        return false;
      }
      id.resize(64);
      const bool is_written = write(ends[1], id.data(), id.size()) == 64;
      _exit(is_written ? 0 : 1);  // no destructor runs
    });
    char id[64] = {0};
    ASSERT_EQ(read(ends[0], id, sizeof(id)), 64);
    EXPECT_TRUE(Exists(id)) << id;
    std::string next;
    ASSERT_OK(MakeCarrierId("memory", 1, &next));
    EXPECT_FALSE(Exists(id)) << id;
    EXPECT_TRUE(Exists(next));
    unlink(next.c_str());
  }
  close(ends[0]);
  close(ends[1]);
}

TEST(MemoryCarrierTest, WhatRanksAreAboutToOpenStays) {
  CarrierOptions options;
  options.num_ranks = 2;
  ASSERT_OK(MakeCarrierId("memory", 2, &options.id));
  const auto another = [] {
    std::string id;
    const bool made = MakeCarrierId("memory", 1, &id).ok();
    unlink(id.c_str());
    return made;
  };
  InAProcess(another);
  EXPECT_TRUE(Exists(options.id));
  std::unique_ptr<Carrier> first, second;
  ASSERT_OK(MakeCarrier("memory", options, &first));
  InAProcess(another);
  EXPECT_TRUE(Exists(options.id));
  options.rank = 1;
  ASSERT_OK(MakeCarrier("memory", options, &second));
  EXPECT_FALSE(Exists(options.id));
}

TEST(MemoryCarrierTest, AnotherHostAndAnotherJobAreErrors) {
  std::unique_ptr<Carrier> carrier;
  CarrierOptions options;
  options.id = "/dev/shm/sok_exchange_none";
  options.rank = 1;
  options.num_ranks = 2;
  ev::Status status = MakeCarrier("memory", options, &carrier);
  EXPECT_EQ(ev::StatusCode::kFailedPrecondition, status.code());
  EXPECT_NE(std::string::npos, status.message().find("is it on another host?"));
  ASSERT_OK(MakeCarrierId("memory", 3, &options.id));
  status = MakeCarrier("memory", options, &carrier);
  EXPECT_EQ(ev::StatusCode::kFailedPrecondition, status.code());
  unlink(options.id.c_str());
  options.rank = 2;
  status = MakeCarrier("memory", options, &carrier);
  EXPECT_EQ("there is no rank 2 of 2", status.message());
  ASSERT_OK(CheckCarrier("memory"));
  status = CheckCarrier("pigeon");
  EXPECT_EQ("there is no exchange of kind 'pigeon'", status.message());
}

TEST(ControlCarrierTest, AllRanksHaveOneOrNone) {
  for (const int without : {-1, 0, 2}) {
    OnRanks(3, [=](int rank, std::unique_ptr<Carrier> carrier) {
      std::unique_ptr<Carrier> control;
      ASSERT_OK(MakeControlCarrier(carrier.get(), rank != without, &control));
      EXPECT_EQ(without < 0, control != nullptr);
      // The carrier that made it still works.
      ASSERT_OK(ExchangeOnce(carrier.get(), 1, kMost));
      if (control == nullptr) return;
      EXPECT_EQ(rank, control->rank());
      EXPECT_EQ(3, control->num_ranks());
      for (int round = 0; round < 6; ++round) {
        ASSERT_OK(ExchangeOnce(control.get(), round, 100));
      }
    });
  }
}

TEST(ControlCarrierTest, ARankThatIsGoneWhileItIsMadeIsAnError) {
  OnRanks(2, [](int rank, std::unique_ptr<Carrier> carrier) {
    if (rank == 1) return;
    std::unique_ptr<Carrier> control;
    const ev::Status status = MakeControlCarrier(carrier.get(), true, &control);
    EXPECT_EQ("rank 1 is gone", status.message());
    EXPECT_EQ(nullptr, control);
  });
}

}  // namespace
}  // namespace sok
