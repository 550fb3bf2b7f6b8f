// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Compares Norm files with the samples they were written from, and tests
// damaged files.

#include "addons/hugectr/reader/norm_source.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "addons/hugectr/reader/made_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hugectr {
namespace {

constexpr int kAll = std::numeric_limits<int>::max();

NormFormat Format(int64_t key_bytes, bool with_sums) {
  NormFormat format;
  format.layout.label_dim = 2;
  format.layout.dense_dim = 3;
  format.layout.slots = 5;
  format.layout.inputs = {Input{0, 2, false}, Input{2, 3, true}};
  format.key_bytes = key_bytes;
  format.with_sums = with_sums;
  return format;
}

// More slots and dense features than are copied at a time.
NormFormat LargeFormat(int64_t key_bytes, bool with_sums) {
  NormFormat format = Format(key_bytes, with_sums);
  format.layout.dense_dim = 19;
  format.layout.slots = 40;
  format.layout.inputs = {Input{0, 11, false}, Input{11, 26, true},
                          Input{37, 3, true}};
  return format;
}

ReaderOptions Options(int64_t batch_size, int64_t threads) {
  ReaderOptions options;
  options.batch_size = batch_size;
  options.threads = threads;
  return options;
}

struct Case {
  int64_t key_bytes;
  bool with_sums;
  // Keys per slot as in MakeSamples; mixed: alternating between files.
  int most;
  bool is_uniform;
  bool is_mixed;
  bool is_large;
};

class NormSourceTest : public testing::TestWithParam<Case> {};

TEST_P(NormSourceTest, ReadsWhatWasWritten) {
  const Case& about = GetParam();
  const NormFormat format =
      (about.is_large ? LargeFormat : Format)(about.key_bytes, about.with_sums);
  Folder folder;
  std::vector<std::string> paths;
  std::vector<Sample> written;
  for (int count : {37, 0, 1, 500, 260}) {
    const bool is_odd = about.is_mixed && paths.size() % 2 == 1;
    auto samples =
        MakeSamples(format.layout, count, about.most,
                    about.is_uniform || is_odd, about.key_bytes == 8, count);
    if (about.is_mixed && count == 500) samples[300].keys[1].clear();
    paths.push_back(folder.Write(
        std::to_string(count),
        NormBytes(format.layout, samples, about.key_bytes, about.with_sums)));
    written.insert(written.end(), samples.begin(), samples.end());
  }
  for (int64_t tile : {64, 1000, 1 << 18}) {
    for (int64_t threads : {1, 3}) {
      for (int64_t batch_size : {1, 50, 2000}) {
        for (int64_t ranks : {1, 2}) {
          std::vector<Sample> found;
          for (int64_t rank = 0; rank < ranks; ++rank) {
            std::unique_ptr<Source> source;
            ASSERT_TRUE(NormSource::Open(format, paths, tile, &source).ok());
            ReaderOptions options = Options(batch_size, threads);
            options.rank = rank;
            options.ranks = ranks;
            BatchReader reader(std::move(source), options);
            const ev::Status status =
                TakeAll(format.layout, &reader, kAll, &found);
            ASSERT_TRUE(status.ok()) << status.message();
          }
          ASSERT_EQ(found.size(), written.size());
          if (ranks == 1) {
            ASSERT_TRUE(found == written);
          }
          if (ranks == 2 && batch_size == 2000) {
            // There is one batch; the first rank has its first half.
            ASSERT_TRUE(found == written);
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, NormSourceTest,
                         testing::Values(Case{8, false, 1, true, false, false},
                                         Case{4, false, 1, true, false, false},
                                         Case{8, true, 1, true, false, false},
                                         Case{4, true, 1, true, false, false},
                                         Case{8, false, 3, true, false, false},
                                         Case{4, true, 3, true, false, false},
                                         Case{8, false, 4, false, false, false},
                                         Case{4, true, 4, false, false, false},
                                         Case{8, false, 1, true, true, false},
                                         Case{4, true, 1, true, true, false},
                                         Case{8, true, 2, false, true, false},
                                         Case{8, false, 1, true, false, true},
                                         Case{4, false, 1, true, false, true},
                                         Case{8, true, 1, true, false, true},
                                         Case{4, true, 1, true, false, true},
                                         Case{8, true, 1, true, true, true}));

TEST(NormSourceTest, OneWrongRecordOfManySlots) {
  for (int64_t key_bytes : {4, 8}) {
    const NormFormat format = LargeFormat(key_bytes, true);
    const auto samples =
        MakeSamples(format.layout, 300, 1, true, key_bytes == 8, 1);
    const std::string bytes =
        NormBytes(format.layout, samples, key_bytes, true);
    const int64_t stride = (bytes.size() - kNormHeader) / samples.size();
    std::mt19937 random(1);
    for (int turn = 0; turn < 60; ++turn) {
      // Flips one bit of the length, of a key count, or of a byte covered by
      // the checksum.
      std::string damaged = bytes;
      const int64_t record = random() % samples.size();
      const int64_t at = kNormHeader + record * stride + random() % stride;
      damaged[at] ^= 1 << random() % 8;
      Folder folder;
      std::unique_ptr<Source> source;
      ASSERT_TRUE(NormSource::Open(format, {folder.Write("a", damaged)},
                                   1 << 18, &source)
                      .ok());
      BatchReader reader(std::move(source), Options(300, 1));
      std::vector<Sample> found;
      EXPECT_THAT(
          TakeAll(format.layout, &reader, kAll, &found).message(),
          testing::HasSubstr(": record " + std::to_string(record) + ", byte "));
      EXPECT_TRUE(found.empty());
    }
  }
}

TEST(NormSourceTest, OneSlotMajorAndOneSampleMajorInputOfOneKeyEach) {
  // Inputs that omit slots, and a slot in two inputs.
  NormFormat format = Format(8, false);
  format.layout.inputs = {Input{1, 1, true}, Input{1, 2, false}};
  const auto samples = MakeSamples(format.layout, 100, 1, true, true, 1);
  Folder folder;
  std::unique_ptr<Source> source;
  ASSERT_TRUE(
      NormSource::Open(
          format,
          {folder.Write("a", NormBytes(format.layout, samples, 8, false))},
          1 << 18, &source)
          .ok());
  BatchReader reader(std::move(source), Options(100, 1));
  std::vector<Sample> found;
  ASSERT_TRUE(TakeAll(format.layout, &reader, kAll, &found).ok());
  ASSERT_EQ(found.size(), 100);
  for (int n = 0; n < 100; ++n) {
    EXPECT_EQ(found[n].keys[1], samples[n].keys[1]);
    EXPECT_EQ(found[n].keys[2], samples[n].keys[2]);
    EXPECT_TRUE(found[n].keys[0].empty() && found[n].keys[3].empty());
  }
}

std::string ErrorOf(const NormFormat& format, const std::string& bytes,
                    int64_t threads, size_t* samples = nullptr) {
  Folder folder;
  std::unique_ptr<Source> source;
  const ev::Status opened =
      NormSource::Open(format, {folder.Write("f", bytes)}, 1 << 18, &source);
  if (!opened.ok()) return opened.message();
  BatchReader reader(std::move(source), Options(4, threads));
  std::vector<Sample> found;
  const ev::Status status = TakeAll(format.layout, &reader, kAll, &found);
  if (samples != nullptr) *samples = found.size();
  return status.message();
}

TEST(NormSourceTest, AnErrorNamesFileRecordAndByte) {
  NormFormat format = Format(8, false);
  const auto samples = MakeSamples(format.layout, 10, 1, true, true, 1);
  const std::string good = NormBytes(format.layout, samples, 8, false);
  // A record has 20 bytes of floats and 5 slots of 12 bytes.
  const auto at = [](int64_t record) { return 64 + 80 * record; };
  const auto with = [&good](int64_t byte, int32_t number) {
    std::string bad = good;
    std::memcpy(&bad[byte], &number, 4);
    return bad;
  };
  for (int64_t threads : {1, 3}) {
    size_t read;
    EXPECT_EQ(ErrorOf(format, good, threads), "");
    EXPECT_THAT(
        ErrorOf(format, good.substr(0, good.size() - 1), threads, &read),
        testing::EndsWith("/f: record 9, byte 784: the file ends within "
                          "the record, but its header counts 10 "
                          "records"));
    EXPECT_EQ(read, 8);
    EXPECT_THAT(
        ErrorOf(format, good + "abc", threads),
        testing::EndsWith("/f: byte 864: 3 bytes follow the 10 records"));
    EXPECT_THAT(ErrorOf(format, with(at(5) + 20 + 12, -1), threads, &read),
                testing::EndsWith("/f: record 5, byte 496: slot 1 has -1 keys, "
                                  "which do not fit into the record"));
    EXPECT_EQ(read, 4);
    EXPECT_THAT(
        ErrorOf(format, with(at(5) + 20, 0x7fffffff), threads),
        testing::EndsWith("/f: record 5, byte 464: the file ends within "
                          "the record, but its header counts 10 "
                          "records"));
    EXPECT_THAT(ErrorOf(format, with(12, 0x7fffffff), threads),
                testing::EndsWith("counts 9223372032559808522 records"));
  }
}

TEST(NormSourceTest, AFileThatBecomesShorterIsAnError) {
  const NormFormat format = Format(8, false);
  const auto samples = MakeSamples(format.layout, 100000, 1, true, true, 1);
  Folder folder;
  const std::string path =
      folder.Write("f", NormBytes(format.layout, samples, 8, false));
  std::unique_ptr<Source> source;
  ASSERT_TRUE(NormSource::Open(format, {path}, 1 << 18, &source).ok());
  BatchReader reader(std::move(source), Options(100, 2));
  std::vector<Sample> found;
  ASSERT_TRUE(TakeAll(format.layout, &reader, 1, &found).ok());
  ASSERT_EQ(truncate(path.c_str(), 64 + 80 * 50000), 0);
  EXPECT_THAT(TakeAll(format.layout, &reader, kAll, &found).message(),
              testing::HasSubstr("record 50000, byte 4000064: "));
  EXPECT_EQ(found.size(), 50000);
}

// Damaged files must give an error that names the place, or samples, and
// nothing else.
TEST(NormSourceTest, DamagedFiles) {
  std::mt19937 random(7);
  int errors = 0;
  for (int k = 0; k < 600; ++k) {
    const NormFormat format = Format(k % 3 == 0 ? 8 : 4, k % 2 == 1);
    const auto samples = MakeSamples(format.layout, 20, 1 + 3 * (k % 5 > 1),
                                     k % 7 < 4, k % 3 == 0, k);
    std::string bytes =
        NormBytes(format.layout, samples, format.key_bytes, format.with_sums);
    if (k % 3 == 1) bytes.resize(random() % bytes.size());
    for (int i = 0; i < 3 && !bytes.empty(); ++i) {
      // Half of the files keep their header.
      const size_t first = k % 4 < 2 ? 64 : 0;
      if (bytes.size() > first) {
        bytes[first + random() % (bytes.size() - first)] = random();
      }
    }
    const std::string error = ErrorOf(format, bytes, 1 + k % 3);
    if (error.empty()) continue;
    ++errors;
    EXPECT_TRUE(error.find("/f: ") != std::string::npos &&
                error.find("byte") != std::string::npos)
        << error;
  }
  EXPECT_GT(errors, 400);
}

}  // namespace
}  // namespace hugectr
