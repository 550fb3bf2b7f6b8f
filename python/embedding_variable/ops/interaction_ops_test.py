# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of interaction_ops."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from embedding_variable import _lib
from embedding_variable.ops import interaction_ops
from embedding_variable.ops import testing

_gen = _lib.load()


def _plain(vectors):
  """Computes the same with TensorFlow's own ops."""
  return tf.stack([tf.reduce_sum(vectors[i] * vectors[j], axis=1)
                   for i in range(len(vectors)) for j in range(i)], axis=1)


class InteractionOpsTest(parameterized.TestCase):

  def setUp(self):
    super(InteractionOpsTest, self).setUp()
    tf.compat.v1.reset_default_graph()

  def _vectors(self, batch, n, dim):
    random = np.random.RandomState(n + dim)
    return [tf.constant(random.randn(batch, dim), tf.float32) for _ in range(n)]

  @parameterized.parameters((5, 2, 1), (1, 3, 4), (70, 27, 16), (33, 8, 13), (4, 27, 128),
                            (2, 300, 3), (0, 4, 5))
  def test_values_and_gradients(self, batch, n, dim):
    vectors = self._vectors(batch, n, dim)
    pairs = n * (n - 1) // 2
    slopes = tf.constant(np.random.RandomState(1).randn(batch, pairs), tf.float32)
    ours = interaction_ops.dot_interaction(vectors)
    self.assertEqual(ours.shape.as_list(), [batch, pairs])
    grads = tf.gradients(ours, vectors, slopes)
    for grad in grads:
      self.assertEqual(grad.op.type, "EvDotInteractionGrad")
      self.assertEqual(grad.shape.as_list(), [batch, dim])
    with testing.session() as session:
      x, w, got, got_grads = session.run([vectors, slopes, ours, grads])
    x, w = np.array(x, np.float64), np.array(w, np.float64)
    lower = np.tril_indices(n, -1)
    expected = np.einsum("ibd,jbd->bij", x, x)[:, lower[0], lower[1]]
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)
    matrices = np.zeros([batch, n, n])
    matrices[:, lower[0], lower[1]] = w
    matrices += matrices.transpose([0, 2, 1])
    np.testing.assert_allclose(got_grads, np.einsum("bij,jbd->ibd", matrices, x),
                               rtol=1e-4, atol=1e-4)

  def test_order_of_pairs(self):
    vectors = [tf.fill([3, 1], 10. ** v) for v in range(4)]
    with testing.session() as session:
      got = session.run(interaction_ops.dot_interaction(vectors))
    np.testing.assert_allclose(got, [[1e1, 1e2, 1e3, 1e3, 1e4, 1e5]] * 3)

  def test_second_derivatives(self):
    vectors = self._vectors(6, 4, 5)

    def loss_of(dots):
      loss = tf.reduce_sum(dots * dots * dots)
      slopes = tf.gradients(loss, vectors)
      return tf.gradients(tf.add_n([tf.reduce_sum(s * s) for s in slopes]), vectors)

    with testing.session() as session:
      got, expected = session.run([loss_of(interaction_ops.dot_interaction(vectors)),
                                   loss_of(_plain(vectors))])
    np.testing.assert_allclose(got, expected, rtol=1e-3)

  def test_a_vector_that_occurs_twice(self):
    one, other = self._vectors(3, 2, 4)
    vectors = [one, other, one]
    with testing.session() as session:
      got, expected = session.run([
          tf.gradients(interaction_ops.dot_interaction(vectors), [one, other]),
          tf.gradients(_plain(vectors), [one, other])])
    np.testing.assert_allclose(got, expected, rtol=1e-5)

  def test_one_tensor(self):
    vectors = self._vectors(6, 4, 5)
    with testing.session() as session:
      got, expected = session.run([
          interaction_ops.dot_interaction(tf.stack(vectors, axis=1)),
          interaction_ops.dot_interaction(vectors)])
    np.testing.assert_array_equal(got, expected)

  @parameterized.product(dtype=[tf.float16, tf.bfloat16], dim=[13, 16])
  def test_narrow_vectors_have_the_bits_of_float32_rounded_once(self, dtype, dim):
    vectors = [tf.cast(v, dtype) for v in self._vectors(33, 8, dim)]
    slopes = tf.cast(tf.constant(np.random.RandomState(1).randn(33, 28)), dtype)
    wide = [tf.cast(v, tf.float32) for v in vectors]
    results = []
    for given, factors in (vectors, slopes), (wide, tf.cast(slopes, tf.float32)):
      dots = interaction_ops.dot_interaction(given)
      self.assertEqual(dots.dtype, given[0].dtype)
      results.append([tf.cast(tf.cast(x, dtype), tf.float32)
                      for x in [dots] + tf.gradients(dots, given, factors)])
    with testing.session() as session:
      got, expected = session.run(results)
    for one, other in zip(got, expected):
      np.testing.assert_array_equal(one, other)

  @parameterized.parameters(tf.float16, tf.bfloat16)
  def test_second_derivatives_of_narrow_vectors(self, dtype):
    vectors = [tf.round(4 * v) / 4 for v in self._vectors(6, 4, 5)]
    factors = [tf.round(4 * v) / 4 for v in self._vectors(6, 4, 5)[::-1]]
    slopes = tf.round(2 * tf.constant(np.random.RandomState(1).randn(6, 6), tf.float32)) / 2

    def derivatives(to):
      x, w = [to(v) for v in vectors], to(slopes)
      grads = tf.gradients(interaction_ops.dot_interaction(x), x, w)
      seconds = tf.gradients(grads, x + [w], [to(f) for f in factors])
      return [tf.cast(s, tf.float32) for s in seconds]

    with testing.session() as session:
      got, expected = session.run([derivatives(lambda v: tf.cast(v, dtype)),
                                   derivatives(lambda v: v)])
    for one, other in zip(got, expected):
      np.testing.assert_allclose(one, other, rtol=2**-8)

  def test_same_bits_whatever_the_threads(self):
    vectors = self._vectors(500, 27, 16)
    dots = interaction_ops.dot_interaction(vectors)
    results = []
    for threads in 1, 3:
      with testing.session(intra=threads) as session:
        results.append(session.run([dots] + tf.gradients(dots, vectors)))
    for one, other in zip(*results):
      np.testing.assert_array_equal(one, other)

  def test_unknown_sizes(self):
    vectors = [tf.compat.v1.placeholder(tf.float32) for _ in range(3)]
    dots = interaction_ops.dot_interaction(vectors)
    self.assertEqual(dots.shape.as_list(), [None, 3])
    slopes = tf.compat.v1.placeholder(tf.float32)
    grads = _gen.ev_dot_interaction_grad(vectors, slopes)
    feed = {v: np.ones([4, 2]) for v in vectors}
    with testing.session() as session:
      np.testing.assert_array_equal(session.run(dots, feed), np.full([4, 3], 2.))
      feed[slopes] = np.ones([4, 2])
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError,
                                  r"slopes: expected shape \[4,3\], got \[4,2\]"):
        session.run(grads, feed)
      feed[vectors[2]] = np.ones([4, 3])
      message = r"vector 2: expected the shape of vector 0, \[4,2\], got \[4,3\]"
      for fetches in dots, grads:
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, message):
          session.run(fetches, feed)
      feed[vectors[0]] = np.ones([4])
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError,
                                  r"vector 0: expected rank 2, got shape \[4\]"):
        session.run(dots, feed)

  def test_errors_are_raised_when_the_graph_is_built(self):
    a, b, c = tf.ones([4, 2]), tf.ones([4, 3]), tf.ones([4, 2], tf.float64)
    for vectors, error, message in [
        ([a, a, b], ValueError, r"vector 2: expected the shape.*\[4,2\], got \[4,3\]"),
        ([a, tf.ones([4])], ValueError, r"vector 1: expected rank 2, got shape \[4\]"),
        ([a, c], TypeError, "vector 1: expected float32, got float64"),
        ([c, c], TypeError,
         "vector 0: expected float32 or float16 or bfloat16, got float64"),
        ([a, tf.cast(a, tf.float16)], TypeError, "vector 1: expected float32, got float16"),
        (tf.ones([2, 3, 4], tf.int32), TypeError,
         "vectors: expected float32 or float16 or bfloat16, got int32"),
        ([a], ValueError, "at least 2 vectors, got 1"),
        ([], ValueError, "at least 2 vectors, got 0"),
        (tf.ones([4, 1, 2]), ValueError, "at least 2 vectors, got 1"),
        (a, ValueError, r"\[B, N, D\], got shape \(4, 2\)"),
        (tf.compat.v1.placeholder(tf.float32), ValueError, "must be known.*unknown"),
        (tf.compat.v1.placeholder(tf.float32, [4, None, 2]), ValueError,
         r"must be known.*\(4, \?, 2\)")]:
      with self.assertRaisesRegex(error, message):
        interaction_ops.dot_interaction(vectors)
    with self.assertRaisesRegex(ValueError, r"slopes: expected shape \[4,1\], got \[4,3\]"):
      _gen.ev_dot_interaction_grad([a, a], b)


if __name__ == "__main__":
  absltest.main()
