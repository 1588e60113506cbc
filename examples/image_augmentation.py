"""Pictures on disk: JPEG files, decoding, distortions and resizing before a classifier."""

from __future__ import absolute_import, division, print_function

import argparse
import os
import tempfile

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=60)
args = parser.parse_args()
folder = tempfile.mkdtemp()


def picture(rng, kind):
    """Horizontal or vertical stripes, or a disc, in some colour."""
    y, x = np.mgrid[:32, :32]
    phase, period = rng.randint(8), rng.randint(5, 9)
    shape = [
        ((y + phase) % period < period // 2),
        ((x + phase) % period < period // 2),
        ((x - 16) ** 2 + (y - 16) ** 2 < rng.randint(60, 140)),
    ][kind]
    colour = rng.randint(100, 255, size=3)
    return (shape[..., None] * colour + 20 * rng.rand(32, 32, 3)).clip(0, 255).astype(np.uint8)


rng = np.random.RandomState(0)
names, kinds = [], []
pixels = tf.placeholder(tf.uint8, [None, None, 3])
jpeg = tf.image.encode_jpeg(pixels, quality=95)
with tf.Session() as sess:
    for i in range(90):
        names.append(os.path.join(folder, "%02d.jpg" % i))
        kinds.append(i % 3)
        with tf.gfile.GFile(names[-1], "wb") as f:
            f.write(sess.run(jpeg, {pixels: picture(rng, i % 3)}))


def load(name, distort):
    image = tf.image.decode_jpeg(tf.read_file(name), channels=3)
    image = tf.image.convert_image_dtype(image, tf.float32)
    if distort:
        image = tf.image.random_flip_left_right(image, seed=1)
        image = tf.image.random_flip_up_down(image, seed=2)
        image = tf.image.random_brightness(image, 0.2, seed=3)
        image = tf.image.random_contrast(image, 0.7, 1.3, seed=4)
        image = tf.image.random_saturation(image, 0.5, 1.5, seed=5)
        image = tf.random_crop(image, [28, 28, 3], seed=6)
    else:
        image = tf.image.resize_image_with_crop_or_pad(image, 28, 28)
    image = tf.image.rgb_to_grayscale(image)
    image = tf.image.resize_images(image, [16, 16], method=tf.image.ResizeMethod.BILINEAR)
    return tf.image.per_image_standardization(image)


tf.set_random_seed(1)
name = tf.placeholder(tf.string, [None])
label = tf.placeholder(tf.int32, [None])
training = tf.map_fn(lambda n: load(n, True), name, tf.float32, parallel_iterations=1)
plain = tf.map_fn(lambda n: load(n, False), name, tf.float32)


def network(images):
    with tf.variable_scope("network", reuse=tf.AUTO_REUSE):
        init = [tf.glorot_uniform_initializer(seed=s) for s in (1, 2, 3)]
        x = tf.layers.conv2d(images, 8, 5, activation=tf.nn.relu, kernel_initializer=init[0])
        x = tf.layers.max_pooling2d(x, 2, 2)
        x = tf.layers.conv2d(x, 12, 3, activation=tf.nn.relu, kernel_initializer=init[1])
        x = tf.reduce_max(x, [1, 2])
        return tf.layers.dense(x, 3, kernel_initializer=init[2])


loss = tf.losses.sparse_softmax_cross_entropy(label, network(training))
train = tf.train.AdamOptimizer(0.01).minimize(loss)
hits = tf.cast(tf.nn.in_top_k(network(plain), label, 1), tf.float32)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(args.steps):
        chosen = rng.randint(60, size=20)
        feed = {name: [names[k] for k in chosen], label: [kinds[k] for k in chosen]}
        _, value = sess.run([train, loss], feed)
        if step < 10 or step % 20 == 0:
            print("step %d loss %.6f" % (step, value))
    print("accuracy %.4f" % sess.run(hits, {name: names[60:], label: kinds[60:]}).mean())
