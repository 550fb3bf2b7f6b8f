// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The ops of a lookup over ranks. The caller's collectives exchange their
// outputs between them; docs/design/0004-exchange.md shows the sequence.

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
  if (values->size() == size) return Status();
  return InvalidArgument(name, " has ", values->size(), " entries, expected ",
                         size);
}

// Shape of rows or gradients on the wire: a vector, or a scalar variant.
Status SetWireShape(InferenceContext* c, int output, const char* type_name) {
  tensorflow::DataType type;
  TF_RETURN_IF_ERROR(c->GetAttr(type_name, &type));
  c->set_output(output, type == tensorflow::DT_VARIANT
                            ? c->Scalar()
                            : c->Vector(c->UnknownDim()));
  return Status();
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
      return Status();
    })
    .Doc(R"doc(
Deduplicates the ids of T tables and writes a message to each rank with the keys that
the rank owns: a header, then the keys of each table.

ids, rows, batch_sizes, weights: As for EvLookupSparse.
message: The messages to ranks 0, 1, ..., concatenated.
splits: [W], the length of each message.
plan: The route, an input of SokPool and SokPoolGrad.
num_tables: T.
num_weights: 0 or T.
names: T variable names, for error messages.
combiners: T names of combiners.
dims: T row lengths.
placements: The owner ranks of tables 0, 1, ..., concatenated. The owner of key k is
  entry floormod(k, length) of its table's list.
placement_sizes: T lengths of these lists.
num_ranks: W.
with_occurrences: Whether the message contains the occurrence count of each key.
fingerprint: Fingerprint of the lookup, the same on all ranks.
call: The lookup's name.
ids_types, key_types, optimizers: Empty, or for each table the type of the batch's
  ids, the type of the table's keys, and the optimizer if it is known. SokServe
  compares them, and the combiners, with those of the other ranks.
on_device: Whether the rows arrive in device memory. If so, the route is copied to the
  device.
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
      return Status();
    })
    .Doc(R"doc(
Reads the rows of the keys that all ranks sent. Inserts nothing; a key without a row
gives its default row.

resources: T handles.
message, splits: The messages of ranks 0, 1, ...
rows: The rows by rank, table, key, flat. bfloat16 rows are the bits of a tensor of type
  half. A variant scalar may hold them in the memory of the tables' device.
row_splits: [W], the count of numbers for each rank.
plan: The lookup plan for SokServeGrad and EvApply, so that each key is found once.
combiners, ids_types, key_types, optimizers: As for SokRoute.
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
      return Status();
    })
    .Doc(R"doc(
Returns which of the keys that all ranks sent have a row or are admitted.

resources: T handles.
message, splits: The messages of ranks 0, 1, ...
seed: Scalar. For one seed, a key gets the same result whichever rank sent it.
flags: For each key by rank, table, key: 1 (has a row or is admitted) or 0.
flag_splits: [W], the count of flags for each rank.
ratios: T numbers in [0, 1]: the fraction of keys without a row to admit.
)doc");

REGISTER_OP("SokPool")
    .Input("resources: num_tables * resource")
    .Input("weights: num_weights * float")
    .Input("plan: variant")
    .Input("rows: Twire")
    .Input("served: variant")
    .Input("message: int64")
    .Input("splits: int32")
    .Output("outputs: num_tables * Tout")
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
    .Attr("Tout: {float, half, bfloat16} = DT_FLOAT")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      int num_tables;
      TF_RETURN_IF_ERROR(c->GetAttr("num_tables", &num_tables));
      std::vector<int32> dims;
      TF_RETURN_IF_ERROR(GetInts(c, "dims", num_tables, &dims));
      for (int t = 0; t < num_tables; ++t) {
        c->set_output(t, c->Matrix(c->UnknownDim(), dims[t]));
      }
      return Status();
    })
    .Doc(R"doc(
Pools the rows received for this rank's batch.

resources, weights, served, message, splits: Inputs and outputs of the lookup's other
  ops, for its gradient.
plan: Output of SokRoute.
rows: The rows of the plan's keys, by rank, table, key.
outputs: T matrices [B, D].
call: The name of the lookup, the prefix of its collectives' names.
gradient_needs_rows: Whether the combiner of one of the tables selects.
Tout: Type of the outputs. Sums are float32, and rounded once.
)doc");

REGISTER_OP("SokPoolGrad")
    .Input("plan: variant")
    .Input("grads: num_grads * Tgrads")
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
    .Attr("Tgrads: {float, half, bfloat16} = DT_FLOAT")
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
      return Status();
    })
    .Doc(R"doc(
Sums the gradients of the distinct keys of this rank's batch, for their owners.

plan: Output of SokRoute.
grads: K gradients of outputs [B, D]. They are widened when they are read.
rows: The input of SokPool, if the combiner of one of the tables selects.
weights: The weights of the K tables, or nothing. The op does not read them, since the
  plan holds them; they are inputs so that this op can have a gradient for them.
message: For each rank, the sum over the occurrences of each of its keys, by table, key.
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
      return Status();
    })
    .Doc(R"doc(
Computes the gradient of one table's weights.

plan, rows: The inputs of SokPool, or, with 'tables', of SokPoolGivenRows.
grad: The gradient of the table's output [B, D].
output: The table's output.
weight_grad: [N].
table: The table's number in the lookup.
tables: Empty, or the tables of the rows.
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
      return Status();
    })
    .Doc(R"doc(
Sends each rank the given rows of its keys: the gradient of SokServeGrad with respect
to its input gradients.

plan, message, splits, route: The inputs of SokServeGrad.
rows: K matrices [U, D], in the order of SokServeGrad's keys.
values: The rows by rank, table, key, flat, divided by 'divisor'.
value_splits: [W], the count of numbers for each rank.
num_tables: T of the lookup.
tables: The K tables' numbers in it.
divisor: That of SokServeGrad.
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
      return Status();
    })
    .Doc(R"doc(
Pools given rows for this rank's batch: the gradient of SokPoolGrad with respect to its
input gradients.

plan: Output of SokRoute.
values: The values that SokServeGivenRows of ranks 0, 1, ... sent.
received: The rows input of SokPool, if the combiner of one of the tables selects.
weights: As for SokPoolGrad.
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
      return Status();
    })
    .Doc(R"doc(
Sums the gradients of the keys that this rank owns over all ranks, in rank order,
and divides the sums.

plan, message, splits: Output and inputs of SokServe.
gradients: The gradients that ranks 0, 1, ... sent for their keys.
route: Output of SokRoute; this op ends its wait.
keys: K vectors of distinct keys [U].
unique_grads: K matrices [U, D].
num_tables: T of the lookup.
tables: The K tables' numbers in it.
dims: K row lengths.
divisor: Divisor of each sum.
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
    .SetShapeFn([](InferenceContext* c) { return Status(); })
    .Doc(R"doc(
Does SokServeGrad and then EvApply, with the same bits. If the device holds all rows, it
sums the gradients too.

resources: The K tables to update.
hyper, step, rule, slot_names, slot_inits: As for EvApply.
plan, message, splits: Output and inputs of SokServe.
gradients: The gradients that ranks 0, 1, ... sent for the keys of 'tables'.
route: Output of SokRoute; this op ends its wait.
plan_tables: The K tables' numbers in the lookup.
num_tables: T of the lookup.
tables: The tables of the gradients.
divisor: That of SokServeGrad.
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
      return Status();
    })
    .Doc(R"doc(
Sends numbers to all ranks through the carrier that SokStartCarrier made.

values: The numbers for ranks 0, 1, ... [sum of splits], or a variant scalar of SokServe
  or SokPoolGrad.
splits: [W], the count of numbers for each rank.
received: The numbers of ranks 0, 1, ...
received_splits: [W], the count of numbers from each rank.
exchange_name: Name of the exchange, the same on all ranks.
nan_if_lost: If a rank is gone, fills the missing numbers in device memory with NaN.
  Otherwise with zeros: as gradients they change no row.
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
      return Status();
    })
    .Doc(R"doc(
Sums tensors over all ranks in one call of the carrier that SokStartCarrier made. The
carrier must be of a kind that can sum ("nccl").

values: The gradients of K variables; the same shapes on all ranks.
sums: Their sums over ranks, divided by 'divisor'; the same bits on all ranks.
names: The K variables' names, for errors.
exchange_name: Name of the sum, the same on all ranks.
)doc");

REGISTER_OP("SokCarrierId")
    .Output("id: string")
    .Attr("kind: string")
    .Attr("rank: int >= 0")
    .Attr("num_ranks: int >= 1")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      c->set_output(0, c->Scalar());
      return Status();
    })
    .Doc(R"doc(
Checks that this process can take part in an exchange, and prepares it on rank 0.

id: Bytes for SokStartCarrier on all ranks; empty on all ranks except 0.
kind: 'memory' or 'nccl'.
)doc");

REGISTER_OP("SokStartCarrier")
    .Input("id: string")
    .Attr("kind: string")
    .Attr("rank: int >= 0")
    .Attr("num_ranks: int >= 1")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) { return Status(); })
    .Doc(R"doc(
Starts this process's part of an exchange, once per process. Waits for all ranks.

id: Output of SokCarrierId on rank 0.
)doc");

REGISTER_OP("SokStopCarrier")
    .Attr("why: string")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) { return Status(); })
    .Doc(R"doc(
Ends this process's part of an exchange, if there is one. Every SokCarry then fails.

why: The reason in their errors.
)doc");

REGISTER_OP("SokDrainCarrier")
    .Attr("seconds: int >= 0")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) { return Status(); })
    .Doc(R"doc(
Waits until the exchanges that this process has started are complete, on this rank and
on the ranks of this host that run this op too. Nothing can be exchanged afterwards.
Internal if the exchange has failed.

seconds: Limit of the wait.
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
      return Status();
    })
    .Doc(R"doc(
Writes this rank's terms of K sums over ranks as a message to every rank.

parts: [K], the terms of this rank.
message: The same 1 + K numbers for ranks 0, 1, ..., concatenated.
splits: [W], each 1 + K.
wait: Input of SokSumParts. Until that op runs, this process counts as waiting for the
  other ranks.
num_ranks: W.
fingerprint: Fingerprint of the sums, the same on all ranks.
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
      return Status();
    })
    .Doc(R"doc(
Adds the terms of all ranks in rank order, so all ranks get the same bits.

message, splits: The messages that SokSendParts of ranks 0, 1, ... sent.
wait: Output of SokSendParts.
sums: [K].
fingerprint: That of SokSendParts.
)doc");

REGISTER_OP("SokLongestWait")
    .Output("seconds: double")
    .Output("what: string")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      c->set_output(0, c->Scalar());
      c->set_output(1, c->Scalar());
      return Status();
    })
    .Doc(R"doc(
Returns the lookup of this process that has waited longest for other ranks.

seconds: Age of the wait; 0 if there is none.
what: Name of the lookup; empty if there is none.
)doc");

}  // namespace
}  // namespace sparse_operation_kit
