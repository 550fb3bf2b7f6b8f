// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/gpu/begun_events.h"

#include <memory>

#include "gtest/gtest.h"

namespace ev {
namespace gpu {

class DeviceEvent {};  // stands in for the GPU's class

namespace {

TEST(BegunEventsTest, RemovesEventsThatACallFollows) {
  BegunEvents begun;
  const auto lookup = std::make_shared<DeviceEvent>();
  const auto update = std::make_shared<DeviceEvent>();
  AddEvent(lookup, {}, &begun);
  AddEvent(update, BegunEvents(begun), &begun);
  EXPECT_EQ(BegunEvents{update}, begun);
}

// Two calls start at the same time. Each waits for the events it has read,
// neither waits for the other, so later work must wait for both.
TEST(BegunEventsTest, KeepsEventsOfConcurrentCalls) {
  BegunEvents begun;
  const auto before = std::make_shared<DeviceEvent>();
  const auto lookup = std::make_shared<DeviceEvent>();
  const auto update = std::make_shared<DeviceEvent>();
  AddEvent(before, {}, &begun);
  const BegunEvents seen_by_both = begun;
  AddEvent(update, seen_by_both, &begun);
  AddEvent(lookup, seen_by_both, &begun);
  EXPECT_EQ((BegunEvents{update, lookup}), begun);
}

}  // namespace
}  // namespace gpu
}  // namespace ev
