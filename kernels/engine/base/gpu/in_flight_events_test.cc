// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/gpu/in_flight_events.h"

#include <memory>

#include "gtest/gtest.h"

namespace ev {
namespace gpu {

class DeviceEvent {};  // stands in for the GPU's class

namespace {

TEST(InFlightEventsTest, RemovesEventsThatACallFollows) {
  InFlightEvents in_flight;
  const auto lookup = std::make_shared<DeviceEvent>();
  const auto update = std::make_shared<DeviceEvent>();
  AddEvent(lookup, {}, &in_flight);
  AddEvent(update, InFlightEvents(in_flight), &in_flight);
  EXPECT_EQ(InFlightEvents{update}, in_flight);
}

// Two calls start at the same time. Each waits for the events it has read,
// neither waits for the other, so later work must wait for both.
TEST(InFlightEventsTest, KeepsEventsOfConcurrentCalls) {
  InFlightEvents in_flight;
  const auto before = std::make_shared<DeviceEvent>();
  const auto lookup = std::make_shared<DeviceEvent>();
  const auto update = std::make_shared<DeviceEvent>();
  AddEvent(before, {}, &in_flight);
  const InFlightEvents seen_by_both = in_flight;
  AddEvent(update, seen_by_both, &in_flight);
  AddEvent(lookup, seen_by_both, &in_flight);
  EXPECT_EQ((InFlightEvents{update, lookup}), in_flight);
}

}  // namespace
}  // namespace gpu
}  // namespace ev
