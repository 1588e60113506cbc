"""Exporting a model with its signature, and serving it from the exported folder."""

from __future__ import absolute_import, division, print_function

import argparse
import os
import tempfile

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=100)
args = parser.parse_args()
export_dir = os.path.join(tempfile.mkdtemp(), "1")

rng = np.random.RandomState(0)
data = rng.randn(200, 3).astype(np.float32)
wanted = np.sin(data.sum(1, keepdims=True)).astype(np.float32)

with tf.Graph().as_default(), tf.Session() as sess:
    tf.set_random_seed(1)
    serialized = tf.placeholder(tf.string, [None], name="examples")
    parsed = tf.parse_example(serialized, {"x": tf.FixedLenFeature([3], tf.float32)})
    x = tf.placeholder_with_default(parsed["x"], [None, 3], name="x")
    y = tf.placeholder(tf.float32, [None, 1])
    h = tf.layers.dense(x, 32, tf.tanh, kernel_initializer=tf.glorot_normal_initializer(seed=1))
    h = tf.layers.dense(h, 32, tf.tanh, kernel_initializer=tf.glorot_normal_initializer(seed=2))
    out = tf.layers.dense(h, 1, kernel_initializer=tf.glorot_normal_initializer(seed=3))
    loss = tf.losses.mean_squared_error(y, out)
    train = tf.train.AdamOptimizer(0.01).minimize(loss)
    sess.run(tf.global_variables_initializer())
    for step in range(args.steps):
        _, value = sess.run([train, loss], {x: data, y: wanted})
        if step < 10 or step % 50 == 0:
            print("step %d loss %.6f" % (step, value))

    builder = tf.saved_model.builder.SavedModelBuilder(export_dir)
    signature = tf.saved_model.signature_def_utils.build_signature_def(
        inputs={"inputs": tf.saved_model.utils.build_tensor_info(serialized)},
        outputs={"outputs": tf.saved_model.utils.build_tensor_info(out)},
        method_name=tf.saved_model.signature_constants.PREDICT_METHOD_NAME,
    )
    builder.add_meta_graph_and_variables(
        sess,
        [tf.saved_model.tag_constants.SERVING],
        signature_def_map={
            tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY: signature
        },
    )
    builder.save()
    expected = sess.run(out, {x: data[:5]})

with tf.Graph().as_default(), tf.Session() as sess:
    meta = tf.saved_model.loader.load(sess, [tf.saved_model.tag_constants.SERVING], export_dir)
    signature = meta.signature_def["serving_default"]
    examples = [
        tf.train.Example(
            features=tf.train.Features(
                feature={"x": tf.train.Feature(float_list=tf.train.FloatList(value=row))}
            )
        ).SerializeToString()
        for row in data[:5]
    ]
    served = sess.run(
        signature.outputs["outputs"].name, {signature.inputs["inputs"].name: examples}
    )
print("difference %.6f" % np.abs(served - expected).max())
print("final %.5f" % value)
