// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// librdkafka's functions, loaded when a queue is first used: librdkafka is not
// needed to build or to start the program. The declarations follow rdkafka.h of
// versions 1 and 2.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_KAFKA_KAFKA_LIBRARY_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_KAFKA_KAFKA_LIBRARY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernels/engine/base/status.h"

namespace hps {

struct KafkaLibrary {
  struct Client;
  struct Conf;
  struct Topic;
  struct TopicConf;
  struct Queue;
  struct Event;
  struct CloseError;
  enum Type { kProducer = 0, kConsumer = 1 };
  enum Code {
    kPartitionEnd = -191,
    kAllBrokersDown = -187,
    kQueueFull = -184,
    kNoOffset = -168,
    kOk = 0,
    kUnknownTopicOrPartition = 3,
    kIllegalGeneration = 22,
    kUnknownMember = 25,
  };
  enum { kCopy = 0x2, kNoConsumerClose = 0x8, kPurgeAll = 0x3 };
  static constexpr int kConfOk = 0;

  struct Message {
    int error;
    Topic* topic;
    int32_t partition;
    void* payload;
    size_t bytes;
    void* key;
    size_t key_bytes;
    int64_t offset;
    void* of_library;
  };
  struct Partition {
    char* topic;
    int32_t partition;
    int64_t offset;
    void* metadata;
    size_t metadata_bytes;
    void* opaque;
    int error;
    void* of_library;
  };
  struct PartitionList {
    int count;
    int room;
    Partition* elements;
  };
  struct TopicMetadata {
    char* topic;
    int num_partitions;
    void* partitions;
    int error;
  };
  struct Metadata {
    int num_brokers;
    void* brokers;
    int num_topics;
    TopicMetadata* topics;
    int32_t broker;
    char* broker_name;
  };
  using OnDelivery = void (*)(Client* client, const Message* message,
                              void* opaque);
  using OnError = void (*)(Client* client, int error, const char* reason,
                           void* opaque);
  // Called on the thread that polls; null: not called.
  struct Callbacks {
    OnDelivery on_delivery = nullptr;
    OnError on_error = nullptr;
    void* opaque = nullptr;
  };

  Conf* (*conf_new)();
  void (*conf_destroy)(Conf* conf);
  int (*conf_set)(Conf* conf, const char* name, const char* value, char* error,
                  size_t error_bytes);
  void (*conf_set_on_delivery)(Conf* conf, OnDelivery on_delivery);
  void (*conf_set_on_error)(Conf* conf, OnError on_error);
  void (*conf_set_opaque)(Conf* conf, void* opaque);
  Client* (*client_new)(int type, Conf* conf, char* error, size_t error_bytes);
  void (*destroy_flags)(Client* client, int flags);
  const char* (*words)(int error);
  int (*last_error)();
  int (*poll)(Client* client, int timeout_ms);

  int (*subscribe)(Client* client, const PartitionList* topics);
  int (*poll_set_consumer)(Client* client);
  Message* (*consumer_poll)(Client* client, int timeout_ms);
  void (*message_destroy)(Message* message);
  const char* (*message_words)(const Message* message);
  const char* (*topic_name)(const Topic* topic);
  PartitionList* (*list_new)(int room);
  Partition* (*list_add)(PartitionList* list, const char* topic,
                         int32_t partition);
  void (*list_destroy)(PartitionList* list);
  int (*assignment)(Client* client, PartitionList** partitions);
  int (*position)(Client* client, PartitionList* partitions);
  // Result of the last fetch; sends no request.
  int (*watermarks)(Client* client, const char* topic, int32_t partition,
                    int64_t* low, int64_t* high);
  int (*commit_queue)(Client* client, const PartitionList* offsets,
                      Queue* queue, void* callback, void* opaque);
  Queue* (*queue_new)(Client* client);
  void (*queue_destroy)(Queue* queue);
  Event* (*queue_poll)(Queue* queue, int timeout_ms);
  int (*event_error)(Event* event);
  void (*event_destroy)(Event* event);
  // Since 1.9. Optional: may be null.
  CloseError* (*consumer_close_queue)(Client* client, Queue* queue);
  int (*consumer_closed)(Client* client);

  Topic* (*topic_new)(Client* client, const char* name, TopicConf* conf);
  void (*topic_destroy)(Topic* topic);
  int (*produce)(Topic* topic, int32_t partition, int flags, void* payload,
                 size_t bytes, const void* key, size_t key_bytes, void* opaque);
  int (*flush)(Client* client, int timeout_ms);
  int (*purge)(Client* client, int what);
  int (*num_queued)(Client* client);
  int (*metadata)(Client* client, int all_topics, Topic* topic,
                  const Metadata** metadata, int timeout_ms);
  void (*metadata_destroy)(const Metadata* metadata);

  // Loads the library named by HPS_RDKAFKA_LIBRARY, else librdkafka.so.1 or
  // librdkafka.so; once. FailedPrecondition: it was not found; the message
  // lists what was tried.
  static ev::Status Get(const KafkaLibrary** library);

  // Creates a client with these properties. InvalidArgument: a property was
  // rejected; the message has its name and the library's error.
  ev::Status MakeClient(
      Type type,
      const std::vector<std::pair<std::string, std::string>>& properties,
      const Callbacks& callbacks, Client** client) const;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_KAFKA_KAFKA_LIBRARY_H_
