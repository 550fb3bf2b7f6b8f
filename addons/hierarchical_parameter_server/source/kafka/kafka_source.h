// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Updates from Kafka. Each table is a topic named by its tag; messages are in
// the format of update_message.h. Readers of one group share the topics'
// partitions and the committed position.

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
  // Readers of one group share a committed position and the work.
  std::string group;
  std::vector<std::string> filters = {".+"};
  // how soon new topics are found
  int64_t metadata_refresh_interval_ms = 30000;
  int64_t receive_buffer_size = 262144;
  // Rows of one poll; the last message may exceed it.
  int64_t max_batch_size = 8192;
  // Time until another reader takes over from one that was killed.
  int64_t session_timeout_ms = 10000;
  // Longest time that a commit may take.
  int64_t commit_timeout_ms = 10000;
  // Whether Commit stores the group's position.
  bool commits = true;
  // Marks of the database that stores the updates; null unless processes share
  // it.
  std::shared_ptr<ReadMarks> marks;
};

class KafkaSource : public UpdateSource {
 public:
  // Does not wait for a broker. FailedPrecondition: librdkafka was not found.
  // InvalidArgument: an option is out of range.
  static ev::Status Open(const KafkaSourceOptions& options,
                         std::unique_ptr<UpdateSource>* source);
  // Leaves the group, within seconds. With librdkafka before 1.9 the group
  // notices only when the session times out.
  ~KafkaSource() override;

  // Internal: no broker is reachable, or a broker's error.
  ev::Status Poll(int64_t timeout_ms,
                  std::vector<UpdateBatch>* batches) override;
  ev::Status Commit() override;
  SourceStatistics statistics() const override { return statistics_; }

 private:
  KafkaSource(const KafkaLibrary* library, const KafkaSourceOptions& options)
      : library_(library), options_(options) {}
  ev::Status Subscribe();
  ev::Status Error(const std::string& what) const;
  // Messages in this reader's partitions after the last one returned; -1:
  // unknown. A partition from which nothing has arrived counts as empty.
  int64_t CountWaiting() const;
  static void OnError(KafkaLibrary::Client* client, int error,
                      const char* reason, void* opaque);
  // *is_stored: the database has this message's rows. Partitions are read from
  // the group's position whenever they are assigned anew.
  ev::Status CheckMark(const KafkaLibrary::Message& message, bool* is_stored);
  ev::Status StoreMarks();
  // Adds a message's rows to *batches, or returns the error it carries.
  ev::Status Take(const KafkaLibrary::Message& message,
                  std::vector<UpdateBatch>* batches);

  const KafkaLibrary* const library_;
  const KafkaSourceOptions options_;
  TagFilter filter_;
  KafkaLibrary::Client* client_ = nullptr;
  // A message for whose rows there was no memory; the next poll retries it.
  KafkaLibrary::Message* unread_ = nullptr;
  // Next offset for each partition of a topic.
  std::map<std::pair<std::string, int32_t>, int64_t> next_;
  // With marks, for each partition of a topic.
  struct Stream {
    int64_t position = -1;  // after the last message
    ReadMark mark;
    bool is_changed = false;  // the mark is to be stored
  };
  std::map<std::pair<std::string, int32_t>, Stream> streams_;
  SourceStatistics statistics_;
  std::string error_text_;  // error text set by the callback during a poll
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_KAFKA_KAFKA_SOURCE_H_
