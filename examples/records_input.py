"""Input through queues: Example protos in TFRecord files, readers, `shuffle_batch`, coordinator."""

from __future__ import absolute_import, division, print_function

import argparse
import os
import tempfile

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=8)
args = parser.parse_args()
folder = tempfile.mkdtemp()


def write(name, count, seed):
    rng = np.random.RandomState(seed)
    with tf.python_io.TFRecordWriter(name) as writer:
        for _ in range(count):
            point = rng.uniform(-1, 1, 4).astype(np.float32)
            label = int(point[0] + point[1] > point[2] * point[3])
            feature = {
                "point": tf.train.Feature(bytes_list=tf.train.BytesList(value=[point.tobytes()])),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
            }
            example = tf.train.Example(features=tf.train.Features(feature=feature))
            writer.write(example.SerializeToString())


def read_and_decode(filename_queue):
    reader = tf.TFRecordReader()
    _, serialized = reader.read(filename_queue)
    features = tf.parse_single_example(
        serialized,
        features={
            "point": tf.FixedLenFeature([], tf.string),
            "label": tf.FixedLenFeature([], tf.int64),
        },
    )
    point = tf.decode_raw(features["point"], tf.float32)
    point.set_shape([4])
    return point, tf.cast(features["label"], tf.int32)


files = [os.path.join(folder, "part-%d.tfrecords" % i) for i in range(3)]
for i, name in enumerate(files):
    write(name, 120, i)

tf.set_random_seed(1)
filename_queue = tf.train.string_input_producer(files, num_epochs=args.epochs, seed=1)
point, label = read_and_decode(filename_queue)
points, labels = tf.train.shuffle_batch(
    [point, label], batch_size=20, capacity=200, min_after_dequeue=100, num_threads=1, seed=2
)
w1 = tf.Variable(tf.random_normal([4, 12], seed=3))
w2 = tf.Variable(tf.random_normal([12, 2], seed=4))
logits = tf.matmul(tf.nn.relu(tf.matmul(points, w1)), w2)
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
train = tf.train.AdamOptimizer(0.02).minimize(loss)
right = tf.reduce_mean(tf.cast(tf.nn.in_top_k(logits, labels, 1), tf.float32))

with tf.Session() as sess:
    sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(sess=sess, coord=coord)
    step, hits = 0, []
    try:
        while not coord.should_stop():
            value, hit, _ = sess.run([loss, right, train])
            if step < 10 or step % 50 == 0:
                print("step %d loss %.6f" % (step, value))
            hits.append(hit)
            step += 1
    except tf.errors.OutOfRangeError:
        print("steps %d" % step)
    finally:
        coord.request_stop()
    coord.join(threads)
print("accuracy %.4f" % np.mean(hits[-18:]))
