"""A worker of a cluster, with its variables on servers."""

import argparse

import headrace as tf


def main(index: int, addresses: list[str]) -> None:
    cluster = tf.train.ClusterSpec({"ps": addresses[:1], "worker": addresses[1:]})
    server = tf.train.Server(cluster, job_name="worker", task_index=index)
    device = tf.train.replica_device_setter(
        worker_device=f"/job:worker/task:{index}", cluster=cluster
    )
    with tf.device(device):
        x = tf.random_normal([8, 3], seed=index)
        prediction = tf.layers.dense(x, 1)
        loss = tf.reduce_mean(tf.square(prediction))
        step = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    hooks = [tf.train.StopAtStepHook(last_step=100)]
    with tf.train.MonitoredTrainingSession(
        master=server.target, is_chief=index == 0, hooks=hooks
    ) as session:
        while not session.should_stop():
            session.run(train)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--index", type=int, default=0)
    parser.add_argument("addresses", nargs="+")
    options = parser.parse_args()
    main(options.index, options.addresses)
