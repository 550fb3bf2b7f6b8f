# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lookups of tables that are spread over ranks, and their gradients.

Each rank sends every distinct key of its batch once to its owner rank, receives the
rows, and pools them locally. The gradient sends one summed row gradient per distinct
key to the owner. All tables of a call share the exchanges: two all-to-alls forward, one
backward.

Horovod or a carrier of this package (carriers.py) does the exchanges. Both match
collectives by name. TensorFlow may fold, merge or reorder ops without state, and
Horovod's are such. So every exchanged tensor is the direct output of a stateful op, and
every collective has an explicit name with the name of the call as prefix. Calls are
numbered per graph, so ranks that build the same graph use the same names. A `tf.function`
is a graph of its own: one rank may trace it again without the others. In eager execution
all calls have one name, since a rank runs one after the other.

Between GPUs, and without weights, the tensors between ops are variants: rows and
gradients may be in GPU memory that TensorFlow does not manage. Each rank decides at run
time which of them are.
"""

import collections
import contextlib
import hashlib

from embedding_variable import _lib
from embedding_variable import graph_state
from embedding_variable.eager import taped
from embedding_variable.lookup import combiners as combiners_lib
from embedding_variable.lookup import output_types
from embedding_variable.lookup import pooled
from embedding_variable.ops import handle_ops
from embedding_variable.ops import lookup_sparse_ops
from embedding_variable.ops import spread_gradients
from embedding_variable.ops import table_gradients
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import attr_value_pb2
from embedding_variable.tf_names import compat
from embedding_variable.tf_names import device as device_lib
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import resource_variable_ops
from embedding_variable.tf_names import tensor_shape
from embedding_variable.tf_names import test
from embedding_variable.variables import number_checks

from sparse_operation_kit import communication
from sparse_operation_kit import settings
from sparse_operation_kit.exchange import eager_exchange
from sparse_operation_kit.exchange import watch

_gen = _lib.load()

# Attribute of a graph that holds its `Exchange`s. Not a collection, since they cannot
# be serialized.
_EXCHANGES = "_sok_exchanges"

# The exchanges of one call, for measurements.
#   name: string, the prefix of its collectives' names.
#   dims: list of T ints.
#   key_splits: int32 [W], count of int64 numbers sent to each rank.
#   row_splits: int32 [W], count of numbers of type `wire` sent to each rank.
#   grad_splits: list of int32 [W], one per gradient in the graph.
#   wire: string, "float32", "float16" or "bfloat16".
Exchange = collections.namedtuple(
    "Exchange", ["name", "dims", "key_splits", "row_splits", "grad_splits", "wire"])

_DEVICE = "/device:CPU:0"

# Largest number of parts of a call between GPUs. Several parts only help if outputs are
# copied to the host, since the copies of one part overlap with the work of another. All
# ranks must use the same number, whatever the devices of their variables, so it depends
# on the wheel. Parts with fewer tables than the second number are not worth their own
# exchange.
_MAX_PARTS = 1 if test.is_built_with_cuda() else 2
_TABLES_PER_PART = 4


def exchanges():
  """Returns the list of all `Exchange`s of the default graph, in order."""
  return graph_state.of(ops.get_default_graph()).setdefault(_EXCHANGES, [])


def ranks_of(variable, num_ranks):
  """Returns the list of ranks that hold a variable.

  Key k is owned by entry `floormod(k, length)` of the list.

  Args:
    variable: an embedding variable.
    num_ranks: int >= 1.

  Raises:
    ValueError: its target_gpu is neither -1, a rank, nor a list of ranks.
  """
  target = getattr(variable, "target_gpu", -1)
  if number_checks.is_int(target) and target == -1:
    return list(range(num_ranks))
  ranks = list(target) if isinstance(target, (list, tuple)) else [target]
  if ranks and all(number_checks.is_int(r) and 0 <= r < num_ranks for r in ranks):
    return [int(r) for r in ranks]
  raise ValueError(
      "sok.lookup_sparse: target_gpu of variable '%s': expected -1 (all ranks), a rank "
      "in [0, %d) or a list of ranks, got %r" %
      (variable.name, num_ranks, target))


def ranks_asked(variable):
  """Returns the owner ranks that the lookups in the graph use for a variable.

  Like `ranks_of`, but also for variables of an imported graph, which have no
  target_gpu. None if there is no lookup, and for an eager table.

  Raises:
    ValueError: the graph was built for another number of ranks.
  """
  for op in [] if taped.is_eager(variable.handle) else variable.handle.consumers():
    if op.type != "SokServe":
      continue
    route = op.graph.get_operation_by_name(op.name.rpartition("/")[0] + "/route")
    if route.get_attr("num_ranks") != communication.num_ranks():
      raise ValueError(
          "the lookups of embedding variable '%s' were built for %d ranks, and this job "
          "has %d: build the model instead of importing its graph" %
          (variable.op.name, route.get_attr("num_ranks"), communication.num_ranks()))
    table = [x.name for x in op.inputs].index(variable.handle.name)
    sizes = route.get_attr("placement_sizes")
    begin = sum(sizes[:table])
    return list(route.get_attr("placements")[begin:begin + sizes[table]])
  return None


# Values of a fingerprint's two lowest bits; message.h has the same numbers.
_WIRE_NUMBERS = {"float32": 0, "float16": 1, "bfloat16": 2}


def fingerprint_of(wire, *facts):
  """Returns a number that differs if the lookups of two ranks differ.

  Args:
    wire: "float32", "float16" or "bfloat16".
    *facts: everything else on which all ranks must agree.
  """
  digest = hashlib.sha256(repr(facts).encode("utf-8")).digest()
  number = int.from_bytes(digest[:8], "little", signed=True)
  return number & ~3 | _WIRE_NUMBERS[wire]


def alltoall(tensor, splits, name, nan_if_lost=False):
  """Sends `splits[r]` numbers to rank r; returns (received, received splits)."""
  eager = taped.is_eager(tensor)
  # The name of the op, as in Horovod.
  full_name = (eager_exchange.full_name(name) if eager else
               ops.get_default_graph().unique_name(name, mark_as_used=False))
  if settings.exchange_carrier() != communication.HOROVOD:
    return taped.run(_gen.sok_carry, tensor, splits, exchange_name=full_name,
                     nan_if_lost=nan_if_lost, name=name)
  if eager:
    return taped.run(
        lambda tensor, splits, name: eager_exchange.by_horovod(tensor, splits, full_name),
        tensor, splits, op_type="SokCarry", name=name)
  received, received_splits = taped.run(
      communication.horovod().alltoall, tensor, splits, op_type="SokCarry", name=name)
  # Errors of SokCarry have the same prefix.
  handle_ops.name_in_errors(
      received.op, received.op.name + ": the exchange between ranks failed")
  return received, received_splits


def _sum_over_ranks(what, parts, sources):
  """Adds a float64 vector over ranks, for `spread_gradients.register`."""
  num_ranks = communication.num_ranks()
  calls = [op.name.rpartition("/")[0] for op in sources]
  fingerprint = fingerprint_of("float32", what, num_ranks, calls)
  with eager_exchange.root_scope(watch.SUMS) as call, \
      ops.colocate_with(None, ignore_existing=True), ops.device(None), \
      ops.device(_DEVICE):
    message, splits, wait = _gen.sok_send_parts(
        parts, num_ranks=num_ranks, fingerprint=fingerprint, call=call, name="send")
    received, received_splits = alltoall(message, splits, "parts")
    return _gen.sok_sum_parts(received, received_splits, wait, fingerprint=fingerprint,
                              name="sum")


def lookup_sparse(params, sp_ids, sp_weights, combiners, output_dtype=None):
  """Looks up and pools the ids of T tables that are spread over ranks.

  Every rank must call it with the same variables in the same order, and run it the same
  number of times. Batch sizes may differ, and be 0.

  Args:
    params, sp_ids, sp_weights, combiners, output_dtype: as for
      `embedding_variable.lookup_sparse`. Partitioned variables cannot be spread over
      ranks.

  Returns:
    A list of T tensors `[B_t, dim_t]`.

  Raises:
    ValueError: target_gpu is not a placement, a variable is partitioned, or an error of
      `embedding_variable.lookup_sparse`.
    TypeError: as in `embedding_variable.lookup_sparse`.
  """
  if sp_weights is None:
    sp_weights = [None] * len(params)
  # On the CPU, where their consumers run: otherwise ids would be copied to a GPU just
  # to be counted.
  with ops.name_scope("lookup_sparse"), ops.device(None), ops.device(_DEVICE):
    requests = [
        pooled.Request(*args)
        for args in zip(params, sp_ids, sp_weights, combiners)
    ]
  dtype = output_types.checked(output_dtype, [r.name for r in requests],
                               "sok.lookup_sparse")
  for request in requests:
    if len(request.parts) > 1:
      raise ValueError(
          "sok.lookup_sparse: variable '%s' has %d parts. A table is spread over ranks "
          "by target_gpu; create it without a partitioner" %
          (request.name, len(request.parts)))
  # Gradients of weights, and of combiners that select, read the rows in host memory, so
  # the rows cannot stay on the device.
  on_device = (settings.exchange_on_device() and
               all(r.weights is None and not _selects(r) for r in requests))
  outputs = []
  for part in _parts(requests) if on_device else [requests]:
    with eager_exchange.root_scope("sok_exchange") as call, ops.device(None), \
        ops.device(_DEVICE):
      outputs += _lookup(part, call, on_device,
                         _device_of(part) if on_device else _DEVICE, dtype)
  return outputs


def _device_of(requests):
  """Returns the device on which the ops of a call between GPUs run.

  It is a TensorFlow GPU if the script places all tables on it. Then the lookup's
  outputs and their gradients are in GPU memory; all other inputs of the ops are in host
  memory.
  """
  devices = {r.parts[0].device or "" for r in requests}
  device = devices.pop()
  is_gpu = device_lib.DeviceSpec.from_string(device).device_type == "GPU"
  return device if is_gpu and not devices else _DEVICE


def _selects(request):
  return combiners_lib.get(request.combiner).selects


def _parts(requests):
  """Cuts a call into parts with separate exchanges.

  While one part copies rows to the host or waits for another rank, the CPU works on the
  keys of another part.
  """
  count = min(_MAX_PARTS, max(1, len(requests) // _TABLES_PER_PART))
  ends = [len(requests) * k // count for k in range(count + 1)]
  return [requests[begin:end] for begin, end in zip(ends, ends[1:])]


def _lookup(requests, call, on_device, device, dtype):
  """Builds the ops of one call, or of one part of it, with outputs of `dtype`."""
  num_ranks = communication.num_ranks()
  tables = [r.parts[0] for r in requests]
  names = [t.op.name for t in tables]
  dims = [r.dim for r in requests]
  placements = [ranks_of(t, num_ranks) for t in tables]
  wire = settings.exchange_dtype()
  with_occurrences = any(t.need_counts() for t in tables)
  fingerprint = fingerprint_of(wire, num_ranks, names, dims, placements,
                               with_occurrences)
  wire_type = dtypes.float32 if wire == "float32" else dtypes.float16
  if on_device:
    wire_type = dtypes.variant

  ids = [r.ids for r in requests]
  # Ids that are computed on the device of the route stay there.
  ids_on_gpu = (device != _DEVICE and
                len({x.dtype.base_dtype for x in ids}) == 1 and
                all(pooled.ids_are_on_gpu(r) for r in requests))
  if len({x.dtype.base_dtype for x in ids}) > 1:
    ids = [math_ops.cast(x, dtypes.int64) for x in ids]
  weights = []
  if any(r.weights is not None for r in requests):
    weights = [
        array_ops.ones_like(r.ids, dtypes.float32) if r.weights is None else
        r.weights for r in requests
    ]
  ids, rows, batch_sizes = pooled.op_inputs(requests, ids, device, ids_on_gpu)
  handles = [t.handle for t in tables]
  # Ranks compare these; the error names both values.
  traits = dict(combiners=[r.combiner for r in requests],
                ids_types=[r.ids.dtype.base_dtype.name for r in requests],
                key_types=[t.key_dtype.name for t in tables],
                optimizers=[""] * len(tables))
  labels = {"SokRoute": lookup_sparse_ops.IDS_ON_GPU} if ids_on_gpu else {}
  attributes = dict(num_ranks=num_ranks, wire=wire, with_occurrences=with_occurrences,
                    fingerprint=fingerprint)
  if taped.is_eager(handles[0]):
    for table, ranks in zip(tables, placements):
      eager_exchange.spread(table, ranks)
      resource_variable_ops.variable_accessed(table)
    eager_exchange.run_in_order()
  with ops.device(device), ops.get_default_graph()._kernel_label_map(labels), \
      taped.unrecorded():  # pylint: disable=protected-access
    message, splits, route = _gen.sok_route(
        ids,
        rows,
        batch_sizes,
        weights,
        names=names,
        dims=dims,
        placements=[r for ranks in placements for r in ranks],
        placement_sizes=[len(ranks) for ranks in placements],
        num_ranks=num_ranks,
        with_occurrences=with_occurrences,
        fingerprint=fingerprint,
        call=call,
        on_device=on_device,
        name="route",
        **traits)
    keys, key_splits = alltoall(message, splits, "keys")
    to_send, row_splits, served = _gen.sok_serve(
        handles, keys, key_splits,
        Twire=wire_type, wire=wire, with_occurrences=with_occurrences,
        fingerprint=fingerprint, name="serve", **traits)
    received, _ = alltoall(to_send, row_splits, "rows", nan_if_lost=True)
  with ops.device(device):
    outputs = list(taped.run(
        _gen.sok_pool, handles, weights, route, received, served, keys, key_splits,
        dims=dims, call=call, gradient_needs_rows=any(_selects(r) for r in requests),
        # The gradient of weights needs the float32 outputs.
        Tout=dtypes.float32 if weights else dtype, name="pool", **attributes))
    outputs = [math_ops.cast(output, dtype) for output in outputs]
  for request, output in zip(requests, outputs):
    output.set_shape([request.static_batch, request.dim])
  watch.start()
  if not taped.is_eager(splits):
    exchanges().append(Exchange(call, dims, splits, row_splits, [], wire))
  return outputs


@contextlib.contextmanager
def _of_call(call, device):
  """Creates ops in the scope of a lookup and on its device, wherever its gradient is taken.

  A collective is therefore named after the call, with a number if the call has several gradients.
  """
  eager_exchange.run_in_order()
  with eager_exchange.root_scope(call, again=True), \
      ops.colocate_with(None, ignore_existing=True), ops.device(None), ops.device(device):
    yield


@ops.RegisterGradient("SokPool")
def _sok_pool_grad(op, *grads):
  """Sums gradients per key, sends the sums to the owners, and sums there over ranks."""
  num_tables, num_weights = op.get_attr("num_tables"), op.get_attr("num_weights")
  result = [None] * len(op.inputs)
  tables = [
      t for t in range(num_tables)
      if not lookup_sparse_ops.is_unconnected(op, t, grads[t])
  ]
  if not tables:
    return result
  dims = op.get_attr("dims")
  wire = op.get_attr("wire")
  call = compat.as_str(op.get_attr("call"))
  route, rows, served, keys, key_splits = op.inputs[num_tables + num_weights:]
  dense = [ops.convert_to_tensor(grads[t]) for t in tables]
  with _of_call(call, op.device or _DEVICE):
    message, splits = taped.run(
        _gen.sok_pool_grad, route, dense,
        [rows] if op.get_attr("gradient_needs_rows") else [],
        [op.inputs[num_tables + t] for t in tables] if num_weights else [],
        tables=tables, num_ranks=op.get_attr("num_ranks"),
        Twire=rows.dtype, wire=wire, call=call, name="pool_grad")
    received, _ = alltoall(message, splits, "gradients")
    unique, values = taped.run(
        _gen.sok_serve_grad, served, keys, key_splits, received, route,
        num_grads=len(tables),
        num_tables=num_tables,
        tables=tables,
        dims=[dims[t] for t in tables],
        wire=wire,
        with_occurrences=op.get_attr("with_occurrences"),
        fingerprint=op.get_attr("fingerprint"), divisor=1,
        name="serve_grad")
    for k, t in enumerate(tables):
      result[t] = lookup_sparse_ops.gradient_of(
          op, op.inputs[t], unique[k], values[k], served, t)
      if taped.is_eager(unique[k]):
        spread_gradients.mark(result[t], "SokServeGrad", call + "/serve_grad")
      if num_weights:
        result[num_tables + t] = taped.run(
            _gen.sok_pool_weight_grad, route, rows, dense[k], op.outputs[t], table=t,
            tables=[], wire=wire, name="weight_grad")
  for exchange in exchanges():
    if exchange.name == call:
      exchange.grad_splits.append(splits)
  return result


def _gradient_of(handle, values, keys):
  return table_gradients.record(ops.IndexedSlices(values, keys), handle)


def divided(gradients, divisor):
  """Returns gradients of tables divided by a number.

  For unmodified gradients of a lookup between GPUs, the op that sums them over ranks
  also divides, so they can stay on the device. All others are divided by a separate op.
  That op is also used if the divisor is not a power of two: TensorFlow may turn the
  division into a multiplication, whose bits differ.

  Args:
    gradients: list of IndexedSlices.
    divisor: int >= 1.

  Returns:
    A list of IndexedSlices; both ways give the same bits.
  """
  made, result = {}, []
  for gradient in gradients:
    op, k = lookup_sparse_ops.source_of(gradient)
    if (divisor & (divisor - 1) or op is None or op.type != "SokServeGrad" or
        op.inputs[3].dtype != dtypes.variant):
      result.append(ops.IndexedSlices(
          gradient.values / divisor, gradient.indices, gradient.dense_shape))
      continue
    if op not in made:
      with ops.name_scope(None), ops.name_scope(op.name + "_divided/"), \
          ops.colocate_with(None, ignore_existing=True), \
          ops.device(None), ops.device(op.device):
        made[op] = _gen.sok_serve_grad(
            *op.inputs,
            divisor=divisor * op.get_attr("divisor"), name="serve_grad",
            **{name: op.get_attr(name)
               for name in ("num_grads", "num_tables", "tables", "dims", "wire",
                            "with_occurrences", "fingerprint")})
    unique, values = made[op]
    serve = op.inputs[0].op
    handle = serve.inputs[op.get_attr("tables")[k]]
    result.append(_gradient_of(handle, values[k], unique[k]))
  return result


def _apply_served(op, rule, resources, hyper, step, slot_names, slot_inits, plan_tables):
  """Returns an op that updates tables from the inputs of a SokServeGrad, or None.

  The op sums over ranks in the memory that holds the rows, while SokServeGrad returns
  its sums in host memory.
  """
  served, keys, key_splits, received, route = op.inputs
  if received.dtype != dtypes.variant:
    return None
  with ops.device(None), ops.device(_DEVICE):
    hyper = [math_ops.cast(h, dtypes.float32) for h in hyper]
    step = math_ops.cast(step, dtypes.int64)
  with ops.device(None), ops.device(op.device or _DEVICE):
    return _gen.sok_apply_served(
        resources, hyper, step, served, keys, key_splits, received, route,
        rule=rule,
        slot_names=[n for names in slot_names for n in names],
        slot_inits=[float(i) for inits in slot_inits for i in inits],
        plan_tables=plan_tables,
        num_tables=op.get_attr("num_tables"),
        tables=op.get_attr("tables"),
        wire=op.get_attr("wire"),
        with_occurrences=op.get_attr("with_occurrences"),
        fingerprint=op.get_attr("fingerprint"),
        divisor=op.get_attr("divisor"))


def _set_optimizer(serve, table, optimizer):
  """Records the optimizer of a table, so that ranks can compare it.

  The optimizer is created after the lookup, so this changes existing ops.

  Args:
    serve: a SokServe op.
    table: int, number of the table.
    optimizer: string.
  """
  route = serve.graph.get_operation_by_name(serve.name.rpartition("/")[0] + "/route")
  names = [compat.as_str(n) for n in route.get_attr("optimizers")]
  if not names:
    return  # An imported graph of a version without this comparison.
  # Several optimizers may train one table.
  names[table] = "+".join(sorted(set(names[table].split("+")) - {""} | {optimizer}))
  value = attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(
      s=[compat.as_bytes(n) for n in names]))
  for op in (route, serve):
    op._set_attr("optimizers", value)  # pylint: disable=protected-access


@ops.RegisterGradient("SokCarry")
def _sok_carry_grad(op, grad, _):
  """Sends back the gradients of the received numbers, as Horovod's alltoall does."""
  with _beside(op):
    back, _ = alltoall(grad, op.outputs[1], "back")
  return back, None


# A gradient of a gradient takes the path of the lookup: the owners of keys send rows,
# and the ranks that sent the keys pool them. Each op's gradient is its transpose, so
# gradients of any order exist.


@ops.RegisterGradient("SokServeGrad")
def _sok_serve_grad_grad(op, *grads):
  """Sends each rank the given rows of its keys."""
  served, keys, key_splits, received, route = op.inputs
  num_grads = op.get_attr("num_grads")
  if received.dtype == dtypes.variant:
    raise NotImplementedError(
        "sok.lookup_sparse: gradients of gradients cannot be exchanged by NCCL, as that "
        "of '%s' would have to be. Call sok.init with exchange='horovod' or 'memory'" % op.name)
  with _beside(op):
    # Every table has its rows in the message, even if they are zeros.
    rows = [array_ops.zeros_like(op.outputs[num_grads + k]) if g is None else
            ops.convert_to_tensor(g) for k, g in enumerate(grads[num_grads:])]
    values, _ = taped.run(
        _gen.sok_serve_given_rows, served, keys, key_splits, route, rows,
        Twire=received.dtype, call=op.name.rpartition("/")[0], name="serve_given_rows",
        **_attributes(op, "num_tables", "tables", "wire", "with_occurrences", "fingerprint",
                      "divisor"))
  return None, None, None, values, None


@ops.RegisterGradient("SokServeGivenRows")
def _sok_serve_given_rows_grad(op, grad, _):
  """Sums over ranks, like the gradient of the lookup."""
  served, keys, key_splits, route = op.inputs[:4]
  num_rows = op.get_attr("num_rows")
  with _beside(op):
    _, sums = taped.run(
        _gen.sok_serve_grad, served, keys, key_splits, grad, route, num_grads=num_rows,
        name="serve_grad", dims=[tensor_shape.dimension_value(x.shape[1]) for x in op.inputs[4:]],
        **_attributes(op, "num_tables", "tables", "wire", "with_occurrences",
                      "fingerprint", "divisor"))
  return [None] * 4 + list(sums)


@ops.RegisterGradient("SokPoolGrad")
def _sok_pool_grad_grad(op, grad, _):
  """Pools the rows received from the keys' owners."""
  num_grads, num_weights = op.get_attr("num_grads"), op.get_attr("num_weights")
  tables = op.get_attr("tables")
  route, dense = op.inputs[0], op.inputs[1:1 + num_grads]
  received = list(op.inputs[1 + num_grads:len(op.inputs) - num_weights])
  weights = list(op.inputs[len(op.inputs) - num_weights:]) if num_weights else []
  with _beside(op):
    pooled = taped.run(
        _gen.sok_pool_given_rows, route, grad, received, weights, num_rows=num_grads,
        tables=tables, dims=[tensor_shape.dimension_value(d.shape[1]) for d in dense],
        wire=op.get_attr("wire"), name="pool_given_rows")
    of_weights = _weight_gradients(op, route, grad, dense, pooled, weights)
  of_grads = [math_ops.cast(p, d.dtype) for p, d in zip(pooled, dense)]
  return [None] + of_grads + [None] * len(received) + of_weights


@ops.RegisterGradient("SokPoolGivenRows")
def _sok_pool_given_rows_grad(op, *grads):
  """Sums by key, like the gradient of the lookup."""
  num_weights, tables = op.get_attr("num_weights"), op.get_attr("tables")
  route, values = op.inputs[:2]
  received = list(op.inputs[2:len(op.inputs) - num_weights])
  weights = list(op.inputs[len(op.inputs) - num_weights:]) if num_weights else []
  call = op.name.rpartition("/")[0]
  with _beside(op):
    dense = [array_ops.zeros_like(output) if grad is None else ops.convert_to_tensor(grad)
             for output, grad in zip(op.outputs, grads)]
    message, _ = taped.run(
        _gen.sok_pool_grad, route, dense, received, weights, tables=tables,
        num_ranks=communication.num_ranks(), Twire=values.dtype, call=call,
        wire=op.get_attr("wire"), name="pool_grad")
    of_weights = _weight_gradients(op, route, values, dense, op.outputs, weights)
  return [None, message] + [None] * len(received) + of_weights


def _weight_gradients(op, route, rows, dense, outputs, weights):
  """Returns the gradients of the weights of an op on given rows, or [] without weights."""
  return [
      taped.run(_gen.sok_pool_weight_grad, route, rows, d, output, table=t,
                tables=op.get_attr("tables"), wire=op.get_attr("wire"), name="weight_grad")
      for d, output, t, _ in zip(dense, outputs, op.get_attr("tables"), weights)
  ]


def _attributes(op, *names):
  return {name: op.get_attr(name) for name in names}


def _beside(op):
  """Context in which ops are created in the scope of `op`'s call and on its device."""
  return _of_call(op.name.rpartition("/")[0], op.device or _DEVICE)


@ops.RegisterGradient("SokPoolWeightGrad")
def _sok_pool_weight_grad_grad(op, grad):
  """Raises an error, since the op does not have all inputs of its gradient."""
  del grad
  raise NotImplementedError(
      "sok.lookup_sparse: the gradient of the weights, '%s', has no gradient" % op.name)


handle_ops.add_reason_of_lost_rank(watch.reason_of_lost_rank)
handle_ops.add_exchange_op("SokServe", set_optimizer=_set_optimizer)
spread_gradients.register("SokServeGrad", _sum_over_ranks)
lookup_sparse_ops.add_plan_grad_op("SokServeGrad", beside=("SokPoolWeightGrad",),
                                   update=_apply_served)
for _op_type in ("SokApplyServed", "SokRoute", "SokSendParts", "SokServe", "SokSumParts"):
  ops.NotDifferentiable(_op_type)
