// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/server/updates.h"

#include <limits.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <utility>

#include "addons/hierarchical_parameter_server/config/json.h"
#include "addons/hierarchical_parameter_server/server/databases.h"
#include "addons/hierarchical_parameter_server/source/directory/directory_source.h"
#include "addons/hierarchical_parameter_server/source/kafka/kafka_source.h"
#include "addons/hierarchical_parameter_server/source/tag_filter.h"

namespace hps {
namespace {

// Marks in the attributes of a database.
class DatabaseMarks : public ReadMarks {
 public:
  DatabaseMarks(std::shared_ptr<Database> database,
                std::function<bool(const std::string&)> serves)
      : database_(std::move(database)), serves_(std::move(serves)) {}

  ev::Status Load(const std::string& tag, const std::string& stream,
                  ReadMark* mark) override {
    *mark = ReadMark();
    mark->kept = serves_(tag);
    if (!mark->kept) return ev::Status::OK();
    std::string fill, next;
    EV_RETURN_IF_ERROR(database_->ReadAttribute(tag, kFillAttribute, &fill));
    mark->fill = fill.substr(fill.rfind(' ') + 1);
    EV_RETURN_IF_ERROR(
        database_->ReadAttribute(tag, Name(*mark, stream), &next));
    mark->next = std::strtoll(next.c_str(), nullptr, 10);
    return ev::Status::OK();
  }
  ev::Status Store(const std::string& tag, const std::string& stream,
                   const ReadMark& mark) override {
    if (!mark.kept) return ev::Status::OK();
    return database_->WriteAttributes(
        tag, {{Name(mark, stream), std::to_string(mark.next)}});
  }

 private:
  static std::string Name(const ReadMark& mark, const std::string& stream) {
    return mark.fill + "/" + stream;
  }
  const std::shared_ptr<Database> database_;
  const std::function<bool(const std::string&)> serves_;
};

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = "";
  gethostname(name, sizeof(name) - 1);
  return name[0] == '\0' ? "host" : name;
}

// Unique over time on one host, although process ids are reused.
std::string ProcessName() {
  return std::to_string(getpid()) + "-" +
         std::to_string(
             std::chrono::system_clock::now().time_since_epoch().count());
}

ev::Status OpenSource(const UpdateSourceConfig& config,
                      const UpdateReader& reader,
                      std::shared_ptr<ReadMarks> marks,
                      std::unique_ptr<UpdateSource>* source) {
  if (!reader.has_marks) marks = nullptr;
  if (config.type == "directory") {
    DirectorySourceOptions options;
    options.path = config.path;
    options.group = reader.group;
    options.filters = reader.filters;
    options.max_batch_size = config.max_batch_size;
    options.commits = reader.commits;
    options.marks = std::move(marks);
    return DirectorySource::Open(options, source);
  }
  if (config.type == "kafka_message_queue") {
    KafkaSourceOptions options;
    options.brokers = config.brokers;
    options.group = reader.group;
    options.filters = reader.filters;
    options.metadata_refresh_interval_ms = config.metadata_refresh_interval_ms;
    options.receive_buffer_size = config.receive_buffer_size;
    options.max_batch_size = config.max_batch_size;
    options.commits = reader.commits;
    options.marks = std::move(marks);
    return KafkaSource::Open(options, source);
  }
  return ev::Unimplemented("update_source.type: \"" + config.type +
                           "\" is not built into this library");
}

// Returns readers whose group does not depend on whether they commit.
std::vector<UpdateReader> ReadersOfTiers(const Config& config,
                                         const std::string& host,
                                         const std::string& process) {
  const VolatileConfig& above = config.volatile_db;
  const PersistentConfig& below = config.persistent_db;
  std::vector<UpdateReader> readers;
  if (below.type != "disabled" && !below.read_only) {
    UpdateReader reader;
    reader.tiers.to_persistent = true;
    reader.group = "hps.persistent." + host;
    if (IsOwnOfModel(below.type)) {
      reader.group += "." + process;
    } else {
      // A host may have several stores.
      for (const char c : below.path) {
        const bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9');
        if (reader.group.size() < 100) reader.group += good ? c : '_';
      }
    }
    reader.filters = below.update_filters;
    reader.commits =
        !below.initialize_after_startup && !IsOwnOfModel(below.type);
    readers.push_back(std::move(reader));
  }
  if (above.type != "disabled") {
    const bool is_own = IsOwnOfModel(above.type);
    const bool commits = !above.initialize_after_startup && !is_own;
    // A store of this host may have to read from the beginning, and must not
    // put old rows into a database that others serve.
    if (is_own && readers.size() == 1 &&
        readers[0].filters == above.update_filters) {
      readers[0].tiers.to_volatile = true;
      // An upper tier filled from files would hide newer rows of the lower one.
      readers[0].commits =
          readers[0].commits && !above.initialize_after_startup;
      return readers;
    }
    UpdateReader reader;
    reader.tiers.to_volatile = true;
    reader.group = "hps.volatile";
    if (is_own) reader.group += "." + host + "." + process;
    reader.filters = above.update_filters;
    reader.commits = commits;
    reader.has_marks = !is_own;
    readers.push_back(std::move(reader));
  }
  return readers;
}

}  // namespace

std::vector<UpdateReader> UpdateReadersOf(const Config& config,
                                          const std::string& host,
                                          const std::string& process) {
  std::vector<UpdateReader> readers = ReadersOfTiers(config, host, process);
  for (UpdateReader& reader : readers) {
    if (!reader.commits) reader.group += ".from_start";
  }
  return readers;
}

ev::Status IsFed(const UpdateSourceConfig& source,
                 const std::vector<std::string>& filters,
                 const std::string& tag, bool* is_fed) {
  *is_fed = false;
  if (source.type == "none") return ev::Status::OK();
  TagFilter filter;
  EV_RETURN_IF_ERROR(TagFilter::Make(filters, &filter));
  *is_fed = filter.Matches(tag);
  return ev::Status::OK();
}

ev::Status Updates::Start(const Config& config, const Deliver& deliver,
                          const std::function<bool(const std::string&)>& serves,
                          std::shared_ptr<Database> shared,
                          std::unique_ptr<Updates>* updates) {
  const UpdateSourceConfig& from = config.update_source;
  if (from.type == "none") return ev::Status::OK();
  std::unique_ptr<Updates> made(new Updates);
  made->readers_ = UpdateReadersOf(config, HostName(), ProcessName());
  std::shared_ptr<ReadMarks> marks;
  if (shared != nullptr) {
    marks = std::make_shared<DatabaseMarks>(std::move(shared), serves);
  }
  std::vector<std::unique_ptr<UpdateSource>> sources;
  for (const UpdateReader& reader : made->readers_) {
    std::unique_ptr<UpdateSource> source;
    EV_RETURN_IF_ERROR(OpenSource(from, reader, marks, &source));
    sources.push_back(std::move(source));
  }
  ReceiverOptions options;
  options.poll_timeout_ms = from.poll_timeout_ms;
  options.failure_backoff_ms = from.failure_backoff_ms;
  options.max_commit_interval = from.max_commit_interval;
  for (size_t i = 0; i < sources.size(); ++i) {
    const UpdateTiers tiers = made->readers_[i].tiers;
    made->receivers_.push_back(std::make_unique<UpdateReceiver>(
        std::move(sources[i]),
        [deliver, tiers](const UpdateBatch& batch) {
          return deliver(batch, tiers);
        },
        options));
  }
  *updates = std::move(made);
  return ev::Status::OK();
}

std::string Updates::Json() const {
  std::string json;
  for (size_t i = 0; i < receivers_.size(); ++i) {
    const ReceiverStatistics s = receivers_[i]->statistics();
    const auto number = [&](const char* name, int64_t value) {
      json += "\"" + std::string(name) + "\": " + std::to_string(value) + ", ";
    };
    json += i == 0 ? "{" : ", {";
    json += "\"group\": " + Quoted(readers_[i].group) + ", ";
    number("received_rows", s.source.rows);
    number("delivered_rows", s.delivered_rows);
    number("malformed", s.source.malformed);
    number("rejected", s.rejected);
    number("rejected_rows", s.rejected_rows);
    number("waiting", s.source.waiting);
    number("failures", s.failures);
    json += "\"last_malformed\": " + Quoted(s.source.last_malformed) +
            ", \"last_rejected\": " + Quoted(s.last_rejected) +
            ", \"last_failure\": " + Quoted(s.last_failure) + "}";
  }
  return json;
}

}  // namespace hps
