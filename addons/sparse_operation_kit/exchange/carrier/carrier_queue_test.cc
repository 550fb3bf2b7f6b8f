// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests the order of transfers, with threads as ranks, and started transfers.

#include "addons/sparse_operation_kit/exchange/carrier/carrier_queue.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "addons/sparse_operation_kit/exchange/testing/rank_threads.h"
#include "addons/sparse_operation_kit/exchange/testing/sum_over_ranks.h"
#include "addons/sparse_operation_kit/exchange/wait_registry.h"
#include "gtest/gtest.h"
#include "kernels/engine/testing/failing_allocations.h"

namespace sok {
namespace {

#define ASSERT_OK(expression)                               \
  do {                                                      \
    const ev::Status sok_status_ = (expression);            \
    ASSERT_TRUE(sok_status_.ok()) << sok_status_.message(); \
  } while (0)

void OnRanks(int num_ranks, const RankBody& body) {
  ASSERT_OK(RunOnRanks(num_ranks, body, [](int) { return 0; }));
}

// Waits until 'done' reaches a number.
struct Count {
  std::mutex mu;
  std::condition_variable wake;
  int done = 0;
  void Add() {
    std::lock_guard<std::mutex> lock(mu);
    ++done;
    wake.notify_all();
  }
  void WaitFor(int all) {
    std::unique_lock<std::mutex> lock(mu);
    wake.wait(lock, [&] { return done >= all; });
  }
};

// An event that the test sets.
class TestEvent : public StreamEvent {
 public:
  bool IsReached() override { return is_reached; }
  ev::Status Before(const ev::DeviceStream&) override {
    return ev::Status::OK();
  }
  ev::Status Wait() override {
    while (!is_reached) std::this_thread::yield();
    return ev::Status::OK();
  }
  std::atomic<bool> is_reached{false};
};

struct Sent {
  std::string send, out;
  std::vector<int64_t> received;
  ev::Status status;
  std::shared_ptr<StreamEvent> ready;
};

// The helpers below give the queue a string of its own: copies of a std::string
// of the old ABI share a counter that libstdc++ decrements unseen by
// ThreadSanitizer, which then reports a race with the queue's thread.

// Sends 'what' to each rank; *sent must stay until it is done.
void AddTo(CarrierQueue* queue, const std::string& name, char what, Sent* sent,
           Count* count) {
  Transfer transfer;
  const int64_t each = 1 + what % 5;
  sent->send.assign(each * queue->num_ranks(), what);
  transfer.name = name.c_str();
  transfer.send = sent->send.data();
  transfer.send_bytes.assign(queue->num_ranks(), each);
  transfer.allocate = [sent](ev::Span<const int64_t> received, char** out) {
    sent->received.assign(received.begin(), received.end());
    int64_t total = 0;
    for (const int64_t n : received) total += n;
    sent->out.assign(total, ' ');
    *out = &sent->out[0];
    return ev::Status::OK();
  };
  transfer.done = [sent, count](const ev::Status& status,
                                const std::shared_ptr<StreamEvent>& ready) {
    sent->ready = ready;
    sent->status = status;
    count->Add();
  };
  queue->Add(std::move(transfer));
}

TEST(CarrierQueueTest, TransfersThatComeInAnotherOrderOnEachRankMeet) {
  constexpr int kRanks = 3, kTransfers = 40, kRounds = 5;
  OnRanks(kRanks, [&](int rank, std::unique_ptr<Carrier> carrier) {
    CarrierQueue queue(std::move(carrier));
    std::mt19937 random(rank);
    for (int round = 0; round < kRounds; ++round) {
      std::vector<int> order(kTransfers);
      for (int i = 0; i < kTransfers; ++i) order[i] = i;
      std::shuffle(order.begin(), order.end(), random);
      std::vector<Sent> sent(kTransfers);
      Count count;
      std::vector<std::thread> callers;
      for (int half = 0; half < 2; ++half) {
        callers.emplace_back([&, half] {
          for (int i = half; i < kTransfers; i += 2) {
            AddTo(&queue, "call/" + std::to_string(order[i]),
                  static_cast<char>('0' + order[i] + rank), &sent[order[i]],
                  &count);
          }
        });
      }
      for (std::thread& caller : callers) caller.join();
      count.WaitFor(kTransfers);
      for (int i = 0; i < kTransfers; ++i) {
        ASSERT_OK(sent[i].status);
        std::string expected;
        for (int r = 0; r < kRanks; ++r) {
          const char what = static_cast<char>('0' + i + r);
          expected += std::string(1 + what % 5, what);
        }
        EXPECT_EQ(expected, sent[i].out) << i;
      }
    }
  });
}

TEST(CarrierQueueTest, OneThatRankZeroNeverAsksForBlocksNoOther) {
  OnRanks(2, [](int rank, std::unique_ptr<Carrier> carrier) {
    Count count, never;
    Sent lonely, sent[2];
    {
      CarrierQueue queue(std::move(carrier));
      if (rank == 1) AddTo(&queue, "lonely", 'l', &lonely, &never);
      for (int i = 0; i < 2; ++i) AddTo(&queue, "both", 'b', &sent[i], &count);
      count.WaitFor(2);
      ASSERT_OK(sent[0].status);
      ASSERT_OK(sent[1].status);
      EXPECT_EQ(0, never.done);
      if (rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
      // Destroying the queue ends the waiting transfer.
    }
    if (rank == 1) {
      EXPECT_EQ(1, never.done);
      EXPECT_EQ(ev::StatusCode::kInternal, lonely.status.code());
    }
  });
}

TEST(CarrierQueueTest, AFailureIsEveryRanksAndStays) {
  OnRanks(2, [](int rank, std::unique_ptr<Carrier> carrier) {
    CarrierQueue queue(std::move(carrier));
    Count count;
    Sent first, second;
    if (rank == 0) queue.Fail(ev::Internal("the disk is on fire"));
    AddTo(&queue, "first", 'a', &first, &count);
    count.WaitFor(1);
    AddTo(&queue, "second", 'b', &second, &count);
    count.WaitFor(2);
    const char* why =
        rank == 0 ? "the disk is on fire" : "rank 0 ended the exchange";
    EXPECT_EQ(why, first.status.message());
    EXPECT_EQ(why, second.status.message());
  });
}

TEST(CarrierQueueTest, ARankWithoutMemoryToAddItEndsItForAll) {
  int failures = 0;
  for (int at = 0; at < 4; ++at) {
    std::atomic<bool> has_failed{false};
    ev::Status ended[2];
    OnRanks(2, [&](int rank, std::unique_ptr<Carrier> carrier) {
      CarrierQueue queue(std::move(carrier));
      Count count;
      char out[2];
      const std::string send = "ab";
      Transfer transfer;
      transfer.name = "a transfer with a long name";
      transfer.send = send.data();
      transfer.send_bytes = {1, 1};
      transfer.allocate = [&](ev::Span<const int64_t>, char** to) {
        *to = out;
        return ev::Status::OK();
      };
      transfer.done = [&](const ev::Status& status,
                          const std::shared_ptr<StreamEvent>&) {
        ended[rank] = status;
        count.Add();
      };
      if (rank == 1) ev::testing::allocations_left = at;
      queue.Add(std::move(transfer));
      if (rank == 1) {
        has_failed = ev::testing::allocations_left < 0;
        ev::testing::allocations_left = -1;
      }
      count.WaitFor(1);
    });
    failures += has_failed;
    EXPECT_EQ(!has_failed, ended[0].ok()) << ended[0].message();
    EXPECT_EQ(has_failed ? "out of memory" : "", ended[1].message());
  }
  EXPECT_GE(failures, 1);
  EXPECT_LT(failures, 4);
}

TEST(CarrierQueueTest, ARankThatCannotTakeItEndsItForAll) {
  OnRanks(2, [](int rank, std::unique_ptr<Carrier> carrier) {
    CarrierQueue queue(std::move(carrier));
    Count count;
    Transfer transfer;
    const std::string send = "ab";
    char out[2];
    ev::Status ended;
    transfer.name = "transfer";
    transfer.send = send.data();
    transfer.send_bytes = {1, 1};
    transfer.allocate = [&](ev::Span<const int64_t>, char** to) {
      *to = out;
      return rank == 0 ? ev::Status::OK() : ev::ResourceExhausted("no room");
    };
    transfer.done = [&](const ev::Status& status,
                        const std::shared_ptr<StreamEvent>&) {
      ended = status;
      count.Add();
    };
    queue.Add(std::move(transfer));
    count.WaitFor(1);
    // Rank 0 already has all its data when rank 1 fails late; its next transfer
    // fails.
    if (rank == 0 && ended.ok()) {
      Sent next;
      AddTo(&queue, "next", 'n', &next, &count);
      count.WaitFor(2);
      ended = next.status;
    }
    EXPECT_FALSE(ended.ok());
  });
}

// Sums 'numbers' over ranks in place; they must stay until it is done.
template <typename Number>
void AddSum(CarrierQueue* queue, const std::string& name, ReducedType type,
            double scale, std::vector<Number>* numbers, Sent* sent,
            Count* count, std::shared_ptr<StreamEvent> after = nullptr) {
  Transfer transfer;
  transfer.name = name.c_str();
  transfer.reduction.reset(new Reduction);
  transfer.reduction->type = type;
  transfer.reduction->scale = scale;
  transfer.reduction->after = std::move(after);
  char* const data = reinterpret_cast<char*>(numbers->data());
  transfer.reduction->pieces.push_back(
      {data, data, static_cast<int64_t>(numbers->size())});
  transfer.done = [sent, count](const ev::Status& status,
                                const std::shared_ptr<StreamEvent>&) {
    sent->status = status;
    count->Add();
  };
  queue->Add(std::move(transfer));
}

std::unique_ptr<CarrierQueue> SummingQueue(std::unique_ptr<Carrier> carrier) {
  return std::unique_ptr<CarrierQueue>(new CarrierQueue(
      std::unique_ptr<Carrier>(new SummingCarrier(std::move(carrier)))));
}

TEST(CarrierQueueTest, SumsMeetInOneOrderAmongTransfers) {
  OnRanks(3, [](int rank, std::unique_ptr<Carrier> carrier) {
    const auto queue = SummingQueue(std::move(carrier));
    Count count;
    Sent moved, summed[2];
    std::vector<float> floats = {1.5f * rank, -2.0f};
    std::vector<double> doubles = {1e-30 + rank};
    for (int i = 0; i < 3; ++i) {
      switch ((rank + i) % 3) {
        case 0:
          AddTo(queue.get(), "bytes", 'b', &moved, &count);
          break;
        case 1:
          AddSum(queue.get(), "floats", ReducedType::kFloat32, .5, &floats,
                 &summed[0], &count);
          break;
        case 2:
          AddSum(queue.get(), "doubles", ReducedType::kFloat64, 1., &doubles,
                 &summed[1], &count);
          break;
      }
    }
    count.WaitFor(3);
    ASSERT_OK(moved.status);
    ASSERT_OK(summed[0].status);
    ASSERT_OK(summed[1].status);
    EXPECT_EQ(std::vector<float>({2.25f, -3.0f}), floats);
    EXPECT_EQ(std::vector<double>({3. + 1e-30}), doubles);
  });
}

TEST(CarrierQueueTest, AHalfIsSummedAsAFloat) {
  OnRanks(2, [](int rank, std::unique_ptr<Carrier> carrier) {
    const auto queue = SummingQueue(std::move(carrier));
    Count count;
    Sent sent;
    std::vector<uint16_t> halves = {ev::ToFloat16(rank == 0 ? 1.f : .25f)};
    AddSum(queue.get(), "halves", ReducedType::kFloat16, .5, &halves, &sent,
           &count);
    count.WaitFor(1);
    ASSERT_OK(sent.status);
    EXPECT_EQ(.625f, ev::FromFloat16(halves[0]));
  });
}

TEST(CarrierQueueTest, AnExpectedGradientGoesBeforeASumThatIsNotReady) {
  OnRanks(2, [](int rank, std::unique_ptr<Carrier> carrier) {
    const auto queue = SummingQueue(std::move(carrier));
    const ExpectedGradient expected;
    Count sums, transfers;
    Sent summed, moved;
    std::vector<float> floats = {1.0f};
    const auto event = std::make_shared<TestEvent>();
    AddSum(queue.get(), "sum", ReducedType::kFloat32, 1., &floats, &summed,
           &sums, event);
    AddTo(queue.get(), "bytes", 'b', &moved, &transfers);
    transfers.WaitFor(1);
    ASSERT_OK(moved.status);
    if (rank == 0) {
      // It has not started the sum, though the other rank is ready.
      {
        std::lock_guard<std::mutex> lock(sums.mu);
        EXPECT_EQ(0, sums.done);
      }
      event->is_reached = true;
    }
    sums.WaitFor(1);
    ASSERT_OK(summed.status);
    EXPECT_EQ(2.0f, floats[0]);
  });
}

TEST(CarrierQueueTest, WhereNoGradientIsExpectedASumBegins) {
  OnRanks(2, [](int, std::unique_ptr<Carrier> carrier) {
    const auto queue = SummingQueue(std::move(carrier));
    Count count;
    Sent summed;
    std::vector<float> floats = {1.0f};
    AddSum(queue.get(), "sum", ReducedType::kFloat32, 1., &floats, &summed,
           &count, std::make_shared<TestEvent>());
    count.WaitFor(1);
    ASSERT_OK(summed.status);
    EXPECT_EQ(2.0f, floats[0]);
  });
}

// Moves bytes at once; its events are reached when the test sets them.
class StartingCarrier : public CarrierOver {
 public:
  using CarrierOver::CarrierOver;
  ev::Status StartAllToAll(const char* send, ev::Span<const int64_t> send_bytes,
                           const std::shared_ptr<StreamEvent>&, char* out,
                           ev::Span<const int64_t> received_bytes, int,
                           std::shared_ptr<StreamEvent>* ready) override {
    *ready = event;
    return AllToAll(send, send_bytes, out, received_bytes);
  }
  ev::Status CheckRanks(int64_t) override {
    return one_is_gone ? ev::Internal("rank 7 is gone") : ev::Status::OK();
  }
  void Leave(int64_t calls, std::chrono::milliseconds) override {
    left_after = calls;
  }
  void End() override { event->is_reached = true; }

  const std::shared_ptr<TestEvent> event = std::make_shared<TestEvent>();
  std::atomic<bool> one_is_gone{false};
  std::atomic<int64_t> left_after{-1};
};

// The queue watches a started transfer after its op has ended.
TEST(CarrierQueueTest, LooksAfterWhatWasStarted) {
  OnRanks(1, [](int, std::unique_ptr<Carrier> made) {
    auto* const carrier = new StartingCarrier(std::move(made));
    CarrierQueue queue((std::unique_ptr<Carrier>(carrier)));
    Count count;
    Sent sent;
    AddTo(&queue, "bytes", 'b', &sent, &count);
    count.WaitFor(1);
    ASSERT_OK(sent.status);
    EXPECT_EQ(carrier->event, sent.ready);
    std::string what;
    WaitRegistry::Global().Longest(&what);
    EXPECT_EQ("bytes", what);
    // A later transfer does not wait for it.
    Sent next;
    AddTo(&queue, "next", 'n', &next, &count);
    count.WaitFor(2);
    ASSERT_OK(next.status);
    carrier->event->is_reached = true;
    EXPECT_EQ(-1, carrier->left_after);
    ASSERT_OK(queue.Drain(std::chrono::seconds(20)));
    EXPECT_EQ(2, carrier->left_after);
    WaitRegistry::Global().Longest(&what);
    EXPECT_EQ("", what);
  });
}

TEST(CarrierQueueTest, DrainIsOverInTime) {
  OnRanks(1, [](int, std::unique_ptr<Carrier> made) {
    CarrierQueue queue(
        std::unique_ptr<Carrier>(new StartingCarrier(std::move(made))));
    Count count;
    Sent sent;
    AddTo(&queue, "bytes", 'b', &sent, &count);
    count.WaitFor(1);
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_OK(queue.Drain(std::chrono::milliseconds(30)));
    const auto took = std::chrono::steady_clock::now() - begin;
    EXPECT_GE(took, std::chrono::milliseconds(30));
    EXPECT_LT(took, std::chrono::seconds(10));
  });
}

TEST(CarrierQueueTest, ARankThatGoesWhileSomethingIsStartedEndsAll) {
  OnRanks(1, [](int, std::unique_ptr<Carrier> made) {
    auto* const carrier = new StartingCarrier(std::move(made));
    CarrierQueue queue((std::unique_ptr<Carrier>(carrier)));
    Count count;
    Sent sent, next;
    AddTo(&queue, "bytes", 'b', &sent, &count);
    count.WaitFor(1);
    ASSERT_OK(sent.status);
    carrier->one_is_gone = true;
    ASSERT_OK(sent.ready->Wait());  // the carrier was ended
    AddTo(&queue, "next", 'n', &next, &count);
    count.WaitFor(2);
    EXPECT_EQ("rank 7 is gone", next.status.message());
    EXPECT_EQ("rank 7 is gone",
              queue.Drain(std::chrono::seconds(20)).message());
  });
}

TEST(CarrierQueueTest, AFailureEndsTheWaitForASumThatIsNotReady) {
  OnRanks(1, [](int, std::unique_ptr<Carrier> carrier) {
    const auto queue = SummingQueue(std::move(carrier));
    const ExpectedGradient expected;
    Count count;
    Sent sent;
    std::vector<float> floats = {1.0f};
    AddSum(queue.get(), "sum", ReducedType::kFloat32, 1., &floats, &sent,
           &count, std::make_shared<TestEvent>());
    queue->Fail(ev::Internal("that is long enough"));
    count.WaitFor(1);
    EXPECT_EQ("that is long enough", sent.status.message());
  });
}

TEST(CarrierQueueTest, OtherSumsAreAnErrorOnEveryRank) {
  for (const bool other_type : {false, true}) {
    OnRanks(2, [=](int rank, std::unique_ptr<Carrier> carrier) {
      const auto queue = SummingQueue(std::move(carrier));
      Count count;
      Sent sent;
      std::vector<float> floats(rank == 0 || other_type ? 4 : 6);
      AddSum(queue.get(), "sum",
             rank == 1 && other_type ? ReducedType::kFloat16
                                     : ReducedType::kFloat32,
             1., &floats, &sent, &count);
      count.WaitFor(1);
      // One rank detects the difference; the other may get the failure instead.
      EXPECT_TRUE(sent.status.code() == ev::StatusCode::kInvalidArgument ||
                  sent.status.code() == ev::StatusCode::kInternal)
          << sent.status.message();
      if (sent.status.code() == ev::StatusCode::kInvalidArgument) {
        EXPECT_NE(std::string::npos,
                  sent.status.message().find("sums different gradients"));
      }
    });
  }
}

TEST(CarrierQueueTest, ACarrierWithoutSumsSaysSo) {
  OnRanks(1, [](int, std::unique_ptr<Carrier> carrier) {
    CarrierQueue queue(std::move(carrier));
    Count count;
    Sent sent;
    std::vector<float> floats = {1.0f};
    AddSum(&queue, "sum", ReducedType::kFloat32, 1., &floats, &sent, &count);
    count.WaitFor(1);
    EXPECT_EQ(ev::StatusCode::kUnimplemented, sent.status.code());
  });
}

}  // namespace
}  // namespace sok
