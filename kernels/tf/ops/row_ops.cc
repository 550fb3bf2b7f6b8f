// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Ops on whole rows by key, used by the generic optimizer path.

#include <vector>

#include "kernels/tf/ops/shape_helpers.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"

namespace embedding_variable {
namespace {

using tensorflow::Status;
using tensorflow::errors::InvalidArgument;
using tensorflow::shape_inference::DimensionHandle;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;
using tensorflow::strings::StrCat;

Status CheckSlots(InferenceContext* c, std::vector<std::string>* names) {
  int num_slots;
  TF_RETURN_IF_ERROR(c->GetAttr("num_slots", &num_slots));
  TF_RETURN_IF_ERROR(c->GetAttr("slot_names", names));
  std::vector<float> inits;
  TF_RETURN_IF_ERROR(c->GetAttr("slot_inits", &inits));
  if (names->size() != num_slots || inits.size() != num_slots) {
    return InvalidArgument(num_slots, " slots came with ", names->size(),
                           " names and ", inits.size(), " initial values");
  }
  return Status();
}

REGISTER_OP("EvUnique")
    .Input("keys: int64")
    .Output("unique: int64")
    .Output("inverse: int32")
    .Output("counts: int64")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle keys;
      TF_RETURN_IF_ERROR(InputOfRank(c, 0, 1, "keys", &keys));
      const ShapeHandle unique = c->Vector(c->UnknownDim());
      c->set_output(0, unique);
      c->set_output(1, keys);
      c->set_output(2, unique);
      return Status();
    })
    .Doc(R"doc(
Removes duplicates, keeping the order of first occurrence.

keys: [M].
unique: [U].
inverse: [M], keys[i] == unique[inverse[i]].
counts: [U], how often each occurs.
)doc");

REGISTER_OP("EvAdmit")
    .Input("resource: resource")
    .Input("keys: int64")
    .Input("counts: int64")
    .Input("step: int64")
    .Output("admitted: int32")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle keys, counts, step;
      TF_RETURN_IF_ERROR(InputOfRank(c, 1, 1, "keys", &keys));
      TF_RETURN_IF_ERROR(InputOfRank(c, 2, 1, "counts", &counts));
      TF_RETURN_IF_ERROR(c->Merge(keys, counts, &keys));
      TF_RETURN_IF_ERROR(InputOfRank(c, 3, 0, "step", &step));
      c->set_output(0, c->Vector(c->UnknownDim()));
      return Status();
    })
    .Doc(R"doc(
Returns which keys may be trained, and counts the others. A key that this op admits gets
its default row.

resource: The handle.
keys: [M], distinct.
counts: [M], occurrences of each.
step: Scalar, the new version of keys that are counted.
admitted: [A], positions in keys, ascending. Without a filter, all positions.
)doc");

REGISTER_OP("EvReadRows")
    .Input("resource: resource")
    .Input("keys: int64")
    .Output("values: float")
    .Output("slots: num_slots * float")
    .Attr("num_slots: int >= 0")
    .Attr("slot_names: list(string)")
    .Attr("slot_inits: list(float)")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      std::vector<std::string> slots;
      TF_RETURN_IF_ERROR(CheckSlots(c, &slots));
      ShapeHandle keys;
      TF_RETURN_IF_ERROR(InputOfRank(c, 1, 1, "keys", &keys));
      const DimensionHandle n = c->Dim(keys, 0);
      c->set_output(0, c->Matrix(n, RowDim(c, 0)));
      for (size_t s = 0; s < slots.size(); ++s) {
        c->set_output(1 + s, c->Matrix(n, SlotDim(c, 0, slots[s])));
      }
      return Status();
    })
    .Doc(R"doc(
Reads value and slots of rows; for an absent key, the contents of a new row. Inserts
nothing.

resource: The handle.
keys: [M].
values: [M, D].
slots: S matrices [M, D], or [M, 1] for a slot with one number per row.
num_slots: S.
slot_names: S names. A missing slot is created.
slot_inits: S initial values of the slots of new rows.
)doc");

REGISTER_OP("EvWriteRows")
    .Input("resource: resource")
    .Input("keys: int64")
    .Input("counts: int64")
    .Input("step: int64")
    .Input("values: float")
    .Input("slots: num_slots * float")
    .Attr("num_slots: int >= 0")
    .Attr("slot_names: list(string)")
    .Attr("slot_inits: list(float)")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      std::vector<std::string> slots;
      TF_RETURN_IF_ERROR(CheckSlots(c, &slots));
      ShapeHandle keys, counts, step;
      TF_RETURN_IF_ERROR(InputOfRank(c, 1, 1, "keys", &keys));
      TF_RETURN_IF_ERROR(InputOfRank(c, 2, 1, "counts", &counts));
      TF_RETURN_IF_ERROR(c->Merge(keys, counts, &keys));
      TF_RETURN_IF_ERROR(InputOfRank(c, 3, 0, "step", &step));
      const DimensionHandle n = c->Dim(keys, 0);
      TF_RETURN_IF_ERROR(InputMatrix(c, 4, n, RowDim(c, 0), "values"));
      for (size_t s = 0; s < slots.size(); ++s) {
        TF_RETURN_IF_ERROR(InputMatrix(c, 5 + s, n, SlotDim(c, 0, slots[s]),
                                       StrCat("slot ", s + 1)));
      }
      return Status();
    })
    .Doc(R"doc(
Inserts or overwrites rows.

resource: The handle.
keys: [M], distinct.
counts: [M], added to the rows' frequencies.
step: Scalar, the rows' new version.
values: [M, D].
slots: S matrices [M, D], or [M, 1] for a slot with one number per row.
num_slots: S.
slot_names: S names. A missing slot is created.
slot_inits: S initial values of the slots of new rows.
)doc");

REGISTER_OP("EvReadAndEvict")
    .Input("resource: resource")
    .Input("keys: int64")
    .Input("step: int64")
    .Output("values: float")
    .Output("evicted_keys: int64")
    .Output("evicted_values: float")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle keys, step;
      TF_RETURN_IF_ERROR(InputOfRank(c, 1, 1, "keys", &keys));
      TF_RETURN_IF_ERROR(InputOfRank(c, 2, 0, "step", &step));
      c->set_output(0, c->Matrix(c->Dim(keys, 0), RowDim(c, 0)));
      const DimensionHandle evicted = c->UnknownDim();
      c->set_output(1, c->Vector(evicted));
      c->set_output(2, c->Matrix(evicted, RowDim(c, 0)));
      return Status();
    })
    .Doc(R"doc(
Reads rows, inserting absent keys, then evicts the rows that exceed the table's capacity.

resource: The handle.
keys: [M].
step: Scalar, the rows' new version.
values: [M, D], as before the eviction.
evicted_keys: [E], the keys that this op evicted.
evicted_values: [E, D], their rows.
)doc");

REGISTER_OP("EvErase")
    .Input("resource: resource")
    .Input("keys: int64")
    .Output("num_erased: int64")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::ScalarShape)
    .Doc(R"doc(
Removes keys and their rows.

resource: The handle.
keys: Of any shape; absent keys and duplicates are allowed.
num_erased: Scalar, the number of keys that were present.
)doc");

}  // namespace
}  // namespace embedding_variable
