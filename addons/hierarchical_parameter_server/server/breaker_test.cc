// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/server/breaker.h"

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "addons/hierarchical_parameter_server/server/tiers.h"
#include "addons/hierarchical_parameter_server/server/warnings.h"
#include "gtest/gtest.h"

namespace hps {
namespace {

using std::chrono::milliseconds;

class BreakerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    TakeWarnings();
    config_.breaker_failures = 3;
    config_.breaker_pause_ms = 1000;
  }
  // Returns the outcome of a lookup at that time.
  std::string Look(int64_t ms, const ev::Status& answer) {
    const Breaker::Clock::time_point now = begin_ + milliseconds(ms);
    const ev::Status status = breaker_.Begin(now);
    if (!status.ok()) {
      EXPECT_EQ(status.code(), ev::StatusCode::kUnavailable);
      last_ = status.message();
      return "skipped";
    }
    breaker_.End(answer, now);
    return "asked";
  }

  const ev::Status away_ = ev::Unavailable("refused");
  const ev::Status ok_ = ev::Status::OK();
  const Breaker::Clock::time_point begin_ = Breaker::Clock::now();
  OutageConfig config_;
  Breaker breaker_{"volatile_db redis", "redis", config_};
  std::string last_;
};

TEST_F(BreakerTest, SkipsATierThatFailsAndTriesItAfterEachPause) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Look(i, away_), "asked");
  EXPECT_EQ(Look(10, ok_), "skipped");
  EXPECT_NE(last_.find("volatile_db redis is unavailable"), std::string::npos);
  EXPECT_NE(last_.find("another 993 ms"), std::string::npos) << last_;
  EXPECT_NE(last_.find("refused"), std::string::npos);
  EXPECT_TRUE(breaker_.Counts().is_away);
  EXPECT_EQ(Look(1001, ok_), "skipped");
  EXPECT_EQ(Look(1002, away_), "asked");  // fails, so another pause follows
  EXPECT_EQ(Look(1003, ok_), "skipped");
  EXPECT_EQ(Look(2001, ok_), "skipped");
  EXPECT_EQ(Look(2002, ok_), "asked");
  EXPECT_FALSE(breaker_.Counts().is_away);
  EXPECT_EQ(Look(2003, ok_), "asked");
  EXPECT_EQ(breaker_.Counts().failures, 4);
  EXPECT_EQ(breaker_.Counts().skipped, 4);
}

TEST_F(BreakerTest, OneLookupTriesAtATime) {
  for (int i = 0; i < 3; ++i) Look(0, away_);
  const Breaker::Clock::time_point now = begin_ + milliseconds(1000);
  EXPECT_TRUE(breaker_.Begin(now).ok());
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(breaker_.Begin(now).ok());
  // A lookup that tries may never call End; another one tries later.
  EXPECT_TRUE(breaker_.Begin(now + milliseconds(1000)).ok());
}

TEST_F(BreakerTest, OnlyUnavailableCounts) {
  for (int i = 0; i < 2; ++i) Look(0, away_);
  // Another error means that the tier was reached.
  Look(0, ev::Status(ev::StatusCode::kDataLoss, "lost rows"));
  for (int i = 0; i < 2; ++i) Look(0, away_);
  EXPECT_FALSE(breaker_.Counts().is_away);
  EXPECT_EQ(Look(0, away_), "asked");
  EXPECT_TRUE(breaker_.Counts().is_away);
}

TEST_F(BreakerTest, LogsWhenATierGoesAndWhenItIsBack) {
  for (int i = 0; i < 9; ++i) Look(1000 * i, away_);
  std::vector<std::string> lines = TakeWarnings();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(
      lines[0].find("volatile_db redis is unavailable: 3 consecutive lookups"),
      std::string::npos)
      << lines[0];
  EXPECT_NE(lines[0].find("Lookups fail with Unavailable"), std::string::npos);
  Look(9000, ok_);
  lines = TakeWarnings();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("is available again after 7000 ms"),
            std::string::npos)
      << lines[0];
  EXPECT_TRUE(TakeWarnings().empty());
}

TEST_F(BreakerTest, WithoutAPauseEveryLookupTries) {
  config_.breaker_pause_ms = 0;
  config_.on_unavailable = "skip";
  Breaker breaker("volatile_db redis", "redis", config_);
  EXPECT_TRUE(breaker.skips());
  EXPECT_FALSE(breaker_.skips());
  for (int i = 0; i < 9; ++i) {
    ASSERT_TRUE(breaker.Begin(begin_).ok());
    breaker.End(away_, begin_);
  }
  EXPECT_EQ(breaker.Counts().failures, 9);
  EXPECT_TRUE(breaker.Counts().is_away);
}

TEST_F(BreakerTest, ManyThreads) {
  config_.breaker_pause_ms = 1;
  Breaker breaker("volatile_db redis", "redis", config_);
  std::atomic<bool> is_up{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20000; ++i) {
        if (!breaker.Begin().ok()) continue;
        breaker.End(is_up.load() ? ok_ : away_);
        if (i == 10000) is_up = true;
        breaker.Counts();
      }
      is_up = true;
    });
  }
  for (std::thread& thread : threads) thread.join();
  while (!breaker.Begin().ok()) std::this_thread::yield();
  breaker.End(ok_);
  EXPECT_FALSE(breaker.Counts().is_away);
}

// Has rows of one float, the key itself, for the keys of a set. If not reached,
// it leaves garbage in rows and missing positions.
class FakeTable : public Table {
 public:
  FakeTable(std::set<int64_t> keys, bool is_reached)
      : keys_(std::move(keys)), is_reached_(is_reached) {}
  const std::string& tag() const override { return tag_; }
  const RowFormat& format() const override { return format_; }
  ev::Status Fetch(ev::Span<const int64_t> keys, Positions wanted, float* rows,
                   int64_t* missing, int64_t* num_missing,
                   ev::Parallel*) override {
    ++fetches_;
    int64_t count = 0;
    for (int64_t i = 0; i < wanted.size(); ++i) {
      const int64_t p = wanted[i];
      if (!is_reached_) {
        rows[p] = -7.0f;
        missing[i] = -7;
      } else if (keys_.count(keys[p]) > 0) {
        rows[p] = static_cast<float>(keys[p]);
      } else {
        missing[count++] = p;
      }
    }
    *num_missing = is_reached_ ? count : -7;
    return is_reached_ ? ev::Status::OK() : ev::Unavailable("not reached");
  }
  ev::Status Insert(ev::Span<const int64_t>, const float*,
                    ev::Parallel*) override {
    return ev::Status::OK();
  }
  ev::Status Remove(ev::Span<const int64_t>, int64_t*) override {
    return ev::Status::OK();
  }
  ev::Status Count(int64_t*) override { return ev::Status::OK(); }
  ev::Status ForEach(const Visit&) override { return ev::Status::OK(); }
  ev::Status Statistics(TableStatistics*) override { return ev::Status::OK(); }
  int fetches() const { return fetches_; }

 private:
  const RowFormat format_{1};
  const std::string tag_ = "hps_et.m.t";
  const std::set<int64_t> keys_;
  const bool is_reached_;
  int fetches_ = 0;
};

TEST_F(BreakerTest, ALookupGoesOnWithoutEitherTier) {
  config_.breaker_failures = 1;
  config_.breaker_pause_ms = 3600000;
  const std::vector<int64_t> keys = {1, 2, 3, 4};
  for (const bool is_above : {true, false}) {
    for (const char* on_unavailable : {"skip", "error"}) {
      config_.on_unavailable = on_unavailable;
      auto away = std::make_shared<FakeTable>(std::set<int64_t>{}, false);
      auto reachable =
          std::make_shared<FakeTable>(std::set<int64_t>{1, 3}, true);
      auto breaker = std::make_shared<Breaker>("a tier", "fake", config_);
      Tiers tiers(1, -1.0f, is_above ? away : reachable,
                  is_above ? reachable : away, nullptr,
                  is_above ? breaker : nullptr, is_above ? nullptr : breaker);
      ev::Serial serial;
      Tiers::Found found, others;
      for (int i = 1; i <= 3; ++i) {
        std::vector<float> rows(4, -9.0f);
        std::vector<int64_t> missing(4);
        const ev::Status status =
            tiers.Read(keys, rows.data(), missing.data(), &found, &serial);
        if (!breaker->skips()) {
          EXPECT_EQ(status.code(), ev::StatusCode::kUnavailable);
          continue;
        }
        ASSERT_TRUE(status.ok()) << status.message();
        EXPECT_EQ(rows, std::vector<float>({1.0f, -1.0f, 3.0f, -1.0f}));
        EXPECT_EQ(found.nowhere, 2);
        EXPECT_EQ(missing[0], 1);
        EXPECT_EQ(missing[1], 3);
        EXPECT_EQ(found.above, is_above ? 0 : 2 * i);
        EXPECT_EQ(found.below, is_above ? 2 * i : 0);
        EXPECT_EQ(found.unavailable, 2 * i);
        EXPECT_TRUE(found.skipped);
        EXPECT_EQ(tiers
                      .Read(keys, rows.data(), missing.data(), &others, &serial,
                            Tiers::Purpose::kBringUp)
                      .code(),
                  ev::StatusCode::kUnavailable);
      }
      EXPECT_EQ(away->fetches(), 1);
    }
  }
}

TEST_F(BreakerTest, TheLogKeepsTheLastLines) {
  for (int i = 0; i < 150; ++i) Warn(std::to_string(i));
  const std::vector<std::string> lines = TakeWarnings();
  ASSERT_EQ(lines.size(), 100u);
  EXPECT_EQ(lines.front(), "50");
  EXPECT_EQ(lines.back(), "149");
}

}  // namespace
}  // namespace hps
