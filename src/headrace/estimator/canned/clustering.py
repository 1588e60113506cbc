"""k-means clustering as a graph: `KMeans`, which the estimator `KMeansClustering` trains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import headrace as tf
from headrace.graph.devices import DeviceSpec
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core.build import raw
from headrace.ops.core.static import static_value

__all__ = [
    "CLUSTERS_VAR_NAME",
    "COSINE_DISTANCE",
    "KMC2_INIT",
    "KMEANS_PLUS_PLUS_INIT",
    "RANDOM_INIT",
    "SQUARED_EUCLIDEAN_DISTANCE",
    "KMeans",
    "on_task_of",
]

SQUARED_EUCLIDEAN_DISTANCE = "squared_euclidean"
COSINE_DISTANCE = "cosine"
RANDOM_INIT = "random"
KMEANS_PLUS_PLUS_INIT = "kmeans_plus_plus"
KMC2_INIT = "kmc2"
CLUSTERS_VAR_NAME = "clusters"

_METRICS = (SQUARED_EUCLIDEAN_DISTANCE, COSINE_DISTANCE)
_INITS = (RANDOM_INIT, KMEANS_PLUS_PLUS_INIT, KMC2_INIT)


@contextmanager
def on_task_of(tensor: Tensor) -> Iterator[None]:
    """Within the block, ops go to the task that has a tensor, if its device names one."""
    spec = DeviceSpec.from_string(tensor.device or "")
    spec = DeviceSpec(job=spec.job, replica=spec.replica, task=spec.task)
    with tf.device(spec.to_string() or None):
        yield


class KMeans:
    """Lloyd's algorithm (1982) on whole data, or Sculley's on batches (WWW 2010).

    A step works through the points in blocks, so that distances of all points to all centres never
    stand in memory. A centre that no point is nearest to stays where it is.

    Args:
        inputs: points ``[points, dims]``, float32 or what can be cast, or a list of such tensors.
            Each is worked on by the task that has it, and the sums are put together: so whole data
            is shared out over a cluster.
        num_clusters: how many centres; not looked at where ``initial_clusters`` is a tensor.
        initial_clusters: "random" (distinct rows of the data), "kmeans_plus_plus" (Arthur and
            Vassilvitskii, SODA 2007, section 2, the best of some candidates for each centre),
            "kmc2" (Bachem, Lucic, Hassani and Krause, AAAI 2016), an array or tensor
            ``[clusters, dims]``, or a function of (inputs, number) that returns at most so many.
        distance_metric: "squared_euclidean" or "cosine".
        use_mini_batch: each step moves the centres towards what it sees, by the share that this
            has of all that the centre has seen.
        mini_batch_steps_per_iteration: after how many steps points are compared with the moved
            centres; until then with those of before.
        random_seed: of the first centres.
        kmeans_plus_plus_num_retries: how many candidates beyond the first; negative for
            ``2 + log(clusters)``.
        kmc2_chain_length: how many points are compared for each centre of "kmc2".

    Raises:
        ValueError: for another metric or way to start, no clusters, or no steps an iteration.
        InvalidArgumentError: when run, for points or centres that are not finite, and fewer
            points than "kmeans_plus_plus" is to draw.

    >>> points = tf.constant([[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]])
    >>> means = tf.contrib.factorization.KMeans(points, num_clusters=2, random_seed=1)
    >>> _, indices, _, _, init, train = means.training_graph()
    >>> with tf.Session() as sess:
    ...     sess.run(tf.global_variables_initializer())
    ...     done = sess.run(init)
    ...     sess.run(train)
    ...     a, b, c = sess.run(indices)[0].tolist()
    >>> a == b, a == c
    (True, False)
    """

    def __init__(
        self,
        inputs: Any,
        num_clusters: Any,
        initial_clusters: Any = RANDOM_INIT,
        distance_metric: str = SQUARED_EUCLIDEAN_DISTANCE,
        use_mini_batch: bool = False,
        mini_batch_steps_per_iteration: int = 1,
        random_seed: int = 0,
        kmeans_plus_plus_num_retries: int = 2,
        kmc2_chain_length: int = 200,
    ) -> None:
        if distance_metric not in _METRICS:
            raise ValueError(f"Unsupported distance metric passed to Kmeans {distance_metric}")
        if isinstance(initial_clusters, str) and initial_clusters not in _INITS:
            raise ValueError(f"Unsupported initialization algorithm {initial_clusters!r}")
        if mini_batch_steps_per_iteration < 1:
            raise ValueError(
                "mini_batch_steps_per_iteration must be at least 1, not "
                f"{mini_batch_steps_per_iteration}"
            )
        self._cosine = distance_metric == COSINE_DISTANCE
        self._inputs = [
            tf.cast(tf.convert_to_tensor(x), tf.float32)
            for x in (inputs if isinstance(inputs, (list, tuple)) else [inputs])
        ]
        if not self._inputs:
            raise ValueError("inputs are an empty list: k-means needs points")
        self._start = initial_clusters
        if not isinstance(initial_clusters, str) and not callable(initial_clusters):
            self._start = tf.cast(tf.convert_to_tensor(initial_clusters), tf.float32)
            num_clusters = tf.shape(self._start)[0]
        self._num_clusters = _known_number(num_clusters)
        self._batches = use_mini_batch
        self._steps = mini_batch_steps_per_iteration if use_mini_batch else 1
        self._seed = random_seed
        self._retries = kmeans_plus_plus_num_retries
        self._chain_length = kmc2_chain_length

    def training_graph(self) -> tuple[Any, Any, Any, Any, Operation, Operation]:
        """The graph that finds the centres.

        Returns:
            For each input, in tuples: the distance to each centre ``[points, clusters]``, the
            number of the nearest centre (int64) ``[points]`` and the distance to it ``[points]``;
            then a variable that says whether there are centres, the op that chooses them from the
            data until there are (run it again if it found fewer points than centres), and the op
            that improves them.
        """
        self._create_variables()
        inputs = self._inputs
        if self._cosine:
            inputs = [_normalized(x) for x in inputs]
        init_op: Any = tf.cond(self._initialized, tf.no_op, lambda: self._initialize(inputs))
        centers: Any = self._clusters.value()
        nearest = _normalized(centers) if self._cosine else centers
        self._compared = list(inputs), nearest
        number = self._num_clusters if isinstance(self._num_clusters, int) else -1
        passes: list[Any] = []
        all_scores: list[Tensor] = []
        scores: list[Tensor] = []
        for x in inputs:
            with on_task_of(x):
                passes.append(raw.HeadraceNearestCenters(x, nearest, num_clusters=number))
                all_scores.append(self._distances(x, nearest))
                scores.append(passes[-1][1] * (0.5 if self._cosine else 1.0))
        moves = tf.add_n([p[2] for p in passes])
        sizes = tf.add_n([p[3] for p in passes])
        train_op = (
            self._move_by_shares(nearest, moves, sizes)
            if self._batches
            else self._move_to_means(nearest, moves, sizes)
        )
        indices = tuple(p[0] for p in passes)
        return tuple(all_scores), indices, tuple(scores), self._initialized, init_op, train_op

    def nearest(self) -> tuple[Tensor, ...]:
        """The numbers of the nearest centres by an op of TensorFlow, for exported models.

        To be called after `training_graph`.
        """
        one, (inputs, centers) = tf.constant(1, tf.int64), self._compared
        return tuple(raw.NearestNeighbors(x, centers, one)[0][:, 0] for x in inputs)

    def _create_variables(self) -> None:
        def variable(value: Any, name: str | None = None) -> Any:
            return tf.Variable(value, name=name, validate_shape=False, trainable=False)

        none = tf.zeros([0])
        self._clusters = variable(none, CLUSTERS_VAR_NAME)
        self._initialized = tf.Variable(False, name="initialized", trainable=False)
        self._moved = self._clusters
        if not self._batches:
            return
        first = tf.zeros if self._steps > 1 else tf.ones
        if self._steps > 1:
            self._moved = variable(none, "clusters_updated")
            self._left = tf.Variable(
                tf.constant(self._steps, tf.int64), name="update_in_steps", trainable=False
            )
        self._seen = variable(first([self._num_clusters], tf.int64))

    def _distances(self, points: Tensor, centers: Tensor) -> Tensor:
        """To every centre, exact where points and centres lie close together far from zero."""
        known = self._num_clusters if isinstance(self._num_clusters, int) else None
        if self._cosine:
            found = 1.0 - tf.matmul(points, centers, transpose_b=True)
        else:
            middle = tf.reduce_mean(centers, 0, keepdims=True)
            points, centers = points - middle, centers - middle
            squares = tf.reduce_sum(points * points, 1, keepdims=True)
            squares -= 2.0 * tf.matmul(points, centers, transpose_b=True)
            found = tf.maximum(squares + tf.reduce_sum(centers * centers, 1), 0.0)
        found.set_shape([None, known])
        return found

    # -- training -------------------------------------------------------------------------------

    def _move_to_means(self, nearest: Tensor, moves: Tensor, sizes: Tensor) -> Operation:
        means = nearest + raw.DivNoNan(moves, tf.cast(tf.expand_dims(sizes, 1), tf.float32))
        means = _normalized(means) if self._cosine else means
        op: Operation = self._clusters.assign(means, read_value=False)
        return op

    def _move_by_shares(self, nearest: Tensor, moves: Tensor, sizes: Tensor) -> Operation:
        """Adds to what other workers add to, at the same time."""
        with tf.control_dependencies([moves, sizes]):
            synced = self._sync() if self._steps > 1 else tf.no_op()
        with tf.control_dependencies([synced]):
            new = tf.expand_dims(sizes, 1)
            seen = tf.cast(tf.expand_dims(self._seen.value(), 1) + new, tf.float32)
            own: Any = self._moved.value()
            if self._steps > 1 or self._cosine:
                moves = moves + tf.cast(new, tf.float32) * (nearest - own)
            delta = raw.DivNoNan(moves, seen)
        with tf.control_dependencies([delta]):
            counted = self._seen.assign_add(sizes, read_value=False)
            moved = self._moved.assign_add(delta, read_value=False)
        op: Operation = tf.group(counted, moved)
        return op

    def _sync(self) -> Operation:
        """At the end of an iteration: points are compared with the moved centres from now on."""

        def begin() -> Operation:
            again = self._left.assign(self._steps - 1, read_value=False)
            moved: Any = self._moved.value()
            moved = _normalized(moved) if self._cosine else moved
            taken = self._clusters.assign(moved, read_value=False)
            with tf.control_dependencies([again, taken]):
                zeros = tf.zeros_like(self._seen.value())
                op: Operation = self._seen.assign(zeros, read_value=False)
                return op

        def go_on() -> Operation:
            op: Operation = self._left.assign_sub(1, read_value=False)
            return op

        op: Any = tf.cond(self._left.value() <= 0, begin, go_on)
        return op.op if isinstance(op, Tensor) else op

    # -- first centres --------------------------------------------------------------------------

    def _initialize(self, inputs: Sequence[Tensor]) -> Operation:
        """Adds centres to those there are; sets ``initialized`` when all are there."""
        points = tf.concat(inputs, 0) if len(inputs) > 1 else inputs[0]
        there: Any = self._clusters.value()
        chosen = tf.shape(there)[0]
        wanted = self._num_clusters - chosen
        start = self._start
        if callable(start):
            new = tf.cast(tf.convert_to_tensor(start(list(inputs), wanted)), tf.float32)
        elif not isinstance(start, str):
            new = start
        elif start == RANDOM_INIT:
            new = _distinct_rows(points, wanted, self._seed)
        elif start == KMEANS_PLUS_PLUS_INIT:
            new = raw.KmeansPlusPlusInitialization(
                points,
                tf.cast(wanted, tf.int64),
                tf.constant(self._seed, tf.int64),
                tf.constant(self._retries, tf.int64),
            )
        else:
            new = self._chained(points)
        new = _normalized(new) if self._cosine else new
        if start is not KMC2_INIT and (callable(start) or start == RANDOM_INIT):
            there = tf.reshape(there, [chosen, tf.shape(new)[1]])
            new = tf.concat([there, new], 0)
        done = tf.equal(tf.shape(new)[0], self._num_clusters)
        stored = [self._clusters.assign(new, read_value=False)]
        if self._moved is not self._clusters:
            stored.append(self._moved.assign(new, read_value=False))
        with tf.control_dependencies(stored):
            op: Operation = self._initialized.assign(done, read_value=False)
            return op

    def _chained(self, points: Tensor) -> Tensor:
        """Each centre is the end of a chain of points, which prefers those far from the others."""
        number = tf.convert_to_tensor(self._num_clusters)
        length = tf.minimum(tf.shape(points)[0], self._chain_length)

        def draw(i: Tensor, centers: Tensor) -> tuple[Tensor, Tensor]:
            rows = tf.random_uniform(
                [length], 0, tf.shape(points)[0], tf.int32, seed=self._seed + 1
            )
            subset = tf.gather(points, rows)
            # Centres that are not drawn yet stand for the first one.
            known = tf.where(tf.range(number) < i, centers, tf.zeros_like(centers) + centers[:1])
            _, distances = raw.NearestNeighbors(subset, known, tf.constant(1, tf.int64))
            at = raw.KMC2ChainInitialization(
                distances[:, 0], tf.cast(i, tf.int64) + tf.constant(self._seed, tf.int64)
            )
            place = tf.equal(tf.range(number), i)
            return i + 1, tf.where(place, tf.zeros_like(centers) + subset[at], centers)

        first = _distinct_rows(points, tf.constant(1), self._seed)
        start = tf.tile(first, tf.stack([number, 1]))
        drawn = tf.while_loop(lambda i, _: i < number, draw, (tf.constant(1), start))
        result: Tensor = drawn[1]
        return result


def _known_number(number: Any) -> Any:
    """The number of clusters as an int, if the graph tells it.

    Raises:
        ValueError: for less than one.
    """
    if isinstance(number, Tensor):
        known = static_value(number)
        if known is None:
            return tf.cast(number, tf.int32)
        number = known
    number = int(number)
    if number < 1:
        raise ValueError(f"num_clusters must be at least 1, not {number}")
    return number


def _normalized(x: Tensor) -> Tensor:
    result: Tensor = tf.nn.l2_normalize(x, 1)
    return result


def _distinct_rows(points: Tensor, number: Any, seed: int) -> Tensor:
    """So many rows at random, no row twice; all rows, if there are fewer."""
    keys = tf.random_uniform([tf.shape(points)[0]], seed=seed)
    rows: Tensor = tf.gather(points, tf.argsort(keys)[:number])
    return rows
