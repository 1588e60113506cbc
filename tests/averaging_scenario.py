"""Two workers that train copies of their own, in a fixed order: the same program for both peers."""

import numpy as np

ORDER = [0, 1, 1, 0, 1, 1, 1, 0, 0, 0, 1, 0, 1]
STARTS = {"w": np.arange(6, dtype=np.float32).reshape(3, 2) / 4, "b": np.float32([0.5, -1.0])}


def optimizer(tf, kind, inner):
    """The wrapped optimiser and its getter, for one worker."""
    opt = tf.contrib.opt
    sgd = {
        "sgd": lambda: tf.train.GradientDescentOptimizer(0.125),
        "momentum": lambda: tf.train.MomentumOptimizer(0.125, 0.5),
        "adam": lambda: tf.train.AdamOptimizer(0.125),
    }[inner]()
    if kind == "elastic":
        getter = opt.ElasticAverageCustomGetter(f"/job:worker/task:{optimizer.task}")
        return getter, lambda: opt.ElasticAverageOptimizer(sgd, 2, getter, 2, 0.25, rho=0.5)
    getter = opt.AGNCustomGetter(f"/job:worker/task:{optimizer.task}")
    return getter, lambda: opt.AGNOptimizer(sgd, 2, getter, communication_period=2)


def worker(tf, task, kind, inner, x):
    """Graph of one worker: init ops, step, and what is recorded."""
    graph = tf.Graph()
    optimizer.task = task
    with graph.as_default():
        getter, make = optimizer(tf, kind, inner)
        with tf.device("/job:ps/task:0"):
            step = tf.train.get_or_create_global_step()
        # TensorFlow reads reference variables before or after they are updated.
        scope = tf.variable_scope("", custom_getter=getter, use_resource=True)
        with scope, tf.device("/job:ps/task:0"):
            w = tf.get_variable("w", initializer=STARTS["w"])
            b = tf.get_variable("b", initializer=STARTS["b"])
        with tf.device(f"/job:worker/task:{task}"):
            opt = make()
            loss = tf.reduce_sum(tf.square(tf.matmul(x[task], w) + b))
            train = opt.minimize(loss, global_step=step)
        centers = [v for v in tf.global_variables() if v.op.name.startswith("global_center")]
        return {
            "graph": graph,
            "init": tf.group(tf.global_variables_initializer()),
            "local": tf.local_variables_initializer(),
            "pull": opt.get_init_op(task),
            "train": train,
            "state": [w, b, step, *sorted(centers, key=lambda v: v.name)],
            "locals": sorted(v.op.name for v in tf.local_variables()),
            "globals": sorted(v.op.name for v in tf.global_variables()),
        }


def trace(tf, targets, kind, inner):
    """What each step leaves: the worker's copies, the global step, and the centers."""
    x = [np.float32([[1, 0.5, -1]]), np.float32([[-0.5, 2, 0.25]])]
    workers = [worker(tf, task, kind, inner, x) for task in range(2)]
    sessions = [tf.Session(targets[i], graph=workers[i]["graph"]) for i in range(2)]
    sessions[0].run(workers[0]["init"])
    for i in range(2):
        sessions[i].run(workers[i]["local"])
        sessions[i].run(workers[i]["pull"])
    rows = []
    for task in ORDER:
        sessions[task].run(workers[task]["train"])
        rows.append([np.asarray(v) for v in sessions[task].run(workers[task]["state"])])
    for session in sessions:
        session.close()
    found = {"copy_w": 0, "copy_b": 1, "step": 2, "center_b": 3, "center_w": 4}
    result = {key: np.stack([row[i] for row in rows]) for key, i in found.items()}
    result["locals"] = np.array(workers[0]["locals"])
    result["globals"] = np.array(workers[0]["globals"])
    return result
