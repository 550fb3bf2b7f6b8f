// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Compares Raw files with loops over their numbers, and tests the order of
// blocks.

#include "addons/hugectr/reader/raw_source.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "addons/hugectr/reader/made_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hugectr {
namespace {

constexpr int kAll = std::numeric_limits<int>::max();

RawFormat Format(bool is_float) {
  RawFormat format;
  format.layout.label_dim = 2;
  format.layout.dense_dim = 3;
  format.layout.slots = 5;
  format.layout.inputs = {Input{0, 2, false}, Input{2, 3, true}};
  format.is_float = is_float;
  format.sizes = {10, 1000, 100000, int64_t{1} << 31, 7};
  format.offsets = {0, 10, 1010, 101010, 2147584658};
  return format;
}

// More slots and dense features than are copied at a time.
RawFormat LargeFormat(bool is_float) {
  RawFormat format = Format(is_float);
  format.layout.dense_dim = 19;
  format.layout.slots = 40;
  format.layout.inputs = {Input{0, 11, false}, Input{11, 26, true},
                          Input{37, 3, true}};
  while (format.sizes.size() < 40) {
    format.offsets.push_back(format.offsets.back() + format.sizes.back());
    format.sizes.push_back(100 * format.sizes.size());
  }
  return format;
}

// Numbers of a file, row-major.
std::vector<int32_t> MakeNumbers(const RawFormat& format, int64_t samples) {
  std::mt19937 random(samples);
  std::vector<int32_t> numbers;
  for (int64_t n = 0; n < samples; ++n) {
    for (int64_t i = 0; i < format.layout.fixed(); ++i) {
      const int32_t number = i < 2 ? random() % 2 : random() >> (i * 7 % 32);
      const float as_float = number / 16.0f;
      int32_t bits;
      std::memcpy(&bits, &as_float, 4);
      numbers.push_back(format.is_float ? bits : number & 0x7fffffff);
    }
    for (int64_t size : format.sizes) numbers.push_back(random() % size);
  }
  return numbers;
}

std::string Bytes(const std::vector<int32_t>& numbers) {
  return std::string(reinterpret_cast<const char*>(numbers.data()),
                     numbers.size() * 4);
}

Sample SampleOf(const RawFormat& format, const int32_t* row) {
  Sample sample;
  for (int64_t i = 0; i < format.layout.fixed(); ++i) {
    float number;
    std::memcpy(&number, row + i, 4);
    if (!format.is_float) {
      number = i < 2 ? static_cast<float>(row[i])
                     : log1pf(static_cast<float>(row[i]));
    }
    (i < 2 ? sample.labels : sample.dense).push_back(number);
  }
  for (int64_t s = 0; s < format.layout.slots; ++s) {
    sample.keys.push_back({row[format.layout.fixed() + s] + format.offsets[s]});
  }
  return sample;
}

RawOptions Options(const std::string& path, int64_t samples, int64_t block) {
  RawOptions options;
  options.path = path;
  options.samples = samples;
  options.block = block;
  options.tile = 1 << 18;
  return options;
}

ReaderOptions HowToRead(int64_t batch_size, int64_t threads, bool repeat) {
  ReaderOptions options;
  options.batch_size = batch_size;
  options.threads = threads;
  options.repeat = repeat;
  return options;
}

TEST(RawSourceTest, ReadsWhatWasWritten) {
  for (const RawFormat& format :
       {Format(false), Format(true), LargeFormat(false), LargeFormat(true)}) {
    const int64_t samples = 700;
    const auto numbers = MakeNumbers(format, samples);
    std::vector<Sample> written;
    for (int64_t n = 0; n < samples; ++n) {
      written.push_back(SampleOf(format, &numbers[n * format.width()]));
    }
    Folder folder;
    const std::string path = folder.Write("raw", Bytes(numbers));
    for (int64_t tile : {1, 1000, 1 << 18}) {
      for (int64_t threads : {1, 3}) {
        for (int64_t batch_size : {1, 64, 1000}) {
          RawOptions options = Options(path, samples, batch_size);
          options.tile = tile;
          std::unique_ptr<Source> source;
          ASSERT_TRUE(RawSource::Open(format, options, &source).ok());
          BatchReader reader(std::move(source),
                             HowToRead(batch_size, threads, false));
          std::vector<Sample> found;
          const ev::Status status =
              TakeAll(format.layout, &reader, kAll, &found);
          ASSERT_TRUE(status.ok()) << status.message();
          ASSERT_TRUE(found == written);
        }
      }
    }
  }
}

TEST(RawSourceTest, ShufflesWholeBlocksAnewInEachPass) {
  const RawFormat format = Format(true);
  const int64_t samples = 103, block = 10;
  const auto numbers = MakeNumbers(format, samples);
  Folder folder;
  const std::string path = folder.Write("raw", Bytes(numbers));
  // A batch can contain samples of consecutive passes.
  std::vector<Sample> expected;
  for (uint32_t pass = 4; pass < 9; ++pass) {
    std::vector<int64_t> order = Shuffled(10, 0xfffffffeu + pass);
    order.push_back(10);
    for (int64_t number : order) {
      for (int64_t n = 10 * number; n < std::min(samples, 10 * number + block);
           ++n) {
        expected.push_back(SampleOf(format, &numbers[n * format.width()]));
      }
    }
  }
  RawOptions options = Options(path, samples, block);
  options.is_shuffled = true;
  options.seed = 0xfffffffe;
  options.first_pass = 4;
  for (int64_t threads : {1, 3}) {
    std::unique_ptr<Source> source;
    ASSERT_TRUE(RawSource::Open(format, options, &source).ok());
    BatchReader reader(std::move(source), HowToRead(block, threads, true));
    std::vector<Sample> found;
    ASSERT_TRUE(TakeAll(format.layout, &reader, 50, &found).ok());
    expected.resize(500);
    ASSERT_TRUE(found == expected);
  }
}

TEST(BlockOrderTest, MatchesNumPysShuffle) {
  // Computed by numpy.random.RandomState(seed).shuffle(numpy.arange(count)).
  EXPECT_EQ(Shuffled(10, 3),
            (std::vector<int64_t>{5, 4, 1, 2, 9, 6, 7, 0, 3, 8}));
  EXPECT_EQ(Shuffled(7, 0xffffffffu),
            (std::vector<int64_t>{1, 5, 0, 6, 4, 2, 3}));
  EXPECT_EQ(Shuffled(1, 0), (std::vector<int64_t>{0}));
  EXPECT_EQ(Shuffled(0, 0), std::vector<int64_t>());
  const std::vector<int64_t> large = Shuffled(100000, 5);
  int64_t sum = 0;
  for (int64_t i = 0; i < 100000; ++i) sum += large[i] * i % 1000003;
  EXPECT_EQ(large[0], 60743);
  EXPECT_EQ(large[99999], 35683);
  EXPECT_EQ(sum, int64_t{49981706063});
}

TEST(BlockOrderTest, ThreadsAskForPasses) {
  BlockOrder order(100, 1);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&order] {
      for (int64_t pass = 0; pass < 200; ++pass) {
        EXPECT_EQ(*order.OfPass(pass), Shuffled(100, 1 + pass));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

std::string ErrorOf(const RawFormat& format, std::vector<int32_t> numbers,
                    int64_t place, int32_t number, int64_t rank) {
  numbers[place] = number;
  Folder folder;
  const std::string path = folder.Write("raw", Bytes(numbers));
  std::unique_ptr<Source> source;
  EXPECT_TRUE(
      RawSource::Open(
          format, Options(path, numbers.size() / format.width(), 10), &source)
          .ok());
  ReaderOptions options = HowToRead(10, 2, false);
  options.rank = rank;
  options.ranks = 2;
  BatchReader reader(std::move(source), options);
  std::vector<Sample> found;
  return TakeAll(format.layout, &reader, kAll, &found).message();
}

TEST(RawSourceTest, AnErrorNamesFileRecordAndByteOnEveryRank) {
  const RawFormat format = Format(false);
  const auto numbers = MakeNumbers(format, 35);
  for (int64_t rank : {0, 1}) {
    EXPECT_EQ(ErrorOf(format, numbers, 0, numbers[0], rank), "");
    EXPECT_THAT(
        ErrorOf(format, numbers, 123, -5, rank),
        testing::EndsWith("/raw: record 12, byte 492: dense feature -5, "
                          "which must not be negative: its logarithm is "
                          "taken"));
    EXPECT_THAT(ErrorOf(format, numbers, 129, 7, rank),
                testing::EndsWith("/raw: record 12, byte 516: key 7 of slot 4 "
                                  "is not in [0, 7)"));
    EXPECT_THAT(ErrorOf(format, numbers, 185, -1, rank),
                testing::EndsWith("/raw: record 18, byte 740: key -1 of slot 0 "
                                  "is not in [0, 10)"));
    EXPECT_THAT(ErrorOf(format, numbers, 188,
                        std::numeric_limits<int32_t>::min(), rank),
                testing::EndsWith(
                    "key -2147483648 of slot 3 is not in [0, 2147483648)"));
    EXPECT_EQ(ErrorOf(format, numbers, 188, std::numeric_limits<int32_t>::max(),
                      rank),
              "");
  }
}

TEST(RawSourceTest, FilesOfAnotherSize) {
  const RawFormat format = Format(true);
  Folder folder;
  const std::string path =
      folder.Write("raw", Bytes(MakeNumbers(format, 1000)));
  std::unique_ptr<Source> source;
  EXPECT_THAT(RawSource::Open(format, Options(path, 3, 10), &source).message(),
              testing::EndsWith("/raw: 40000 bytes, expected 3 samples of 40 "
                                "bytes: 2 labels, 3 dense features and 5 keys "
                                "of 4 bytes"));
  EXPECT_THAT(
      RawSource::Open(format, Options(path + "no", 3, 10), &source).message(),
      testing::HasSubstr("/rawno: cannot be read: "));
  ASSERT_TRUE(RawSource::Open(format, Options(path, 1000, 10), &source).ok());
  ASSERT_EQ(truncate(path.c_str(), 20018), 0);
  BatchReader reader(std::move(source), HowToRead(10, 2, false));
  std::vector<Sample> found;
  EXPECT_THAT(
      TakeAll(format.layout, &reader, kAll, &found).message(),
      testing::EndsWith("/raw: ends at byte 20018, it has become shorter"));
  EXPECT_EQ(found.size(), 500);
}

}  // namespace
}  // namespace hugectr
