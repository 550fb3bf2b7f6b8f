// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Updates from Kafka: a table is a topic of its tag's name, a message has rows
// as update_message.h says. Readers of one group share the work and the place
// up to which they have come.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_KAFKA_KAFKA_SOURCE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_KAFKA_KAFKA_SOURCE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "addons/hierarchical_parameter_server/source/kafka/kafka_library.h"
#include "addons/hierarchical_parameter_server/source/tag_filter.h"
#include "addons/hierarchical_parameter_server/source/update_source.h"

namespace hps {

struct KafkaSourceOptions {
  std::string brokers = "127.0.0.1:9092";  // "host:port;host:port"
  // "hps.volatile", "hps.persistent", with ".<host>" where the database is this
  // host's alone.
  std::string group;
  std::vector<std::string> filters = {".+"};
  int64_t metadata_refresh_interval_ms = 30000;  // new topics are seen so soon
  int64_t receive_buffer_size = 262144;
  // Rows of a poll, a message's more at most.
  int64_t max_batch_size = 8192;
  // The longest that a commit may take.
  int64_t commit_timeout_ms = 10000;
};

class KafkaSource : public UpdateSource {
 public:
  // Does not wait for a broker. FailedPrecondition: librdkafka is not there.
  // InvalidArgument: an option is out of its range.
  static ev::Status Open(const KafkaSourceOptions& options,
                         std::unique_ptr<UpdateSource>* source);
  // Leaves the group, within seconds.
  ~KafkaSource() override;

  // Internal: brokers are not reached, or what a broker says.
  ev::Status Poll(int64_t timeout_ms,
                  std::vector<UpdateBatch>* batches) override;
  ev::Status Commit() override;
  SourceStatistics statistics() const override { return statistics_; }

 private:
  KafkaSource(const KafkaLibrary* library, const KafkaSourceOptions& options)
      : library_(library), options_(options) {}
  ev::Status Subscribe();
  ev::Status Error(const std::string& what) const;
  // Messages of this reader's parts behind those that were given; -1: not
  // known. A part from which nothing has come yet counts as none.
  int64_t CountWaiting() const;
  static void OnError(KafkaLibrary::Client* client, int error,
                      const char* reason, void* opaque);
  // Takes a message's rows; an error that it tells is returned.
  ev::Status Take(const KafkaLibrary::Message& message,
                  std::vector<UpdateBatch>* batches);

  const KafkaLibrary* const library_;
  const KafkaSourceOptions options_;
  TagFilter filter_;
  KafkaLibrary::Client* client_ = nullptr;
  // A message whose rows found no memory: the next poll takes it again.
  KafkaLibrary::Message* unread_ = nullptr;
  // For each part of a topic, what comes after what was given.
  std::map<std::pair<std::string, int32_t>, int64_t> next_;
  SourceStatistics statistics_;
  std::string told_;  // by the callback, in a poll
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_KAFKA_KAFKA_SOURCE_H_
