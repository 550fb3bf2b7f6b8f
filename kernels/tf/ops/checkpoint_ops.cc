// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Ops that export and import whole tables.

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

REGISTER_OP("EvExport")
    .Input("resource: resource")
    .Output("keys: int64")
    .Output("values: float")
    .Output("versions: int64")
    .Output("frequencies: int64")
    .Output("partition_offset: int32")
    .Output("filtered_keys: int64")
    .Output("filtered_versions: int64")
    .Output("filtered_frequencies: int64")
    .Output("filtered_partition_offset: int32")
    .Output("slots: num_slots * float")
    .Output("tensors: tensor_types")
    .Attr("num_slots: int >= 0")
    .Attr("slot_names: list(string)")
    .Attr("tensor_types: list({float, int64}) >= 0 = []")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      int num_slots;
      TF_RETURN_IF_ERROR(c->GetAttr("num_slots", &num_slots));
      std::vector<std::string> names;
      TF_RETURN_IF_ERROR(c->GetAttr("slot_names", &names));
      if (names.size() != num_slots) {
        return InvalidArgument(num_slots, " slots came with ", names.size(),
                               " names");
      }
      const DimensionHandle n = c->UnknownDim();
      c->set_output(0, c->Vector(n));
      c->set_output(1, c->Matrix(n, RowDim(c, 0)));
      // [N], or [0] when the table does not record them.
      c->set_output(2, c->Vector(c->UnknownDim()));
      c->set_output(3, c->Vector(c->UnknownDim()));
      c->set_output(4, c->Vector(1001));
      const DimensionHandle m = c->UnknownDim();
      c->set_output(5, c->Vector(m));
      c->set_output(6, c->Vector(c->UnknownDim()));
      c->set_output(7, c->Vector(m));
      c->set_output(8, c->Vector(1001));
      for (int s = 0; s < num_slots; ++s) {
        c->set_output(9 + s, c->Matrix(n, SlotDim(c, 0, names[s])));
      }
      for (int i = 9 + num_slots; i < c->num_outputs(); ++i) {
        c->set_output(i, c->UnknownShape());
      }
      return Status();
    })
    .Doc(R"doc(
Exports a consistent snapshot of the table, in ascending order of
(floormod(key, 1000), key).

resource: The handle.
keys: [N].
values: [N, D].
versions: [N], or [0] when not recorded.
frequencies: [N], or [0] when not recorded.
partition_offset: [1001], the position at which each remainder of 1000 starts.
filtered_keys: [M], keys that an exact filter has counted and not admitted, in the
  same order.
filtered_versions: [M], or [0] when not recorded.
filtered_frequencies: [M], occurrences of each.
filtered_partition_offset: [1001].
slots: S matrices [N, D], or [N, 1] for a slot with one number per row.
tensors: The first of the tensors of the table as a whole
  (kernels/engine/embedding/table_tensors.cc).
num_slots: S.
slot_names: S names of slots.
tensor_types: The types of `tensors`.
)doc");

REGISTER_OP("EvImport")
    .Input("resource: resource")
    .Input("keys: int64")
    .Input("values: float")
    .Input("versions: int64")
    .Input("frequencies: int64")
    .Input("slots: num_slots * float")
    .Attr("num_slots: int >= 0")
    .Attr("slot_names: list(string)")
    .Attr("slot_inits: list(float)")
    .Attr("part: int >= 0 = 0")
    .Attr("num_parts: int >= 1 = 1")
    .Attr("clear: bool = false")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      int num_slots, part, num_parts;
      TF_RETURN_IF_ERROR(c->GetAttr("num_slots", &num_slots));
      TF_RETURN_IF_ERROR(c->GetAttr("part", &part));
      TF_RETURN_IF_ERROR(c->GetAttr("num_parts", &num_parts));
      if (part >= num_parts) {
        return InvalidArgument("part: expected a number below num_parts = ",
                               num_parts, ", got ", part);
      }
      std::vector<std::string> names;
      TF_RETURN_IF_ERROR(c->GetAttr("slot_names", &names));
      std::vector<float> inits;
      TF_RETURN_IF_ERROR(c->GetAttr("slot_inits", &inits));
      if (names.size() != num_slots || inits.size() != num_slots) {
        return InvalidArgument(num_slots, " slots came with ", names.size(),
                               " names and ", inits.size(), " initial values");
      }
      ShapeHandle keys, meta;
      TF_RETURN_IF_ERROR(InputOfRank(c, 1, 1, "keys", &keys));
      const DimensionHandle n = c->Dim(keys, 0);
      TF_RETURN_IF_ERROR(InputMatrix(c, 2, n, RowDim(c, 0), "values"));
      TF_RETURN_IF_ERROR(InputOfRank(c, 3, 1, "versions", &meta));
      TF_RETURN_IF_ERROR(InputOfRank(c, 4, 1, "frequencies", &meta));
      for (int s = 0; s < num_slots; ++s) {
        TF_RETURN_IF_ERROR(InputMatrix(c, 5 + s, n, SlotDim(c, 0, names[s]),
                                       StrCat("slot ", names[s])));
      }
      return Status();
    })
    .Doc(R"doc(
Inserts or overwrites rows from an export. Slots of the table without an input get
their initial value.

resource: The handle.
keys: [N].
values: [N, D].
versions: [N], or [0]: never updated.
frequencies: [N], or [0]: none.
slots: S matrices [N, D], or [N, 1] for a slot with one number per row.
num_slots: S.
slot_names: S names. A missing slot is created.
slot_inits: S initial values of the slots of new rows.
part: Keep only keys with floormod(floormod(key, 1000), num_parts) == part.
num_parts: 1 keeps all keys.
clear: Empty the table first.
)doc");

REGISTER_OP("EvImportFiltered")
    .Input("resource: resource")
    .Input("keys: int64")
    .Input("versions: int64")
    .Input("frequencies: int64")
    .Attr("part: int >= 0 = 0")
    .Attr("num_parts: int >= 1 = 1")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle vector;
      TF_RETURN_IF_ERROR(InputOfRank(c, 1, 1, "keys", &vector));
      TF_RETURN_IF_ERROR(InputOfRank(c, 2, 1, "versions", &vector));
      return InputOfRank(c, 3, 1, "frequencies", &vector);
    })
    .Doc(R"doc(
Imports the filtered keys of another table and their counts. Keys with a row are
skipped. Keys that this table's filter now admits get their default row. No-op if
this table has no filter.

resource: The handle; must be initialized.
keys: [M].
versions: [M], or [0]: none.
frequencies: [M], or [0]: one occurrence each.
part: Keep only keys with floormod(floormod(key, 1000), num_parts) == part.
num_parts: 1 keeps all keys.
)doc");

}  // namespace
}  // namespace embedding_variable
