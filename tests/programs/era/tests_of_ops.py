"""A test file in the style of TensorFlow's own."""

from __future__ import absolute_import
from __future__ import division
from __future__ import print_function

import numpy as np

from tensorflow.python.framework import constant_op
from tensorflow.python.framework import dtypes
from tensorflow.python.framework import errors
from tensorflow.python.framework import errors_impl
from tensorflow.python.framework import test_util
from tensorflow.python.ops import array_ops
from tensorflow.python.ops import gradient_checker
from tensorflow.python.ops import math_ops
import tensorflow.python.ops.nn_grad  # pylint: disable=unused-import
from tensorflow.python.platform import test


class MatMulTest(test.TestCase):

  def _testCpuMatmul(self, x, y):
    with self.cached_session(use_gpu=False):
      tf_ans = math_ops.matmul(x, y).eval()
    self.assertAllCloseAccordingToType(np.matmul(x, y), tf_ans)
    self.assertAllEqual(np.matmul(x, y).shape, tf_ans.shape)

  @test_util.run_deprecated_v1
  def testFloat(self):
    self._testCpuMatmul(np.random.rand(3, 4).astype(np.float32),
                        np.random.rand(4, 2).astype(np.float32))

  @test_util.run_in_graph_and_eager_modes
  def testStrings(self):
    words = constant_op.constant(["a", "b"], dtype=dtypes.string)
    self.assertAllEqual([b"a", b"b"], self.evaluate(words))
    self.assertAllEqual(["a", "b"], self.evaluate(words))

  def testShapeMismatch(self):
    with self.assertRaisesRegexp(ValueError, "Dimensions must be equal"):
      math_ops.matmul(np.ones([2, 3], np.float32), np.ones([2, 3], np.float32))

  def testErrorAtRun(self):
    with self.test_session() as sess:
      x = array_ops.placeholder(dtypes.float32)
      bad = array_ops.gather([1.0, 2.0], array_ops.placeholder_with_default([7], [None]))
      with self.assertRaisesOpError("not in"):
        sess.run(bad)
      with self.assertRaises(errors.InvalidArgumentError):
        sess.run(math_ops.matmul(x, x), {x: np.ones([2, 3])})
      self.assertIs(errors.OpError, errors_impl.OpError)

  @test_util.run_deprecated_v1
  def testGradient(self):
    with self.session(use_gpu=True):
      x = constant_op.constant(np.arange(1.0, 7.0), shape=[2, 3], dtype=dtypes.float64)
      y = math_ops.matmul(x, x, transpose_b=True)
      self.assertShapeEqual(np.zeros([2, 2]), y)
      self.assertLess(gradient_checker.compute_gradient_error(x, [2, 3], y, [2, 2]), 1e-6)

  def testThreadsAndFiles(self):
    with self.cached_session() as sess:
      y = constant_op.constant(1) + 1
      results = []
      thread = self.checkedThread(target=lambda: results.append(sess.run(y)))
      thread.start()
      thread.join()
    self.assertEqual([2], results)
    self.assertStartsWith(self.get_temp_dir(), test.get_temp_dir())
    with test.mock.patch.object(np, "ones", return_value=5):
      self.assertEqual(5, np.ones(3))
    self.assertItemsEqual([1, 2], [2, 1])


class MatMulBenchmark(test.Benchmark):

  def benchmarkMatMul(self):
    self.report_benchmark(iters=1, wall_time=0.5, name="mat_mul")


if __name__ == "__main__":
  test.main()
