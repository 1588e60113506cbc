"""A program of a cluster, for tests: trains for so many steps, or until a file is there."""

import os
import sys

import headrace as tf
from headrace.distributed.cluster.tf_config import read_tf_config

config = read_tf_config()
server = tf.train.Server(config.cluster, job_name=config.job, task_index=config.task)
print("serving at", server.target, flush=True)
if config.job == "ps":
    server.join()
    sys.exit()
with tf.device(tf.train.replica_device_setter(cluster=config.cluster)):
    weights = tf.get_variable("weights", [10], initializer=tf.zeros_initializer())
    global_step = tf.train.get_or_create_global_step()
    loss = tf.reduce_mean(tf.square(weights - 1.0))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step)
count, folder = sys.argv[1], sys.argv[2]
done = 0
with tf.train.MonitoredTrainingSession(
    server.target, config.task == 0, checkpoint_dir=folder, save_checkpoint_steps=100
) as session:
    while not session.should_stop():
        is_over = os.path.exists(sys.argv[3]) if count == "wait" else done == int(count)
        if is_over:
            break
        session.run(train)
        done += 1
        if done < 10:
            print("step", done, flush=True)
print(done, "steps", flush=True)
