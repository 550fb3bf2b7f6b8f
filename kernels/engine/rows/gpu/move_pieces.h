// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// MovePieces: the order in which the pieces of a table's rows move to another
// layout, and back if a move fails. Includes no CUDA, so that every machine can
// test it (move_pieces_test.cc).

#ifndef KERNELS_ENGINE_ROWS_GPU_MOVE_PIECES_H_
#define KERNELS_ENGINE_ROWS_GPU_MOVE_PIECES_H_

#include <cstddef>

#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/base/tasks.h"

namespace ev {
namespace gpu {

// Moves 'pieces', one after the other. Steps has
//   Status Move(size_t piece)      allocates the piece's new memory and copies
//                                  its rows there. An error leaves the old
//                                  memory as it was.
//   void FreeOld(size_t piece)     frees the old memory
//   void DropNew(size_t piece)     keeps the new memory as a spare, which
//                                  replaces the last one
//   Status MoveBack(size_t piece)  copies the rows from the piece's new memory
//                                  to the spare, which becomes its old memory,
//                                  and keeps the new memory as a spare
// Returns the error of the first Move that fails. All rows have moved back
// then, unless a MoveBack failed: its error is in *lost.
//
// A piece's old memory is freed after the next piece has moved, so two pieces
// are in memory twice. The way back starts with the last piece that moved,
// whose rows are still in its old memory. Its new memory takes the rows of the
// piece before it, and so on: the way back allocates nothing, so it cannot fail
// because memory is short.
template <typename Steps>
Status MovePieces(Span<const size_t> pieces, Steps* steps, Status* lost) {
  Status status;
  size_t moved = 0;
  for (; moved < pieces.size(); ++moved) {
    status = CatchBadAlloc([&] { return steps->Move(pieces[moved]); });
    if (!status.ok()) break;
    if (moved > 0) steps->FreeOld(pieces[moved - 1]);
  }
  if (moved == 0) return status;
  size_t last = moved - 1;
  if (status.ok()) {
    steps->FreeOld(pieces[last]);
    return status;
  }
  steps->DropNew(pieces[last]);
  while (last-- > 0) {
    *lost = CatchBadAlloc([&] { return steps->MoveBack(pieces[last]); });
    if (!lost->ok()) break;
  }
  return status;
}

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_MOVE_PIECES_H_
