// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/source/kafka/kafka_producer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "addons/hierarchical_parameter_server/source/update_message.h"

namespace hps {
namespace {

using Clock = std::chrono::steady_clock;

// Longest single wait for queue space or for a topic's partitions.
constexpr int kPieceMs = 100;
constexpr char kMostMessages[] = "1024";

int64_t LeftMs(Clock::time_point end) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(end -
                                                               Clock::now())
      .count();
}

}  // namespace

ev::Status KafkaProducer::Open(const KafkaProducerOptions& options,
                               std::unique_ptr<UpdateProducer>* producer) {
  const KafkaLibrary* library = nullptr;
  EV_RETURN_IF_ERROR(KafkaLibrary::Get(&library));
  std::unique_ptr<KafkaProducer> made(new KafkaProducer(library, options));
  std::string brokers = options.brokers;
  std::replace(brokers.begin(), brokers.end(), ';', ',');
  // The largest message is a full buffer plus one row.
  const int64_t most_bytes =
      std::max<int64_t>(1000000, options.send_buffer_size * 2 + (1 << 20));
  KafkaLibrary::Callbacks callbacks;
  callbacks.on_delivery = &KafkaProducer::OnDelivery;
  callbacks.opaque = made.get();
  EV_RETURN_IF_ERROR(library->MakeClient(
      KafkaLibrary::kProducer,
      {{"bootstrap.servers", brokers},
       {"enable.idempotence", "true"},
       {"queue.buffering.max.messages", kMostMessages},
       {"message.max.bytes", std::to_string(most_bytes)},
       {"message.timeout.ms", std::to_string(options.timeout_ms)},
       {"log_level", "2"}},
      callbacks, &made->client_));
  *producer = std::move(made);
  return ev::Status::OK();
}

KafkaProducer::~KafkaProducer() {
  if (client_ == nullptr) return;
  library_->purge(client_, KafkaLibrary::kPurgeAll);
  library_->poll(client_, 0);
  for (const auto& topic : topics_) {
    library_->topic_destroy(topic.second.topic);
  }
  library_->destroy_flags(client_, 0);
}

ev::Status KafkaProducer::Error(const std::string& what) const {
  return ev::Internal("kafka_message_queue, brokers " + options_.brokers +
                      ": " + what);
}

void KafkaProducer::OnDelivery(KafkaLibrary::Client* client,
                               const KafkaLibrary::Message* message,
                               void* opaque) {
  if (message->error == KafkaLibrary::kOk) return;
  KafkaProducer* const producer = static_cast<KafkaProducer*>(opaque);
  ++producer->num_failed_;
  producer->last_error_ = message->error;
}

ev::Status KafkaProducer::FindTopic(const std::string& tag,
                                    TopicState** state) {
  TopicState& topic = topics_[tag];
  if (topic.topic == nullptr) {
    topic.topic = library_->topic_new(client_, tag.c_str(), nullptr);
    topic.messages.resize(kNumGroups);
  }
  *state = &topic;
  if (topic.topic == nullptr) {
    topics_.erase(tag);
    return Error("topic " + tag + ": " +
                 library_->words(library_->last_error()));
  }
  const Clock::time_point end =
      Clock::now() + std::chrono::milliseconds(options_.timeout_ms);
  int error = KafkaLibrary::kUnknownTopicOrPartition;
  // A broker that creates topics on demand needs a moment.
  while (topic.num_partitions == 0 && LeftMs(end) > 0) {
    const KafkaLibrary::Metadata* metadata = nullptr;
    error = library_->metadata(
        client_, 0, topic.topic, &metadata,
        static_cast<int>(std::min<int64_t>(LeftMs(end), 10 * kPieceMs)));
    if (error != KafkaLibrary::kOk) continue;
    if (metadata->num_topics == 1) {
      error = metadata->topics[0].error;
      topic.num_partitions = metadata->topics[0].num_partitions;
    }
    library_->metadata_destroy(metadata);
    if (topic.num_partitions == 0) library_->poll(client_, kPieceMs);
  }
  if (topic.num_partitions > 0) return ev::Status::OK();
  return Error("topic " + tag + " has no partitions after " +
               std::to_string(options_.timeout_ms) +
               " ms: " + library_->words(error));
}

ev::Status KafkaProducer::Produce(TopicState* state, int group,
                                  int64_t timeout_ms) {
  std::string* const message = &state->messages[group];
  if (message->empty()) return ev::Status::OK();
  const Clock::time_point end =
      Clock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    if (library_->produce(state->topic, group % state->num_partitions,
                          KafkaLibrary::kCopy, &(*message)[0], message->size(),
                          nullptr, 0, nullptr) == 0) {
      message->clear();
      return ev::Status::OK();
    }
    const int error = library_->last_error();
    if (error != KafkaLibrary::kQueueFull || LeftMs(end) <= 0) {
      return Error(library_->words(error));
    }
    library_->poll(client_, kPieceMs);
  }
}

ev::Status KafkaProducer::ProduceAll(TopicState* state, int64_t timeout_ms) {
  for (int group = 0; group < kNumGroups; ++group) {
    EV_RETURN_IF_ERROR(Produce(state, group, timeout_ms));
  }
  return ev::Status::OK();
}

ev::Status KafkaProducer::Send(const std::string& tag, int width,
                               ev::Span<const int64_t> keys,
                               const float* rows) {
  EV_RETURN_IF_ERROR(CheckUpdate(tag, width));
  std::lock_guard<std::mutex> lock(mutex_);
  TopicState* state = nullptr;
  EV_RETURN_IF_ERROR(FindTopic(tag, &state));
  if (state->width != width) {
    EV_RETURN_IF_ERROR(ProduceAll(state, options_.timeout_ms));
    state->width = width;
  }
  const size_t most = static_cast<size_t>(options_.send_buffer_size);
  const size_t record = sizeof(int64_t) + sizeof(float) * width;
  for (size_t i = 0; i < keys.size(); ++i) {
    const int group = GroupOf(keys[i]);
    std::string* const message = &state->messages[group];
    if (!message->empty() && message->size() + record > most) {
      EV_RETURN_IF_ERROR(Produce(state, group, options_.timeout_ms));
    }
    AppendToMessage(keys[i], rows + i * width, width, message);
  }
  library_->poll(client_, 0);
  return ev::Status::OK();
}

ev::Status KafkaProducer::Flush(int64_t timeout_ms) {
  std::lock_guard<std::mutex> lock(mutex_);
  const Clock::time_point end =
      Clock::now() + std::chrono::milliseconds(timeout_ms);
  for (auto& topic : topics_) {
    EV_RETURN_IF_ERROR(
        ProduceAll(&topic.second, std::max<int64_t>(LeftMs(end), 0)));
  }
  library_->flush(client_, static_cast<int>(std::max<int64_t>(LeftMs(end), 0)));
  const int64_t num_failed = std::exchange(num_failed_, 0);
  if (num_failed > 0) {
    return Error(std::to_string(num_failed) +
                 " messages were not sent: " + library_->words(last_error_));
  }
  const int num_left = library_->num_queued(client_);
  if (num_left == 0) return ev::Status::OK();
  return Error(std::to_string(num_left) + " messages are not delivered after " +
               std::to_string(timeout_ms) + " ms");
}

}  // namespace hps
