// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Ops of the table itself: handle, initialisation, size, eviction. Stock
// TensorFlow reads the attributes `dtype` and `shape` of EvHandle (control
// flow, meta graph import), so these names are fixed.

#include "kernels/engine/rows/row_storage.h"
#include "kernels/tf/ops/shape_helpers.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"

namespace embedding_variable {
namespace {

using tensorflow::DataType;
using tensorflow::PartialTensorShape;
using tensorflow::Status;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

Status HandleShape(InferenceContext* c) {
  std::string name;
  TF_RETURN_IF_ERROR(c->GetAttr("shared_name", &name));
  DataType dtype;
  TF_RETURN_IF_ERROR(c->GetAttr("dtype", &dtype));
  PartialTensorShape shape;
  TF_RETURN_IF_ERROR(c->GetAttr("shape", &shape));
  if (shape.dims() != 2 || shape.dim_size(1) < 1) {
    return tensorflow::errors::InvalidArgument(
        "embedding variable '", name,
        "': expected the shape [-1, dim] with dim >= 1, got ",
        shape.DebugString());
  }
  ShapeHandle handle_shape;
  TF_RETURN_IF_ERROR(c->MakeShapeFromPartialTensorShape(shape, &handle_shape));
  c->set_output(0, c->Scalar());
  c->set_output_handle_shapes_and_types(0, {{handle_shape, dtype}});
  return Status();
}

REGISTER_OP("EvHandle")
    .Output("resource: resource")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Attr("dtype: {float} = DT_FLOAT")
    .Attr("shape: shape")
    .Attr(ev::RowStorageAttr())
    .Attr("storage_path: string = ''")
    .Attr("memory_bytes: int >= 0 = 0")
    .Attr("second_memory_bytes: int >= 0 = 0")
    .Attr("key_dtype: {int64, int32} = DT_INT64")
    .Attr("value_dtype: {float, half, bfloat16} = DT_FLOAT")
    .Attr("value_rounding: {'stochastic', 'nearest'} = 'stochastic'")
    .Attr("value_seed: int = 0")
    .Attr("record_frequency: bool = false")
    .Attr("record_version: bool = false")
    .Attr("filter: {'none', 'counter', 'bloom'} = 'none'")
    .Attr("filter_freq: int >= 0 = 0")
    .Attr("no_permission: float = 0.0")
    .Attr("max_element_size: int >= 0 = 0")
    .Attr("false_positive_probability: float = 0.0")
    .Attr("counter_bits: int = 64")
    .Attr("steps_to_live: int >= 0 = 0")
    .Attr("l2_weight_threshold: float = -1.0")
    .Attr("max_rows: int >= 0 = 0")
    .Attr("max_bytes: int >= 0 = 0")
    .Attr("cache_strategy: {'LRU', 'LFU', 'FIFO'} = 'LFU'")
    .Attr("versions_are_times: bool = false")
    .SetIsStateful()
    .SetShapeFn(HandleShape)
    .Doc(R"doc(
Returns the handle of an embedding variable's table.

The first run in a session creates the table, empty and not initialized. Handles
with the same container and shared_name refer to the same table.

resource: The handle.
container: As for a variable.
shared_name: The variable's name; it appears in every error. Empty: the op's name.
dtype: The type in which values are looked up and trained.
shape: [-1, D], where D is the length of a row.
storage: Memory of the rows. dram: CPU memory. hbm: memory of the process's GPU. auto: GPU
  memory if the process can use a GPU, else CPU memory. dram_ssd: CPU memory, and a file
  for rows that do not fit. hbm_dram: GPU memory, and CPU memory for rows that do not fit.
  hbm_dram_ssd: GPU memory, CPU memory, and a file for rows that do not fit.
storage_path: The file's directory; each rank has its own directory in it.
memory_bytes: With dram_ssd, bytes of rows in CPU memory; with hbm_dram and hbm_dram_ssd,
  bytes of rows in GPU memory.
second_memory_bytes: With hbm_dram_ssd, bytes of rows in CPU memory.
key_dtype: The type of the keys. Ids may have either type; an id that this type cannot
  hold is an error.
value_dtype: The type in which rows keep values; slots are float.
value_rounding: How an update rounds values to a narrower type: to one of the two
  neighbours, the nearer the likelier, or to the nearest.
value_seed: Seed of that rounding, until a checkpoint is restored.
record_frequency: Count for each key how often it was trained.
record_version: Keep for each key the global step of its last update.
filter: How occurrences of keys without a row are counted: by one counter each, or by a
  Bloom filter. none: a key has a row from its first update.
filter_freq: A key is admitted by the update in which its occurrences reach this number.
no_permission: Value returned for every element of a key that the filter has not admitted.
max_element_size: Number of keys that the Bloom filter is designed for.
false_positive_probability: Of the Bloom filter.
counter_bits: Of the Bloom filter's counters: 8, 16, 32 or 64.
steps_to_live: Not used by the table: a saver evicts rows by it; 0: it does not.
l2_weight_threshold: Likewise; -1: a saver does not evict by weight.
max_rows: Maximum number of rows; 0: no limit.
max_bytes: Maximum bytes of rows and index; 0: no limit.
cache_strategy: Which rows a full table evicts; with dram_ssd, hbm_dram and hbm_dram_ssd,
  also which rows are in the slower memories.
versions_are_times: Versions are timestamps, not step numbers, so several updates may
  have the same version.
)doc");

REGISTER_OP("EvInitialize")
    .Input("resource: resource")
    .Input("default_rows: dtype")
    .Attr("dtype: {float} = DT_FLOAT")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      return InputMatrix(c, 1, c->UnknownDim(), RowDim(c, 0), "default_rows");
    })
    .Doc(R"doc(
Sets the default rows and empties the table.

resource: The handle.
default_rows: [R, D], R >= 1. A new key starts with row floormod(key, R).
)doc");

REGISTER_OP("EvIsInitialized")
    .Input("resource: resource")
    .Output("is_initialized: bool")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::ScalarShape)
    .Doc(R"doc(
Returns whether EvInitialize has run on the table in this session.

resource: The handle.
is_initialized: Scalar.
)doc");

REGISTER_OP("EvShape")
    .Input("resource: resource")
    .Output("shape: int64")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      c->set_output(0, c->Vector(2));
      return Status();
    })
    .Doc(R"doc(
Returns the number of keys and the length of a row.

resource: The handle.
shape: [keys, D].
)doc");

REGISTER_OP("EvStats")
    .Input("resource: resource")
    .Output("stats: int64")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      c->set_output(0, c->Vector(4));
      return Status();
    })
    .Doc(R"doc(
Returns the size of the table.

resource: The handle.
stats: [rows, bytes of the index, bytes of the rows, rows inserted so far].
)doc");

REGISTER_OP("EvPolicyStats")
    .Input("resource: resource")
    .Output("stats: int64")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      c->set_output(0, c->Vector(3));
      return Status();
    })
    .Doc(R"doc(
Returns statistics of the filter and of evictions.

resource: The handle.
stats: [keys that the filter has counted and not admitted, bytes of the filter, rows
  evicted so far].
)doc");

REGISTER_OP("EvOverflows")
    .Input("resource: resource")
    .Output("overflows: int64")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::ScalarShape)
    .Doc(R"doc(
Returns how many updates of rows have made a number infinite by rounding it to value_dtype.

resource: The handle.
overflows: Scalar; 0 with float values.
)doc");

REGISTER_OP("EvTierStats")
    .Input("resource: resource")
    .Output("stats: int64")
    .Attr("pairs: int >= 1 = 1")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      int pairs = 0;
      TF_RETURN_IF_ERROR(c->GetAttr("pairs", &pairs));
      c->set_output(0, c->Vector(6 * pairs));
      return Status();
    })
    .Doc(R"doc(
Returns statistics of a table with several storage tiers or with all rows in GPU memory;
zeros for other tables.

resource: The handle.
stats: With dram_ssd: [rows in memory, rows in the file, bytes of the file, uses so far of
  rows in memory, uses so far of rows in the file, bytes written so far]. With hbm_dram the
  same, with GPU memory as the memory and CPU memory as the file. With all rows in GPU
  memory: [rows, 0, 0, ids of lookups and updates so far found by the GPU, ids looked up
  on the CPU, 0]. With hbm_dram_ssd the six numbers of hbm_dram, then those of dram_ssd.
pairs: Number of pairs of adjacent tiers, of six numbers each; the surplus ones are zeros.
)doc");

REGISTER_OP("EvMoveStats")
    .Input("resource: resource")
    .Output("stats: int64")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      c->set_output(0, c->Vector(3));
      return Status();
    })
    .Doc(R"doc(
Returns what moved between GPU and CPU memory; zeros for a table without rows in both.

resource: The handle.
stats: [rows that have moved to GPU memory, rows that have moved out of it, bytes that the
  GPU has read and written in CPU memory for lookups, updates and moves].
)doc");

REGISTER_OP("EvEvict")
    .Input("resource: resource")
    .Input("step: int64")
    .Output("evicted: int64")
    .Attr("steps_to_live: int >= 0 = 0")
    .Attr("l2_weight_threshold: float = -1.0")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle step;
      TF_RETURN_IF_ERROR(InputOfRank(c, 1, 0, "step", &step));
      c->set_output(0, c->Scalar());
      return Status();
    })
    .Doc(R"doc(
Evicts rows by age and by weight.

resource: The handle; must be initialized.
step: Scalar, the global step.
evicted: Scalar, rows evicted.
steps_to_live: Evict rows and filtered keys that no update touched for more steps than
  this; 0: none.
l2_weight_threshold: Evict rows with 0.5 * sum(w^2) below this; <= 0: none.
)doc");

}  // namespace
}  // namespace embedding_variable
