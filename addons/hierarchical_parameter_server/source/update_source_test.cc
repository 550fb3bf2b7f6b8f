// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests filters, messages, and the receiver with a scripted source.

#include "addons/hierarchical_parameter_server/source/update_source.h"

#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "addons/hierarchical_parameter_server/source/tag_filter.h"
#include "addons/hierarchical_parameter_server/source/update_message.h"
#include "addons/hierarchical_parameter_server/source/update_receiver.h"
#include "gtest/gtest.h"

namespace hps {
namespace {

TEST(TagFilterTest, AFilterIsOfTheModelsName) {
  TagFilter filter;
  ASSERT_TRUE(TagFilter::Make({"a", "news_[0-9]+"}, &filter).ok());
  EXPECT_TRUE(filter.Matches("hps_et.a.t"));
  EXPECT_TRUE(filter.Matches("hps_et.news_12.t"));
  for (const char* tag : {"hps_et.aa.t", "hps_et.news_.t", "hps_et.a.",
                          "hps_et.a", "xhps_et.a.t"}) {
    EXPECT_FALSE(filter.Matches(tag)) << tag;
  }
  ASSERT_TRUE(TagFilter::Make({".+"}, &filter).ok());
  EXPECT_TRUE(filter.Matches("hps_et.anything.t"));
  EXPECT_EQ(filter.expressions()[0], "^hps_et\\..+\\..+$");
  const ev::Status status = TagFilter::Make({"("}, &filter);
  EXPECT_EQ(status.code(), ev::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("update_filters: '('"), std::string::npos);
  EXPECT_FALSE(TagFilter::Make({}, &filter).ok());
}

TEST(UpdateMessageTest, AMessageIsByteForByteAsItIsWritten) {
  std::string message;
  const float row[] = {1.0f, -2.0f};
  AppendToMessage(-2, row, 2, &message);
  AppendToMessage(513, row, 2, &message);
  const unsigned char expected[] = {
      'H',  'C',  'T',  'R',  8,    0,    0,    0,     //
      0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,  //
      0,    0,    0x80, 0x3f, 0,    0,    0,    0xc0,  //
      1,    2,    0,    0,    0,    0,    0,    0,     //
      0,    0,    0x80, 0x3f, 0,    0,    0,    0xc0};
  ASSERT_EQ(message.size(), sizeof(expected));
  EXPECT_EQ(std::memcmp(message.data(), expected, sizeof(expected)), 0);
  UpdateBatch batch;
  ASSERT_TRUE(ReadMessage(message.data(), message.size(), &batch).ok());
  EXPECT_EQ(batch.width, 2);
  EXPECT_EQ(batch.keys, (std::vector<int64_t>{-2, 513}));
  EXPECT_EQ(batch.rows, (std::vector<float>{1, -2, 1, -2}));
  // A second message is appended; a beacon adds nothing.
  ASSERT_TRUE(ReadMessage(message.data(), message.size(), &batch).ok());
  ASSERT_TRUE(ReadMessage("", 0, &batch).ok());
  EXPECT_EQ(batch.keys.size(), 4u);
  // The magic as a number.
  message.replace(0, 4, "RTCH");
  EXPECT_TRUE(ReadMessage(message.data(), message.size(), &batch).ok());
}

TEST(UpdateMessageTest, InvalidMessagesAreErrorsAndChangeNothing) {
  std::string good;
  const float row[] = {1.0f, 2.0f};
  AppendToMessage(1, row, 2, &good);
  UpdateBatch batch;
  batch.tag = "hps_et.m.t";
  for (size_t bytes = 1; bytes < good.size(); ++bytes) {
    const bool is_good = bytes == 8;  // header only
    EXPECT_EQ(ReadMessage(good.data(), bytes, &batch).ok(), is_good) << bytes;
  }
  for (const uint32_t value_bytes : {0u, 3u, 4u * 65537u, 0xffffffffu}) {
    std::string bad = good;
    std::memcpy(&bad[4], &value_bytes, 4);
    const ev::Status status = ReadMessage(bad.data(), bad.size(), &batch);
    EXPECT_EQ(status.code(), ev::StatusCode::kDataLoss);
    EXPECT_NE(status.message().find("hps_et.m.t"), std::string::npos);
  }
  EXPECT_TRUE(batch.keys.empty());
  ASSERT_TRUE(ReadMessage(good.data(), good.size(), &batch).ok());
  std::string other;
  AppendToMessage(1, row, 1, &other);
  EXPECT_FALSE(ReadMessage(other.data(), other.size(), &batch).ok());
  EXPECT_EQ(batch.keys.size(), 1u);
}

UpdateBatch BatchOf(int64_t key) {
  UpdateBatch batch;
  batch.tag = "hps_et.m.t";
  batch.width = 1;
  batch.keys = {key};
  batch.rows = {1.0f};
  return batch;
}

// Results that the source must return, and a record of its calls.
struct Script {
  std::mutex mutex;
  std::deque<std::vector<UpdateBatch>> polls;
  int failing_polls = 0;
  int polls_without_memory = 0;
  int failing_commits = 0;
  int64_t given = 0;
  int64_t committed = 0;

  int64_t Committed() {
    std::lock_guard<std::mutex> lock(mutex);
    return committed;
  }
};

class ScriptedSource : public UpdateSource {
 public:
  explicit ScriptedSource(std::shared_ptr<Script> script)
      : script_(std::move(script)) {}
  ev::Status Poll(int64_t timeout_ms,
                  std::vector<UpdateBatch>* batches) override {
    {
      std::lock_guard<std::mutex> lock(script_->mutex);
      if (script_->failing_polls > 0) {
        --script_->failing_polls;
        return ev::Internal("no poll");
      }
      if (script_->polls_without_memory > 0) {
        --script_->polls_without_memory;
        throw std::bad_alloc();
      }
      if (!script_->polls.empty()) {
        *batches = script_->polls.front();
        script_->polls.pop_front();
        ++script_->given;
        return ev::Status::OK();
      }
    }
    std::this_thread::sleep_for(
        std::chrono::milliseconds(std::min<int64_t>(timeout_ms, 2)));
    return ev::Status::OK();
  }
  ev::Status Commit() override {
    std::lock_guard<std::mutex> lock(script_->mutex);
    if (script_->failing_commits > 0) {
      --script_->failing_commits;
      return ev::Internal("no commit");
    }
    script_->committed = script_->given;
    return ev::Status::OK();
  }
  SourceStatistics statistics() const override { return SourceStatistics(); }

 private:
  const std::shared_ptr<Script> script_;
};

template <typename Condition>
bool WaitUntil(const Condition& condition) {
  for (int i = 0; i < 4000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

ReceiverOptions FastOptions() {
  ReceiverOptions options;
  options.poll_timeout_ms = 2;
  options.failure_backoff_ms = 1;
  return options;
}

TEST(UpdateReceiverTest, DeliversInOrderAndThenCommits) {
  auto script = std::make_shared<Script>();
  for (int64_t key = 0; key < 100; ++key) {
    script->polls.push_back({BatchOf(key), BatchOf(1000 + key)});
  }
  script->failing_polls = 3;
  script->failing_commits = 2;
  std::vector<int64_t> delivered;
  UpdateReceiver receiver(
      std::make_unique<ScriptedSource>(script),
      [&](const UpdateBatch& batch) {
        // Nothing is committed before it was delivered.
        EXPECT_LE(script->Committed() * 2,
                  static_cast<int64_t>(delivered.size()));
        delivered.push_back(batch.keys[0]);
        return ev::Status::OK();
      },
      FastOptions());
  ASSERT_TRUE(WaitUntil([&] { return script->Committed() == 100; }));
  ASSERT_EQ(delivered.size(), 200u);
  for (int64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(delivered[2 * i], i);
    EXPECT_EQ(delivered[2 * i + 1], 1000 + i);
  }
  EXPECT_EQ(receiver.statistics().delivered_rows, 200);
  EXPECT_EQ(receiver.statistics().failures, 5);
}

TEST(UpdateReceiverTest, ADeliveryThatFailsIsTriedAgainAndNothingPassesIt) {
  auto script = std::make_shared<Script>();
  script->polls = {{BatchOf(1)}, {BatchOf(2)}};
  std::vector<int64_t> tried;
  std::atomic<int> failures{3};
  UpdateReceiver receiver(
      std::make_unique<ScriptedSource>(script),
      [&](const UpdateBatch& batch) {
        tried.push_back(batch.keys[0]);
        return failures-- > 0 ? ev::Internal("the database is away")
                              : ev::Status::OK();
      },
      FastOptions());
  ASSERT_TRUE(WaitUntil([&] { return script->Committed() == 2; }));
  EXPECT_EQ(tried, (std::vector<int64_t>{1, 1, 1, 1, 2}));
  EXPECT_EQ(receiver.statistics().last_failure, "the database is away");
}

TEST(UpdateReceiverTest, ALackOfMemoryIsAFailureThatPasses) {
  auto script = std::make_shared<Script>();
  script->polls = {{BatchOf(1)}, {BatchOf(2)}};
  script->polls_without_memory = 2;
  std::vector<int64_t> tried;
  std::atomic<int> failures{3};
  UpdateReceiver receiver(
      std::make_unique<ScriptedSource>(script),
      [&](const UpdateBatch& batch) {
        tried.push_back(batch.keys[0]);
        if (failures-- > 0) throw std::bad_alloc();
        return ev::Status::OK();
      },
      FastOptions());
  ASSERT_TRUE(WaitUntil([&] { return script->Committed() == 2; }));
  EXPECT_EQ(tried, (std::vector<int64_t>{1, 1, 1, 1, 2}));
  EXPECT_EQ(receiver.statistics().failures, 5);
  EXPECT_EQ(receiver.statistics().last_failure,
            "no memory for rows that an update source gave");
}

TEST(UpdateReceiverTest, ABatchThatIsRefusedForGoodIsCountedAndLeftOut) {
  auto script = std::make_shared<Script>();
  script->polls = {{BatchOf(1)}, {BatchOf(2)}, {BatchOf(3)}};
  UpdateReceiver receiver(
      std::make_unique<ScriptedSource>(script),
      [&](const UpdateBatch& batch) {
        if (batch.keys[0] == 1) return ev::NotFound("no such table");
        if (batch.keys[0] == 2) return ev::InvalidArgument("another width");
        return ev::Status::OK();
      },
      FastOptions());
  ASSERT_TRUE(WaitUntil([&] { return script->Committed() == 3; }));
  const ReceiverStatistics statistics = receiver.statistics();
  EXPECT_EQ(statistics.rejected, 2);
  EXPECT_EQ(statistics.rejected_rows, 2);
  EXPECT_EQ(statistics.last_rejected, "another width");
  EXPECT_EQ(statistics.delivered_rows, 1);
  EXPECT_EQ(statistics.failures, 0);
}

TEST(UpdateReceiverTest, OnlyTheRowsThatAreInvalidAreLeftOutOfABatch) {
  auto script = std::make_shared<Script>();
  UpdateBatch batch = BatchOf(1);
  for (int64_t key = 2; key <= 9; ++key) {
    const UpdateBatch more = BatchOf(key);
    batch.keys.push_back(key);
    batch.rows.insert(batch.rows.end(), more.rows.begin(), more.rows.end());
  }
  script->polls = {{batch}, {BatchOf(10)}};
  std::vector<int64_t> stored;
  std::atomic<int> failures{1};
  UpdateReceiver receiver(
      std::make_unique<ScriptedSource>(script),
      [&](const UpdateBatch& given) {
        EXPECT_EQ(given.tag, batch.tag);
        EXPECT_EQ(given.rows.size(), given.keys.size() * given.width);
        for (size_t i = 0; i < given.keys.size(); ++i) {
          if (given.keys[i] == 3 || given.keys[i] == 8) {
            return ev::InvalidArgument("key " + std::to_string(given.keys[i]));
          }
          EXPECT_EQ(given.rows[i * given.width],
                    BatchOf(given.keys[i]).rows[0]);
        }
        if (failures-- > 0) return ev::Internal("the database is away");
        stored.insert(stored.end(), given.keys.begin(), given.keys.end());
        return ev::Status::OK();
      },
      FastOptions());
  ASSERT_TRUE(WaitUntil([&] { return script->Committed() == 2; }));
  EXPECT_EQ(stored, (std::vector<int64_t>{1, 2, 4, 5, 6, 7, 9, 10}));
  const ReceiverStatistics statistics = receiver.statistics();
  EXPECT_EQ(statistics.rejected, 1);
  EXPECT_EQ(statistics.rejected_rows, 2);
  EXPECT_EQ(statistics.last_rejected, "key 8");
  EXPECT_EQ(statistics.delivered_rows, 8);
  EXPECT_EQ(statistics.failures, 1);
}

TEST(UpdateReceiverTest, StopsWhileADeliveryFailsAndCommitsNothingOfIt) {
  auto script = std::make_shared<Script>();
  script->polls = {{BatchOf(1)}};
  std::atomic<int> tried{0};
  {
    UpdateReceiver receiver(
        std::make_unique<ScriptedSource>(script),
        [&](const UpdateBatch&) {
          ++tried;
          return ev::Internal("the database is away");
        },
        FastOptions());
    ASSERT_TRUE(WaitUntil([&] { return tried.load() > 2; }));
  }
  EXPECT_EQ(script->Committed(), 0);
}

}  // namespace
}  // namespace hps
