// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/gpu/move_pieces.h"

#include <algorithm>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace ev {
namespace gpu {
namespace {

// Memory of the old and the new layout. The rows of a piece are one string,
// which begins with its layout.
class Memory {
 public:
  explicit Memory(const std::vector<size_t>& pieces) {
    for (const size_t piece : pieces) old_[piece] = Rows("old", piece);
  }

  Status Move(size_t piece) {
    if (piece == fails_at_) {
      if (throws_) throw std::bad_alloc();
      return ResourceExhausted("no memory of the device");
    }
    EXPECT_EQ(Rows("old", piece), old_.at(piece));
    new_[piece] = Rows("new", piece);
    most_ = std::max(most_, old_.size() + new_.size());
    return Status::OK();
  }
  void FreeOld(size_t piece) { EXPECT_EQ(1u, old_.erase(piece)); }
  void DropNew(size_t piece) {
    EXPECT_EQ(1u, new_.erase(piece));
    has_spare_ = true;
  }
  Status MoveBack(size_t piece) {
    if (backs_left_-- == 0) return Internal("the device fails");
    EXPECT_TRUE(has_spare_);
    EXPECT_EQ(0u, old_.count(piece));
    EXPECT_EQ(Rows("new", piece), new_.at(piece));
    old_[piece] = Rows("old", piece);
    DropNew(piece);
    return Status::OK();
  }

  static std::string Rows(const std::string& layout, size_t piece) {
    return layout + std::to_string(piece);
  }

  size_t fails_at_ = ~size_t{0};  // the piece that does not move
  bool throws_ = false;
  int backs_left_ = -1;  // MoveBacks before one fails; negative: none fails
  std::map<size_t, std::string> old_, new_;
  bool has_spare_ = false;
  size_t most_ = 0;
};

const std::vector<size_t>& Pieces() {
  static const std::vector<size_t> pieces = {0, 2, 3, 7, 8};
  return pieces;
}

TEST(MovePiecesTest, MovesAllWithTwoPiecesInMemoryTwice) {
  for (const size_t n : {0, 1, 2, 5}) {
    const std::vector<size_t> pieces(Pieces().begin(), Pieces().begin() + n);
    Memory memory(pieces);
    Status lost;
    ASSERT_TRUE(MovePieces(Span<const size_t>(pieces), &memory, &lost).ok());
    EXPECT_TRUE(lost.ok());
    EXPECT_TRUE(memory.old_.empty());
    EXPECT_EQ(n, memory.new_.size());
    EXPECT_FALSE(memory.has_spare_);
    EXPECT_EQ(n + std::min<size_t>(n, 2), memory.most_);
  }
}

TEST(MovePiecesTest, MovesAllBackIfOneFails) {
  for (const bool throws : {false, true}) {
    for (const size_t at : Pieces()) {
      Memory memory(Pieces());
      memory.fails_at_ = at;
      memory.throws_ = throws;
      const std::map<size_t, std::string> before = memory.old_;
      Status lost;
      const Status status =
          MovePieces(Span<const size_t>(Pieces()), &memory, &lost);
      EXPECT_EQ(StatusCode::kResourceExhausted, status.code()) << at;
      EXPECT_TRUE(lost.ok());
      EXPECT_EQ(before, memory.old_);
      EXPECT_TRUE(memory.new_.empty());
    }
  }
}

TEST(MovePiecesTest, ReportsRowsThatDoNotMoveBack) {
  Memory memory(Pieces());
  memory.fails_at_ = Pieces().back();
  memory.backs_left_ = 1;
  Status lost;
  const Status status =
      MovePieces(Span<const size_t>(Pieces()), &memory, &lost);
  EXPECT_EQ(StatusCode::kResourceExhausted, status.code());
  EXPECT_EQ("the device fails", lost.message());
}

}  // namespace
}  // namespace gpu
}  // namespace ev
