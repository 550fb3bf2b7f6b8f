// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// librdkafka's mock brokers for tests: they use Kafka's protocol over sockets,
// in this process.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_TESTING_KAFKA_MOCK_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_TESTING_KAFKA_MOCK_H_

#include <string>

#include "addons/hierarchical_parameter_server/source/kafka/kafka_library.h"

namespace hps {

class KafkaMock {
 public:
  // Returns why there can be no mock on this machine, or "".
  static std::string SkipReason();

  explicit KafkaMock(int num_brokers);
  ~KafkaMock();
  KafkaMock(const KafkaMock&) = delete;

  // Returns, for example, "127.0.0.1:12345;127.0.0.1:23456".
  std::string brokers() const;
  void CreateTopic(const std::string& name, int num_partitions);
  // SetDown makes every broker close its connections and refuse new ones; SetUp
  // makes them accept connections again.
  void SetDown();
  void SetUp();

 private:
  struct Cluster;
  template <typename F>
  F* Function(const char* name) const;

  const int num_brokers_;
  KafkaLibrary::Client* client_ = nullptr;
  Cluster* cluster_ = nullptr;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_TESTING_KAFKA_MOCK_H_
