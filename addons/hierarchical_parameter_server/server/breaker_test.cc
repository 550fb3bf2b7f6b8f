// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/server/breaker.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

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
  // What a lookup at that time gets: "asked" or "skipped".
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
  EXPECT_NE(last_.find("volatile_db redis is away"), std::string::npos);
  EXPECT_NE(last_.find("another 993 ms"), std::string::npos) << last_;
  EXPECT_NE(last_.find("refused"), std::string::npos);
  EXPECT_TRUE(breaker_.Counts().is_away);
  EXPECT_EQ(Look(1001, ok_), "skipped");
  EXPECT_EQ(Look(1002, away_), "asked");  // In vain: another pause.
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
  // The one that tries may end without a word: another one follows.
  EXPECT_TRUE(breaker_.Begin(now + milliseconds(1000)).ok());
}

TEST_F(BreakerTest, OnlyUnavailableCounts) {
  for (int i = 0; i < 2; ++i) Look(0, away_);
  // The tier was reached.
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
  EXPECT_NE(lines[0].find("volatile_db redis is away: 3 lookups"),
            std::string::npos)
      << lines[0];
  EXPECT_NE(lines[0].find("Lookups fail with Unavailable"), std::string::npos);
  Look(9000, ok_);
  lines = TakeWarnings();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("is back after 7000 ms"), std::string::npos)
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

TEST_F(BreakerTest, TheLogKeepsTheLastLines) {
  for (int i = 0; i < 150; ++i) Warn(std::to_string(i));
  const std::vector<std::string> lines = TakeWarnings();
  ASSERT_EQ(lines.size(), 100u);
  EXPECT_EQ(lines.front(), "50");
  EXPECT_EQ(lines.back(), "149");
}

}  // namespace
}  // namespace hps
