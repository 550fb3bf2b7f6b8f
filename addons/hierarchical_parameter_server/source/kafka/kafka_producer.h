// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Sends updates to Kafka, one topic per table. Within a topic a key always goes
// to the same partition, so its updates keep their order.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_KAFKA_KAFKA_PRODUCER_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_KAFKA_KAFKA_PRODUCER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/source/kafka/kafka_library.h"
#include "addons/hierarchical_parameter_server/source/update_source.h"

namespace hps {

struct KafkaProducerOptions {
  std::string brokers = "127.0.0.1:9092";  // "host:port;host:port"
  // Size of a message in bytes; receivers must accept as much.
  int64_t send_buffer_size = 262144;
  // Longest single wait for a broker or for queue space (a Send may have
  // several), and longest time until a message is delivered.
  int64_t timeout_ms = 30000;
};

class KafkaProducer : public UpdateProducer {
 public:
  // Does not wait for a broker. FailedPrecondition: librdkafka was not found.
  static ev::Status Open(const KafkaProducerOptions& options,
                         std::unique_ptr<UpdateProducer>* producer);
  // Rows that were not flushed may be sent or lost.
  ~KafkaProducer() override;

  // Internal: a message could not be sent; the error names the brokers.
  ev::Status Send(const std::string& tag, int width,
                  ev::Span<const int64_t> keys, const float* rows) override;
  ev::Status Flush(int64_t timeout_ms) override;

 private:
  struct TopicState {
    KafkaLibrary::Topic* topic = nullptr;
    int num_partitions = 0;
    int width = 0;
    std::vector<std::string> messages;  // unsent, one per key group
  };

  KafkaProducer(const KafkaLibrary* library,
                const KafkaProducerOptions& options)
      : library_(library), options_(options) {}
  ev::Status Error(const std::string& what) const;
  // REQUIRES for all functions below: mutex_.
  ev::Status FindTopic(const std::string& tag, TopicState** state);
  ev::Status Produce(TopicState* state, int group, int64_t timeout_ms);
  ev::Status ProduceAll(TopicState* state, int64_t timeout_ms);
  static void OnDelivery(KafkaLibrary::Client* client,
                         const KafkaLibrary::Message* message, void* opaque);

  const KafkaLibrary* const library_;
  const KafkaProducerOptions options_;
  KafkaLibrary::Client* client_ = nullptr;
  std::mutex mutex_;
  std::map<std::string, TopicState> topics_;
  // Set by the callback, which runs in calls that hold the mutex.
  int64_t num_failed_ = 0;
  int last_error_ = 0;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_KAFKA_KAFKA_PRODUCER_H_
