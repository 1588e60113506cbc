"""A parent that starts Python processes; each says `import tensorflow` itself."""

import subprocess
import sys

import tensorflow as tf

tf.flags.DEFINE_integer("task", -1, "Number of this worker; the parent has none")
FLAGS = tf.flags.FLAGS


def main(_):
  if FLAGS.task >= 0:
    with tf.Session() as sess:
      print("worker %d says %d" % (FLAGS.task, sess.run(tf.constant(FLAGS.task) * 10)))
    return
  for task in range(2):
    subprocess.check_call([sys.executable, sys.argv[0], "--task=%d" % task])
  print("parent of %s" % tf.__version__)


if __name__ == "__main__":
  tf.app.run(main)
