// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests concurrent calls on the same tables by properties that hold for every
// order of the calls. Also meant to be run under ThreadSanitizer and
// AddressSanitizer.
//
// Most cases use Momentum with momentum 1, rate 1 and gradient -1: n updates of
// a row leave m = -n and w = w0 + n (n + 1) / 2 in every element, in whatever
// order they come. So the tests detect an update that is lost, applied twice,
// or torn between value and slot.

#include <atomic>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/lookup/pooled_lookup.h"
#include "kernels/engine/embedding/update/row_update.h"
#include "kernels/engine/testing/storage_under_test.h"
#include "kernels/engine/testing/thread_pool.h"
#include "kernels/engine/testing/unique_keys.h"

namespace ev {
namespace {

using testing::UniqueKeys;

#define ASSERT_OK(expression)                             \
  do {                                                    \
    const Status ev_status_ = (expression);               \
    ASSERT_TRUE(ev_status_.ok()) << ev_status_.message(); \
  } while (0)

using Slots = std::vector<SlotSpec>;

std::shared_ptr<EmbeddingTable> MakeTable(const std::string& name,
                                          int64_t dim) {
  TableOptions options;
  options.name = name;
  options.dim = dim;
  testing::PutUnderTest(&options);
  options.record_frequency = options.record_version = true;
  auto table = std::make_shared<EmbeddingTable>(options);
  EXPECT_TRUE(table->Initialize(std::vector<float>(dim, 0.0f), 1).ok());
  return table;
}

void Together(std::vector<std::function<void()>> bodies) {
  std::vector<std::thread> threads;
  for (auto& body : bodies) threads.emplace_back(std::move(body));
  for (std::thread& thread : threads) thread.join();
}

// Looks the keys up in every table and applies one gradient of -1 to each.
void Train(const std::vector<std::shared_ptr<EmbeddingTable>>& tables,
           const std::vector<int64_t>& keys, Parallel* parallel) {
  std::vector<int64_t> splits;
  for (size_t i = 0; i <= keys.size(); ++i) splits.push_back(i);
  std::vector<PooledInput> inputs;
  std::vector<std::vector<float>> outputs;
  std::vector<float*> outs;
  for (const auto& table : tables) {
    PooledInput in;
    in.table = table.get();
    in.batch_size = in.num_ids = keys.size();
    in.ids64 = keys.data();
    in.row_splits = splits.data();
    inputs.push_back(in);
    outputs.emplace_back(keys.size() * table->options().dim);
  }
  for (auto& output : outputs) outs.push_back(output.data());
  std::shared_ptr<const LookupPlan> plan;
  ASSERT_OK(PooledForward(inputs, tables, outs, parallel, &plan));
  std::vector<UpdateInput> updates;
  for (size_t t = 0; t < tables.size(); ++t) {
    outputs[t].assign(outputs[t].size(), -1.0f);
    UpdateInput update;
    update.table = tables[t].get();
    update.keys = UniqueKeys(*plan, static_cast<int>(t));
    update.grads = outputs[t].data();
    update.plan = plan.get();
    update.plan_table = static_cast<int>(t);
    updates.push_back(update);
  }
  const std::vector<Slots> slots(tables.size(), Slots{{"Momentum", 0.0f}});
  ASSERT_OK(ApplyRule("Momentum", std::vector<float>{1.0f, 1.0f, 0.0f}, updates,
                      slots, 7, parallel));
}

// Expects every row of the snapshot to be the result of some number of whole
// updates.
void ExpectWhole(const TableSnapshot& snapshot, int64_t dim) {
  for (size_t i = 0; i < snapshot.keys.size(); ++i) {
    const float n = -snapshot.slots[0][i * dim];
    for (int64_t j = 0; j < dim; ++j) {
      ASSERT_EQ(-n, snapshot.slots[0][i * dim + j])
          << "key " << snapshot.keys[i] << ", element " << j;
      ASSERT_EQ(n * (n + 1) / 2, snapshot.values[i * dim + j])
          << "key " << snapshot.keys[i] << ", element " << j;
    }
    ASSERT_EQ(static_cast<int64_t>(n), snapshot.frequencies[i]);
  }
}

TEST(ConcurrencyTest, NoUpdateIsLostOrTorn) {
  for (int64_t dim : {3, 16}) {
    auto table = MakeTable("user", dim);
    std::vector<int64_t> keys;
    for (int64_t k = 0; k < 700; ++k) keys.push_back(k * 97);
    const int threads = 4, steps = 12;
    std::vector<std::function<void()>> bodies;
    for (int t = 0; t < threads; ++t) {
      bodies.push_back([&, t] {
        Serial serial;
        testing::ThreadPool pool(2);
        for (int s = 0; s < steps; ++s) {
          Train({table}, keys,
                t % 2 == 0 ? &serial : static_cast<Parallel*>(&pool));
        }
      });
    }
    Together(std::move(bodies));
    TableSnapshot snapshot;
    ASSERT_OK(table->Export(std::vector<std::string>{"Momentum"}, &snapshot));
    ASSERT_EQ(keys.size(), snapshot.keys.size());
    ExpectWhole(snapshot, dim);
    for (float m : snapshot.slots[0]) ASSERT_EQ(-threads * steps, m);
  }
}

TEST(ConcurrencyTest, CallsOnTheSameTablesInAnyOrderDoNotDeadlock) {
  std::vector<std::shared_ptr<EmbeddingTable>> tables;
  for (int t = 0; t < 4; ++t) {
    tables.push_back(MakeTable("t" + std::to_string(t), 4));
  }
  std::vector<int64_t> keys;
  for (int64_t k = 0; k < 50; ++k) keys.push_back(k);
  testing::ThreadPool pool(2);
  std::atomic<bool> stop{false};
  std::vector<std::function<void()>> bodies;
  for (int t = 0; t < 4; ++t) {
    bodies.push_back([&, t] {
      auto order = tables;
      std::mt19937 random(t);
      for (int s = 0; s < 30; ++s) {
        std::shuffle(order.begin(), order.end(), random);
        Train(order, keys, &pool);
      }
    });
  }
  // A thread that exports each table again and again.
  bodies.push_back([&] {
    for (int i = 0; !stop; i = (i + 1) % 4) {
      TableSnapshot snapshot;
      ASSERT_OK(tables[i]->Export({}, &snapshot));
    }
  });
  std::thread end([&] {
    std::vector<std::function<void()>> trainers(bodies.begin(),
                                                bodies.begin() + 4);
    Together(std::move(trainers));
    stop = true;
  });
  bodies[4]();
  end.join();
  for (const auto& table : tables) {
    TableSnapshot snapshot;
    ASSERT_OK(table->Export(std::vector<std::string>{"Momentum"}, &snapshot));
    ExpectWhole(snapshot, 4);
    for (float m : snapshot.slots[0]) ASSERT_EQ(-120, m);
  }
}

// Trains, reads, erases, widens, exports and counts concurrently. Every
// snapshot in between must be whole.
TEST(ConcurrencyTest, EverythingAtOnce) {
  constexpr int64_t kDim = 8;
  auto table = MakeTable("user", kDim);
  ASSERT_OK(table->EnsureSlots(Slots{{"Momentum", 0.0f}}, nullptr));
  std::atomic<bool> stop{false};
  std::atomic<int> exports{0};
  std::vector<std::function<void()>> bodies;
  for (int t = 0; t < 2; ++t) {
    bodies.push_back([&, t] {
      std::mt19937 random(t);
      for (int s = 0; s < 60; ++s) {
        std::vector<int64_t> keys;
        const int64_t first = random() % 400;
        for (int64_t k = 0; k < 300; ++k) keys.push_back(first + k);
        Train({table}, keys, nullptr);
      }
      stop = true;
    });
  }
  bodies.push_back([&] {  // reads: every element must be a legal value
    std::vector<int64_t> keys;
    for (int64_t k = 0; k < 700; ++k) keys.push_back(k);
    std::vector<float> rows(keys.size() * kDim);
    while (!stop) {
      ASSERT_OK(table->Gather(keys, rows.data(), nullptr));
      for (float w : rows) {
        ASSERT_GE(w, 0.0f);
        ASSERT_EQ(w, static_cast<float>(static_cast<int>(w)));
      }
      std::vector<int64_t> frequencies(700), versions(700);
      ASSERT_OK(table->GetMeta(keys, frequencies.data(), versions.data()));
      for (int64_t v : versions) ASSERT_TRUE(v == -1 || v == 7);
    }
  });
  bodies.push_back([&] {  // erases
    std::mt19937 random(9);
    while (!stop) {
      std::vector<int64_t> keys;
      for (int i = 0; i < 100; ++i) keys.push_back(random() % 700);
      table->Erase(keys);
      std::this_thread::yield();
    }
  });
  bodies.push_back([&] {  // widens and exports
    for (int i = 0; !stop || i < 3; ++i) {
      if (i < 4) {
        ASSERT_OK(table->EnsureSlots(Slots{{"extra" + std::to_string(i), 1.0f}},
                                     nullptr));
      }
      TableSnapshot snapshot;
      ASSERT_OK(table->Export(std::vector<std::string>{"Momentum"}, &snapshot));
      ExpectWhole(snapshot, kDim);
      ASSERT_LE(table->stats().rows, 700);
      ++exports;
    }
  });
  Together(std::move(bodies));
  EXPECT_GE(exports.load(), 3);
  const TableStats stats = table->stats();
  EXPECT_GE(stats.inserted_rows, stats.rows);
}

TEST(ConcurrencyTest, InitializeDuringTrainingLeavesAWholeTable) {
  auto table = MakeTable("user", 4);
  std::vector<int64_t> keys;
  for (int64_t k = 0; k < 200; ++k) keys.push_back(k);
  Together({[&] {
              for (int s = 0; s < 60; ++s) Train({table}, keys, nullptr);
            },
            [&] {
              for (int s = 0; s < 60; ++s) Train({table}, keys, nullptr);
            },
            [&] {
              for (int i = 0; i < 20; ++i) {
                ASSERT_OK(table->Initialize(std::vector<float>(4, 0.0f), 1));
                std::this_thread::yield();
              }
            }});
  ASSERT_OK(table->EnsureSlots(Slots{{"Momentum", 0.0f}}, nullptr));
  TableSnapshot snapshot;
  ASSERT_OK(table->Export(std::vector<std::string>{"Momentum"}, &snapshot));
  ExpectWhole(snapshot, 4);
}

TEST(ConcurrencyTest, WrittenRowsAreWhole) {
  auto table = MakeTable("user", 16);
  std::vector<int64_t> keys;
  for (int64_t k = 0; k < 300; ++k) keys.push_back(k);
  std::vector<std::function<void()>> bodies;
  for (int t = 0; t < 3; ++t) {
    bodies.push_back([&, t] {
      for (int s = 0; s < 30; ++s) {
        const std::vector<float> values(keys.size() * 16, 100.0f * t + s);
        const std::vector<const float*> slots = {values.data()};
        ASSERT_OK(table->WriteRows(keys, Slots{{"m", 0.0f}}, values.data(),
                                   slots, nullptr, s, nullptr));
      }
    });
  }
  Together(std::move(bodies));
  TableSnapshot snapshot;
  ASSERT_OK(table->Export(std::vector<std::string>{"m"}, &snapshot));
  for (size_t i = 0; i < keys.size(); ++i) {
    for (int j = 0; j < 16; ++j) {
      ASSERT_EQ(snapshot.values[i * 16], snapshot.values[i * 16 + j]);
      ASSERT_EQ(snapshot.values[i * 16], snapshot.slots[0][i * 16 + j]);
    }
    ASSERT_EQ(90, snapshot.frequencies[i]);
  }
}

}  // namespace
}  // namespace ev
