// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Compares wide copies with plain loops, on memory between inaccessible pages.

#include "addons/hugectr/reader/wide.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace hugectr {
namespace {

// Memory that ends at an inaccessible page.
class Guarded {
 public:
  explicit Guarded(int64_t bytes) {
    const int64_t page = sysconf(_SC_PAGESIZE);
    used_ = (bytes + page - 1) / page * page;
    total_ = used_ + page;
    memory_ = static_cast<char*>(mmap(nullptr, total_, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_EQ(mprotect(memory_ + used_, page, PROT_NONE), 0);
    data_ = memory_ + used_ - bytes;
  }
  ~Guarded() { munmap(memory_, total_); }
  Guarded(const Guarded&) = delete;

  char* data() const { return data_; }

 private:
  int64_t used_, total_;
  char *memory_, *data_;
};

class WideTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasWide()) GTEST_SKIP() << "this processor has no AVX-512";
  }
  std::mt19937_64 random_{7};
};

constexpr int64_t kSamples[] = {8, 16, 64, 128};
constexpr int64_t kSlots[] = {8, 9, 15, 16, 26, 31};

TEST_F(WideTest, KeysOfNormRecords) {
  for (int64_t key_bytes : {4, 8}) {
    for (int64_t samples : kSamples) {
      for (int64_t slots : kSlots) {
        const int64_t before = random_() % 9;
        const int64_t stride = before + slots * (4 + key_bytes);
        Guarded file(samples * stride);
        std::vector<std::vector<int64_t>> keys(samples);
        for (int64_t r = 0; r < samples; ++r) {
          char* at = file.data() + r * stride + before;
          for (int64_t s = 0; s < slots; ++s, at += 4 + key_bytes) {
            const int32_t one = 1;
            const uint64_t key = key_bytes == 8 ? random_() : random_() >> 32;
            std::memcpy(at, &one, 4);
            std::memcpy(at + 4, &key, key_bytes);
            keys[r].push_back(key);
          }
        }
        const WideRows rows{file.data() + before, stride, samples, slots};
        const int64_t column = samples + random_() % 3;
        Guarded columns(((slots - 1) * column + samples) * 8);
        Guarded lines(samples * slots * 8);
        auto* by_slot = reinterpret_cast<int64_t*>(columns.data());
        auto* by_sample = reinterpret_cast<int64_t*>(lines.data());
        ASSERT_TRUE(WideNormColumns(rows, key_bytes, by_slot, column));
        ASSERT_TRUE(WideNormRows(rows, key_bytes, by_sample));
        for (int64_t r = 0; r < samples; ++r) {
          for (int64_t s = 0; s < slots; ++s) {
            ASSERT_EQ(by_slot[s * column + r], keys[r][s]);
            ASSERT_EQ(by_sample[r * slots + s], keys[r][s]);
          }
        }
        // Every key count is checked, whichever bit is wrong.
        for (int64_t r = 0; r < samples; ++r) {
          for (int64_t s = 0; s < slots; ++s) {
            char* at = file.data() + r * stride + before + s * (4 + key_bytes);
            at[random_() % 4] ^= 1 << random_() % 8;
            ASSERT_FALSE(WideNormColumns(rows, key_bytes, by_slot, column));
            ASSERT_FALSE(WideNormRows(rows, key_bytes, by_sample));
            const int32_t one = 1;
            std::memcpy(at, &one, 4);
          }
        }
      }
    }
  }
}

TEST_F(WideTest, KeysOfRawSamples) {
  for (int64_t samples : kSamples) {
    for (int64_t slots : kSlots) {
      const int64_t before = random_() % 3;
      const int64_t width = before + slots;
      std::vector<int32_t> last;
      std::vector<int64_t> offsets;
      for (int64_t s = 0; s < slots; ++s) {
        last.push_back(random_() % 2 ? 0x7fffffff : random_() % 100);
        offsets.push_back(random_() >> 2);
      }
      Guarded file(samples * width * 4);
      auto* numbers = reinterpret_cast<int32_t*>(file.data());
      for (int64_t i = 0; i < samples * width; ++i) {
        const int64_t s = i % width - before;
        numbers[i] = s < 0 ? -1 : random_() % (int64_t{1} + last[s]);
      }
      const WideRows rows{file.data() + before * 4, width * 4, samples, slots};
      const int64_t column = samples + random_() % 3;
      Guarded columns(((slots - 1) * column + samples) * 8);
      Guarded lines(samples * slots * 8);
      auto* by_slot = reinterpret_cast<int64_t*>(columns.data());
      auto* by_sample = reinterpret_cast<int64_t*>(lines.data());
      const int32_t* most = last.data();
      const int64_t* added = offsets.data();
      ASSERT_TRUE(WideRawColumns(rows, most, added, by_slot, column));
      ASSERT_TRUE(WideRawRows(rows, most, added, by_sample));
      for (int64_t r = 0; r < samples; ++r) {
        for (int64_t s = 0; s < slots; ++s) {
          int32_t& key = numbers[r * width + before + s];
          ASSERT_EQ(by_slot[s * column + r], key + offsets[s]);
          ASSERT_EQ(by_sample[r * slots + s], key + offsets[s]);
          const int32_t was = key;
          for (int64_t wrong :
               {int64_t{-1}, -(int64_t{1} << 31), int64_t{1} + last[s]}) {
            if (wrong > 0x7fffffff) continue;
            key = static_cast<int32_t>(wrong);
            ASSERT_FALSE(WideRawColumns(rows, most, added, by_slot, column));
            ASSERT_FALSE(WideRawRows(rows, most, added, by_sample));
            key = was;
          }
          ASSERT_TRUE(WideRawColumns(rows, most, added, by_slot, column));
          ASSERT_TRUE(WideRawRows(rows, most, added, by_sample));
        }
      }
    }
  }
}

TEST_F(WideTest, Words) {
  for (int64_t words : {0, 1, 13, 16, 17, 40}) {
    for (int64_t count : {0, 1, 5}) {
      const int64_t stride = words * 4 + 3;
      Guarded file(count * stride);
      std::vector<char> expected;
      for (int64_t r = 0; r < count; ++r) {
        // The sample's last byte is the last byte of the file.
        char* at = file.data() + r * stride + 3;
        for (int64_t i = 0; i < words * 4; ++i) {
          at[i] = static_cast<char>(random_());
          expected.push_back(at[i]);
        }
      }
      Guarded to(count * words * 4);
      WideWords(file.data() + 3, stride, count, words, to.data());
      EXPECT_EQ(std::vector<char>(to.data(), to.data() + expected.size()),
                expected);
    }
  }
}

TEST_F(WideTest, Sums) {
  for (int64_t bytes : {0, 1, 63, 64, 65, 368, 5000}) {
    for (int64_t count : {1, 7, 8, 9, 24}) {
      const int64_t stride = bytes + 1 + 4;
      Guarded file(count * stride);
      const char* records = file.data() + 4;
      std::vector<unsigned char*> sums;
      for (int64_t r = 0; r < count; ++r) {
        auto* at = reinterpret_cast<unsigned char*>(file.data()) + r * stride;
        unsigned char sum = 0;
        for (int64_t i = 0; i < bytes; ++i) {
          at[4 + i] = r % 2 ? 255 : static_cast<unsigned char>(random_());
          sum += at[4 + i];
        }
        at[4 + bytes] = sum;
        sums.push_back(at + 4 + bytes);
      }
      ASSERT_TRUE(WideSumsAreRight(records, stride, count, bytes));
      for (unsigned char* sum : sums) {
        const unsigned char was = *sum;
        *sum ^= 1 << random_() % 8;
        ASSERT_FALSE(WideSumsAreRight(records, stride, count, bytes));
        *sum = was;
        if (bytes == 0) continue;
        unsigned char* byte = sum - 1 - random_() % bytes;
        *byte += 1;
        ASSERT_FALSE(WideSumsAreRight(records, stride, count, bytes));
        *byte -= 1;
      }
      // Opposite errors in two records do not cancel.
      if (count > 1) {
        *sums[0] += 1;
        *sums[1] -= 1;
        ASSERT_FALSE(WideSumsAreRight(records, stride, count, bytes));
      }
    }
  }
}

}  // namespace
}  // namespace hugectr
