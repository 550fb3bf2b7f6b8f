// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/source/kafka/kafka_source.h"

#include <algorithm>
#include <chrono>

#include "addons/hierarchical_parameter_server/source/update_message.h"

namespace hps {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kCloseMs = 5000;

std::string Commas(std::string list) {
  std::replace(list.begin(), list.end(), ';', ',');
  return list;
}

}  // namespace

ev::Status KafkaSource::Open(const KafkaSourceOptions& options,
                             std::unique_ptr<UpdateSource>* source) {
  const KafkaLibrary* library = nullptr;
  EV_RETURN_IF_ERROR(KafkaLibrary::Get(&library));
  std::unique_ptr<KafkaSource> made(new KafkaSource(library, options));
  EV_RETURN_IF_ERROR(TagFilter::Make(options.filters, &made->filter_));
  if (options.max_batch_size < 1) {
    return ev::InvalidArgument(
        "kafka_message_queue: max_batch_size: expected 1 or more, got " +
        std::to_string(options.max_batch_size));
  }
  KafkaLibrary::Callbacks callbacks;
  callbacks.on_error = &KafkaSource::OnError;
  callbacks.opaque = made.get();
  EV_RETURN_IF_ERROR(library->MakeClient(
      KafkaLibrary::kConsumer,
      {{"bootstrap.servers", Commas(options.brokers)},
       {"group.id", options.group},
       {"auto.offset.reset", "earliest"},
       {"enable.auto.commit", "false"},
       {"enable.auto.offset.store", "false"},
       {"topic.metadata.refresh.interval.ms",
        std::to_string(options.metadata_refresh_interval_ms)},
       {"fetch.message.max.bytes", std::to_string(options.receive_buffer_size)},
       // Errors are returned by polls; logging them would print them twice.
       {"log_level", "2"},
       {"session.timeout.ms", std::to_string(options.session_timeout_ms)},
       {"heartbeat.interval.ms",
        std::to_string(options.session_timeout_ms * 3 / 10)}},
      callbacks, &made->client_));
  EV_RETURN_IF_ERROR(made->Subscribe());
  *source = std::move(made);
  return ev::Status::OK();
}

ev::Status KafkaSource::Subscribe() {
  library_->poll_set_consumer(client_);
  KafkaLibrary::PartitionList* const list = library_->list_new(1);
  // librdkafka recognizes an expression by its first character.
  for (const std::string& expression : filter_.expressions()) {
    library_->list_add(list, expression.c_str(), -1);
  }
  const int error = library_->subscribe(client_, list);
  library_->list_destroy(list);
  if (error == KafkaLibrary::kOk) return ev::Status::OK();
  return ev::InvalidArgument(
      std::string("kafka_message_queue: update_filters: ") +
      library_->words(error));
}

KafkaSource::~KafkaSource() {
  if (client_ == nullptr) return;
  if (unread_ != nullptr) library_->message_destroy(unread_);
  if (library_->consumer_close_queue != nullptr &&
      library_->consumer_closed != nullptr) {
    KafkaLibrary::Queue* const queue = library_->queue_new(client_);
    library_->consumer_close_queue(client_, queue);
    const Clock::time_point end =
        Clock::now() + std::chrono::milliseconds(kCloseMs);
    while (library_->consumer_closed(client_) == 0 && Clock::now() < end) {
      KafkaLibrary::Event* const event = library_->queue_poll(queue, 20);
      if (event != nullptr) library_->event_destroy(event);
    }
    library_->queue_destroy(queue);
  }
  // Otherwise the group notices only when the session times out.
  library_->destroy_flags(client_, KafkaLibrary::kNoConsumerClose);
}

ev::Status KafkaSource::Error(const std::string& what) const {
  return ev::Internal("kafka_message_queue, brokers " + options_.brokers +
                      ", group " + options_.group + ": " + what);
}

void KafkaSource::OnError(KafkaLibrary::Client* client, int error,
                          const char* reason, void* opaque) {
  KafkaSource* const source = static_cast<KafkaSource*>(opaque);
  source->error_text_ = source->library_->words(error);
  if (reason != nullptr) source->error_text_ += std::string(": ") + reason;
}

ev::Status KafkaSource::Take(const KafkaLibrary::Message& message,
                             std::vector<UpdateBatch>* batches) {
  if (message.error == KafkaLibrary::kPartitionEnd) return ev::Status::OK();
  if (message.error != KafkaLibrary::kOk) {
    const char* const words = library_->message_words(&message);
    return Error(library_->words(message.error) +
                 (words == nullptr ? "" : std::string(": ") + words));
  }
  const std::string tag = library_->topic_name(message.topic);
  if (!filter_.Matches(tag)) {
    next_[{tag, message.partition}] = message.offset + 1;
    return ev::Status::OK();
  }
  UpdateBatch* batch = nullptr;
  for (UpdateBatch& one : *batches) {
    if (one.tag == tag) batch = &one;  // last one with this tag
  }
  UpdateBatch fresh;
  fresh.tag = tag;
  const size_t before = batch == nullptr ? 0 : batch->keys.size();
  ev::Status status = batch == nullptr
                          ? ev::Internal("")
                          : ReadMessage(message.payload, message.bytes, batch);
  int64_t num_rows = 0;
  if (status.ok()) {
    num_rows = static_cast<int64_t>(batch->keys.size() - before);
  } else {
    // The tag's first batch, or one with a new width.
    status = ReadMessage(message.payload, message.bytes, &fresh);
    num_rows = static_cast<int64_t>(fresh.keys.size());
    if (num_rows > 0) batches->push_back(std::move(fresh));
  }
  // Only now: without memory the message is read again, and Commit must not
  // include it.
  next_[{tag, message.partition}] = message.offset + 1;
  if (options_.marks != nullptr) {
    Stream& stream = streams_[{tag, message.partition}];
    stream.mark.next = message.offset + 1;
    stream.is_changed = true;
  }
  if (!status.ok()) {
    ++statistics_.malformed;
    statistics_.last_malformed =
        status.message() + " (partition " + std::to_string(message.partition) +
        ", offset " + std::to_string(message.offset) + ")";
    return ev::Status::OK();
  }
  ++statistics_.batches;
  statistics_.rows += num_rows;
  return ev::Status::OK();
}

ev::Status KafkaSource::CheckMark(const KafkaLibrary::Message& message,
                                  bool* is_stored) {
  *is_stored = false;
  if (options_.marks == nullptr || message.error != KafkaLibrary::kOk) {
    return ev::Status::OK();
  }
  const std::string tag = library_->topic_name(message.topic);
  Stream& stream = streams_[{tag, message.partition}];
  if (stream.position < 0 || message.offset < stream.position) {
    ReadMark mark;
    EV_RETURN_IF_ERROR(
        options_.marks->Load(tag, std::to_string(message.partition), &mark));
    int64_t low = 0, high = 0;
    // A mark beyond the partition's end is one of a topic that was replaced.
    if (library_->watermarks(client_, tag.c_str(), message.partition, &low,
                             &high) == KafkaLibrary::kOk &&
        high >= 0 && mark.next > high) {
      mark.next = 0;
    }
    stream.mark = mark;
    stream.is_changed = false;
  }
  *is_stored = message.offset < stream.mark.next;
  stream.position = message.offset + 1;
  return ev::Status::OK();
}

ev::Status KafkaSource::StoreMarks() {
  for (auto& entry : streams_) {
    Stream& stream = entry.second;
    if (!stream.is_changed) continue;
    EV_RETURN_IF_ERROR(options_.marks->Store(
        entry.first.first, std::to_string(entry.first.second), stream.mark));
    stream.is_changed = false;
  }
  return ev::Status::OK();
}

ev::Status KafkaSource::Poll(int64_t timeout_ms,
                             std::vector<UpdateBatch>* batches) {
  const int64_t end = statistics_.rows + options_.max_batch_size;
  int wait_ms = static_cast<int>(std::min<int64_t>(timeout_ms, 1 << 30));
  while (statistics_.rows < end) {
    if (unread_ == nullptr) {
      unread_ = library_->consumer_poll(client_, wait_ms);
    }
    if (unread_ == nullptr) break;
    bool is_stored = false;
    // After an error the next poll tries this message again.
    EV_RETURN_IF_ERROR(CheckMark(*unread_, &is_stored));
    const ev::Status status =
        is_stored ? ev::Status::OK() : Take(*unread_, batches);
    library_->message_destroy(unread_);
    unread_ = nullptr;
    EV_RETURN_IF_ERROR(status);
    wait_ms = 0;
  }
  statistics_.waiting = CountWaiting();
  if (error_text_.empty()) return ev::Status::OK();
  const ev::Status status = Error(error_text_);
  error_text_.clear();
  return status;
}

int64_t KafkaSource::CountWaiting() const {
  KafkaLibrary::PartitionList* list = nullptr;
  if (library_->assignment(client_, &list) != KafkaLibrary::kOk) return -1;
  int64_t waiting = -1;
  if (library_->position(client_, list) == KafkaLibrary::kOk) {
    waiting = 0;
    for (int i = 0; i < list->count; ++i) {
      const KafkaLibrary::Partition& part = list->elements[i];
      int64_t low = 0, high = 0;
      // Both are negative while nothing is known.
      if (part.offset >= 0 &&
          library_->watermarks(client_, part.topic, part.partition, &low,
                               &high) == KafkaLibrary::kOk &&
          high > part.offset) {
        waiting += high - part.offset;
      }
    }
  }
  library_->list_destroy(list);
  return waiting;
}

ev::Status KafkaSource::Commit() {
  if (options_.marks != nullptr) EV_RETURN_IF_ERROR(StoreMarks());
  if (!options_.commits) return ev::Status::OK();
  if (next_.empty()) return ev::Status::OK();
  KafkaLibrary::PartitionList* const list =
      library_->list_new(static_cast<int>(next_.size()));
  for (const auto& part : next_) {
    library_->list_add(list, part.first.first.c_str(), part.first.second)
        ->offset = part.second;
  }
  KafkaLibrary::Queue* const queue = library_->queue_new(client_);
  int error = library_->commit_queue(client_, list, queue, nullptr, nullptr);
  library_->list_destroy(list);
  bool has_answer = error != KafkaLibrary::kOk;
  if (!has_answer) {
    KafkaLibrary::Event* const event = library_->queue_poll(
        queue, static_cast<int>(options_.commit_timeout_ms));
    if (event != nullptr) {
      has_answer = true;
      error = library_->event_error(event);
      library_->event_destroy(event);
    }
  }
  library_->queue_destroy(queue);
  if (!has_answer) {
    return Error("commit: no answer in " +
                 std::to_string(options_.commit_timeout_ms) + " ms");
  }
  if (error == KafkaLibrary::kOk || error == KafkaLibrary::kNoOffset) {
    next_.clear();
    return ev::Status::OK();
  }
  if (error == KafkaLibrary::kIllegalGeneration ||
      error == KafkaLibrary::kUnknownMember) {
    // Another reader of the group owns these partitions now and gets their
    // messages again.
    next_.clear();
  }
  return Error(std::string("commit: ") + library_->words(error));
}

}  // namespace hps
