// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/server/producers.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "addons/hierarchical_parameter_server/source/directory/directory_source.h"
#include "addons/hierarchical_parameter_server/source/kafka/kafka_producer.h"
#include "addons/hierarchical_parameter_server/source/update_source.h"

namespace hps {
namespace {

struct State {
  std::mutex mutex;
  std::map<int64_t, std::shared_ptr<UpdateProducer>> producers;
  int64_t next = 1;
};

// Never destroyed: threads may still send while the process exits.
State* TheState() {
  static State* const state = new State;
  return state;
}

ev::Status Find(int64_t number, std::shared_ptr<UpdateProducer>* producer) {
  State* const state = TheState();
  std::lock_guard<std::mutex> lock(state->mutex);
  const auto found = state->producers.find(number);
  if (found == state->producers.end()) {
    return ev::NotFound("there is no producer " + std::to_string(number) +
                        ", or it was closed");
  }
  *producer = found->second;
  return ev::Status::OK();
}

}  // namespace

ev::Status OpenProducer(const std::string& type, const std::string& target,
                        int64_t* number) {
  std::unique_ptr<UpdateProducer> producer;
  if (type == "kafka_message_queue") {
    KafkaProducerOptions options;
    options.brokers = target;
    EV_RETURN_IF_ERROR(KafkaProducer::Open(options, &producer));
  } else if (type == "directory") {
    EV_RETURN_IF_ERROR(DirectoryProducer::Open(target, &producer));
  } else {
    return ev::InvalidArgument(
        "type: expected kafka_message_queue or directory, got '" + type + "'");
  }
  State* const state = TheState();
  std::lock_guard<std::mutex> lock(state->mutex);
  *number = state->next++;
  state->producers[*number] = std::move(producer);
  return ev::Status::OK();
}

ev::Status SendRows(int64_t number, const std::string& tag, int64_t width,
                    ev::Span<const int64_t> keys, const float* rows) {
  std::shared_ptr<UpdateProducer> producer;
  EV_RETURN_IF_ERROR(Find(number, &producer));
  // Wider than any table, so the producer returns the error.
  const int64_t most = int64_t{1} << 30;
  return producer->Send(tag, static_cast<int>(std::min(width, most)), keys,
                        rows);
}

ev::Status FlushRows(int64_t number, int64_t timeout_ms) {
  std::shared_ptr<UpdateProducer> producer;
  EV_RETURN_IF_ERROR(Find(number, &producer));
  return producer->Flush(timeout_ms);
}

ev::Status CloseProducer(int64_t number) {
  // destroyed after the lock is released
  std::shared_ptr<UpdateProducer> producer;
  EV_RETURN_IF_ERROR(Find(number, &producer));
  State* const state = TheState();
  std::lock_guard<std::mutex> lock(state->mutex);
  state->producers.erase(number);
  return ev::Status::OK();
}

}  // namespace hps
