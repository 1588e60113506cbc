"""Examples from a record file through queues: string_input_producer, reader, shuffle_batch."""

from __future__ import print_function

import sys

import numpy as np
import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_integer('num_examples', 40, 'Examples in the file.')
flags.DEFINE_integer('batch_size', 8, 'Batch size.')
flags.DEFINE_integer('num_epochs', 3, 'Epochs.')
FLAGS = flags.FLAGS


def _int64_feature(value):
  return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))


def _bytes_feature(value):
  return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def convert(filename):
  rng = np.random.RandomState(0)
  writer = tf.python_io.TFRecordWriter(filename)
  for _ in range(FLAGS.num_examples):
    label = rng.randint(2)
    image = (rng.randint(0, 100, 16) + 100 * label).astype(np.uint8)
    example = tf.train.Example(features=tf.train.Features(feature={
        'label': _int64_feature(int(label)),
        'image_raw': _bytes_feature(image.tobytes())}))
    writer.write(example.SerializeToString())
  writer.close()


def inputs(filename):
  with tf.name_scope('input'):
    filename_queue = tf.train.string_input_producer([filename], num_epochs=FLAGS.num_epochs)
    _, serialized = tf.TFRecordReader().read(filename_queue)
    features = tf.parse_single_example(serialized, features={
        'image_raw': tf.FixedLenFeature([], tf.string),
        'label': tf.FixedLenFeature([], tf.int64)})
    image = tf.decode_raw(features['image_raw'], tf.uint8)
    image.set_shape([16])
    image = tf.cast(image, tf.float32) * (1. / 255) - 0.5
    return tf.train.shuffle_batch([image, tf.cast(features['label'], tf.int32)],
                                  batch_size=FLAGS.batch_size, num_threads=2,
                                  capacity=60, min_after_dequeue=20)


def main(unused_argv):
  tf.set_random_seed(1)
  convert('train.tfrecords')
  images, labels = inputs('train.tfrecords')
  logits = tf.layers.dense(images, 2)
  loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
  train_op = tf.train.AdamOptimizer(0.05).minimize(loss)
  sess = tf.Session()
  sess.run(tf.group(tf.global_variables_initializer(), tf.local_variables_initializer()))
  coord = tf.train.Coordinator()
  threads = tf.train.start_queue_runners(sess=sess, coord=coord)
  step, values = 0, []
  try:
    while not coord.should_stop():
      _, value = sess.run([train_op, loss])
      values.append(value)
      step += 1
  except tf.errors.OutOfRangeError:
    print('Done training for %d epochs, %d steps.' % (FLAGS.num_epochs, step))
  finally:
    coord.request_stop()
  coord.join(threads)
  sess.close()
  print('loss', values[0], '->', values[-1])
  return 0 if values[-1] < values[0] else 1


if __name__ == '__main__':
  sys.exit(tf.app.run())
