// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/source/kafka/kafka_library.h"

#include "addons/hierarchical_parameter_server/database/opened_library.h"

namespace hps {
namespace {

struct Loaded {
  ev::Status status;
  KafkaLibrary library;
};

Loaded Load() {
  Loaded loaded;
  OpenedLibrary file("kafka_message_queue",
                     "librdkafka (package librdkafka1 or librdkafka-dev)",
                     "HPS_RDKAFKA_LIBRARY",
                     {"librdkafka.so.1", "librdkafka.so"});
  KafkaLibrary* k = &loaded.library;
  file.Find("rd_kafka_conf_new", &k->conf_new);
  file.Find("rd_kafka_conf_destroy", &k->conf_destroy);
  file.Find("rd_kafka_conf_set", &k->conf_set);
  file.Find("rd_kafka_conf_set_dr_msg_cb", &k->conf_set_on_delivery);
  file.Find("rd_kafka_conf_set_error_cb", &k->conf_set_on_error);
  file.Find("rd_kafka_conf_set_opaque", &k->conf_set_opaque);
  file.Find("rd_kafka_new", &k->client_new);
  file.Find("rd_kafka_destroy_flags", &k->destroy_flags);
  file.Find("rd_kafka_err2str", &k->words);
  file.Find("rd_kafka_last_error", &k->last_error);
  file.Find("rd_kafka_poll", &k->poll);
  file.Find("rd_kafka_subscribe", &k->subscribe);
  file.Find("rd_kafka_poll_set_consumer", &k->poll_set_consumer);
  file.Find("rd_kafka_consumer_poll", &k->consumer_poll);
  file.Find("rd_kafka_message_destroy", &k->message_destroy);
  file.Find("rd_kafka_message_errstr", &k->message_words);
  file.Find("rd_kafka_topic_name", &k->topic_name);
  file.Find("rd_kafka_topic_partition_list_new", &k->list_new);
  file.Find("rd_kafka_topic_partition_list_add", &k->list_add);
  file.Find("rd_kafka_topic_partition_list_destroy", &k->list_destroy);
  file.Find("rd_kafka_assignment", &k->assignment);
  file.Find("rd_kafka_position", &k->position);
  file.Find("rd_kafka_get_watermark_offsets", &k->watermarks);
  file.Find("rd_kafka_commit_queue", &k->commit_queue);
  file.Find("rd_kafka_queue_new", &k->queue_new);
  file.Find("rd_kafka_queue_destroy", &k->queue_destroy);
  file.Find("rd_kafka_queue_poll", &k->queue_poll);
  file.Find("rd_kafka_event_error", &k->event_error);
  file.Find("rd_kafka_event_destroy", &k->event_destroy);
  file.FindOptional("rd_kafka_consumer_close_queue", &k->consumer_close_queue);
  file.FindOptional("rd_kafka_consumer_closed", &k->consumer_closed);
  file.Find("rd_kafka_topic_new", &k->topic_new);
  file.Find("rd_kafka_topic_destroy", &k->topic_destroy);
  file.Find("rd_kafka_produce", &k->produce);
  file.Find("rd_kafka_flush", &k->flush);
  file.Find("rd_kafka_purge", &k->purge);
  file.Find("rd_kafka_outq_len", &k->num_queued);
  file.Find("rd_kafka_metadata", &k->metadata);
  file.Find("rd_kafka_metadata_destroy", &k->metadata_destroy);
  loaded.status = file.status();
  return loaded;
}

}  // namespace

ev::Status KafkaLibrary::Get(const KafkaLibrary** library) {
  static const Loaded* const loaded = new Loaded(Load());
  *library = &loaded->library;
  return loaded->status;
}

ev::Status KafkaLibrary::MakeClient(
    Type type,
    const std::vector<std::pair<std::string, std::string>>& properties,
    const Callbacks& callbacks, Client** client) const {
  Conf* const conf = conf_new();
  char error[512] = "";
  for (const auto& property : properties) {
    if (conf_set(conf, property.first.c_str(), property.second.c_str(), error,
                 sizeof(error)) != kConfOk) {
      conf_destroy(conf);
      return ev::InvalidArgument("kafka_message_queue: " + property.first +
                                 "='" + property.second + "': " + error);
    }
  }
  if (callbacks.on_delivery != nullptr) {
    conf_set_on_delivery(conf, callbacks.on_delivery);
  }
  if (callbacks.on_error != nullptr) {
    conf_set_on_error(conf, callbacks.on_error);
  }
  conf_set_opaque(conf, callbacks.opaque);
  *client = client_new(type, conf, error, sizeof(error));
  if (*client != nullptr) return ev::Status::OK();
  conf_destroy(conf);
  return ev::InvalidArgument(std::string("kafka_message_queue: no client: ") +
                             error);
}

}  // namespace hps
