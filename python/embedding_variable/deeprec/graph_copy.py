# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Copies of the part of a graph that depends on the batch.

A copy for micro batches takes its own batch: the ops that deliver one, such as
`IteratorGetNext` of the same iterator, are copied too. Variables, tables, constants and
all else that does not depend on a batch are shared.
"""

import re

from embedding_variable.tf_names import graph_pb2
from embedding_variable.tf_names import importer
from embedding_variable.tf_names import ops

# Types of ops that deliver another batch in each run. Copies run in the order of the micro
# batches, since they share what they read: an iterator, a queue, a Python function.
_SHARED_SOURCES = re.compile(
    r"^(IteratorGetNext.*|MultiDeviceIteratorGetNextFromShard|QueueDequeue.*|Unstage|"
    r"MapUnstage.*|OrderedMapUnstage.*|ReaderRead.*|RecordInput|BarrierTakeMany|PyFunc|"
    r"PyFuncStateless|EagerPyFunc|RngReadAndSkip|"
    r"Stateful(Uniform|StandardNormal|TruncatedNormal|RandomBinomial).*)$")

# Types of ops that draw other numbers in each run, from a generator of their own.
_DRAWS = re.compile(r"^(Random(?!ShuffleQueue|Dataset).*|TruncatedNormal|"
                    r"ParameterizedTruncatedNormal|Multinomial|NonDeterministicInts)$")

# Types of ops that may deliver another batch in each run and are not copied.
_FED = re.compile(r"^Placeholder.*$")
_CALLS = re.compile(r"^((Stateful)?PartitionedCall|RemoteCall|(Stateless)?(If|While|Case))$")

# Types of ops that make the memory of a run, which copies must not share: a loop pushes
# what its gradient needs to stacks.
_MEMORY = re.compile(r"^(Stack|StackV2|TensorArray|TensorArrayV2|TensorArrayV3|"
                     r"TemporaryVariable)$")

_REFUSED = re.compile(r"^.*AccumulatorTakeGradient$")

# Attributes that must differ between ops that run at the same time. The last two name
# what ranks exchange; Horovod's ops use their own names.
_UNIQUE_ATTRIBUTES = ("frame_name", "call", "exchange_name")

# Added to an op's seed for each copy, so that copies draw different numbers.
_SEED_STEP = 7919


def batch_ops(tensors):
  """Returns the ops that the tensors depend on and that depend on a batch.

  Args:
    tensors: list of Tensors.

  Returns:
    A set of Operations; empty if no op that can be copied delivers a batch.

  Raises:
    NotImplementedError: an op cannot be copied.
  """
  ancestors = _ancestors([t.op for t in tensors])
  for op in ancestors:
    if _REFUSED.match(op.type):
      raise NotImplementedError(
          "micro batches: op '%s' of type %s cannot run several times in a step; "
          "SyncReplicasOptimizer needs micro_batch_num=0" % (op.name, op.type))
    if op.type == "EagerPyFunc" and any(c.type == op.type for c in op.control_inputs):
      raise NotImplementedError(
          "micro batches: the gradients go through '%s', a tf.py_function, which keeps "
          "what its gradient needs of one call only; write it with TensorFlow's ops, or "
          "wrap its result in tf.stop_gradient" % op.control_inputs[0].name)
  found = set()
  waiting = [op for op in ancestors if _is_source(op)]
  loops = {}
  for op in ancestors:
    loop = _outermost_loop(op)
    if loop is not None:
      loops.setdefault(loop, []).append(op)
  while waiting:
    op = waiting.pop()
    if op in found:
      continue
    found.add(op)
    waiting += [t.op for t in op.inputs if _MEMORY.match(t.op.type)]
    # A loop runs in one frame, so it is copied whole.
    waiting += loops.pop(_outermost_loop(op), [])
    waiting += [c for t in op.outputs for c in t.consumers() if c in ancestors]
    waiting += [c for c in op._control_outputs if c in ancestors]  # pylint: disable=protected-access
  return found


def _is_source(op):
  return bool(_SHARED_SOURCES.match(op.type) or _DRAWS.match(op.type))


def inputs_not_copied(tensors, with_calls=False):
  """Returns the ops behind the tensors that may be a batch and are not copied.

  Args:
    tensors: list of Tensors.
    with_calls: bool, whether to return calls of functions too.

  Returns:
    A list of Operations in the order of their creation: placeholders that are no
      scalars, and the calls.
  """
  return sorted([op for op in _ancestors([t.op for t in tensors])
                 if _FED.match(op.type) and op.outputs[0].shape.ndims != 0 or
                 with_calls and _CALLS.match(op.type)], key=lambda op: op._id)  # pylint: disable=protected-access


def _ancestors(found):
  """Returns the set of the ops and all that they depend on."""
  ancestors, waiting = set(), list(found)
  while waiting:
    op = waiting.pop()
    if op not in ancestors:
      ancestors.add(op)
      waiting += [t.op for t in op.inputs] + list(op.control_inputs)
  return ancestors


def _outermost_loop(op):
  """Returns the outermost while loop that the op is in, or None."""
  context, loop = op._get_control_flow_context(), None  # pylint: disable=protected-access
  while context is not None:
    if context.IsWhileContext():
      loop = context
    context = context.outer_context
  if loop is None and op.type in ("Exit", "RefExit"):
    # An Exit is outside of its loop.
    return _outermost_loop(op.inputs[0].op)
  return loop


def copies(tensors, copied, count):
  """Copies ops for further micro batches.

  The ops that deliver batches run in the order of the copies, after those of the graph
  itself, so micro batch k has batch k and equal runs have equal results.

  Args:
    tensors: list of Tensors.
    copied: set of Operations, from `batch_ops`.
    count: int, number of copies.

  Returns:
    A list with, for each copy, the list of the copies of `tensors`. Those that are not
      outputs of the copied ops are returned as they are.

  Raises:
    NotImplementedError: the order of an iterator's or queue's batches cannot be fixed.
  """
  graph, result = tensors[0].graph, []
  in_order = [op for op in copied if _SHARED_SOURCES.match(op.type) and
              _can_be_ordered(op, copied)]
  previous = {op.name: op for op in in_order}
  # pylint: disable=protected-access
  for number in range(1, count + 1):
    made, prefix, controls = _import(
        tensors, copied, {}, "micro_batch_%d" % number,
        lambda node, names: _change_attributes(node, names, number))  # pylint: disable=cell-var-from-loop
    for name, outside in controls:
      graph.get_operation_by_name(prefix + name)._add_control_inputs(outside)
    for name, before in list(previous.items()):
      previous[name] = graph.get_operation_by_name(prefix + name)
      previous[name]._add_control_inputs([before])
    result.append(made)
  return result


def _can_be_ordered(op, copied):
  """Returns whether all copies of a source run in the same steps, outside of loops.

  A control input from a branch that is not taken would stop the op.
  """
  context = op._get_control_flow_context()  # pylint: disable=protected-access
  while context is not None:
    if context.IsWhileContext() or context.IsCondContext() and context.pred.op in copied:
      if "PyFunc" in op.type or op.type.startswith("Stateful"):
        return False
      raise NotImplementedError(
          "micro batches: op '%s' of type %s is in a loop or in a branch that depends on "
          "the batch, so which micro batch takes which batch is not fixed; take the batch "
          "outside" % (op.name, op.type))
    context = context.outer_context
  return True


def copy_with_inputs(tensors, copied, inputs, name):
  """Copies ops with other inputs, without control inputs from other ops.

  Args:
    tensors: list of Tensors.
    copied: set of Operations.
    inputs: dict from the names of Tensors that the ops read to Tensors to read instead.
    name: string, name scope of the copies.

  Returns:
    A list of Tensors: the copies of `tensors`. One that is not an output of the copied
      ops is its entry of `inputs`, or itself.
  """
  return [inputs.get(t.name, t) for t in _import(
      tensors, copied, inputs, name, _drop_colocations)[0]]


def _import(tensors, copied, inputs, scope, change):
  """Imports copies of ops.

  Returns:
    (tensors or their copies, prefix of the copies' names, list of (name, control inputs
    that are not copied)).
  """
  graph = tensors[0].graph
  order = sorted(copied, key=lambda op: op._id)  # pylint: disable=protected-access
  definition, shared, controls = graph_pb2.GraphDef(), {}, []
  definition.versions.CopyFrom(graph.graph_def_versions)
  names_of_copied = {c.name for c in copied}
  for op in order:
    node = definition.node.add()
    node.CopyFrom(op.node_def)
    outside = [c for c in op.control_inputs if c not in copied]
    if outside:
      controls.append((op.name, outside))
      dropped = {"^" + c.name for c in outside}
      kept = [i for i in node.input if i not in dropped]
      del node.input[:]
      node.input.extend(kept)
    for tensor in op.inputs:
      if tensor.op not in copied:
        shared[tensor.name] = inputs.get(tensor.name, tensor)
    change(node, names_of_copied)
  names = [t.name for t in tensors if t.op in copied]
  with ops.name_scope(None), graph.as_default(), ops.device(None):
    made = importer.import_graph_def(
        definition, input_map=shared, return_elements=names, name=scope)
  prefix = _prefix_of(made, names)
  made = iter(made)
  return ([next(made) if t.op in copied else t for t in tensors], prefix, controls)


def _prefix_of(made, names):
  """Returns the name scope of the imported ops, with a slash."""
  return made[0].name[:-len(names[0])] if made else ""


def _change_attributes(node, names, number):
  """Makes a node's attributes those of copy `number`."""
  for attribute in _UNIQUE_ATTRIBUTES:
    if attribute in node.attr:
      node.attr[attribute].s += b"_micro_batch_%d" % number
  if "seed" in node.attr and "seed2" in node.attr and (node.attr["seed"].i or
                                                       node.attr["seed2"].i):
    node.attr["seed2"].i += _SEED_STEP * number
  _drop_colocations(node, names)


def _drop_colocations(node, names):
  """Drops colocations of a node with ops that are not in `names`."""
  if "_class" in node.attr:
    # A colocation with an op that is not copied; its device is in the node.
    kept = [c for c in node.attr["_class"].list.s
            if not c.startswith(b"loc:@") or c[5:].decode("utf-8") in names]
    if kept:
      del node.attr["_class"].list.s[:]
      node.attr["_class"].list.s.extend(kept)
    else:
      del node.attr["_class"]
