"""TFRecord files through `tf.data`: parse, shuffle, batch, prefetch; a reinitialisable iterator."""

from __future__ import absolute_import, division, print_function

import argparse
import os
import tempfile

import tensorflow as tf
from tensorflow.examples.tutorials.mnist import input_data

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--data_dir", default="MNIST_data")
parser.add_argument("--epochs", type=int, default=3)
args = parser.parse_args()
FOLDER = tempfile.mkdtemp()


def write(images, labels, name, shards):
    """Examples in several files, as converters of data sets wrote them."""
    writers = [
        tf.python_io.TFRecordWriter(os.path.join(FOLDER, "%s-%05d-of-%05d" % (name, i, shards)))
        for i in range(shards)
    ]
    for i, (image, label) in enumerate(zip(images, labels)):
        feature = {
            "image_raw": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image.tobytes()])),
            "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[int(label)])),
        }
        example = tf.train.Example(features=tf.train.Features(feature=feature))
        writers[i % shards].write(example.SerializeToString())
    for writer in writers:
        writer.close()


def decode(serialized):
    features = tf.parse_single_example(
        serialized,
        features={
            "image_raw": tf.FixedLenFeature([], tf.string),
            "label": tf.FixedLenFeature([], tf.int64),
        },
    )
    image = tf.decode_raw(features["image_raw"], tf.uint8)
    image.set_shape([784])
    return tf.cast(image, tf.float32) * (1.0 / 255) - 0.5, tf.cast(features["label"], tf.int32)


def inputs(name, training):
    files = tf.data.Dataset.list_files(os.path.join(FOLDER, name + "-*"), shuffle=False)
    data = files.interleave(tf.data.TFRecordDataset, cycle_length=3, block_length=1)
    if training:
        data = data.shuffle(1000 + 3 * 100, seed=7)
    return data.map(decode, num_parallel_calls=4).batch(100).prefetch(1)


mnist = input_data.read_data_sets(args.data_dir, dtype=tf.uint8, validation_size=0)
write(mnist.train.images, mnist.train.labels, "train", 3)
write(mnist.test.images, mnist.test.labels, "test", 1)
train, test = inputs("train", True), inputs("test", False)
iterator = tf.data.Iterator.from_structure(train.output_types, train.output_shapes)
start_training, start_testing = iterator.make_initializer(train), iterator.make_initializer(test)
images, labels = iterator.get_next()

hidden = tf.layers.dense(
    images, 64, tf.nn.relu, kernel_initializer=tf.truncated_normal_initializer(0, 0.03, seed=1)
)
logits = tf.layers.dense(hidden, 10, kernel_initializer=tf.truncated_normal_initializer(0, 0.1, 2))
loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
train_op = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
right = tf.reduce_sum(tf.cast(tf.nn.in_top_k(logits, labels, 1), tf.int32))

with tf.Session() as sess:
    sess.run(tf.group(tf.global_variables_initializer(), tf.local_variables_initializer()))
    step = 0
    for epoch in range(args.epochs):
        sess.run(start_training)
        while True:
            try:
                _, value = sess.run([train_op, loss])
            except tf.errors.OutOfRangeError:
                break
            if step < 10:
                print("step %d loss %.6f" % (step, value))
            step += 1
        sess.run(start_testing)
        total = 0
        try:
            while True:
                total += sess.run(right)
        except tf.errors.OutOfRangeError:
            print("epoch %d is done" % epoch)
            print("accuracy %.4f" % (total / float(mnist.test.num_examples)))
