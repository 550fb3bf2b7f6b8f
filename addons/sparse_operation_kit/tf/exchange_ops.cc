// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The steps of a lookup over ranks. Between them the caller's collectives carry
// what the ops write; docs/design/0004-exchange.md draws the way.

#include <vector>

#include "kernels/engine/combine/combiner_names.h"
#include "kernels/tf/ops/shape_helpers.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"

namespace sparse_operation_kit {
namespace {

using embedding_variable::InputMatrix;
using embedding_variable::InputOfRank;
using tensorflow::int32;
using tensorflow::Status;
using tensorflow::errors::InvalidArgument;
using tensorflow::shape_inference::DimensionHandle;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;
using tensorflow::strings::StrCat;

Status GetInts(InferenceContext* c, const char* name, size_t size,
               std::vector<int32>* values) {
  TF_RETURN_IF_ERROR(c->GetAttr(name, values));
  if (values->size() == size) return Status::OK();
  return InvalidArgument(name, " has ", values->size(), " entries, expected ",
                         size);
}

// Rows or gradients on their way: a vector, or a scalar variant.
Status SetWireShape(InferenceContext* c, int output, const char* type_name) {
  tensorflow::DataType type;
  TF_RETURN_IF_ERROR(c->GetAttr(type_name, &type));
  c->set_output(output, type == tensorflow::DT_VARIANT
                            ? c->Scalar()
                            : c->Vector(c->UnknownDim()));
  return Status::OK();
}

REGISTER_OP("SokRoute")
    .Input("ids: num_tables * Tids")
    .Input("rows: num_tables * int64")
    .Input("batch_sizes: num_tables * int64")
    .Input("weights: num_weights * float")
    .Output("message: int64")
    .Output("splits: int32")
    .Output("plan: variant")
    .Attr("num_tables: int >= 1")
    .Attr("num_weights: int >= 0")
    .Attr("Tids: {int64, int32}")
    .Attr("names: list(string)")
    .Attr(ev::CombinersAttr())
    .Attr("dims: list(int)")
    .Attr("placements: list(int)")
    .Attr("placement_sizes: list(int)")
    .Attr("num_ranks: int >= 1")
    .Attr("with_occurrences: bool = false")
    .Attr("fingerprint: int")
    .Attr("call: string")
    .Attr("on_device: bool = false")
    .Attr("ids_types: list(string) = []")
    .Attr("key_types: list(string) = []")
    .Attr("optimizers: list(string) = []")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      int num_tables, num_weights, num_ranks;
      TF_RETURN_IF_ERROR(c->GetAttr("num_tables", &num_tables));
      TF_RETURN_IF_ERROR(c->GetAttr("num_weights", &num_weights));
      TF_RETURN_IF_ERROR(c->GetAttr("num_ranks", &num_ranks));
      if (num_weights != 0 && num_weights != num_tables) {
        return InvalidArgument("a lookup of ", num_tables, " tables got ",
                               num_weights, " weights; give one each, or none");
      }
      std::vector<int32> dims;
      TF_RETURN_IF_ERROR(GetInts(c, "dims", num_tables, &dims));
      for (int t = 0; t < num_tables; ++t) {
        ShapeHandle ids, weights, scalar;
        TF_RETURN_IF_ERROR(
            InputOfRank(c, t, 1, StrCat("ids of table ", t), &ids));
        if (num_weights > 0) {
          TF_RETURN_IF_ERROR(InputOfRank(c, 3 * num_tables + t, 1,
                                         StrCat("weights of table ", t),
                                         &weights));
          DimensionHandle merged;
          if (!c->Merge(c->Dim(ids, 0), c->Dim(weights, 0), &merged).ok()) {
            return InvalidArgument(
                "table ", t, " got ", c->DebugString(c->Dim(ids, 0)),
                " ids but ", c->DebugString(c->Dim(weights, 0)), " weights");
          }
        }
        TF_RETURN_IF_ERROR(InputOfRank(c, 2 * num_tables + t, 0,
                                       StrCat("batch size of table ", t),
                                       &scalar));
      }
      c->set_output(0, c->Vector(c->UnknownDim()));
      c->set_output(1, c->Vector(num_ranks));
      c->set_output(2, c->Scalar());
      return Status::OK();
    })
    .Doc(R"doc(
Deduplicates the ids of T tables and writes to each rank a message of the keys that
it owns, table by table behind a header.

ids, rows, batch_sizes, weights: As of EvLookupSparse.
message: The messages to rank 0, 1, ..., end to end.
splits: [W], how long each is.
plan: What SokPool and SokPoolGrad need.
num_tables: T.
num_weights: 0 or T.
names: T names, for messages.
combiners: T names of combiners.
dims: T row lengths.
placements: The ranks that hold table 0, 1, ...; key k is on entry
  floormod(k, length) of its table's.
placement_sizes: T lengths.
num_ranks: W.
with_occurrences: Whether the message says how often each key occurs.
fingerprint: Of the lookup; the same on all ranks.
call: The lookup's name.
ids_types, key_types, optimizers: Nothing, or for each table the type of the batch's
  ids, that of the table's keys, and what trains it, if that is known. SokServe
  compares them, and the combiners, with those of the other ranks.
on_device: Whether rows come to the device, which is then told of the route.
)doc");

REGISTER_OP("SokServe")
    .Input("resources: num_tables * resource")
    .Input("message: int64")
    .Input("splits: int32")
    .Output("rows: Twire")
    .Output("row_splits: int32")
    .Output("plan: variant")
    .Attr("num_tables: int >= 1")
    .Attr("Twire: {float, half, variant}")
    .Attr("wire: {'float32', 'float16', 'bfloat16'}")
    .Attr("with_occurrences: bool = false")
    .Attr("fingerprint: int")
    .Attr("combiners: list(string) = []")
    .Attr("ids_types: list(string) = []")
    .Attr("key_types: list(string) = []")
    .Attr("optimizers: list(string) = []")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      int num_tables;
      TF_RETURN_IF_ERROR(c->GetAttr("num_tables", &num_tables));
      ShapeHandle message, splits;
      TF_RETURN_IF_ERROR(InputOfRank(c, num_tables, 1, "message", &message));
      TF_RETURN_IF_ERROR(InputOfRank(c, num_tables + 1, 1, "splits", &splits));
      TF_RETURN_IF_ERROR(SetWireShape(c, 0, "Twire"));
      c->set_output(1, splits);
      c->set_output(2, c->Scalar());
      return Status::OK();
    })
    .Doc(R"doc(
Reads the rows of the keys that all ranks asked for. Inserts nothing; an absent
key gives its default row.

resources: T handles.
message, splits: What came from rank 0, 1, ...
rows: The rows by rank, table, key, flat. As bfloat16 they travel in a tensor of
  type half, whose values then mean nothing. A variant scalar may have them in
  the memory of the device that has the tables.
row_splits: [W], how many numbers go to each rank.
plan: For SokServeGrad and EvApply: each key is found once.
combiners, ids_types, key_types, optimizers: As of SokRoute.
)doc");

REGISTER_OP("SokAdmit")
    .Input("resources: num_tables * resource")
    .Input("message: int64")
    .Input("splits: int32")
    .Input("seed: int64")
    .Output("flags: float")
    .Output("flag_splits: int32")
    .Attr("num_tables: int >= 1")
    .Attr("ratios: list(float)")
    .Attr("with_occurrences: bool = false")
    .Attr("fingerprint: int")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      int num_tables;
      TF_RETURN_IF_ERROR(c->GetAttr("num_tables", &num_tables));
      std::vector<float> ratios;
      TF_RETURN_IF_ERROR(c->GetAttr("ratios", &ratios));
      if (ratios.size() != num_tables) {
        return InvalidArgument("a filter of ", num_tables, " tables got ",
                               ratios.size(), " ratios");
      }
      ShapeHandle message, splits, seed;
      TF_RETURN_IF_ERROR(InputOfRank(c, num_tables, 1, "message", &message));
      TF_RETURN_IF_ERROR(InputOfRank(c, num_tables + 1, 1, "splits", &splits));
      TF_RETURN_IF_ERROR(InputOfRank(c, num_tables + 2, 0, "seed", &seed));
      c->set_output(0, c->Vector(c->UnknownDim()));
      c->set_output(1, splits);
      return Status::OK();
    })
    .Doc(R"doc(
Says which of the keys that all ranks asked for have a row or are admitted.

resources: T handles.
message, splits: What came from rank 0, 1, ...
seed: Scalar. The same key draws the same for one seed, whichever rank asks.
flags: 1 (show it) or 0 for each key by rank, table, key.
flag_splits: [W], how many go to each rank.
ratios: T numbers in [0, 1]: what fraction of keys without a row is admitted.
)doc");

REGISTER_OP("SokPool")
    .Input("resources: num_tables * resource")
    .Input("weights: num_weights * float")
    .Input("plan: variant")
    .Input("rows: Twire")
    .Input("served: variant")
    .Input("message: int64")
    .Input("splits: int32")
    .Output("outputs: num_tables * float")
    .Attr("num_tables: int >= 1")
    .Attr("num_weights: int >= 0")
    .Attr("dims: list(int)")
    .Attr("Twire: {float, half, variant}")
    .Attr("wire: {'float32', 'float16', 'bfloat16'}")
    .Attr("num_ranks: int >= 1")
    .Attr("with_occurrences: bool = false")
    .Attr("fingerprint: int")
    .Attr("call: string")
    .Attr("gradient_needs_rows: bool = false")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      int num_tables;
      TF_RETURN_IF_ERROR(c->GetAttr("num_tables", &num_tables));
      std::vector<int32> dims;
      TF_RETURN_IF_ERROR(GetInts(c, "dims", num_tables, &dims));
      for (int t = 0; t < num_tables; ++t) {
        c->set_output(t, c->Matrix(c->UnknownDim(), dims[t]));
      }
      return Status::OK();
    })
    .Doc(R"doc(
Pools the rows that came back for this rank's batch.

resources, weights, served, message, splits: Of the lookup, for its gradient.
plan: Of SokRoute.
rows: The rows of the plan's keys, by rank, table, key.
outputs: T matrices [B, D].
call: The name of the lookup, which its collectives' names begin with.
gradient_needs_rows: Whether the combiner of one of the tables selects.
)doc");

REGISTER_OP("SokPoolGrad")
    .Input("plan: variant")
    .Input("grads: num_grads * float")
    .Input("rows: Rows")
    .Input("weights: num_weights * float")
    .Output("message: Twire")
    .Output("splits: int32")
    .Attr("num_grads: int >= 1")
    .Attr("num_weights: int >= 0 = 0")
    .Attr("tables: list(int)")
    .Attr("Rows: list({float, half}) >= 0 = []")
    .Attr("Twire: {float, half, variant}")
    .Attr("wire: {'float32', 'float16', 'bfloat16'}")
    .Attr("num_ranks: int >= 1")
    .Attr("call: string")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      int num_grads, num_ranks;
      TF_RETURN_IF_ERROR(c->GetAttr("num_grads", &num_grads));
      TF_RETURN_IF_ERROR(c->GetAttr("num_ranks", &num_ranks));
      std::vector<int32> tables;
      TF_RETURN_IF_ERROR(GetInts(c, "tables", num_grads, &tables));
      for (int k = 0; k < num_grads; ++k) {
        ShapeHandle grad;
        TF_RETURN_IF_ERROR(
            InputOfRank(c, 1 + k, 2, StrCat("gradient ", k), &grad));
      }
      TF_RETURN_IF_ERROR(SetWireShape(c, 0, "Twire"));
      c->set_output(1, c->Vector(num_ranks));
      return Status::OK();
    })
    .Doc(R"doc(
The gradients of the distinct keys of this rank's batch, for their owners.

plan: Of SokRoute.
grads: K gradients of outputs [B, D].
rows: As SokPool got them, where the combiner of one of the tables selects.
weights: The weights of the K tables, or nothing. Not read, as the plan has them: a
  gradient of this op goes to them.
message: For each rank the sums over the occurrences of its keys, by table, key.
splits: [W].
tables: The K tables' numbers in the lookup.
call: The lookup's name.
)doc");

REGISTER_OP("SokPoolWeightGrad")
    .Input("plan: variant")
    .Input("rows: Twire")
    .Input("grad: float")
    .Input("output: float")
    .Output("weight_grad: float")
    .Attr("table: int >= 0")
    .Attr("tables: list(int) = []")
    .Attr("Twire: {float, half}")
    .Attr("wire: {'float32', 'float16', 'bfloat16'}")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle grad, output;
      TF_RETURN_IF_ERROR(InputOfRank(c, 2, 2, "grad", &grad));
      TF_RETURN_IF_ERROR(InputOfRank(c, 3, 2, "output", &output));
      TF_RETURN_IF_ERROR(c->Merge(grad, output, &grad));
      c->set_output(0, c->Vector(c->UnknownDim()));
      return Status::OK();
    })
    .Doc(R"doc(
The gradient of one table's weights.

plan, rows: As SokPool got them; with 'tables', as SokPoolGivenRows did.
grad: The gradient of the table's output [B, D].
output: That output.
weight_grad: [N].
table: The table's number in the lookup.
tables: Empty, or the tables that the rows are of.
)doc");

REGISTER_OP("SokServeGivenRows")
    .Input("plan: variant")
    .Input("message: int64")
    .Input("splits: int32")
    .Input("route: variant")
    .Input("rows: num_rows * float")
    .Output("values: Twire")
    .Output("value_splits: int32")
    .Attr("num_rows: int >= 1")
    .Attr("num_tables: int >= 1")
    .Attr("tables: list(int)")
    .Attr("Twire: {float, half}")
    .Attr("wire: {'float32', 'float16', 'bfloat16'}")
    .Attr("with_occurrences: bool = false")
    .Attr("fingerprint: int")
    .Attr("divisor: int >= 1 = 1")
    .Attr("call: string")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      int num_rows;
      TF_RETURN_IF_ERROR(c->GetAttr("num_rows", &num_rows));
      std::vector<int32> tables;
      TF_RETURN_IF_ERROR(GetInts(c, "tables", num_rows, &tables));
      ShapeHandle splits;
      TF_RETURN_IF_ERROR(InputOfRank(c, 2, 1, "splits", &splits));
      TF_RETURN_IF_ERROR(SetWireShape(c, 0, "Twire"));
      c->set_output(1, splits);
      return Status::OK();
    })
    .Doc(R"doc(
Gives each rank the given rows of the keys that it asked for: the gradient of
SokServeGrad by its gradients.

plan, message, splits, route: As of SokServeGrad.
rows: K matrices [U, D], beside the keys of SokServeGrad.
values: The rows by rank, table, key, flat, divided by 'divisor'.
value_splits: [W], how many numbers go to each rank.
num_tables: T of the lookup.
tables: The K tables' numbers in it.
divisor: Of SokServeGrad.
call: The lookup's name.
)doc");

REGISTER_OP("SokPoolGivenRows")
    .Input("plan: variant")
    .Input("values: Twire")
    .Input("received: Received")
    .Input("weights: num_weights * float")
    .Output("outputs: num_rows * float")
    .Attr("num_rows: int >= 1")
    .Attr("num_weights: int >= 0 = 0")
    .Attr("tables: list(int)")
    .Attr("dims: list(int)")
    .Attr("Received: list({float, half}) >= 0 = []")
    .Attr("Twire: {float, half}")
    .Attr("wire: {'float32', 'float16', 'bfloat16'}")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      int num_rows;
      TF_RETURN_IF_ERROR(c->GetAttr("num_rows", &num_rows));
      std::vector<int32> tables, dims;
      TF_RETURN_IF_ERROR(GetInts(c, "tables", num_rows, &tables));
      TF_RETURN_IF_ERROR(GetInts(c, "dims", num_rows, &dims));
      for (int k = 0; k < num_rows; ++k) {
        c->set_output(k, c->Matrix(c->UnknownDim(), dims[k]));
      }
      return Status::OK();
    })
    .Doc(R"doc(
Pools given rows for this rank's batch: the gradient of SokPoolGrad by its gradients.

plan: Of SokRoute.
values: What came from rank 0, 1, ... of SokServeGivenRows.
received: The rows as SokPool got them, where the combiner of one of the tables
  selects.
weights: As of SokPoolGrad.
outputs: K matrices [B, D].
tables: The K tables' numbers in the lookup.
dims: K row lengths.
)doc");

REGISTER_OP("SokServeGrad")
    .Input("plan: variant")
    .Input("message: int64")
    .Input("splits: int32")
    .Input("gradients: Twire")
    .Input("route: variant")
    .Output("keys: num_grads * int64")
    .Output("unique_grads: num_grads * float")
    .Attr("num_grads: int >= 1")
    .Attr("num_tables: int >= 1")
    .Attr("tables: list(int)")
    .Attr("dims: list(int)")
    .Attr("Twire: {float, half, variant}")
    .Attr("wire: {'float32', 'float16', 'bfloat16'}")
    .Attr("with_occurrences: bool = false")
    .Attr("fingerprint: int")
    .Attr("divisor: int >= 1 = 1")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      int num_grads;
      TF_RETURN_IF_ERROR(c->GetAttr("num_grads", &num_grads));
      std::vector<int32> tables, dims;
      TF_RETURN_IF_ERROR(GetInts(c, "tables", num_grads, &tables));
      TF_RETURN_IF_ERROR(GetInts(c, "dims", num_grads, &dims));
      for (int k = 0; k < num_grads; ++k) {
        const DimensionHandle unique = c->UnknownDim();
        c->set_output(k, c->Vector(unique));
        c->set_output(num_grads + k, c->Matrix(unique, dims[k]));
      }
      return Status::OK();
    })
    .Doc(R"doc(
Sums the gradients of the keys that this rank owns over all ranks, in rank order,
and divides the sums.

plan, message, splits: Of SokServe.
gradients: What came from rank 0, 1, ... for the keys it had asked for.
route: Of SokRoute, which notes that the wait is over.
keys: K vectors of distinct keys [U].
unique_grads: K matrices [U, D].
num_tables: T of the lookup.
tables: The K tables' numbers in it.
dims: K row lengths.
divisor: What each sum is divided by.
)doc");

REGISTER_OP("SokApplyServed")
    .Input("resources: num_updates * resource")
    .Input("hyper: num_hyper * float")
    .Input("step: int64")
    .Input("plan: variant")
    .Input("message: int64")
    .Input("splits: int32")
    .Input("gradients: variant")
    .Input("route: variant")
    .Attr("num_updates: int >= 1")
    .Attr("num_hyper: int >= 0")
    .Attr("rule: string")
    .Attr("slot_names: list(string)")
    .Attr("slot_inits: list(float)")
    .Attr("plan_tables: list(int)")
    .Attr("num_tables: int >= 1")
    .Attr("tables: list(int)")
    .Attr("wire: {'float32', 'float16', 'bfloat16'}")
    .Attr("with_occurrences: bool = false")
    .Attr("fingerprint: int")
    .Attr("divisor: int >= 1 = 1")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) { return Status::OK(); })
    .Doc(R"doc(
SokServeGrad and EvApply one after the other, to the same bits. Where all rows
are on the device gradients are summed there.

resources: The K tables to update.
hyper, step, rule, slot_names, slot_inits: As of EvApply.
plan, message, splits: Of SokServe.
gradients: What came from rank 0, 1, ... for the keys of 'tables'.
route: Of SokRoute, which notes that the wait is over.
plan_tables: The K tables' numbers in the lookup.
num_tables: T of the lookup.
tables: The tables that the gradients are of.
divisor: Of SokServeGrad.
)doc");

REGISTER_OP("SokCarry")
    .Input("values: T")
    .Input("splits: int32")
    .Output("received: T")
    .Output("received_splits: int32")
    .Attr("T: {int64, float, half, variant}")
    .Attr("exchange_name: string")
    .Attr("nan_if_lost: bool = false")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle values, splits;
      tensorflow::DataType type;
      TF_RETURN_IF_ERROR(c->GetAttr("T", &type));
      TF_RETURN_IF_ERROR(InputOfRank(
          c, 0, type == tensorflow::DT_VARIANT ? 0 : 1, "values", &values));
      TF_RETURN_IF_ERROR(InputOfRank(c, 1, 1, "splits", &splits));
      TF_RETURN_IF_ERROR(SetWireShape(c, 0, "T"));
      c->set_output(1, splits);
      return Status::OK();
    })
    .Doc(R"doc(
Sends numbers to all ranks, by the carrier that SokStartCarrier has made.

values: What goes to rank 0, 1, ... [sum of splits]; as a variant scalar, what
  SokServe or SokPoolGrad has made.
splits: How many go to each rank [W].
received: What has come from rank 0, 1, ...
received_splits: How many from each rank [W].
exchange_name: The same on all ranks for what belongs together.
nan_if_lost: Whether NaN stands in a device's memory in place of what a rank that
  is gone did not send. Otherwise zeros, which as gradients change no row.
)doc");

REGISTER_OP("SokAllReduce")
    .Input("values: num_values * T")
    .Output("sums: num_values * T")
    .Attr("num_values: int >= 1")
    .Attr("T: {half, float, double}")
    .Attr("names: list(string)")
    .Attr("divisor: int >= 1 = 1")
    .Attr("exchange_name: string")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      for (int k = 0; k < c->num_inputs(); ++k) c->set_output(k, c->input(k));
      return Status::OK();
    })
    .Doc(R"doc(
Sums tensors over all ranks in one call of the carrier that SokStartCarrier has
made, whose kind sums numbers ("nccl").

values: The gradients of K variables; the same shapes on all ranks.
sums: Their sums over ranks, divided by 'divisor'; the same bits on all ranks.
names: The K variables' names, for errors.
exchange_name: The same on all ranks for what belongs together.
)doc");

REGISTER_OP("SokCarrierId")
    .Output("id: string")
    .Attr("kind: string")
    .Attr("rank: int >= 0")
    .Attr("num_ranks: int >= 1")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      c->set_output(0, c->Scalar());
      return Status::OK();
    })
    .Doc(R"doc(
Sees whether this process can take part in an exchange, and prepares it on rank 0.

id: Any bytes, for SokStartCarrier on all ranks; empty on ranks but 0.
kind: 'memory' or 'nccl'.
)doc");

REGISTER_OP("SokStartCarrier")
    .Input("id: string")
    .Attr("kind: string")
    .Attr("rank: int >= 0")
    .Attr("num_ranks: int >= 1")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) { return Status::OK(); })
    .Doc(R"doc(
Makes this process's part of an exchange, once. Waits for all ranks.

id: Of SokCarrierId.
)doc");

REGISTER_OP("SokStopCarrier")
    .Attr("why: string")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) { return Status::OK(); })
    .Doc(R"doc(
Ends this process's part of an exchange, if there is one: all SokCarry fail.

why: What their errors say.
)doc");

REGISTER_OP("SokDrainCarrier")
    .Attr("seconds: int >= 0")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) { return Status::OK(); })
    .Doc(R"doc(
Waits until what this process has begun to exchange is through, here and on the
ranks of this host that run this, too. Nothing is exchanged afterwards. Internal: the
exchange has failed.

seconds: So long at most.
)doc");

REGISTER_OP("SokSendParts")
    .Input("parts: double")
    .Output("message: int64")
    .Output("splits: int32")
    .Output("wait: variant")
    .Attr("num_ranks: int >= 1")
    .Attr("fingerprint: int")
    .Attr("call: string")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      int num_ranks;
      TF_RETURN_IF_ERROR(c->GetAttr("num_ranks", &num_ranks));
      ShapeHandle parts;
      TF_RETURN_IF_ERROR(InputOfRank(c, 0, 1, "parts", &parts));
      c->set_output(0, c->Vector(c->UnknownDim()));
      c->set_output(1, c->Vector(num_ranks));
      c->set_output(2, c->Scalar());
      return Status::OK();
    })
    .Doc(R"doc(
Writes this rank's parts of K sums over ranks as a message to every rank.

parts: [K], this rank's.
message: The same 1 + K numbers for rank 0, 1, ..., end to end.
splits: [W], each 1 + K.
wait: For SokSumParts: this process waits for the other ranks until it runs.
num_ranks: W.
fingerprint: Of the sums; the same on all ranks.
call: The name of the sums.
)doc");

REGISTER_OP("SokSumParts")
    .Input("message: int64")
    .Input("splits: int32")
    .Input("wait: variant")
    .Output("sums: double")
    .Attr("fingerprint: int")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle message, splits, wait;
      TF_RETURN_IF_ERROR(InputOfRank(c, 0, 1, "message", &message));
      TF_RETURN_IF_ERROR(InputOfRank(c, 1, 1, "splits", &splits));
      TF_RETURN_IF_ERROR(InputOfRank(c, 2, 0, "wait", &wait));
      c->set_output(0, c->Vector(c->UnknownDim()));
      return Status::OK();
    })
    .Doc(R"doc(
Adds the parts of all ranks in the order of ranks: the same bits on every rank.

message, splits: What came from rank 0, 1, ... by SokSendParts.
wait: As SokSendParts made it.
sums: [K].
fingerprint: As of SokSendParts.
)doc");

REGISTER_OP("SokLongestWait")
    .Output("seconds: double")
    .Output("what: string")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      c->set_output(0, c->Scalar());
      c->set_output(1, c->Scalar());
      return Status::OK();
    })
    .Doc(R"doc(
Says which lookup of this process has waited longest for other ranks.

seconds: Since when it waits; 0 when none does.
what: Which one; empty when none does.
)doc");

}  // namespace
}  // namespace sparse_operation_kit
