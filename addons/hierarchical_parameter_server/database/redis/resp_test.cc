// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/database/redis/resp.h"

#include <algorithm>
#include <random>
#include <string>

#include "addons/hierarchical_parameter_server/database/redis/cluster_slots.h"
#include "gtest/gtest.h"

namespace hps {
namespace {

// Returns a text in pieces of at most `piece` bytes, then the end.
class TextStream : public ByteStream {
 public:
  TextStream(std::string text, size_t piece)
      : text_(std::move(text)), piece_(piece) {}
  ev::Status Write(const char*, size_t, const Deadline&) override {
    return ev::Status::OK();
  }
  ev::Status Read(char* to, size_t bytes, const Deadline&,
                  size_t* got) override {
    *got = std::min({bytes, piece_, text_.size() - at_});
    if (*got == 0) return ev::Internal("the end");
    text_.copy(to, *got, at_);
    at_ += *got;
    return ev::Status::OK();
  }

 private:
  const std::string text_;
  const size_t piece_;
  size_t at_ = 0;
};

ev::Status Read(const std::string& text, size_t piece, RespReply* reply) {
  TextStream stream(text, piece);
  RespReader reader(&stream);
  return reader.Reply(reply);
}

TEST(RespTest, CommandsAreArraysOfBytes) {
  EXPECT_EQ(RespCommand({"GET", "a b"}), "*2\r\n$3\r\nGET\r\n$3\r\na b\r\n");
  std::string text;
  RespWriter writer(&text);
  writer.Key(0x0102030405060708);
  EXPECT_EQ(text, std::string("$8\r\n\x08\x07\x06\x05\x04\x03\x02\x01\r\n"));
}

TEST(RespTest, RepliesOfEveryTypeInPiecesOfEverySize) {
  const std::string text =
      "*6\r\n+OK\r\n-ERR no\r\n:-12\r\n$3\r\na\r\n\r\n$-1\r\n*1\r\n$0\r\n\r\n";
  for (size_t piece = 1; piece < text.size(); ++piece) {
    RespReply reply;
    ASSERT_TRUE(Read(text, piece, &reply).ok());
    ASSERT_EQ(reply.elements.size(), 6u);
    EXPECT_EQ(reply.elements[0].text, "OK");
    EXPECT_EQ(reply.elements[1].type, RespHead::kError);
    EXPECT_EQ(reply.elements[2].number, -12);
    EXPECT_EQ(reply.elements[3].text, "a\r\n");
    EXPECT_TRUE(reply.elements[4].is_nil());
    EXPECT_EQ(reply.elements[5].elements[0].text, "");
  }
}

TEST(RespTest, LargeBytesAreCopiedWhole) {
  std::string bytes(3000000, ' ');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * i);
  RespReply reply;
  ASSERT_TRUE(Read("$3000000\r\n" + bytes + "\r\n", 100001, &reply).ok());
  EXPECT_EQ(reply.text, bytes);
}

TEST(RespTest, InvalidRepliesAreErrorsAndNoCrash) {
  for (const char* text :
       {"", "\r\n", "OK\r\n", ":\r\n", ":1x\r\n", "$-2\r\n", "$3\r\nabcd\r\n",
        "+OK\n", "$99999999999\r\n", ":99999999999999999999\r\n",
        "*99999999\r\n", "*2\r\n:1\r\n", "$5\r\nab",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n"}) {
    RespReply reply;
    EXPECT_FALSE(Read(text, 3, &reply).ok()) << text;
  }
  RespReply endless;
  EXPECT_FALSE(Read("+" + std::string(1 << 20, 'a'), 1000, &endless).ok());
  std::mt19937 random(1);
  const std::string marks = "+-:$*0123456789\r\n\r\na";
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (int k = 0; k < 12; ++k) text += marks[random() % marks.size()];
    RespReply reply;
    Read(text, 5, &reply);
  }
}

TEST(ClusterSlotsTest, SlotsAreThoseOfTheSpecification) {
  EXPECT_EQ(Crc16("123456789", 9), 0x31c3);
  EXPECT_EQ(SlotOf("foo"), 12182);
  EXPECT_EQ(SlotOf("{foo}bar"), 12182);
  EXPECT_EQ(SlotOf("a{foo}{bar}"), 12182);
  EXPECT_EQ(SlotOf("a{}foo"), Crc16("a{}foo", 6) % kNumSlots);
  EXPECT_EQ(SlotOf("a{foo"), Crc16("a{foo", 5) % kNumSlots);
}

TEST(ClusterSlotsTest, ATopologyIsReadFromClusterSlots) {
  RespReply reply;
  ASSERT_TRUE(Read("*3\r\n"
                   "*4\r\n:0\r\n:99\r\n*2\r\n$2\r\nh1\r\n:7000\r\n"
                   "*2\r\n$2\r\nh9\r\n:7009\r\n"
                   "*3\r\n:100\r\n:200\r\n*2\r\n$0\r\n\r\n:7001\r\n"
                   "*3\r\n:300\r\n:16383\r\n*2\r\n$3\r\n::1\r\n:7002\r\n",
                   1000, &reply)
                  .ok());
  Topology topology;
  ASSERT_TRUE(ParseTopology(reply, "seed:7000", &topology).ok());
  EXPECT_EQ(topology.nodes,
            (std::vector<std::string>{"h1:7000", "seed:7001", "[::1]:7002"}));
  EXPECT_EQ(topology.node_of_slot[99], 0);
  EXPECT_EQ(topology.node_of_slot[100], 1);
  EXPECT_EQ(topology.node_of_slot[250], -1);
  EXPECT_EQ(topology.node_of_slot[16383], 2);
  for (const char* text :
       {"*1\r\n:1\r\n", "*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\nh\r\n:1\r\n",
        "*1\r\n*3\r\n:5\r\n:4\r\n*2\r\n$1\r\nh\r\n:1\r\n", ":1\r\n"}) {
    ASSERT_TRUE(Read(text, 1000, &reply).ok());
    EXPECT_FALSE(ParseTopology(reply, "seed:7000", &topology).ok()) << text;
  }
}

TEST(ClusterSlotsTest, RedirectionsAreRead) {
  Redirection to = ParseRedirection("MOVED 3999 127.0.0.1:6381", "seed:1");
  EXPECT_EQ(to.kind, Redirection::kMoved);
  EXPECT_EQ(to.slot, 3999);
  EXPECT_EQ(to.address, "127.0.0.1:6381");
  to = ParseRedirection("ASK 1 :6381", "seed:1");
  EXPECT_EQ(to.kind, Redirection::kAsk);
  EXPECT_EQ(to.address, "seed:6381");
  for (const char* error : {"ERR no", "MOVED", "MOVED 1", "ASK 99999 h:1"}) {
    EXPECT_EQ(ParseRedirection(error, "seed:1").kind, Redirection::kNone);
  }
}

}  // namespace
}  // namespace hps
