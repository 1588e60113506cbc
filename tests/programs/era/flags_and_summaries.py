"""Linear regression with flags, summaries and checkpoints; a second run goes on from the first."""

from __future__ import print_function

import os

import numpy as np
import tensorflow as tf

tf.app.flags.DEFINE_string('train_dir', '/tmp/train', """Where logs and checkpoints go.""")
tf.app.flags.DEFINE_integer('max_steps', 20, """How many steps.""")
tf.app.flags.DEFINE_float('learning_rate', 0.2, """The rate.""")
tf.app.flags.DEFINE_boolean('log_device_placement', False, """Whether to log placement.""")
FLAGS = tf.app.flags.FLAGS


def inference(x):
  with tf.variable_scope('linear') as scope:
    w = tf.get_variable('weights', [2, 1], initializer=tf.constant_initializer(0.1))
    b = tf.get_variable('biases', [1], initializer=tf.constant_initializer(0.0))
    tf.summary.histogram('weights', w)
    return tf.add(tf.matmul(x, w), b, name=scope.name)


def main(argv=None):
  if not tf.gfile.Exists(FLAGS.train_dir):
    tf.gfile.MakeDirs(FLAGS.train_dir)
  tf.logging.set_verbosity(tf.logging.INFO)
  np.random.seed(1)
  data = np.random.rand(32, 2).astype(np.float32)
  target = data.dot([[1.0], [-2.0]]).astype(np.float32) + 0.5

  with tf.Graph().as_default():
    global_step = tf.Variable(0, trainable=False, name='global_step')
    x = tf.placeholder(tf.float32, shape=(None, 2))
    y = tf.placeholder(tf.float32, shape=(None, 1))
    loss = tf.reduce_mean(tf.square(inference(x) - y), name='loss')
    tf.summary.scalar('loss', loss)
    train_op = tf.train.MomentumOptimizer(FLAGS.learning_rate, 0.9).minimize(
        loss, global_step=global_step)
    saver = tf.train.Saver(tf.global_variables())
    summary_op = tf.summary.merge_all()
    config = tf.ConfigProto(log_device_placement=FLAGS.log_device_placement,
                            allow_soft_placement=True)
    with tf.Session(config=config) as sess:
      checkpoint = tf.train.get_checkpoint_state(FLAGS.train_dir)
      if checkpoint and checkpoint.model_checkpoint_path:
        saver.restore(sess, checkpoint.model_checkpoint_path)
      else:
        sess.run(tf.global_variables_initializer())
      writer = tf.summary.FileWriter(FLAGS.train_dir, sess.graph)
      begin = sess.run(global_step)
      for step in range(begin, begin + FLAGS.max_steps):
        _, value = sess.run([train_op, loss], feed_dict={x: data, y: target})
        assert not np.isnan(value), 'Model diverged with loss = NaN'
        if step % 10 == 0:
          tf.logging.info('step %d, loss = %.4f', step, value)
          writer.add_summary(sess.run(summary_op, {x: data, y: target}), step)
      saver.save(sess, os.path.join(FLAGS.train_dir, 'model.ckpt'), global_step=global_step)
      writer.close()
      print('steps', sess.run(global_step), 'loss', value)


if __name__ == '__main__':
  tf.app.run()
