// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests producer and source on librdkafka's mock cluster.

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "addons/hierarchical_parameter_server/source/kafka/kafka_producer.h"
#include "addons/hierarchical_parameter_server/source/kafka/kafka_source.h"
#include "addons/hierarchical_parameter_server/source/testing/kafka_mock.h"
#include "addons/hierarchical_parameter_server/source/testing/made_updates.h"
#include "addons/hierarchical_parameter_server/source/update_message.h"
#include "addons/hierarchical_parameter_server/source/update_receiver.h"
#include "gtest/gtest.h"

namespace hps {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kTag[] = "hps_et.m.t";
constexpr int64_t kWaitMs = 30000;

int64_t MsSince(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() -
                                                               start)
      .count();
}

class KafkaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = KafkaMock::SkipReason();
    if (!reason.empty()) GTEST_SKIP() << reason;
    mock_ = std::make_unique<KafkaMock>(2);
    source_options_.brokers = producer_options_.brokers = mock_->brokers();
    source_options_.group = "hps.volatile";
    // Metadata that arrives as the mock answers JoinGroup, after 3 s or 4 s,
    // makes librdkafka join again, and those are multiples of 200 ms.
    source_options_.metadata_refresh_interval_ms = 290;
    // When a group changes, the mock waits this long, less a second, for its
    // readers.
    source_options_.session_timeout_ms = 5000;
  }
  std::unique_ptr<UpdateProducer> Producer() {
    std::unique_ptr<UpdateProducer> producer;
    const ev::Status status = KafkaProducer::Open(producer_options_, &producer);
    EXPECT_TRUE(status.ok()) << status.message();
    return producer;
  }
  void Send(UpdateProducer* producer, int64_t begin, int64_t end, int version,
            const std::string& tag = kTag, int width = 4) {
    const std::vector<int64_t> keys = KeysFrom(begin, end);
    ev::Status status = producer->Send(tag, width, keys,
                                       SealedRows(keys, version, width).data());
    ASSERT_TRUE(status.ok()) << status.message();
    status = producer->Flush(kWaitMs);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  std::unique_ptr<UpdateSource> Source() {
    std::unique_ptr<UpdateSource> source;
    const ev::Status status = KafkaSource::Open(source_options_, &source);
    EXPECT_TRUE(status.ok()) << status.message();
    return source;
  }
  // Polls until this many rows have arrived.
  Arrived Receive(UpdateSource* source, int64_t num_rows) {
    Arrived arrived;
    const Clock::time_point start = Clock::now();
    while (arrived.num_rows() < num_rows && MsSince(start) < kWaitMs) {
      std::vector<UpdateBatch> batches;
      source->Poll(100, &batches);
      arrived.Take(batches);
    }
    return arrived;
  }

  std::unique_ptr<KafkaMock> mock_;
  KafkaProducerOptions producer_options_;
  KafkaSourceOptions source_options_;
};

TEST_F(KafkaTest, GivesWhatWasSentWithEveryKeysNewestRowLast) {
  mock_->CreateTopic(kTag, 4);
  mock_->CreateTopic("hps_et.m.u", 1);
  const auto producer = Producer();
  Send(producer.get(), 0, 5000, 1);
  Send(producer.get(), 0, 10, 1, "hps_et.m.u", 7);
  for (int version = 2; version <= 5; ++version) {
    Send(producer.get(), 0, 5000, version);
  }
  const auto source = Source();
  const Arrived arrived = Receive(source.get(), 25010);
  EXPECT_TRUE(arrived.Has(kTag, KeysFrom(0, 5000), 5));
  EXPECT_TRUE(arrived.Has("hps_et.m.u", KeysFrom(0, 10), 1));
  EXPECT_EQ(source->statistics().rows, 25010);
}

TEST_F(KafkaTest, ATopicThatComesLaterIsFoundAndOthersAreNot) {
  mock_->CreateTopic("hps_et.a.t", 2);
  mock_->CreateTopic("something.else", 2);
  source_options_.filters = {"a", "c"};
  const auto source = Source();
  const auto producer = Producer();
  Send(producer.get(), 0, 10, 1, "hps_et.a.t");
  EXPECT_TRUE(Receive(source.get(), 10).Has("hps_et.a.t", KeysFrom(0, 10), 1));
  Send(producer.get(), 0, 10, 1, "hps_et.b.t");
  Send(producer.get(), 0, 10, 1, "hps_et.c.t");
  // The group's partitions are reassigned, and uncommitted messages are
  // delivered again.
  Arrived arrived;
  const Clock::time_point start = Clock::now();
  while (!arrived.Has("hps_et.c.t", KeysFrom(0, 10), 1) &&
         MsSince(start) < kWaitMs) {
    std::vector<UpdateBatch> batches;
    source->Poll(100, &batches);
    arrived.Take(batches);
  }
  EXPECT_TRUE(arrived.Has("hps_et.c.t", KeysFrom(0, 10), 1));
  EXPECT_FALSE(arrived.HasTable("hps_et.b.t"));
}

TEST_F(KafkaTest, AGroupGoesOnBehindWhatItHasCommitted) {
  mock_->CreateTopic(kTag, 3);
  const auto producer = Producer();
  Send(producer.get(), 0, 100, 1);
  {
    const auto source = Source();
    EXPECT_EQ(Receive(source.get(), 100).num_rows(), 100);
    const ev::Status status = source->Commit();
    ASSERT_TRUE(status.ok()) << status.message();
    Send(producer.get(), 0, 100, 2);
    EXPECT_EQ(Receive(source.get(), 100).num_rows(), 100);
    // not committed
  }
  Send(producer.get(), 100, 200, 2);
  const auto again = Source();
  const Arrived arrived = Receive(again.get(), 200);
  EXPECT_TRUE(arrived.Has(kTag, KeysFrom(0, 200), 2));
  EXPECT_EQ(arrived.num_rows(), 200);
  // Another group has its own position.
  source_options_.group = "hps.persistent";
  const auto other = Source();
  EXPECT_EQ(Receive(other.get(), 300).num_rows(), 300);
}

TEST_F(KafkaTest, BrokersThatGoAndComeBackAreWaitedFor) {
  mock_->CreateTopic(kTag, 2);
  const auto producer = Producer();
  Send(producer.get(), 0, 100, 1);
  std::mutex mutex;
  Arrived arrived;
  ReceiverOptions options;
  options.poll_timeout_ms = 50;
  UpdateReceiver receiver(
      Source(),
      [&](const UpdateBatch& batch) {
        std::lock_guard<std::mutex> lock(mutex);
        arrived.Take(batch);
        return ev::Status::OK();
      },
      options);
  const auto has = [&](int version) {
    std::lock_guard<std::mutex> lock(mutex);
    return arrived.Has(kTag, KeysFrom(0, 100), version);
  };
  const auto wait_for = [&](int version) {
    const Clock::time_point start = Clock::now();
    while (!has(version) && MsSince(start) < kWaitMs) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_TRUE(has(version));
  };
  wait_for(1);
  mock_->SetDown();
  const std::vector<int64_t> keys = KeysFrom(0, 100);
  ASSERT_TRUE(
      producer->Send(kTag, 4, keys, SealedRows(keys, 2, 4).data()).ok());
  const ev::Status status = producer->Flush(300);
  EXPECT_EQ(status.code(), ev::StatusCode::kInternal);
  EXPECT_NE(status.message().find(mock_->brokers()), std::string::npos)
      << status.message();
  mock_->SetUp();
  // Messages in flight arrive.
  EXPECT_TRUE(producer->Flush(kWaitMs).ok());
  wait_for(2);
}

TEST_F(KafkaTest, MessagesAfterThePositionAreCounted) {
  mock_->CreateTopic(kTag, 1);
  const auto producer = Producer();
  for (int version = 1; version <= 3; ++version) {
    Send(producer.get(), 0, 100, version);
  }
  // Each message is a separate poll.
  source_options_.max_batch_size = 1;
  const auto source = Source();
  std::vector<int64_t> waiting;
  Arrived arrived;
  const Clock::time_point start = Clock::now();
  while (arrived.num_rows() < 300 && MsSince(start) < kWaitMs) {
    std::vector<UpdateBatch> batches;
    ASSERT_TRUE(source->Poll(100, &batches).ok());
    arrived.Take(batches);
    if (!batches.empty()) waiting.push_back(source->statistics().waiting);
  }
  ASSERT_GE(waiting.size(), 3u);
  EXPECT_EQ(waiting.front(), static_cast<int64_t>(waiting.size()) - 1);
  EXPECT_EQ(waiting.back(), 0);
}

TEST_F(KafkaTest, NoBrokerIsAnErrorInTime) {
  producer_options_.brokers = "127.0.0.1:1";
  producer_options_.timeout_ms = 300;
  const auto producer = Producer();
  const Clock::time_point start = Clock::now();
  const std::vector<int64_t> keys = {1};
  const ev::Status status =
      producer->Send(kTag, 4, keys, SealedRow(1, 1, 4).data());
  EXPECT_EQ(status.code(), ev::StatusCode::kInternal);
  EXPECT_NE(status.message().find("127.0.0.1:1"), std::string::npos);
  EXPECT_NE(status.message().find(kTag), std::string::npos);
  EXPECT_LT(MsSince(start), 10000);
  source_options_.brokers = "127.0.0.1:1";
  const auto source = Source();
  std::string message;
  while (message.empty() && MsSince(start) < kWaitMs) {
    std::vector<UpdateBatch> batches;
    message = source->Poll(100, &batches).message();
  }
  EXPECT_NE(message.find("127.0.0.1:1"), std::string::npos) << message;
}

TEST_F(KafkaTest, InvalidMessagesAreCountedAndSkipped) {
  mock_->CreateTopic(kTag, 1);
  const KafkaLibrary* library = nullptr;
  ASSERT_TRUE(KafkaLibrary::Get(&library).ok());
  KafkaLibrary::Client* client = nullptr;
  ASSERT_TRUE(library
                  ->MakeClient(KafkaLibrary::kProducer,
                               {{"bootstrap.servers",
                                 mock_->brokers().substr(
                                     0, mock_->brokers().find(';'))}},
                               KafkaLibrary::Callbacks(), &client)
                  .ok());
  KafkaLibrary::Topic* const topic = library->topic_new(client, kTag, nullptr);
  std::string rows;
  AppendToMessage(5, SealedRow(5, 1, 4).data(), 4, &rows);
  std::string wider;
  AppendToMessage(6, SealedRow(6, 1, 8).data(), 8, &wider);
  for (std::string message : {std::string("nonsense"), std::string(), rows,
                              rows.substr(0, 20), wider}) {
    ASSERT_EQ(library->produce(topic, 0, KafkaLibrary::kCopy, &message[0],
                               message.size(), nullptr, 0, nullptr),
              0);
  }
  library->flush(client, kWaitMs);
  library->topic_destroy(topic);
  library->destroy_flags(client, 0);
  const auto source = Source();
  const Arrived arrived = Receive(source.get(), 2);
  EXPECT_TRUE(arrived.Has(kTag, {5, 6}, 1));
  EXPECT_EQ(source->statistics().malformed, 2);
  EXPECT_NE(source->statistics().last_malformed.find("offset 3"),
            std::string::npos)
      << source->statistics().last_malformed;
}

TEST_F(KafkaTest, WrongOptionsAreErrors) {
  std::unique_ptr<UpdateSource> source;
  source_options_.filters = {"("};
  EXPECT_EQ(KafkaSource::Open(source_options_, &source).code(),
            ev::StatusCode::kInvalidArgument);
  source_options_.filters = {".+"};
  source_options_.receive_buffer_size = -1;
  EXPECT_EQ(KafkaSource::Open(source_options_, &source).code(),
            ev::StatusCode::kInvalidArgument);
  const std::vector<int64_t> keys = {1};
  EXPECT_EQ(
      Producer()->Send("no tag", 4, keys, SealedRow(1, 1, 4).data()).code(),
      ev::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hps
