// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests every rule over several steps and dims against its formula in double
// precision, written independently of the rule, and against values computed by
// hand.

#include "kernels/engine/optimizer/row_rule.h"

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/testing/guarded_array.h"

namespace ev {
namespace {

std::unique_ptr<const RowRule> Make(const std::string& name,
                                    const std::vector<float>& hyper) {
  std::unique_ptr<const RowRule> rule;
  const Status status = MakeRowRule(name, hyper, &rule);
  EXPECT_TRUE(status.ok()) << status.message();
  return rule;
}

// One row whose slots lie in reverse order behind the value, so that a rule
// that mixes up its slots fails the tests.
class Row {
 public:
  Row(int64_t dim, float value, const std::vector<float>& slots)
      : dim_(dim), floats_(dim * (1 + slots.size())) {
    std::fill_n(floats_.begin(), dim, value);
    for (size_t k = 0; k < slots.size(); ++k) {
      offsets_.push_back((slots.size() - k) * dim);
      std::fill_n(floats_.begin() + offsets_[k], dim, slots[k]);
    }
  }
  void Apply(const RowRule& rule, const std::vector<float>& grad) {
    float* row = floats_.data();
    RowBlock block;
    block.rows = &row;
    block.grads = grad.data();
    block.num_rows = 1;
    block.dim = dim_;
    block.slot_offsets = offsets_.data();
    rule.Apply(block);
  }
  float& value(int64_t j) { return floats_[j]; }
  float& slot(int k, int64_t j) { return floats_[offsets_[k] + j]; }

 private:
  const int64_t dim_;
  std::vector<float> floats_;
  std::vector<int64_t> offsets_;
};

// The state of one element in the reference: value and slots.
using Element = std::vector<double>;

struct RuleCase {
  std::string name;
  std::vector<float> hyper;
  std::vector<float> slots;  // initial values
  std::function<void(double g, int step, Element* e)> reference;
  // Hyperparameters of a step, if they change from step to step.
  std::function<std::vector<float>(int step)> hyper_of_step;
};

void PrintTo(const RuleCase& c, std::ostream* os) { *os << c.name; }

double Clamp(double x, double bound) {
  return std::min(bound, std::max(-bound, x));
}

RuleCase FtrlCase(double lr_power, double shrinkage) {
  const double lr = 0.1, l1 = 0.02, l2 = 0.03;
  return {"Ftrl",
          {0.1f, 0.02f, 0.03f, static_cast<float>(shrinkage),
           static_cast<float>(lr_power)},
          {0.1f, 0.0f},
          [=](double g, int, Element* e) {
            Element& x = *e;
            const double n = x[1] + g * g;
            const auto pow_of = [&](double a) {
              return std::exp(-lr_power * std::log(a));
            };
            x[2] += g + 2 * shrinkage * x[0] -
                    (pow_of(n) - pow_of(x[1])) / lr * x[0];
            x[1] = n;
            x[0] = (Clamp(x[2], l1) - x[2]) / (pow_of(n) / lr + 2 * l2);
          },
          nullptr};
}

// Adam's moments and bias-corrected direction, as in textbooks.
double AdamDirection(double g, int step, double lr, Element* e) {
  Element& x = *e;
  x[1] += 0.1 * (g - x[1]);
  x[2] += 0.01 * (g * g - x[2]);
  const double m_hat = x[1] / (1 - std::pow(0.9, step + 1));
  const double v_hat = x[2] / (1 - std::pow(0.99, step + 1));
  // epsilon is not corrected in TensorFlow's form: it is added to sqrt(v).
  const double epsilon = 1e-3 / std::sqrt(1 - std::pow(0.99, step + 1));
  return lr * m_hat / (std::sqrt(v_hat) + epsilon);
}

std::vector<float> AdamHyper(int step) {
  return {0.1f,
          0.9f,
          0.99f,
          1e-3f,
          static_cast<float>(std::pow(0.9, step + 1)),
          static_cast<float>(std::pow(0.99, step + 1))};
}

std::vector<float> AdamHyper(int step, float last) {
  std::vector<float> hyper = AdamHyper(step);
  hyper.push_back(last);
  return hyper;
}

std::vector<RuleCase> Cases() {
  return {
      {"SGD",
       {0.1f},
       {},
       [](double g, int, Element* e) { (*e)[0] -= 0.1 * g; },
       nullptr},
      {"Momentum",
       {0.1f, 0.9f, 0.0f},
       {0.0f},
       [](double g, int, Element* e) {
         (*e)[1] = 0.9 * (*e)[1] + g;
         (*e)[0] -= 0.1 * (*e)[1];
       },
       nullptr},
      {"Momentum",
       {0.1f, 0.9f, 1.0f},
       {0.0f},
       [](double g, int, Element* e) {
         (*e)[1] = 0.9 * (*e)[1] + g;
         (*e)[0] -= 0.1 * (g + 0.9 * (*e)[1]);
       },
       nullptr},
      {"Adagrad",
       {0.1f},
       {0.1f},
       [](double g, int, Element* e) {
         (*e)[1] += g * g;
         (*e)[0] -= 0.1 * g / std::sqrt((*e)[1]);
       },
       nullptr},
      {"AdagradDecay",
       {},
       {0.1f, 0.0f},
       [](double g, int step, Element* e) {
         // A period of 2: applied before steps 2, 4, ...
         if (step > 0 && step % 2 == 0) {
           (*e)[1] = std::max((*e)[1] * 0.5, 0.1);
           (*e)[2] += 1;
         }
         (*e)[1] += g * g;
         (*e)[0] -= 0.1 * g / std::sqrt((*e)[1]);
       },
       [](int step) {
         return std::vector<float>{0.1f, 2.0f, 0.5f, 0.1f,
                                   static_cast<float>(step)};
       }},
      {"Adam",
       {},
       {0.0f, 0.0f},
       [](double g, int step, Element* e) {
         (*e)[0] -= AdamDirection(g, step, 0.1, e);
       },
       [](int step) { return AdamHyper(step); }},
      {"AdamAsync",
       {},
       {0.0f, 0.0f},
       [](double g, int step, Element* e) {
         (*e)[0] -= AdamDirection(g, step, 0.1, e);
       },
       [](int step) { return AdamHyper(step, 0.0f); }},
      {"AdamAsync",
       {},
       {0.0f, 0.0f},
       [](double g, int, Element* e) {
         (*e)[2] += 0.01 * (g * g - (*e)[2]);
         (*e)[0] -= 0.1 * g / (std::sqrt((*e)[2]) + 1e-3);
       },
       [](int step) { return AdamHyper(step, 1.0f); }},
      {"AdamW",
       {},
       {0.0f, 0.0f},
       [](double g, int step, Element* e) {
         const double correction = std::sqrt(1 - std::pow(0.99, step + 1)) /
                                   (1 - std::pow(0.9, step + 1));
         const double decay = 0.1 * correction * 0.05 * (*e)[0];
         (*e)[0] -= AdamDirection(g, step, 0.1, e) + decay;
       },
       [](int step) { return AdamHyper(step, 0.05f); }},
      FtrlCase(-0.5, 0.0),
      FtrlCase(-0.5, 0.01),
      FtrlCase(-0.7, 0.01),
      FtrlCase(0.0, 0.0),
      {"RMSProp",
       {0.1f, 0.9f, 0.5f, 1e-3f},
       {1.0f, 0.0f},
       [](double g, int, Element* e) {
         (*e)[1] += 0.1 * (g * g - (*e)[1]);
         (*e)[2] = 0.5 * (*e)[2] + 0.1 * g / std::sqrt((*e)[1] + 1e-3);
         (*e)[0] -= (*e)[2];
       },
       nullptr},
      {"CenteredRMSProp",
       {0.1f, 0.9f, 0.5f, 1e-3f},
       {0.0f, 1.0f, 0.0f},
       [](double g, int, Element* e) {
         (*e)[1] += 0.1 * (g - (*e)[1]);
         (*e)[2] += 0.1 * (g * g - (*e)[2]);
         (*e)[3] = 0.5 * (*e)[3] +
                   0.1 * g / std::sqrt((*e)[2] - (*e)[1] * (*e)[1] + 1e-3);
         (*e)[0] -= (*e)[3];
       },
       nullptr},
      {"Adadelta",
       {0.1f, 0.9f, 1e-3f},
       {0.0f, 0.0f},
       [](double g, int, Element* e) {
         (*e)[1] += 0.1 * (g * g - (*e)[1]);
         const double u = g * std::sqrt(((*e)[2] + 1e-3) / ((*e)[1] + 1e-3));
         (*e)[2] += 0.1 * (u * u - (*e)[2]);
         (*e)[0] -= 0.1 * u;
       },
       nullptr},
  };
}

class RowRuleTest : public ::testing::TestWithParam<RuleCase> {};

TEST_P(RowRuleTest, FollowsTheFormula) {
  const RuleCase& c = GetParam();
  for (int64_t dim : {1, 3, 7, 8, 16, 17, 32, 64, 100, 128}) {
    std::mt19937 random(static_cast<unsigned>(dim));
    std::normal_distribution<float> normal;
    Row row(dim, 0.3f, c.slots);
    std::vector<Element> reference(dim, Element{0.3f});
    for (Element& e : reference) {
      e.insert(e.end(), c.slots.begin(), c.slots.end());
    }
    for (int step = 0; step < 6; ++step) {
      const auto rule =
          Make(c.name, c.hyper_of_step ? c.hyper_of_step(step) : c.hyper);
      ASSERT_EQ(c.slots.size(), rule->num_slots());
      EXPECT_EQ(c.name, rule->name());
      std::vector<float> grad(dim);
      for (float& g : grad) g = normal(random);
      row.Apply(*rule, grad);
      for (int64_t j = 0; j < dim; ++j) {
        c.reference(grad[j], step, &reference[j]);
        ASSERT_NEAR(reference[j][0], row.value(j), 2e-5)
            << "element " << j << " of " << dim << ", step " << step;
        for (size_t k = 0; k < c.slots.size(); ++k) {
          ASSERT_NEAR(reference[j][1 + k], row.slot(k, j),
                      2e-5 * (1 + std::abs(reference[j][1 + k])))
              << "slot " << k << ", element " << j << ", step " << step;
        }
      }
    }
  }
}

// An element's result has the same bits at any position in a row and for any
// dim: vector code and remainder loop agree.
TEST_P(RowRuleTest, AnElementDoesNotDependOnItsNeighbours) {
  const RuleCase& c = GetParam();
  const auto rule =
      Make(c.name, c.hyper_of_step ? c.hyper_of_step(3) : c.hyper);
  Row one(1, 0.7f, c.slots);
  one.Apply(*rule, {0.37f});
  for (int64_t dim : {5, 8, 16, 19, 64}) {
    Row row(dim, 0.7f, c.slots);
    row.Apply(*rule, std::vector<float>(dim, 0.37f));
    for (int64_t j = 0; j < dim; ++j) {
      ASSERT_EQ(one.value(0), row.value(j));
      for (size_t k = 0; k < c.slots.size(); ++k) {
        ASSERT_EQ(one.slot(k, 0), row.slot(k, j));
      }
    }
  }
}

TEST_P(RowRuleTest, AFactorMultipliesGradients) {
  const RuleCase& c = GetParam();
  std::vector<float> hyper = c.hyper_of_step ? c.hyper_of_step(0) : c.hyper;
  const auto rule = Make(c.name, hyper);
  hyper.push_back(1.0f / 128);
  const auto scaled = Make(c.name, hyper);
  for (int64_t dim : {1, 64, 300}) {
    Row row(dim, 0.5f, c.slots), expected(dim, 0.5f, c.slots);
    row.Apply(*scaled, std::vector<float>(dim, 0.37f * 128));
    expected.Apply(*rule, std::vector<float>(dim, 0.37f));
    for (int64_t j = 0; j < dim; ++j) {
      ASSERT_EQ(expected.value(j), row.value(j)) << j;
      for (size_t k = 0; k < c.slots.size(); ++k) {
        ASSERT_EQ(expected.slot(k, j), row.slot(k, j)) << j;
      }
    }
  }
}

TEST_P(RowRuleTest, NotANumberStaysInItsElement) {
  const RuleCase& c = GetParam();
  const auto rule =
      Make(c.name, c.hyper_of_step ? c.hyper_of_step(0) : c.hyper);
  Row row(16, 0.5f, c.slots), clean(16, 0.5f, c.slots);
  std::vector<float> grad(16, 0.25f);
  clean.Apply(*rule, grad);
  grad[5] = std::numeric_limits<float>::quiet_NaN();
  row.Apply(*rule, grad);
  for (int64_t j = 0; j < 16; ++j) {
    if (j == 5) {
      EXPECT_TRUE(std::isnan(row.value(j)));
    } else {
      EXPECT_EQ(clean.value(j), row.value(j));
    }
  }
}

TEST_P(RowRuleTest, RejectsAWrongNumberOfHyperparameters) {
  const RuleCase& c = GetParam();
  std::vector<float> hyper = c.hyper_of_step ? c.hyper_of_step(0) : c.hyper;
  hyper.insert(hyper.end(), 2, 1.0f);
  std::unique_ptr<const RowRule> rule;
  const Status status = MakeRowRule(c.name, hyper, &rule);
  EXPECT_EQ(StatusCode::kInvalidArgument, status.code());
  EXPECT_NE(std::string::npos, status.message().find(c.name))
      << status.message();
}

std::string CaseName(const ::testing::TestParamInfo<RuleCase>& info) {
  return info.param.name + "_" + std::to_string(info.index);
}

INSTANTIATE_TEST_SUITE_P(All, RowRuleTest, ::testing::ValuesIn(Cases()),
                         CaseName);

TEST(RowRuleByHandTest, Adagrad) {
  Row row(2, 1.0f, {0.0f});
  row.Apply(*Make("Adagrad", {0.5f}), {3.0f, -4.0f});
  EXPECT_EQ(9.0f, row.slot(0, 0));
  EXPECT_EQ(0.5f, row.value(0));  // 1 - 0.5 * 3 / 3
  EXPECT_EQ(16.0f, row.slot(0, 1));
  EXPECT_EQ(1.5f, row.value(1));
}

TEST(RowRuleByHandTest, AdagradHasNoEpsilon) {
  Row row(1, 1.0f, {0.0f});
  row.Apply(*Make("Adagrad", {0.5f}), {0.0f});
  EXPECT_TRUE(std::isnan(row.value(0)));  // as TensorFlow's: 0 / sqrt(0)
}

TEST(RowRuleByHandTest, MomentumAndNesterov) {
  Row plain(1, 1.0f, {2.0f}), nesterov(1, 1.0f, {2.0f});
  plain.Apply(*Make("Momentum", {0.25f, 0.5f, 0.0f}), {1.0f});
  nesterov.Apply(*Make("Momentum", {0.25f, 0.5f, 1.0f}), {1.0f});
  EXPECT_EQ(2.0f, plain.slot(0, 0));   // 2 * 0.5 + 1
  EXPECT_EQ(0.5f, plain.value(0));     // 1 - 0.25 * 2
  EXPECT_EQ(0.5f, nesterov.value(0));  // 1 - 0.25 * (1 + 0.5 * 2)
}

TEST(RowRuleByHandTest, AdamOfFirstStepMovesByTheLearningRate) {
  Row row(1, 1.0f, {0.0f, 0.0f});
  row.Apply(*Make("Adam", {0.125f, 0.5f, 0.75f, 0.0f, 0.5f, 0.75f}), {-2.0f});
  EXPECT_EQ(-1.0f, row.slot(0, 0));
  EXPECT_EQ(1.0f, row.slot(1, 0));
  EXPECT_EQ(1.125f, row.value(0));
}

TEST(RowRuleByHandTest, AdamAsyncWithoutMomentumLeavesM) {
  Row row(1, 1.0f, {5.0f, 0.0f});
  row.Apply(*Make("AdamAsync", {0.125f, 0.5f, 0.75f, 0.0f, 0.5f, 0.75f, 1.0f}),
            {2.0f});
  EXPECT_EQ(5.0f, row.slot(0, 0));
  EXPECT_EQ(1.0f, row.slot(1, 0));
  EXPECT_EQ(0.75f, row.value(0));  // 1 - 0.125 * 2 / 1
}

TEST(AdagradDecayTest, MakesUpForPeriodsThatWereMissed) {
  // 3 periods of 10 have passed: 16 -> 8 -> 4 -> 2.
  Row row(20, 0.0f, {16.0f, 0.0f});
  row.Apply(*Make("AdagradDecay", {1.0f, 10.0f, 0.5f, 1.0f, 35.0f}),
            std::vector<float>(20, 0.0f));
  for (int j = 0; j < 20; ++j) {
    EXPECT_EQ(2.0f, row.slot(0, j));
    EXPECT_EQ(3.0f, row.slot(1, j));
  }
}

TEST(AdagradDecayTest, DoesNotFallBelowTheInitialValue) {
  Row row(4, 0.0f, {16.0f, 0.0f});
  row.Apply(*Make("AdagradDecay", {1.0f, 1.0f, 0.5f, 3.0f, 1e9f}),
            std::vector<float>(4, 1.0f));
  EXPECT_EQ(4.0f, row.slot(0, 0));  // 3, plus the gradient's square
  EXPECT_EQ(1e9f, row.slot(1, 0));
}

TEST(AdagradDecayTest, AppliesEachPeriodOnce) {
  Row row(8, 0.0f, {16.0f, 0.0f});
  const auto rule = Make("AdagradDecay", {1.0f, 10.0f, 0.5f, 1.0f, 12.0f});
  row.Apply(*rule, std::vector<float>(8, 0.0f));
  row.Apply(*rule, std::vector<float>(8, 0.0f));
  EXPECT_EQ(8.0f, row.slot(0, 3));
  EXPECT_EQ(1.0f, row.slot(1, 3));
}

TEST(AdagradDecayTest, ElementsOfARowMayStandAtDifferentPeriods) {
  Row row(9, 0.0f, {16.0f, 0.0f});
  row.slot(1, 8) = 2.0f;
  row.Apply(*Make("AdagradDecay", {1.0f, 10.0f, 0.5f, 1.0f, 20.0f}),
            std::vector<float>(9, 0.0f));
  EXPECT_EQ(4.0f, row.slot(0, 0));
  EXPECT_EQ(16.0f, row.slot(0, 8));
}

TEST(RowWiseAdagradTest, OneNumberPerRowGivesTheRateOfAllElements) {
  float floats[] = {1.0f, 2.0f, 7.0f, -1.0f};  // value, accumulator, beyond
  float* row = floats;
  const float grad[] = {3.0f, -1.0f};
  const int64_t offset = 2;
  RowBlock block;
  block.rows = &row;
  block.grads = grad;
  block.num_rows = 1;
  block.dim = 2;
  block.slot_offsets = &offset;
  const auto rule = Make("RowWiseAdagrad", {0.5f, 1.0f, 2.0f});
  EXPECT_TRUE(rule->is_per_row());
  floats[2] = 5.0f;
  rule->Apply(block);  // twice the gradient: squares 36 and 4
  EXPECT_EQ(25.0f, floats[2]);
  const float rate = 0.5f / 6.0f;
  EXPECT_EQ(1.0f - rate * 6.0f, floats[0]);
  EXPECT_EQ(2.0f - rate * -2.0f, floats[1]);
  EXPECT_EQ(-1.0f, floats[3]);
}

TEST(RowWiseAdagradTest, FollowsItsFormulaForEveryDim) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (const int64_t dim : {1, 2, 3, 4, 7, 8, 16, 17, 32, 64, 128, 130, 1000}) {
    std::vector<float> floats(dim + 1, 0.25f);
    std::vector<double> value(dim, 0.25);
    double accumulator = 0.25;
    const auto rule = Make("RowWiseAdagrad", {0.1f, 1e-3f});
    for (int step = 0; step < 5; ++step) {
      std::vector<float> grad(dim);
      double squares = 0.0;
      for (float& g : grad) {
        g = normal(random);
        squares += static_cast<double>(g) * g;
      }
      float* row = floats.data();
      RowBlock block;
      block.rows = &row;
      block.grads = grad.data();
      block.num_rows = 1;
      block.dim = dim;
      block.slot_offsets = &dim;
      rule->Apply(block);
      accumulator += squares / dim;
      for (int64_t j = 0; j < dim; ++j) {
        value[j] -= 0.1 * grad[j] / (std::sqrt(accumulator) + 1e-3);
      }
    }
    EXPECT_NEAR(accumulator, floats[dim], 1e-5 * accumulator) << dim;
    for (int64_t j = 0; j < dim; ++j) {
      ASSERT_NEAR(value[j], floats[j], 1e-5) << dim << ", " << j;
    }
  }
}

// Rows follow each other without padding, so they begin at any float.
TEST(RowWiseAdagradTest, RowsAndGradientsAreAtAnyAddress) {
  for (const int64_t dim : {3, 4, 16, 21, 64}) {
    std::vector<float> expected;
    for (int64_t shift = 0; shift < 4; ++shift) {
      std::vector<float> floats(dim + 1 + shift, 0.25f);
      std::vector<float> grads(dim + shift, 0.0f);
      for (int64_t j = 0; j < dim; ++j) grads[shift + j] = 0.01f * (j + 1);
      float* row = floats.data() + shift;
      RowBlock block;
      block.rows = &row;
      block.grads = grads.data() + shift;
      block.num_rows = 1;
      block.dim = dim;
      block.slot_offsets = &dim;
      Make("RowWiseAdagrad", {0.1f, 1e-3f})->Apply(block);
      const std::vector<float> got(row, row + dim + 1);
      if (shift == 0) expected = got;
      EXPECT_EQ(expected, got) << dim << " at float " << shift;
    }
  }
}

// The order in which the squares are added is fixed, so that a GPU gets the
// same bits. This computes it from the description in row_squares.h.
TEST(RowWiseAdagradTest, AddsSquaresInTheDocumentedOrder) {
  std::mt19937 random(6);
  std::normal_distribution<float> normal;
  for (const int64_t dim : {1, 6, 16, 64, 100, 128, 131, 300, 1000}) {
    std::vector<float> grad(dim), squares((dim + 127) / 128 * 128, 0.0f);
    for (int64_t j = 0; j < dim; ++j) {
      grad[j] = normal(random);
      squares[j] = grad[j] * grad[j];
    }
    std::vector<float> sums(32, 0.0f);
    for (size_t q = 0; q < squares.size() / 4; ++q) {
      const float* const s = squares.data() + 4 * q;
      sums[q % 32] += (s[0] + s[1]) + (s[2] + s[3]);
    }
    while (sums.size() > 1) {
      const size_t half = sums.size() / 2;
      for (size_t i = 0; i < half; ++i) sums[i] += sums[i + half];
      sums.resize(half);
    }
    std::vector<float> floats(dim + 1, 0.0f);
    float* row = floats.data();
    RowBlock block;
    block.rows = &row;
    block.grads = grad.data();
    block.num_rows = 1;
    block.dim = dim;
    block.slot_offsets = &dim;
    Make("RowWiseAdagrad", {0.1f, 1e-8f})->Apply(block);
    EXPECT_EQ(sums[0] / static_cast<float>(dim), floats[dim]) << dim;
  }
}

TEST(RowRuleErrorTest, UnknownRule) {
  std::unique_ptr<const RowRule> rule;
  const Status status = MakeRowRule("Adagard", std::vector<float>{0.1f}, &rule);
  EXPECT_EQ(StatusCode::kInvalidArgument, status.code());
  EXPECT_NE(std::string::npos, status.message().find("'Adagard'"));
  EXPECT_NE(std::string::npos, status.message().find("Adadelta"));
  EXPECT_EQ(nullptr, rule);
}

TEST(RowRuleErrorTest, HyperparametersOutOfRange) {
  const struct {
    std::string name;
    std::vector<float> hyper;
    std::string message;
  } bad[] = {
      {"Momentum", {0.1f, 0.9f, 0.5f}, "nesterov: expected 0 or 1"},
      {"AdagradDecay",
       {0.1f, 0.0f, 0.9f, 0.1f, 0.0f},
       "decay_step: expected at least 1"},
      {"AdagradDecay",
       {0.1f, 10.0f, 0.0f, 0.1f, 0.0f},
       "decay_rate: expected a number in (0, 1]"},
      {"AdagradDecay",
       {0.1f, 10.0f, 1.5f, 0.1f, 0.0f},
       "decay_rate: expected a number in (0, 1]"},
      {"AdagradDecay",
       {0.1f, 10.0f, 0.9f, 0.1f, -1.0f},
       "global_step: expected at least 0"},
      {"Ftrl",
       {0.0f, 0.0f, 0.0f, 0.0f, -0.5f},
       "learning_rate: expected a positive number"},
      {"Ftrl", {0.1f, -1.0f, 0.0f, 0.0f, -0.5f}, "l1: expected at least 0"},
      {"Ftrl", {0.1f, 0.0f, -1.0f, 0.0f, -0.5f}, "l2: expected at least 0"},
      {"Ftrl",
       {0.1f, 0.0f, 0.0f, -1.0f, -0.5f},
       "l2_shrinkage: expected at least 0"},
      {"Ftrl", {0.1f, 0.0f, 0.0f, 0.0f, 0.5f}, "lr_power: expected at most 0"},
      {"AdamAsync",
       {0.1f, 0.9f, 0.99f, 1e-3f, 0.9f, 0.99f, 2.0f},
       "sparse_rmsprop: expected 0 or 1"},
      {"RowWiseAdagrad", {0.1f, -1e-3f}, "epsilon: expected at least 0"},
  };
  for (const auto& c : bad) {
    std::unique_ptr<const RowRule> rule;
    const Status status = MakeRowRule(c.name, c.hyper, &rule);
    EXPECT_EQ(StatusCode::kInvalidArgument, status.code()) << c.name;
    EXPECT_EQ(0, status.message().find("rule " + c.name + ": " + c.message +
                                       ", got hyperparameters ("))
        << status.message();
  }
}

TEST(RowBlockTest, NoAddressBeyondTheBlockIsRead) {
  for (const int64_t dim : {1, 16, 200}) {
    for (const int64_t n : {1, 2, 100}) {
      std::vector<float> row(dim, 0.0f);
      const testing::GuardedArray<float*> rows(
          std::vector<float*>(n, row.data()));
      const testing::GuardedArray<float> grads(
          std::vector<float>(n * dim, 1.0f));
      RowBlock block;
      block.rows = rows.data();
      block.grads = grads.data();
      block.num_rows = n;
      block.dim = dim;
      Make("SGD", {1.0f})->Apply(block);
      EXPECT_EQ(std::vector<float>(dim, -n), row);
    }
  }
}

// Many rows in one block, so that prefetching reaches the block's end.
TEST(RowBlockTest, UpdatesEveryRowOnceWithItsOwnGradient) {
  for (int64_t dim : {1, 16, 64, 200}) {
    for (int64_t n : {1, 2, 31, 257}) {
      std::vector<float> floats(n * dim * 2, 1.0f), grads(n * dim);
      for (size_t i = 0; i < grads.size(); ++i) grads[i] = 1.0f + i;
      std::vector<float*> rows(n);
      for (int64_t i = 0; i < n; ++i) {
        rows[i] = floats.data() + (n - 1 - i) * dim * 2;
      }
      RowBlock block;
      block.rows = rows.data();
      block.grads = grads.data();
      block.num_rows = n;
      block.dim = dim;
      Make("SGD", {1.0f})->Apply(block);
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < dim; ++j) {
          ASSERT_EQ(1.0f - grads[i * dim + j], rows[i][j]);
          ASSERT_EQ(1.0f, rows[i][dim + j]);
        }
      }
    }
  }
}

}  // namespace
}  // namespace ev
