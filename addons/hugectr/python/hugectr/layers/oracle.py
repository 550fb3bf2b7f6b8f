# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Layers in NumPy, by their formulas; sample by sample where that is simplest."""

import numpy as np


def inner_product(clause, bottoms, params):
  weight, bias = params
  return bottoms[0] @ weight + bias


def fused_inner_product(clause, bottoms, params):
  return np.maximum(inner_product(clause, bottoms, params), 0)


def mlp(clause, bottoms, params):
  clause, x, params = clause["mlp_param"], bottoms[0], list(params)
  for k in range(len(clause["num_outputs"])):
    x = x @ params.pop(0)
    if clause.get("biases", [clause.get("use_bias", True)] * (k + 1))[k]:
      x = x + params.pop(0)
    if clause.get("activations", [clause.get("act_type", "Relu")] * (k + 1))[k] == "Relu":
      x = np.maximum(x, 0)
  return x


def multi_cross(clause, bottoms, params):
  first = bottoms[0]
  x = first
  if clause["mc_param"].get("projection_dim"):
    for k in range(clause["mc_param"]["num_layers"]):
      u, v, bias = params[3 * k:3 * k + 3]
      x = np.stack([first[i] * (v.T @ (u.T @ x[i]) + bias) + x[i] for i in range(len(x))])
    return x
  for k in range(clause["mc_param"]["num_layers"]):
    weight, bias = params[2 * k:2 * k + 2]
    x = np.stack([first[i] * np.dot(x[i], weight) + bias + x[i] for i in range(len(x))])
  return x


def interaction(clause, bottoms, params):
  mlp, vectors = bottoms
  out = []
  for i in range(len(mlp)):
    every = [mlp[i]] + list(vectors[i])
    pairs = np.zeros([len(every) * (len(every) - 1) // 2], mlp.dtype)
    for column in range(len(every)):
      for row in range(column):
        pairs[column * (column - 1) // 2 + row] = np.dot(every[row], every[column])
    out.append(np.concatenate([mlp[i], pairs, [0.]]))
  return np.stack(out)


def concat(clause, bottoms, params):
  return np.concatenate(bottoms, axis=clause.get("axis", 1))


def slices(clause, bottoms, params):
  return [bottoms[0][..., a:b] for a, b in clause["ranges"]]


def reshape(clause, bottoms, params):
  x = bottoms[0]
  if "selected" in clause:
    return np.stack([np.concatenate([s[k] for k in clause["selected"]]) for s in x])
  if "shape" in clause:
    return x.reshape(clause["shape"])
  if "time_step" in clause:
    return x.reshape([-1, clause["time_step"], clause["leading_dim"]])
  return x.reshape([-1, clause["leading_dim"]])


def select(clause, bottoms, params):
  x = np.moveaxis(bottoms[0], clause["dim"], 0)
  return np.moveaxis(np.stack([x[k] for k in clause["index"]]), 0, clause["dim"])


def fused_reshape_concat(clause, bottoms, params):
  slots = bottoms[0].shape[1]
  rows = [[np.concatenate([b[i, s] for b in bottoms]) for s in range(slots)]
          for i in range(len(bottoms[0]))]
  return [np.array([v for row in rows for v in row[:-1]]),
          np.array([row[-1] for row in rows])]


def fused_reshape_concat_general(clause, bottoms, params):
  return np.array([np.concatenate([b[i, s] for b in bottoms])
                   for i in range(len(bottoms[0])) for s in range(bottoms[0].shape[1])])


def matrix_multiply(clause, bottoms, params):
  return np.einsum("...ij,...jk->...ik", *bottoms)


def attention_scores(clause, bottoms, params):
  heads = clause.get("num_attention_heads", 1)
  in_heads = [np.stack(np.split(b, heads, axis=2), axis=1) for b in bottoms]
  scores = np.einsum("bhik,bhjk->bhij", *in_heads[:2])
  if len(bottoms) == 2:
    return scores
  return [scores / in_heads[0].shape[3] ** .5, in_heads[2]]


def attention_mix(clause, bottoms, params):
  mixed = np.einsum("bhij,bhjk->bhik", *bottoms)
  return np.concatenate(list(np.moveaxis(mixed, 1, 0)), axis=2)


def attention(clause, bottoms, params):
  query, key, value = bottoms[:3]
  heads = clause.get("num_attention_heads", 1)
  out = np.zeros_like(query)
  width = query.shape[2] // heads
  for i in range(len(query)):
    for h in range(heads):
      part = slice(h * width, (h + 1) * width)
      for t in range(query.shape[1]):
        scores = np.array([query[i, t, part] @ key[i, s, part] for s in
                           range(key.shape[1])]) / width ** .5
        if len(bottoms) == 4:
          scores -= (1 - bottoms[3][i, 0, t]) * 10000
        raised = np.exp(scores - scores.max())
        out[i, t, part] = (raised / raised.sum()) @ value[i, :, part]
  return out


def sequence_mask(clause, bottoms, params):
  if len(bottoms) == 1:
    return np.array([[[[float(k < n) for k in range(clause["max_sequence_len"])]]]
                     for n in bottoms[0][:, 0]])
  return np.array([[[[float(j < n and k < m) for k in range(clause["max_sequence_len_to"])]
                     for j in range(clause["max_sequence_len_from"])]]
                   for n, m in zip(bottoms[0][:, 0], bottoms[1][:, 0])])


def relu(clause, bottoms, params):
  return np.where(bottoms[0] > 0, bottoms[0], 0)


def elu(clause, bottoms, params):
  x = bottoms[0]
  return np.where(x > 0, x, clause["elu_param"]["alpha"] * (np.exp(x) - 1))


def sigmoid(clause, bottoms, params):
  return 1 / (1 + np.exp(-bottoms[0]))


def softmax(clause, bottoms, params):
  x = bottoms[0]
  if len(bottoms) == 2:
    x = clause.get("factor", 1.) * x - (1 - bottoms[1]) * 10000
  raised = np.exp(x - x.max(-1, keepdims=True))
  return raised / raised.sum(-1, keepdims=True)


def same(clause, bottoms, params):
  return bottoms[0]


def batch_norm(clause, bottoms, params):
  gamma, beta = params
  x = bottoms[0]
  mean = x.sum(0) / len(x)
  variance = ((x - mean) ** 2).sum(0) / len(x)
  return gamma * (x - mean) / np.sqrt(variance + clause["bn_param"]["eps"]) + beta


def layer_norm(clause, bottoms, params):
  gamma, beta = params
  x = bottoms[0]
  mean = x.mean(-1, keepdims=True)
  variance = ((x - mean) ** 2).mean(-1, keepdims=True)
  return gamma * (x - mean) / np.sqrt(variance + clause["ln_param"]["eps"]) + beta


def prelu_dice(clause, bottoms, params):
  x, (alpha, eps) = bottoms[0], (clause["prelu_dice_param"][k] for k in ("alpha", "eps"))
  out = np.zeros_like(x)
  for column in range(x.shape[1]):
    mean = sum(x[:, column]) / len(x)
    variance = sum((v - mean) ** 2 for v in x[:, column]) / len(x)
    for row, v in enumerate(x[:, column]):
      p = 1 / (1 + np.exp(-(v - mean) / np.sqrt(variance + eps)))
      out[row, column] = p * v + (1 - p) * alpha * v
  return out


def scale(clause, bottoms, params):
  axis, factor = (clause["scale_param"].get(k, 1) for k in ("axis", "factor"))
  return np.repeat(bottoms[0], factor, axis=1 if axis == 0 else 0)


def gather(clause, bottoms, params):
  return np.stack([bottoms[0][..., k] for k in clause["indices"]], axis=-1)


def gru(clause, bottoms, params):
  clause = clause["gru_param"]
  steps, floats, width = (clause[k] for k in ("SeqLength", "vector_size", "num_output"))
  parts = [np.split(p, 3, axis=-1) for p in params]
  (w_r, w_u, w_n), (r_r, r_u, r_n), (b_r, b_u, b_n), (c_r, c_u, c_n) = parts
  out = []
  for sample in bottoms[0].reshape([-1, steps, floats]):
    h, states = np.zeros(width), []
    for x in sample:
      r = 1 / (1 + np.exp(-(x @ w_r + b_r + h @ r_r + c_r)))
      u = 1 / (1 + np.exp(-(x @ w_u + b_u + h @ r_u + c_u)))
      n = np.tanh(x @ w_n + b_n + r * (h @ r_n + c_n))
      h = (1 - u) * n + u * h
      states.append(h)
    out.append(states[-1] if clause.get("gives") == "last" else np.concatenate(states))
  return np.stack(out)


def multiply(clause, bottoms, params):
  weight, = params
  return np.stack([np.concatenate([v * w for v, w in zip(sample, weight)])
                   for sample in bottoms[0]])


def fm_order_2(clause, bottoms, params):
  floats = clause["out_dim"]
  out = []
  for sample in bottoms[0]:
    vectors = [sample[k:k + floats] for k in range(0, len(sample), floats)]
    total = sum(vectors)
    out.append(0.5 * (total * total - sum(v * v for v in vectors)))
  return np.stack(out)


def reduce_sum(clause, bottoms, params):
  return bottoms[0].sum(clause["axis"], keepdims=True)


def reduce_mean(clause, bottoms, params):
  return bottoms[0].mean(clause["axis"], keepdims=True)


def add(clause, bottoms, params):
  return sum(bottoms)


def sub(clause, bottoms, params):
  return bottoms[0] - bottoms[1]


def product(clause, bottoms, params):
  out = 1.
  for bottom in bottoms:
    out = out * bottom
  return out


def _log_sigmoid(x):
  return -np.log1p(np.exp(-x))


def binary_cross_entropy(clause, logits, label):
  return -np.mean(label * _log_sigmoid(logits) + (1 - label) * _log_sigmoid(-logits))


def cross_entropy(clause, logits, label):
  total = 0.
  for x, y in zip(logits, label[:, 0]):
    total -= np.log(np.exp(x[1 if y >= 0.5 else 0]) / np.exp(x).sum())
  return total / len(logits)


def multi_cross_entropy(clause, logits, label):
  total = 0.
  for x, y in zip(logits, label):
    for k, weight in enumerate(clause["target_weight"]):
      if y[k] >= -0.5:
        total -= weight * (y[k] * _log_sigmoid(x[k]) + (1 - y[k]) * _log_sigmoid(-x[k]))
  return total / label.size


def gradients(function, arrays, epsilon=1e-6):
  """Returns central differences of a function of float64 arrays, one result per array."""
  found = []
  for array in arrays:
    gradient = np.zeros_like(array)
    for at in np.ndindex(*array.shape):
      kept = array[at]
      array[at] = kept + epsilon
      above = function()
      array[at] = kept - epsilon
      gradient[at] = (above - function()) / (2 * epsilon)
      array[at] = kept
    found.append(gradient)
  return found
