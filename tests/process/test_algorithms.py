"""Algorithms on a server and two workers, each a process, beside scikit-learn on real data."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from sklearn import cluster as clusters
from sklearn import ensemble, linear_model
from sklearn.decomposition import TruncatedSVD
from task_processes import Tasks
from tests.contrib.real_data import real

import headrace as tf
from headrace.contrib.factorization import KMeans, WALSModel
from headrace.contrib.linear_optimizer import SdcaModel
from headrace.contrib.tensor_forest import ForestHParams, RandomForestGraphs

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(240)]

WORKERS = 2


@pytest.fixture(scope="module")
def tasks():
    made = Tasks({"ps": 1, "worker": WORKERS})
    yield made
    made.kill_all()


class Trained:
    """Workers that have trained at the same time, each by a graph and a session of its own.

    Args:
        build: of the number of a worker, makes its step, and what is looked at in the end.
        begin: of the first worker's session and what it has built, before all train.
        steps: of each worker.
    """

    def __init__(self, tasks, build, steps, begin=lambda session, built: None):
        self.sessions, self.built = [], []
        for number in range(WORKERS):
            device = tf.train.replica_device_setter(1, worker_device=f"/job:worker/task:{number}")
            with tf.Graph().as_default(), tf.device(device):
                tf.set_random_seed(1)
                self.built.append(build(number))
                initializer = tf.global_variables_initializer()
                self.sessions.append(tf.Session(tasks.target("worker", number)))
            if number == 0:
                self.sessions[0].run(initializer)
        begin(self.sessions[0], self.built[0])
        self._problems = []
        threads = [threading.Thread(target=self._train, args=(i, steps)) for i in range(WORKERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not self._problems

    def _train(self, number, steps):
        try:
            for _ in range(steps):
                self.sessions[number].run(self.built[number][0])
        except Exception as error:
            self._problems.append(error)

    def found(self, number=0):
        """What is looked at, as a worker sees it."""
        return self.sessions[number].run(self.built[number][1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for session in self.sessions:
            session.close()


def test_dual_coordinate_ascent_ends_at_the_optimum_of_scikit_learn(tasks):
    points, labels = real("breast_cancer")
    points = np.concatenate([points, np.ones([len(points), 1], np.float32)], 1)

    def build(number):
        weights = tf.Variable(tf.zeros([points.shape[1]]), name="sdca")
        half = slice(number, None, WORKERS)
        examples = {
            "sparse_features": [],
            "dense_features": [points[half]],
            "example_labels": tf.constant(labels[half], tf.float32),
            "example_weights": tf.ones([len(labels[half])]),
            "example_ids": tf.constant(np.arange(len(labels))[half]),
        }
        options = {
            "loss_type": "logistic_loss",
            "symmetric_l1_regularization": 0.0,
            "symmetric_l2_regularization": 1.0,
            "num_loss_partitions": WORKERS,
        }
        variables = {"sparse_features_weights": [], "dense_features_weights": [weights]}
        return SdcaModel(examples, variables, options).minimize(), weights

    def loss(w):
        return np.logaddexp(0, np.where(labels > 0, -1, 1) * (points @ w)).sum() + w @ w / 2

    theirs = linear_model.LogisticRegression(fit_intercept=False, tol=1e-8, max_iter=1000)
    with Trained(tasks, build, 400) as trained:
        found = trained.found()
    assert loss(found) == pytest.approx(loss(theirs.fit(points, labels).coef_[0]), rel=2e-3)


def test_factors_come_as_near_as_singular_vectors(tasks):
    """Each worker solves for half of the rows, then of the columns, in turns that all wait for."""
    matrix = real("wine")[0]
    rows, columns = matrix.shape
    start = np.random.RandomState(0).randn(columns, 3).astype(np.float32)

    def part(values, number):
        ids = np.arange(len(values))[number::WORKERS]
        places = np.stack(np.meshgrid(ids, np.arange(values.shape[1]), indexing="ij"), -1)
        return tf.SparseTensor(places.reshape(-1, 2), values[ids].ravel(), values.shape)

    def build(number):
        with tf.variable_scope("wals"):
            model = WALSModel(
                rows, columns, 3, 1.0, 1e-4, col_init=start, row_weights=None, col_weights=None
            )
        own_rows = model.update_row_factors(part(matrix, number))[1]
        own_columns = model.update_col_factors(
            tf.sparse_transpose(part(np.ascontiguousarray(matrix.T), number))
        )[1]
        prepare = [
            [model.row_update_prep_gramian_op, model.initialize_row_update_op],
            [model.col_update_prep_gramian_op, model.initialize_col_update_op],
        ]
        factors = [model.row_factors[0], model.col_factors[0]]
        return (own_rows, own_columns, prepare, model.worker_init), factors

    graphs = []
    for number in range(WORKERS):
        device = tf.train.replica_device_setter(1, worker_device=f"/job:worker/task:{number}")
        with tf.Graph().as_default(), tf.device(device):
            built, factors = build(number)
            sessions = tf.Session(tasks.target("worker", number))
            graphs.append((sessions, built, factors, tf.global_variables_initializer()))
    graphs[0][0].run(graphs[0][3])
    for session, built, _, _ in graphs:
        session.run(built[3])
    for _ in range(15):
        for turn in (0, 1):
            for prepare in range(2):
                for session, built, _, _ in graphs if prepare else graphs[:1]:
                    session.run(built[2][turn][prepare])
            threads = [
                threading.Thread(target=session.run, args=(built[turn],))
                for session, built, _, _ in graphs
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    u, v = graphs[1][0].run(graphs[1][2])
    for session, *_ in graphs:
        session.close()
    best = TruncatedSVD(3, random_state=0).fit(matrix)
    least = ((matrix - best.inverse_transform(best.transform(matrix))) ** 2).sum()
    assert ((matrix - u @ v.T) ** 2).sum() == pytest.approx(least, rel=1e-3)


def test_one_forest_grows_on_the_server(tasks):
    points, labels = real("breast_cancer")
    train, held = slice(None, 400), slice(400, None)

    def build(number):
        hparams = ForestHParams(
            num_classes=2, num_features=30, num_trees=30, split_after_samples=60, base_random_seed=7
        )
        forest = RandomForestGraphs(hparams.fill())
        own = slice(number, 400, WORKERS)
        step = forest.training_graph(points[own], labels[own].astype(np.int32))
        return step, forest.inference_graph(points[held])[0]

    with Trained(tasks, build, 60) as trained:
        ours = [(trained.found(i)[:, 1] > 0.5) == labels[held] for i in range(WORKERS)]
    theirs = ensemble.RandomForestClassifier(30, random_state=0).fit(points[train], labels[train])
    assert (ours[0] == ours[1]).all()
    assert ours[0].mean() > theirs.score(points[held], labels[held]) - 0.02


def test_batches_of_both_move_the_same_centres(tasks):
    points = real("iris")[0]

    def build(number):
        with tf.variable_scope("kmeans"):
            model = KMeans(points[number::WORKERS], 3, points[[0, 60, 120]], use_mini_batch=True)
            _, _, _, _, start, step = model.training_graph()
        centres = tf.get_default_graph().get_tensor_by_name("kmeans/clusters:0")
        return step, centres, start

    with Trained(tasks, build, 20, lambda session, built: session.run(built[2])) as trained:
        centres = trained.found()
    far = ((points[:, None] - centres) ** 2).sum(-1).min(1).sum()
    theirs = clusters.KMeans(3, init=points[[0, 60, 120]], n_init=1).fit(points)
    assert far < 1.05 * theirs.inertia_
