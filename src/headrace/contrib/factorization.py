"""``tf.contrib.factorization``: k-means clustering as a graph."""

from __future__ import annotations

from typing import Any

from headrace.contrib.folders import Folder as _Folder
from headrace.graph import dtypes
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.array.api import expand_dims, reshape, zeros
from headrace.ops.array.api import shape as shape_of
from headrace.ops.array.gather_api import gather
from headrace.ops.array.joining_api import concat, stack
from headrace.ops.control.basic import group, no_op
from headrace.ops.control.flow_api import cond, while_loop
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.math.cast import cast
from headrace.ops.math.matmul import matmul
from headrace.ops.math.reduction_api import argmin, reduce_min, reduce_sum
from headrace.ops.nn.normalization_api import l2_normalize
from headrace.ops.random.api import multinomial, random_uniform
from headrace.ops.state.scopes_api import control_dependencies
from headrace.ops.state.variables import Variable

__all__ = [
    "COSINE_DISTANCE",
    "KMEANS_PLUS_PLUS_INIT",
    "RANDOM_INIT",
    "SQUARED_EUCLIDEAN_DISTANCE",
    "KMeans",
]

python = _Folder(__name__, "python")

SQUARED_EUCLIDEAN_DISTANCE = "squared_euclidean"
COSINE_DISTANCE = "cosine"
RANDOM_INIT = "random"
KMEANS_PLUS_PLUS_INIT = "kmeans_plus_plus"


class KMeans:
    """Lloyd's algorithm (1982) on whole data, or Sculley's on batches (WWW 2010).

    Args:
        inputs: points ``[points, dims]``, or a list of such tensors.
        num_clusters: how many centres.
        initial_clusters: "random" (rows of the data), "kmeans_plus_plus" (Arthur and
            Vassilvitskii, SODA 2007; one candidate for each centre), an array or tensor
            ``[clusters, dims]``, or a function of (inputs, num_clusters) that returns one.
        distance_metric: "squared_euclidean" or "cosine".
        use_mini_batch: each step moves the centres towards what it sees, by the share that this
            has of all that the centre has seen.
        random_seed: of the first centres.
        kmeans_plus_plus_num_retries, kmc2_chain_length: of other ways to draw them; not used.

    Raises:
        ValueError: for another metric or way to start, or more than one batch an iteration.

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
        num_clusters: int,
        initial_clusters: Any = RANDOM_INIT,
        distance_metric: str = SQUARED_EUCLIDEAN_DISTANCE,
        use_mini_batch: bool = False,
        mini_batch_steps_per_iteration: int = 1,
        random_seed: int = 0,
        kmeans_plus_plus_num_retries: int = 2,
        kmc2_chain_length: int = 200,
    ) -> None:
        if distance_metric not in (SQUARED_EUCLIDEAN_DISTANCE, COSINE_DISTANCE):
            raise ValueError(f"Unsupported distance metric passed to Kmeans {distance_metric}")
        named = isinstance(initial_clusters, str)
        if named and initial_clusters not in (RANDOM_INIT, KMEANS_PLUS_PLUS_INIT):
            raise ValueError(f"Unsupported initialization algorithm {initial_clusters!r}")
        if use_mini_batch and mini_batch_steps_per_iteration != 1:
            raise ValueError("Centres move after each batch: mini_batch_steps_per_iteration is 1.")
        self._cosine = distance_metric == COSINE_DISTANCE
        given = inputs if isinstance(inputs, (list, tuple)) else [inputs]
        self._inputs = [convert_to_tensor(x, dtypes.float32) for x in given]
        if self._cosine:
            self._inputs = [l2_normalize(x, 1) for x in self._inputs]
        self._num_clusters = num_clusters
        self._initial_clusters = initial_clusters
        self._use_mini_batch = use_mini_batch
        self._random_seed = random_seed

    def training_graph(self) -> tuple[Any, Any, Any, Variable, Operation, Operation]:
        """The graph that finds the centres.

        Returns:
            For each input, in tuples: the distance to each centre ``[points, clusters]``, the
            number of the nearest centre (int64) ``[points]`` and the distance to it ``[points]``;
            then a variable that says whether there are centres, the op that makes them from the
            data if there are none, and the op that improves them.
        """
        variable = Variable(zeros([0]), name="clusters", validate_shape=False)
        initialized = Variable(False, name="initialized")
        counts = None
        if self._use_mini_batch:
            counts = Variable(zeros([self._num_clusters], dtypes.int64))
        dims = shape_of(self._inputs[0])[1]
        centers = reshape(variable.value(), stack([self._num_clusters, dims]))
        nearest = l2_normalize(centers, 1) if self._cosine else centers
        all_scores = tuple(self._distances(x, nearest) for x in self._inputs)
        cluster_idx = tuple(argmin(d, 1) for d in all_scores)
        scores = tuple(reduce_min(d, 1) for d in all_scores)
        init_op: Any = cond(initialized, no_op, lambda: self._initialize(variable, initialized))
        points, owners = concat(self._inputs, 0), concat(cluster_idx, 0)
        sums = raw.UnsortedSegmentSum(points, owners, self._num_clusters)
        sizes = raw.UnsortedSegmentSum(raw.OnesLike(owners), owners, self._num_clusters)
        if counts is None:
            train_op = variable.assign(_means(sums, sizes, self._cosine), read_value=False)
        else:
            share = expand_dims(cast(sizes, dtypes.float32), 1)
            seen = expand_dims(cast(counts.value() + sizes, dtypes.float32), 1)
            moved = centers + raw.DivNoNan(sums - share * nearest, seen)
            with control_dependencies([moved]):
                counted = counts.assign_add(sizes, read_value=False)
            train_op = group(counted, variable.assign(moved, read_value=False))
        return all_scores, cluster_idx, scores, initialized, init_op, train_op

    def _distances(self, points: Tensor, centers: Tensor) -> Tensor:
        products = matmul(points, centers, transpose_b=True)
        if self._cosine:
            return 1.0 - products
        squares = reduce_sum(points * points, 1, keepdims=True) - 2.0 * products
        return raw.Maximum(squares + reduce_sum(centers * centers, 1), 0.0)

    def _initialize(self, variable: Variable, initialized: Variable) -> Operation:
        start = self._initial_clusters
        points = concat(self._inputs, 0)
        if callable(start):
            centers = convert_to_tensor(start(self._inputs, self._num_clusters), dtypes.float32)
        elif not isinstance(start, str):
            centers = convert_to_tensor(start, dtypes.float32)
        elif start == RANDOM_INIT:
            rows = cast(shape_of(points)[0], dtypes.int64)
            chosen = random_uniform(
                [self._num_clusters], 0, rows, dtypes.int64, seed=self._random_seed
            )
            centers = gather(points, chosen)
        else:
            centers = self._spread(points)
        if self._cosine:
            centers = l2_normalize(centers, 1)
        with control_dependencies([variable.assign(centers, read_value=False)]):
            result: Operation = initialized.assign(True, read_value=False)
            return result

    def _spread(self, points: Tensor) -> Tensor:
        """Rows drawn one after the other, by their squared distance to those drawn before."""

        def draw(i: Tensor, centers: Tensor, distances: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            row = multinomial(expand_dims(raw.Log(distances), 0), 1, seed=self._random_seed)
            center = gather(points, row[0])
            own = reduce_sum(raw.SquaredDifference(points, center), 1)
            left = raw.SelectV2(raw.Equal(i, 0), own, raw.Minimum(own, distances))
            place = cast(raw.Equal(raw.Range(0, self._num_clusters, 1), i), dtypes.float32)
            return i + 1, centers + expand_dims(place, 1) * center, left

        dims = shape_of(points)
        none = zeros(stack([self._num_clusters, dims[1]]))
        start = (convert_to_tensor(0), none, raw.OnesLike(points[:, 0]))
        drawn = while_loop(lambda i, *_: i < self._num_clusters, draw, start)
        result: Tensor = drawn[1]
        return result


def _means(sums: Tensor, sizes: Tensor, normalized: bool) -> Tensor:
    """A centre that owns no point becomes zero, as in TensorFlow."""
    means = sums / (expand_dims(cast(sizes, dtypes.float32), 1) + 1e-6)
    return l2_normalize(means, 1) if normalized else means
