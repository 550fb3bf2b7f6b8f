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

using testing::StreamUnderTest;
using testing::VectorsUnderTest;

// Floats before each tensor in memory that must not be written.
constexpr int64_t kGap = 4;

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

// Tensors of the same size, one after the other, 'shift' floats after an
// aligned address.
struct Tensors {
  Tensors(StreamUnderTest* stream, int64_t count, int64_t size, int64_t shift)
      : stream(stream),
        count(count),
        size(size),
        step((size + 3) / 4 * 4 + kGap),
        shift(shift),
        floats(count * step + kGap + 4),
        memory(stream->Allocate(floats)) {}

  int64_t At(int64_t k) const { return k * step + kGap + shift; }
  std::vector<float*> pointers() const {
    std::vector<float*> all;
    for (int64_t k = 0; k < count; ++k) all.push_back(memory + At(k));
    return all;
  }
  // Fills the tensors. 'from' must live until the stream has been synchronized.
  void Fill(const std::vector<std::vector<float>>& values,
            std::vector<float>* from) const {
    from->assign(floats, NAN);
    for (int64_t k = 0; k < count; ++k) {
      std::copy(values[k].begin(), values[k].end(), from->begin() + At(k));
    }
    stream->Fill(*from, memory);
  }
  std::vector<std::vector<float>> Read() const {
    std::vector<float> all = stream->Read(memory, floats);
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
  const int64_t count, size, step, shift, floats;
  float* const memory;
};

class GpuInteractionTest : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    int device = 0;
    EV_SKIP_WITHOUT_GPU(gpu::ProcessDevice("this test needs", &device));
    ASSERT_TRUE(InteractionDevice::Get(&device_).ok());
  }

  void Check(int64_t samples, int64_t shift, int64_t shift_of_grads) {
    SCOPED_TRACE(std::to_string(samples) + " samples, " +
                 std::to_string(shift) + " and " +
                 std::to_string(shift_of_grads) + " floats from aligned");
    const int64_t n = GetParam().vectors, dim = GetParam().dim;
    VectorsUnderTest made(samples, n, dim);
    testing::ThreadPool pool(4);
    ASSERT_TRUE(made.RunOnCpu(&pool).ok());

    // A stream for this case alone, so that its memory is freed at the end.
    const std::unique_ptr<StreamUnderTest> stream = StreamUnderTest::Make();
    const Tensors x(stream.get(), n, samples * dim, shift);
    const Tensors slopes(stream.get(), 1, made.slopes.size(), shift);
    const Tensors dots(stream.get(), 1, made.slopes.size(), shift_of_grads);
    const Tensors grads(stream.get(), n, samples * dim, shift_of_grads);
    const auto pointers = x.pointers();
    const std::vector<const float*> vectors(pointers.begin(), pointers.end());
    VectorBatch batch;
    batch.vectors = vectors;
    batch.num_samples = samples;
    batch.dim = dim;
    const int64_t bytes = device_->WorkspaceBytes(batch);
    float* const workspace = stream->Allocate(bytes / sizeof(float) + 1);
    std::vector<float> sent_x, sent_slopes;
    x.Fill(made.x, &sent_x);
    slopes.Fill({made.slopes}, &sent_slopes);
    const auto run = [&] {
      Status status = device_->StartDots(batch, dots.pointers()[0], workspace,
                                         stream->stream());
      ASSERT_TRUE(status.ok()) << status.message();
      status =
          device_->StartGradient(batch, slopes.pointers()[0], grads.pointers(),
                                 workspace, stream->stream());
      ASSERT_TRUE(status.ok()) << status.message();
    };
    run();
    const auto got_dots = dots.Read()[0];
    const auto got_grads = grads.Read();
    int64_t wrong = 0;
    for (size_t k = 0; k < got_dots.size(); ++k) {
      if (VectorsUnderTest::Near(made.dots[k], got_dots[k], dim)) continue;
      if (++wrong < 5) {
        ADD_FAILURE() << "dot " << k << ": expected " << made.dots[k]
                      << ", got " << got_dots[k];
      }
    }
    for (int64_t v = 0; v < n; ++v) {
      for (int64_t k = 0; k < samples * dim; ++k) {
        if (VectorsUnderTest::Near(made.grads[v][k], got_grads[v][k], n)) {
          continue;
        }
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
    Check(samples, 0, 0);
    if (samples == 0 || samples == 2001) continue;
    Check(samples, 1, 0);
    Check(samples, 0, 1);
    Check(samples, 3, 2);
  }
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const int64_t n : {2, 3, 4, 27, 40, 128, 129, 500}) {
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
