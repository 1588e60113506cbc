"""K-means on graph operations: assignment by broadcasting, means by unsorted segment sums."""

from __future__ import absolute_import, division, print_function

import argparse

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--points", type=int, default=1000)
parser.add_argument("--clusters", type=int, default=4)
parser.add_argument("--steps", type=int, default=100)
args = parser.parse_args()

rng = np.random.RandomState(4)
centres = np.array([[0, 0], [4, 4], [0, 5], [5, 0]], np.float32)[: args.clusters]
which = rng.randint(args.clusters, size=args.points)
data = (centres[which] + 0.7 * rng.randn(args.points, 2)).astype(np.float32)

points = tf.constant(data, name="points")
centroids = tf.Variable(tf.slice(tf.random_shuffle(points, seed=5), [0, 0], [args.clusters, -1]))
assignments = tf.Variable(tf.zeros([args.points], tf.int64))

distances = tf.reduce_sum(
    tf.square(tf.subtract(tf.expand_dims(points, 0), tf.expand_dims(centroids, 1))), 2
)
nearest = tf.argmin(distances, 0)
inertia = tf.reduce_mean(tf.reduce_min(distances, 0))

# An empty cluster keeps its centroid.
sums = tf.unsorted_segment_sum(points, nearest, args.clusters)
counts = tf.unsorted_segment_sum(tf.ones([args.points, 1]), nearest, args.clusters)
means = tf.where(tf.tile(counts > 0, [1, 2]), sums / tf.maximum(counts, 1.0), centroids)

changed = tf.reduce_any(tf.not_equal(nearest, assignments))
with tf.control_dependencies([changed, inertia]):
    update = tf.group(centroids.assign(means), assignments.assign(nearest))

with tf.Session() as sess:
    tf.set_random_seed(1)
    sess.run(tf.global_variables_initializer())
    for step in range(args.steps):
        moved, loss, _ = sess.run([changed, inertia, update])
        print("step %d loss %.6f" % (step, loss))
        if step > 0 and not moved:
            break
    found = sess.run(centroids)
    print("centroids", np.round(found[np.lexsort(found.T)], 2).tolist())
    gap = np.abs(found[:, None] - centres[None]).sum(-1).min(0).max()
    print("error %.4f" % gap)
