// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/source/testing/kafka_mock.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>

namespace hps {

template <typename F>
F* KafkaMock::Function(const char* name) const {
  void* const library = dlopen("librdkafka.so.1", RTLD_NOW | RTLD_LOCAL);
  void* const found = library == nullptr ? nullptr : dlsym(library, name);
  if (found == nullptr) abort();
  return reinterpret_cast<F*>(found);
}

std::string KafkaMock::SkipReason() {
  const KafkaLibrary* library = nullptr;
  const ev::Status status = KafkaLibrary::Get(&library);
  if (!status.ok()) return status.message();
  void* const file = dlopen("librdkafka.so.1", RTLD_NOW | RTLD_LOCAL);
  return file != nullptr && dlsym(file, "rd_kafka_mock_cluster_new") != nullptr
             ? ""
             : "this librdkafka has no mock cluster";
}

KafkaMock::KafkaMock(int num_brokers) : num_brokers_(num_brokers) {
  const KafkaLibrary* library = nullptr;
  if (!KafkaLibrary::Get(&library).ok() ||
      !library
           ->MakeClient(KafkaLibrary::kProducer, {{"log_level", "2"}},
                        KafkaLibrary::Callbacks(), &client_)
           .ok()) {
    abort();
  }
  cluster_ = Function<Cluster*(KafkaLibrary::Client*, int)>(
      "rd_kafka_mock_cluster_new")(client_, num_brokers);
}

KafkaMock::~KafkaMock() {
  const KafkaLibrary* library = nullptr;
  KafkaLibrary::Get(&library);
  Function<void(Cluster*)>("rd_kafka_mock_cluster_destroy")(cluster_);
  library->destroy_flags(client_, 0);
}

std::string KafkaMock::brokers() const {
  std::string list = Function<const char*(const Cluster*)>(
      "rd_kafka_mock_cluster_bootstraps")(cluster_);
  std::replace(list.begin(), list.end(), ',', ';');
  return list;
}

void KafkaMock::CreateTopic(const std::string& name, int num_partitions) {
  Function<int(Cluster*, const char*, int, int)>("rd_kafka_mock_topic_create")(
      cluster_, name.c_str(), num_partitions, 1);
}

void KafkaMock::SetDown() {
  for (int broker = 1; broker <= num_brokers_; ++broker) {
    Function<int(Cluster*, int32_t)>("rd_kafka_mock_broker_set_down")(cluster_,
                                                                      broker);
  }
}

void KafkaMock::SetUp() {
  for (int broker = 1; broker <= num_brokers_; ++broker) {
    Function<int(Cluster*, int32_t)>("rd_kafka_mock_broker_set_up")(cluster_,
                                                                    broker);
  }
}

}  // namespace hps
