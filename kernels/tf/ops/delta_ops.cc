// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Ops of incremental checkpoints, and EvPublishCheckpoint.

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

// Sets the shapes of outputs 0 to 3 (keys, values, versions, frequencies), of
// the slots and of the outputs after these.
Status SetRowShapes(InferenceContext* c, int first_slot) {
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
  c->set_output(2, c->Vector(c->UnknownDim()));
  c->set_output(3, c->Vector(c->UnknownDim()));
  for (int i = first_slot; i < c->num_outputs(); ++i) {
    const int s = i - first_slot;
    c->set_output(i, s < num_slots ? c->Matrix(n, SlotDim(c, 0, names[s]))
                                   : c->UnknownShape());
  }
  return Status();
}

REGISTER_OP("EvCutChanges")
    .Input("resource: resource")
    .Output("cut: int64")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::ScalarShape)
    .Doc(R"doc(
Marks a moment from which EvExportChanges can export changes. The first run starts
recording the changes of the table.

resource: The handle; must be initialized.
cut: The number of the moment, at least 1.
)doc");

REGISTER_OP("EvPackRows")
    .Input("keys: int64")
    .Input("rows: float")
    .Output("packed: Tout")
    .Attr("Tout: {float, half, uint8}")
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle keys, rows;
      TF_RETURN_IF_ERROR(InputOfRank(c, 0, 1, "keys", &keys));
      TF_RETURN_IF_ERROR(InputOfRank(c, 1, 2, "rows", &rows));
      tensorflow::DataType type;
      TF_RETURN_IF_ERROR(c->GetAttr("Tout", &type));
      DimensionHandle width = c->Dim(rows, 1);
      if (type == tensorflow::DT_UINT8) {
        TF_RETURN_IF_ERROR(c->Add(width, 4, &width));
      }
      c->set_output(0, c->Matrix(c->Dim(keys, 0), width));
      return Status();
    })
    .Doc(R"doc(
Stores rows in fewer bytes. Restore ops unpack them.

keys: [N], for the error.
rows: [N, D]. InvalidArgument names the key of the first row with a number that the type
  cannot store.
packed: [N, D] of half, rounded to nearest; or [N, D + 4] of uint8: D numbers q, then two
  float16, scale and offset; the value is q * scale + offset
  (kernels/engine/base/row_format.h).
)doc");

REGISTER_OP("EvExportChanges")
    .Input("resource: resource")
    .Input("since: int64")
    .Output("keys: int64")
    .Output("values: float")
    .Output("versions: int64")
    .Output("frequencies: int64")
    .Output("partition_offset: int32")
    .Output("filtered_keys: int64")
    .Output("filtered_versions: int64")
    .Output("filtered_frequencies: int64")
    .Output("erased_keys: int64")
    .Output("replaces: int64")
    .Output("default_rows: float")
    .Output("cut: int64")
    .Output("slots: num_slots * float")
    .Output("tensors: tensor_types")
    .Attr("num_slots: int >= 0")
    .Attr("slot_names: list(string)")
    .Attr("tensor_types: list({float, int64}) >= 0 = []")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle since;
      TF_RETURN_IF_ERROR(InputOfRank(c, 1, 0, "since", &since));
      TF_RETURN_IF_ERROR(SetRowShapes(c, 12));
      c->set_output(4, c->Vector(1001));
      const DimensionHandle m = c->UnknownDim();
      c->set_output(5, c->Vector(m));
      c->set_output(6, c->Vector(c->UnknownDim()));
      c->set_output(7, c->Vector(m));
      c->set_output(8, c->Vector(c->UnknownDim()));
      c->set_output(9, c->Scalar());
      c->set_output(10, c->Matrix(c->UnknownDim(), RowDim(c, 0)));
      c->set_output(11, c->Scalar());
      return Status();
    })
    .Doc(R"doc(
Exports a consistent snapshot of the changes of the table since a cut. The changes stay
recorded, so the export can be repeated.

resource: The handle; must be initialized.
since: A cut. Earlier changes are dropped: an export since an earlier cut is then the
  whole table.
keys: [N], keys whose rows changed, in ascending order of (floormod(key, 1000), key).
values: [N, D].
versions: [N], or [0] when not recorded.
frequencies: [N], or [0] when not recorded.
partition_offset: [1001], the position at which each remainder of 1000 starts.
filtered_keys: [M], keys whose count by an exact filter changed, in the same order.
filtered_versions: [M], or [0] when not recorded.
filtered_frequencies: [M].
erased_keys: [E], keys that were erased or evicted and have no row, in the same order.
replaces: 1 if this is the whole table; a copy must be emptied first.
default_rows: [R, D], the table's default rows if replaces is 1, else [0, D].
cut: The moment of the export.
slots: S matrices [N, D], or [N, 1] for a slot with one number per row.
tensors: The tensors of the table as a whole that follow default_rows
  (kernels/engine/embedding/table_tensors.cc).
num_slots: S.
slot_names: S names of slots.
tensor_types: The types of `tensors`.
)doc");

REGISTER_OP("EvExportNewer")
    .Input("resource: resource")
    .Input("version: int64")
    .Output("keys: int64")
    .Output("values: float")
    .Output("versions: int64")
    .Output("frequencies: int64")
    .Output("slots: num_slots * float")
    .Attr("num_slots: int >= 0")
    .Attr("slot_names: list(string)")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle version;
      TF_RETURN_IF_ERROR(InputOfRank(c, 1, 0, "version", &version));
      return SetRowShapes(c, 4);
    })
    .Doc(R"doc(
Exports the rows updated at a version or later, as a consistent snapshot.

resource: The handle; must be initialized, and record versions.
version: The version.
keys: [N], in ascending order of (floormod(key, 1000), key).
values: [N, D].
versions: [N].
frequencies: [N], or [0] when not recorded.
slots: S matrices [N, D], or [N, 1] for a slot with one number per row.
num_slots: S.
slot_names: S names of slots.
)doc");

REGISTER_OP("EvApplyDelta")
    .Input("resource: resource")
    .Input("prefix: string")
    .Attr("tensor_name: string")
    .Attr("slot_names: list(string)")
    .Attr("slot_inits: list(float)")
    .Attr("part: int >= 0 = 0")
    .Attr("num_parts: int >= 1 = 1")
    .Attr("placement: list(int) = []")
    .Attr("rank: int >= 0 = 0")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      int part, num_parts;
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
      if (names.size() != inits.size()) {
        return InvalidArgument(names.size(), " slot names and ", inits.size(),
                               " initial values");
      }
      ShapeHandle prefix;
      return InputOfRank(c, 1, 0, "prefix", &prefix);
    })
    .Doc(R"doc(
Applies an incremental checkpoint to the table: erases keys, inserts or overwrites rows,
and imports a filter's counts.

The tensors are <tensor_name>-sparse_incr_keys, -sparse_incr_values and so on or, if the
checkpoint was written in parts, those of <tensor_name>/part_0 and so on. All are read,
and their checksums compared, before the table changes. This takes additional memory for
one part, and for the rows that are kept of all parts.

Part k of a partitioned variable has the keys with floormod(floormod(key, 1000), number
of parts) == k. Part k of a table distributed over ranks has the keys with
placement[floormod(key, length)] == k, from <tensor_name>-sparse_incr_placement.

resource: The handle; must be initialized.
prefix: Scalar, the prefix of the incremental checkpoint.
tensor_name: Name of the whole variable in the checkpoint, without part_i.
slot_names: S names of slots.
slot_inits: S initial values of the slots of new rows.
part: Keep only keys with floormod(floormod(key, 1000), num_parts) == part.
num_parts: 1 keeps all keys.
placement: Keep only keys with placement[floormod(key, length)] == rank; empty keeps all.
rank: The rank of this process.
)doc");

REGISTER_OP("EvPublishCheckpoint")
    .Input("staged: string")
    .Input("prefix: string")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle scalar;
      TF_RETURN_IF_ERROR(InputOfRank(c, 0, 0, "staged", &scalar));
      return InputOfRank(c, 1, 0, "prefix", &scalar);
    })
    .Doc(R"doc(
Gives a complete V2 checkpoint its final name: writes its files to the disk, then renames
them, the index last. If a checkpoint of that name exists, all its files are replaced.
The new files are first renamed to <prefix>.commit.data-* and <prefix>.commit.index. Once
the latter exists the replacement is final, and any process may complete it.

staged: Scalar, the prefix that the checkpoint was written to.
prefix: Scalar, its final prefix, in the same directory.
)doc");

}  // namespace
}  // namespace embedding_variable
