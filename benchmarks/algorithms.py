"""k-means, Gaussian mixtures and logistic regression beside scikit-learn.

    python benchmarks/algorithms.py                          # in one process
    python benchmarks/algorithms.py --processes 2 --work k-means
    python benchmarks/algorithms.py --rows 100000 --repeat 5

Both work on the same rows, from the same start, for as many passes. They take turns; shown are the
medians of wall time and of the time that processors worked (which says more on a busy machine), as
shares of scikit-learn's, and what both have reached. Logistic regression ends at the optimum, by
Newton's method (`tf.bayes`); by FTRL where its loss on all rows is within a thousandth of that of
scikit-learn's solver, or after 20 passes. The passes of ours
are counted without the first one, which compiles; its time is shown by itself.

With ``--processes`` each of so many processes has its share of the rows, and a client runs the
graph over all of them; their processor time is not counted then.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import headrace as tf
from headrace.test.cluster import free_ports

COLUMNS, CLUSTERS, COMPONENTS, PASSES, BATCH = 32, 64, 8, 10, 5000


def rows_of(count: int, clusters: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Points about some middles."""
    rng = np.random.default_rng(seed)
    middles = np.random.default_rng(99).standard_normal((clusters, COLUMNS), np.float32) * 2
    noise = rng.standard_normal((count, COLUMNS), np.float32)
    return middles[rng.integers(clusters, size=count)] + noise


def labels_of(points: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Classes by a noisy plane."""
    rng = np.random.default_rng(7)
    scores = points @ rng.standard_normal(COLUMNS, np.float32) * 0.2
    return (scores + rng.logistic(size=len(points)) > 0).astype(np.float32)


class Timed:
    """Seconds of a block: on the wall, and of processors."""

    def __enter__(self) -> Timed:
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall = time.perf_counter() - self._wall
        self.cpu = time.process_time() - self._cpu


Result = tuple[float, float, float]
Side = Callable[[], Result]


class Graphs:
    """Graphs of ours, whose points are in variables of one process or of several.

    Args:
        points: the rows.
        workers: how many processes have shares of them; 0 is this one alone.
        target: of the session.
    """

    def __init__(self, points: np.ndarray[Any, Any], workers: int, target: str) -> None:
        self._points, self._target = points, target
        self._devices = [f"/job:worker/task:{i}" for i in range(workers)] or [""]

    def shards(self) -> tuple[list[Any], dict[Any, Any]]:
        """Variables, and what is fed to initialise them."""
        variables, feed = [], {}
        for i, device in enumerate(self._devices):
            part = self._points[i :: len(self._devices)]
            with tf.device(device):
                fed = tf.placeholder(tf.float32, part.shape)
                variables.append(tf.Variable(fed, trainable=False, name=f"points_{i}"))
            feed[fed] = part
        return variables, feed

    def passes(self, build: Callable[[list[Any]], tuple[Any, Any, Any]]) -> Result:
        """Seconds on the wall and of processors for the passes; the loss before the last one."""
        with tf.Graph().as_default(), tf.Session(self._target) as sess:
            variables, feed = self.shards()
            with tf.device(self._devices[0]):
                init, train, loss = build([v.value() for v in variables])
            sess.run(tf.global_variables_initializer(), feed)
            sess.run(init)
            sess.run([train, loss])  # compiled, as the next one; both sides start from here
            sess.run(train)
            with Timed() as timed:
                for _ in range(PASSES - 1):
                    sess.run(train)
                _, found = sess.run([train, loss])
            return timed.wall, timed.cpu, float(found)


def k_means(points: Any, workers: int, target: str) -> tuple[Side, Side]:
    """Lloyd's passes, from the first rows."""
    from sklearn.cluster import KMeans

    start = points[:CLUSTERS].copy()

    def ours() -> Result:
        def build(shards: list[Any]) -> tuple[Any, Any, Any]:
            graph = tf.contrib.factorization.KMeans(shards, CLUSTERS, start).training_graph()
            return graph[4], graph[5], tf.add_n([tf.reduce_sum(s) for s in graph[2]])

        return Graphs(points, workers, target).passes(build)

    def theirs() -> Result:
        options = {"init": start, "n_init": 1, "algorithm": "lloyd", "tol": 0}
        with Timed() as timed:
            found = KMeans(CLUSTERS, max_iter=PASSES, **options).fit(points)
        return timed.wall, timed.cpu, float(found.inertia_)

    return ours, theirs


def mixture(points: Any, workers: int, target: str) -> tuple[Side, Side]:
    """Steps of expectation and maximisation, with full covariances."""
    from sklearn.mixture import GaussianMixture

    means = points[:COMPONENTS].copy()

    def ours() -> Result:
        def build(shards: list[Any]) -> tuple[Any, Any, Any]:
            model = tf.contrib.factorization.GmmAlgorithm(shards, COMPONENTS, means)
            return model.init_ops(), model.training_ops(), model.log_likelihood_op()

        return Graphs(points, workers, target).passes(build)

    def theirs() -> Result:
        one = np.linalg.inv(np.cov(points.T) + 1e-3 * np.eye(COLUMNS)).astype(np.float32)
        start = {
            "means_init": means,
            "weights_init": np.full(COMPONENTS, 1 / COMPONENTS, np.float32),
            "precisions_init": np.stack([one] * COMPONENTS),
        }
        model = GaussianMixture(COMPONENTS, reg_covar=1e-3, max_iter=PASSES, tol=0, **start)
        with Timed() as timed, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(points)
        return timed.wall, timed.cpu, float(model.lower_bound_ * len(points))

    return ours, theirs


def logistic(points: Any, workers: int, target: str) -> tuple[Side, Side]:
    """To the optimum: Newton's method against L-BFGS; ours with a prior for the bias, too."""
    from sklearn.metrics import log_loss

    labels = labels_of(points)
    _, theirs = ftrl(points, workers, target)
    ones = np.ones([len(points), 1], np.float32)
    rows = np.concatenate([points, ones], 1)

    def ours() -> Result:
        with tf.Graph().as_default(), tf.Session(target) as sess:
            x = tf.Variable(tf.placeholder(tf.float32, rows.shape, "x"), trainable=False)
            y = tf.Variable(tf.placeholder(tf.float32, labels.shape, "y"), trainable=False)
            found = tf.bayes.LogisticRegression(1.0).laplace(x.value(), y.value())
            sess.run(tf.global_variables_initializer(), {"x:0": rows, "y:0": labels})
            for _ in range(2):
                sess.run(found.mean)
            with Timed() as timed:
                weights = sess.run(found.mean)
        loss = log_loss(labels, 1 / (1 + np.exp(-rows @ weights)))
        return timed.wall, timed.cpu, float(loss)

    return ours, theirs


def ftrl(points: Any, workers: int, target: str) -> tuple[Side, Side]:
    """To the same loss: FTRL by batches against L-BFGS."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss

    labels = labels_of(points)
    goal: list[float] = []

    def theirs() -> Result:
        model = LogisticRegression()
        with Timed() as timed:
            model.fit(points, labels)
        loss = float(log_loss(labels, model.predict_proba(points)))
        goal[:] = [loss]
        return timed.wall, timed.cpu, loss

    def ours() -> Result:
        if not goal:
            theirs()
        with tf.Graph().as_default(), tf.Session(target) as sess:
            x = tf.Variable(tf.placeholder(tf.float32, points.shape, "x"), trainable=False)
            y = tf.Variable(tf.placeholder(tf.float32, labels.shape, "y"), trainable=False)
            weights = tf.Variable(tf.zeros([COLUMNS, 1]), name="weights")
            bias = tf.Variable(tf.zeros([]), name="bias")

            def mean_loss(features: Any, wanted: Any) -> Any:
                logits = tf.squeeze(tf.matmul(features, weights), [1]) + bias
                return tf.reduce_mean(
                    tf.nn.sigmoid_cross_entropy_with_logits(labels=wanted, logits=logits)
                )

            begin = tf.placeholder(tf.int32, [])
            batch = mean_loss(
                tf.slice(x, [begin, 0], [BATCH, COLUMNS]), tf.slice(y, [begin], [BATCH])
            )
            train = tf.train.FtrlOptimizer(0.5).minimize(batch, var_list=[weights, bias])
            whole = mean_loss(x, y)
            initialize = tf.global_variables_initializer()
            sess.run(initialize, {"x:0": points, "y:0": labels})
            for _ in range(3):
                sess.run(train, {begin: 0})
                sess.run(whole)
            sess.run([v.initializer for v in tf.global_variables() if v not in (x, y)])
            with Timed() as timed:
                for _ in range(20):
                    for i in range(0, len(points), BATCH):
                        sess.run(train, {begin: i})
                        if i % (BATCH * 50) == 0 and sess.run(whole) <= goal[0] * 1.001:
                            return self_timed(timed, sess.run(whole))
            return timed.wall, timed.cpu, float(sess.run(whole))

    return ours, theirs


def self_timed(timed: Timed, loss: float) -> Result:
    """The result of a block that is not over."""
    timed.__exit__()
    return timed.wall, timed.cpu, float(loss)


WORK = {"k-means": k_means, "mixture": mixture, "logistic": logistic, "ftrl": ftrl}


def serve(cluster: str, index: str) -> None:
    """A worker, until its standard input ends."""
    server = tf.train.Server(json.loads(cluster), job_name="worker", task_index=int(index))
    print("ready", flush=True)
    sys.stdin.read()
    server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--work", nargs="*", choices=list(WORK), default=list(WORK))
    given = parser.parse_args()
    workers, target, processes = 0, "", []
    if given.processes > 1:
        workers = given.processes
        cluster = {"worker": [f"127.0.0.1:{port}" for port in free_ports(workers)]}
        for i in range(workers):
            command = [sys.executable, __file__, "serve", json.dumps(cluster), str(i)]
            processes.append(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            )
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
        target = f"grpc://{cluster['worker'][0]}"
    print(f"{given.rows} x {COLUMNS}, {given.processes} processes; seconds: wall (processors)")
    for name in given.work:
        points = rows_of(given.rows, COMPONENTS if name == "mixture" else CLUSTERS)
        ours, theirs = WORK[name](points, workers, target)
        found: dict[Side, list[Result]] = {ours: [], theirs: []}
        for _ in range(given.repeat):
            for side, results in found.items():
                results.append(side())
        (a, b, c), (d, e, f) = (
            [statistics.median(r[i] for r in results) for i in range(3)]
            for results in found.values()
        )
        print(
            f"{name:10} ours {a:.2f} ({b:.2f})  scikit-learn {d:.2f} ({e:.2f})  "
            f"{a / d:.2f} ({b / e:.2f})  reached {c:.6g}, {f:.6g}",
            flush=True,
        )
    for process in processes:
        process.communicate()


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(*sys.argv[2:])
    else:
        main()
