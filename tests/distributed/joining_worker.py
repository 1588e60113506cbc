"""A worker that knows nothing but the address of a task: joins, counts steps, and leaves."""

from __future__ import annotations

import sys

import headrace as tf


def main() -> None:
    server = tf.train.Server(sys.argv[1], job_name="worker")
    print(server.server_def.task_index, flush=True)
    with tf.device(tf.train.replica_device_setter(cluster=server.cluster)):
        step = tf.train.get_or_create_global_step()
        train = step.assign_add(1)
    with tf.train.MonitoredTrainingSession(server.target, is_chief=False) as session:
        while not session.should_stop():
            print(session.run(train), flush=True)
    print("left", flush=True)


if __name__ == "__main__":
    main()
