"""What research code took from TensorFlow's inner modules."""

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import graph_pb2
from tensorflow.python.client import device_lib
from tensorflow.python.framework import dtypes
from tensorflow.python.framework import graph_util
from tensorflow.python.framework import ops
from tensorflow.python.framework import tensor_shape
from tensorflow.python.framework import tensor_util
from tensorflow.python.ops import array_ops
from tensorflow.python.ops import control_flow_ops
from tensorflow.python.ops import math_ops
from tensorflow.python.ops import variable_scope as vs
from tensorflow.python.platform import gfile
from tensorflow.python.platform import tf_logging as logging
from tensorflow.python.util import nest


@ops.RegisterGradient("FlippedGradient")
def _flip(op, grad):
  return [tf.negative(grad)]


def flip_gradient(x):
  graph = tf.get_default_graph()
  with graph.gradient_override_map({"Identity": "FlippedGradient"}):
    return tf.identity(x)


def linear(args, output_size, scope=None):
  """As the cells of that time had it."""
  shapes = [a.get_shape().as_list() for a in nest.flatten(args)]
  total = sum(shape[1] for shape in shapes)
  with vs.variable_scope(scope or "Linear"):
    matrix = vs.get_variable("Matrix", [total, output_size], dtype=dtypes.float32)
    result = math_ops.matmul(array_ops.concat(nest.flatten(args), 1), matrix)
    bias = vs.get_variable("Bias", [output_size], initializer=tf.constant_initializer(0.0))
  return result + bias


def main():
  a = tf.placeholder(tf.float32, [None, 3], name="a")
  b = tf.placeholder(tf.float32, [None, 2], name="b")
  with ops.name_scope("model"):
    out = linear([a, (b,)], 4)
  assert out.get_shape().is_compatible_with(tensor_shape.TensorShape([None, 4]))
  assert tensor_util.constant_value_as_shape(array_ops.shape(out))[1].value == 4
  assert tensor_util.constant_value(array_ops.size([7, 8])) == 2
  loss = tf.reduce_sum(flip_gradient(tf.reduce_sum(out)), name="loss")
  flipped, = tf.gradients(loss, [a])
  counted = tf.py_func(lambda x: np.float32(x.size), [out], tf.float32)
  with ops.control_dependencies([counted]):
    after = control_flow_ops.with_dependencies([tf.no_op()], loss)
  with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    feed = {a: np.ones([5, 3]), b: np.ones([5, 2])}
    matrix = sess.run(tf.trainable_variables()[0])
    np.testing.assert_allclose(
        sess.run(flipped, feed)[0], -matrix[:3].sum(axis=1), rtol=1e-5)
    assert sess.run(counted, feed) == 20.0
    value = sess.run(after, feed)
    frozen = graph_util.convert_variables_to_constants(
        sess, sess.graph.as_graph_def(), ["loss"])
  with gfile.FastGFile("frozen.pb", "wb") as f:
    f.write(frozen.SerializeToString())

  graph_def = graph_pb2.GraphDef()
  with gfile.FastGFile("frozen.pb", "rb") as f:
    graph_def.ParseFromString(f.read())
  with tf.Graph().as_default() as graph:
    loaded, = tf.import_graph_def(graph_def, return_elements=["loss:0"], name="again")
    with tf.Session(graph=graph) as sess:
      again = sess.run(loaded, {"again/a:0": np.ones([5, 3]), "again/b:0": np.ones([5, 2])})
  np.testing.assert_allclose(again, value, rtol=1e-5)
  logging.info("not shown")
  logging.warn("devices: %s", [d.device_type for d in device_lib.list_local_devices()])
  print("frozen and loaded")


if __name__ == "__main__":
  main()
