// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Test helpers: write files number by number, and compute the expected samples
// by plain loops.

#ifndef ADDONS_HUGECTR_READER_MADE_FILES_H_
#define ADDONS_HUGECTR_READER_MADE_FILES_H_

#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "addons/hugectr/reader/batch_reader.h"

namespace hugectr {

// Aborts the test if a file cannot be written or a batch is inconsistent.
inline void Must(bool is_so, const char* what) {
  if (is_so) return;
  fprintf(stderr, "%s\n", what);
  abort();
}

struct Sample {
  std::vector<float> labels, dense;
  std::vector<std::vector<int64_t>> keys;
};

inline bool operator==(const Sample& a, const Sample& b) {
  return a.labels == b.labels && a.dense == b.dense && a.keys == b.keys;
}

template <typename T>
void Append(const T& number, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

// Makes samples with up to `most` keys per slot, or exactly `most` if
// is_uniform.
inline std::vector<Sample> MakeSamples(const Layout& layout, int64_t count,
                                       int most, bool is_uniform,
                                       bool has_wide_keys, uint32_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Sample> samples(count);
  for (Sample& sample : samples) {
    for (int64_t i = 0; i < layout.label_dim; ++i) {
      sample.labels.push_back(random() % 2);
    }
    for (int64_t i = 0; i < layout.dense_dim; ++i) {
      sample.dense.push_back(static_cast<int64_t>(random() % 2001) / 8.0f);
    }
    for (int64_t s = 0; s < layout.slots; ++s) {
      std::vector<int64_t> keys(is_uniform ? most : random() % (most + 1));
      for (int64_t& key : keys) {
        key = has_wide_keys ? static_cast<int64_t>(random())
                            : static_cast<uint32_t>(random());
      }
      sample.keys.push_back(keys);
    }
  }
  return samples;
}

inline std::string NormBytes(const Layout& layout,
                             const std::vector<Sample>& samples,
                             int64_t key_bytes, bool with_sums) {
  std::string file;
  const int64_t header[8] = {with_sums,
                             static_cast<int64_t>(samples.size()),
                             layout.label_dim,
                             layout.dense_dim,
                             layout.slots,
                             0,
                             0,
                             0};
  for (int64_t number : header) Append(number, &file);
  for (const Sample& sample : samples) {
    std::string record;
    for (float number : sample.labels) Append(number, &record);
    for (float number : sample.dense) Append(number, &record);
    for (const auto& keys : sample.keys) {
      Append(static_cast<int32_t>(keys.size()), &record);
      for (int64_t key : keys) {
        if (key_bytes == 8) {
          Append(key, &record);
        } else {
          Append(static_cast<uint32_t>(key), &record);
        }
      }
    }
    if (!with_sums) {
      file += record;
      continue;
    }
    uint8_t sum = 0;
    for (char byte : record) sum += static_cast<uint8_t>(byte);
    Append(static_cast<int32_t>(record.size()), &file);
    file += record;
    Append(sum, &file);
  }
  return file;
}

// A temporary folder that deletes the files written into it.
class Folder {
 public:
  Folder() {
    const char* parent = getenv("TEST_TMPDIR");
    path_ = std::string(parent != nullptr ? parent : ".") + "/readerXXXXXX";
    Must(mkdtemp(&path_[0]) != nullptr, "no folder can be made");
  }
  ~Folder() {
    for (const std::string& file : files_) unlink(file.c_str());
    rmdir(path_.c_str());
  }

  std::string Write(const std::string& name, const std::string& bytes) {
    const std::string path = path_ + "/" + name;
    FILE* file = fopen(path.c_str(), "wb");
    Must(file != nullptr, "no file can be made");
    Must(fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size(),
         "a file cannot be written");
    fclose(file);
    files_.push_back(path);
    return path;
  }

 private:
  std::string path_;
  std::vector<std::string> files_;
};

// Appends the samples of a batch, split up by the layout's inputs.
inline void AppendSamples(const Layout& layout, const Batch& batch,
                          std::vector<Sample>* samples) {
  std::vector<Sample> found(batch.size);
  for (int64_t n = 0; n < batch.size; ++n) {
    const float* labels = batch.labels.as<float>() + n * layout.label_dim;
    const float* dense = batch.dense.as<float>() + n * layout.dense_dim;
    found[n].labels.assign(labels, labels + layout.label_dim);
    found[n].dense.assign(dense, dense + layout.dense_dim);
    found[n].keys.resize(layout.slots);
  }
  for (size_t i = 0; i < layout.inputs.size(); ++i) {
    const Input& input = layout.inputs[i];
    const InputKeys& keys = batch.inputs[i];
    Must(keys.num_splits == NumSplits(input, batch.size), "number of splits");
    const int64_t* key = keys.keys.as<int64_t>();
    const int64_t* splits = keys.splits();
    if (input.is_slot_major) {
      for (int64_t s = 0; s < input.count; ++s, splits += batch.size + 1) {
        Must(splits[0] == 0, "the first split");
        for (int64_t n = 0; n < batch.size; ++n) {
          found[n].keys[input.first + s].assign(key + splits[n],
                                                key + splits[n + 1]);
        }
        key += splits[batch.size];
      }
      Must(key - keys.keys.as<int64_t>() == keys.num_keys, "number of keys");
      continue;
    }
    Must(splits[0] == 0, "the first split");
    for (int64_t n = 0; n < batch.size; ++n) {
      for (int64_t s = 0; s < input.count; ++s, ++splits) {
        found[n].keys[input.first + s].assign(key + splits[0], key + splits[1]);
      }
    }
    Must(splits[0] == keys.num_keys, "the last split");
  }
  samples->insert(samples->end(), found.begin(), found.end());
}

// Takes batches until the end, an error, or `most` batches. Holds a few
// batches, as a training step does.
inline ev::Status TakeAll(const Layout& layout, BatchReader* reader, int most,
                          std::vector<Sample>* samples) {
  std::vector<BatchPool::Owned> held;
  for (int taken = 0; taken < most;) {
    BatchReader::Result result;
    BatchPool::Owned batch;
    EV_RETURN_IF_ERROR(reader->Next(1000, &result, &batch));
    if (result == BatchReader::Result::kEnd) break;
    if (result == BatchReader::Result::kNotYet) continue;
    ++taken;
    AppendSamples(layout, *batch, samples);
    held.push_back(std::move(batch));
    if (held.size() == 3) held.erase(held.begin());
  }
  return ev::Status::OK();
}

}  // namespace hugectr

#endif  // ADDONS_HUGECTR_READER_MADE_FILES_H_
