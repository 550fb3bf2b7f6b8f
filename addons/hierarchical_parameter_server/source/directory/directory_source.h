// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Updates as files in a folder, for a training program and servers that share a
// file system; no queue is needed. Files are delivered in the order of their
// numbers. The position of each reader group is in the file
// ".position.<group>". Nothing here deletes update files; the operator does.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_DIRECTORY_DIRECTORY_SOURCE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_DIRECTORY_DIRECTORY_SOURCE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/source/tag_filter.h"
#include "addons/hierarchical_parameter_server/source/update_source.h"

namespace hps {

struct DirectorySourceOptions {
  std::string path;
  // Readers of one group share a position. Letters, digits, '.', '_' and '-'.
  std::string group;
  std::vector<std::string> filters = {".+"};
  // Rows of a batch.
  int64_t max_batch_size = 8192;
  // Whether Commit stores the group's position.
  bool commits = true;
  // Marks of the database that stores the updates; null unless processes share
  // it.
  std::shared_ptr<ReadMarks> marks;
};

class DirectorySource : public UpdateSource {
 public:
  // InvalidArgument: a filter or the group is invalid. NotFound: the folder
  // does not exist.
  static ev::Status Open(const DirectorySourceOptions& options,
                         std::unique_ptr<UpdateSource>* source);

  // Returns one whole file at a time. FailedPrecondition: the folder's numbers
  // have restarted below the group's position.
  ev::Status Poll(int64_t timeout_ms,
                  std::vector<UpdateBatch>* batches) override;
  ev::Status Commit() override;
  SourceStatistics statistics() const override { return statistics_; }

 private:
  explicit DirectorySource(const DirectorySourceOptions& options)
      : options_(options) {}
  ev::Status ReadPosition();
  ev::Status CheckNumbers() const;
  // Reads the next file; *is_one: there was one.
  ev::Status Next(bool* is_one, std::vector<UpdateBatch>* batches);

  const DirectorySourceOptions options_;
  TagFilter filter_;
  int64_t given_ = 0;      // number of the last file returned
  int64_t committed_ = 0;  // number stored in the position file
  // With marks, for each tag: those to be stored.
  std::map<std::string, ReadMark> marks_;
  SourceStatistics statistics_;
};

// Sends updates as files. Each Flush writes one file if there are rows; so does
// a Send that makes the buffer large.
class DirectoryProducer : public UpdateProducer {
 public:
  // Creates the folder if its parent exists.
  static ev::Status Open(const std::string& path,
                         std::unique_ptr<UpdateProducer>* producer);
  // Writes the rows that were not flushed; waits up to 30 s for other
  // producers. They are lost if that fails.
  ~DirectoryProducer() override;

  ev::Status Send(const std::string& tag, int width,
                  ev::Span<const int64_t> keys, const float* rows) override;
  ev::Status Flush(int64_t timeout_ms) override;

 private:
  explicit DirectoryProducer(const std::string& path) : path_(path) {}
  // REQUIRES: mutex_.
  ev::Status WriteFile(int64_t timeout_ms);

  const std::string path_;
  std::mutex mutex_;
  std::string pending_;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_DIRECTORY_DIRECTORY_SOURCE_H_
