// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Compares the GPU's interaction with the CPU's, on a stream whose work is
// delayed.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/base/gpu/process_device.h"
#include "kernels/engine/interaction/interaction_device.h"
#include "kernels/engine/testing/skip_without_gpu.h"
#include "kernels/engine/testing/stream_under_test.h"
#include "kernels/engine/testing/thread_pool.h"
#include "kernels/engine/testing/vectors_under_test.h"

namespace ev {
namespace {

using testing::NarrowedTo;
using testing::StreamUnderTest;
using testing::VectorsUnderTest;
using testing::WidenedFrom;

// Numbers before each tensor in memory that must not be written. A multiple of
// 16 bytes.
constexpr int64_t kGap = 8;

// Limits the CPU time of a case.
constexpr int64_t kMostProducts = 1LL * 1000 * 1000 * 1000;
constexpr int64_t kMostVectors = 200 * 1000;

struct Case {
  int64_t vectors, dim;
};

std::string NameOf(const ::testing::TestParamInfo<Case>& info) {
  return "N" + std::to_string(info.param.vectors) + "D" +
         std::to_string(info.param.dim);
}

// Tensors of the same size and type, one after the other, 'shift' numbers after
// an aligned address.
struct Tensors {
  Tensors(StreamUnderTest* stream, FloatType type, int64_t count, int64_t size,
          int64_t shift)
      : stream(stream),
        type(type),
        count(count),
        size(size),
        step((size + kGap - 1) / kGap * kGap + kGap),
        shift(shift),
        numbers(count * step + 2 * kGap),
        memory(stream->Allocate(numbers)) {}

  int64_t At(int64_t k) const { return k * step + kGap + shift; }
  template <typename Floats>
  std::vector<Floats> pointers() const {
    std::vector<Floats> all;
    for (int64_t k = 0; k < count; ++k) {
      char* const at =
          reinterpret_cast<char*>(memory) + At(k) * FloatBytes(type);
      all.push_back(Floats(at, type));
    }
    return all;
  }
  // Fills the tensors. 'from' must live until the stream has been synchronized.
  void Fill(const std::vector<std::vector<float>>& values,
            std::vector<float>* from) const {
    std::vector<float> wide(numbers, NAN);
    for (int64_t k = 0; k < count; ++k) {
      std::copy(values[k].begin(), values[k].end(), wide.begin() + At(k));
    }
    if (type == FloatType::kFloat32) {
      *from = wide;
    } else {
      const testing::NarrowNumbers narrow = NarrowedTo(type, wide);
      from->resize(numbers / 2);
      std::memcpy(from->data(), narrow.data(), numbers * 2);
    }
    stream->Fill(*from, memory);
  }
  std::vector<std::vector<float>> Read() const {
    std::vector<float> all =
        stream->Read(memory, numbers * FloatBytes(type) / sizeof(float));
    if (type != FloatType::kFloat32) {
      testing::NarrowNumbers narrow(numbers);
      std::memcpy(narrow.data(), all.data(), numbers * 2);
      all = WidenedFrom(type, narrow);
    }
    std::vector<std::vector<float>> values;
    for (int64_t k = 0; k < count; ++k) {
      const auto begin = all.begin() + At(k);
      values.emplace_back(begin, begin + size);
      std::fill(begin, begin + size, NAN);
    }
    for (const float x : all) EXPECT_TRUE(std::isnan(x)) << "written beside";
    return values;
  }

  StreamUnderTest* const stream;
  const FloatType type;
  const int64_t count, size, step, shift, numbers;  // numbers is even
  float* const memory;
};

// Whether a result is near the sum of some terms, which was rounded once to a
// type.
bool Near(FloatType type, float expected, float got, int64_t terms) {
  const float unit = type == FloatType::kFloat32   ? 0.0f
                     : type == FloatType::kFloat16 ? 1.0f / (1 << 11)
                                                   : 1.0f / (1 << 8);
  // Sums have another order, and tensor cores may truncate them.
  return std::abs(expected - got) <=
         unit * std::abs(expected) * 1.02f +
             1e-6f * (1.0f + std::sqrt(terms) * 4.0f);
}

class GpuInteractionTest : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    int device = 0;
    EV_SKIP_WITHOUT_GPU(gpu::ProcessDevice("this test needs", &device));
    ASSERT_TRUE(InteractionDevice::Get(&device_).ok());
  }

  // is_exact: all sums are exact, and narrow results are compared by bits.
  void Check(FloatType type, bool is_exact, int64_t samples, int64_t shift,
             int64_t shift_of_grads) {
    SCOPED_TRACE("type " + std::to_string(static_cast<int>(type)) + ", " +
                 std::to_string(samples) + " samples, " +
                 std::to_string(shift) + " and " +
                 std::to_string(shift_of_grads) + " numbers from aligned");
    const int64_t n = GetParam().vectors, dim = GetParam().dim;
    VectorsUnderTest made(samples, n, dim);
    if (is_exact) made.RoundToEighths();
    if (type != FloatType::kFloat32) made.RoundTo(type);
    const auto is_right = [&](float expected, float got, int64_t terms) {
      if (!is_exact) return Near(type, expected, got, terms);
      return WidenedFrom(type, NarrowedTo(type, {expected}))[0] == got;
    };
    testing::ThreadPool pool(4);
    ASSERT_TRUE(made.RunOnCpu(&pool).ok());

    // A stream for this case alone, so that its memory is freed at the end.
    const std::unique_ptr<StreamUnderTest> stream = StreamUnderTest::Make();
    const Tensors x(stream.get(), type, n, samples * dim, shift);
    const Tensors slopes(stream.get(), type, 1, made.slopes.size(), shift);
    const Tensors dots(stream.get(), type, 1, made.slopes.size(),
                       shift_of_grads);
    const Tensors grads(stream.get(), type, n, samples * dim, shift_of_grads);
    const auto vectors = x.pointers<ConstFloats>();
    const VectorBatch batch = made.BatchOf(vectors);
    const int64_t bytes = device_->WorkspaceBytes(batch);
    float* const workspace = stream->Allocate(bytes / sizeof(float) + 1);
    std::vector<float> sent_x, sent_slopes;
    x.Fill(made.x, &sent_x);
    slopes.Fill({made.slopes}, &sent_slopes);
    const auto run = [&] {
      Status status =
          device_->StartDots(batch, dots.pointers<MutableFloats>()[0],
                             workspace, stream->stream());
      ASSERT_TRUE(status.ok()) << status.message();
      status = device_->StartGradient(batch, slopes.pointers<ConstFloats>()[0],
                                      grads.pointers<MutableFloats>(),
                                      workspace, stream->stream());
      ASSERT_TRUE(status.ok()) << status.message();
    };
    run();
    const auto got_dots = dots.Read()[0];
    const auto got_grads = grads.Read();
    int64_t wrong = 0;
    for (size_t k = 0; k < got_dots.size(); ++k) {
      if (is_right(made.dots[k], got_dots[k], dim)) continue;
      if (++wrong < 5) {
        ADD_FAILURE() << "dot " << k << ": expected " << made.dots[k]
                      << ", got " << got_dots[k];
      }
    }
    for (int64_t v = 0; v < n; ++v) {
      for (int64_t k = 0; k < samples * dim; ++k) {
        if (is_right(made.grads[v][k], got_grads[v][k], n)) continue;
        if (++wrong < 5) {
          ADD_FAILURE() << "gradient of vector " << v << ", " << k
                        << ": expected " << made.grads[v][k] << ", got "
                        << got_grads[v][k];
        }
      }
    }
    EXPECT_EQ(0, wrong);
    // A second run gives the same bits.
    run();
    EXPECT_EQ(got_dots, dots.Read()[0]);
    EXPECT_EQ(got_grads, grads.Read());
  }

  InteractionDevice* device_ = nullptr;
};

TEST_P(GpuInteractionTest, AgreesWithTheProcessors) {
  const int64_t n = GetParam().vectors, dim = GetParam().dim;
  for (const int64_t samples : {0, 1, 5, 1000, 2001}) {
    if (samples * n * n * dim > kMostProducts) continue;
    if (samples * n > kMostVectors) continue;
    Check(FloatType::kFloat32, false, samples, 0, 0);
    if (samples == 0 || samples == 2001) continue;
    Check(FloatType::kFloat32, false, samples, 1, 0);
    Check(FloatType::kFloat32, false, samples, 0, 1);
    Check(FloatType::kFloat32, false, samples, 3, 2);
  }
}

TEST_P(GpuInteractionTest, NarrowNumbersAgreeWithTheProcessors) {
  const int64_t n = GetParam().vectors, dim = GetParam().dim;
  for (const FloatType type : {FloatType::kFloat16, FloatType::kBFloat16}) {
    for (const int64_t samples : {0, 1, 5, 1000}) {
      if (samples * n * n * dim > kMostProducts / 4) continue;
      if (samples * n > kMostVectors / 4) continue;
      for (const bool is_exact : {true, false}) {
        Check(type, is_exact, samples, 0, 0);
      }
      if (samples == 0 || samples == 1000) continue;
      Check(type, true, samples, 1, 0);
      Check(type, true, samples, 0, 1);
      Check(type, true, samples, 3, 2);
    }
  }
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const int64_t n : {2, 3, 4, 27, 32, 40, 128, 129, 500}) {
    for (const int64_t dim : {1, 3, 4, 16, 128, 130, 512, 2048}) {
      cases.push_back(Case{n, dim});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Shapes, GpuInteractionTest,
                         ::testing::ValuesIn(Cases()), NameOf);

}  // namespace
}  // namespace ev
