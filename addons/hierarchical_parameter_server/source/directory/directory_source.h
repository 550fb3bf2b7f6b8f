// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Updates as files that are dropped into a folder: for a training program and
// servers that share a file system, without a queue. Files are given in the
// order of their numbers; how far a group of readers has come stands in the
// file ".position.<group>". Files stay until they are removed from outside.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_DIRECTORY_DIRECTORY_SOURCE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_DIRECTORY_DIRECTORY_SOURCE_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/source/tag_filter.h"
#include "addons/hierarchical_parameter_server/source/update_source.h"

namespace hps {

struct DirectorySourceOptions {
  std::string path;
  // Readers of one group share a position; letters, digits, '.', '_' and '-'.
  std::string group;
  std::vector<std::string> filters = {".+"};
  // Rows of a batch.
  int64_t max_batch_size = 8192;
};

class DirectorySource : public UpdateSource {
 public:
  // InvalidArgument: a filter or the group is none. NotFound: there is no such
  // folder.
  static ev::Status Open(const DirectorySourceOptions& options,
                         std::unique_ptr<UpdateSource>* source);

  // One file at a time, as a whole. FailedPrecondition: the folder's numbers
  // begin anew, below the position.
  ev::Status Poll(int64_t timeout_ms,
                  std::vector<UpdateBatch>* batches) override;
  ev::Status Commit() override;
  SourceStatistics statistics() const override { return statistics_; }

 private:
  explicit DirectorySource(const DirectorySourceOptions& options)
      : options_(options) {}
  ev::Status ReadPosition();
  ev::Status CheckNumbers() const;
  // Gives the next file; *is_one: there was one.
  ev::Status Next(bool* is_one, std::vector<UpdateBatch>* batches);

  const DirectorySourceOptions options_;
  TagFilter filter_;
  int64_t given_ = 0;      // the number of the last file that was given
  int64_t committed_ = 0;  // as the position's file has it
  SourceStatistics statistics_;
};

// Sends as files. Every Flush is one file; so is every Send of many rows.
class DirectoryProducer : public UpdateProducer {
 public:
  // Makes the folder if its parent is there.
  static ev::Status Open(const std::string& path,
                         std::unique_ptr<UpdateProducer>* producer);
  // Writes what was not flushed.
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
