"""Ops of k-means: the nearest centres of points, what moves centres, and first centres.

`NearestNeighbors`, `KmeansPlusPlusInitialization` and `KMC2ChainInitialization` are those of
TensorFlow; their random numbers are others for the same seed. `HeadraceNearestCenters` is a whole
pass of Lloyd's algorithm.
"""

from __future__ import annotations

from headrace.graph.tensor import Dims, Operation
from headrace.ops.algorithms import clustering_kernels as kernels
from headrace.ops.core import requirements
from headrace.ops.core.array_util import static_int
from headrace.ops.core.registry import CHECKS, NotDifferentiable, define_op
from headrace.ops.core.traits import Traits

_NO_GRADIENT = NotDifferentiable("which center is nearest changes in leaps")


def _rows(op: Operation, position: int = 0) -> int | None:
    dims = op.inputs[position].dims
    return None if dims is None else dims[0]


def _nearest_shape(op: Operation) -> list[Dims]:
    k, centers = static_int(op.inputs[2]), _rows(op, 1)
    found = None if k is None or centers is None else min(k, centers)
    return [(_rows(op), found)] * 2


define_op(
    "NearestNeighbors(points: float32, centers: float32, k: int64)"
    " -> (nearest_center_indices: int64, nearest_center_distances: float32)",
    shape=_nearest_shape,
    kernel=kernels.nearest_neighbors,
    interpret=kernels.nearest_neighbors_on_cpu,
    static=(2,),
    effects=CHECKS,
    requires=[requirements.rank(2, 0, 1), requirements.scalar(2)],
    gradient=_NO_GRADIENT,
    traits=Traits(numpy_wins_from=0),
)


def _sample_shape(op: Operation) -> list[Dims]:
    points = op.inputs[0].dims
    return [(static_int(op.inputs[1]), None if points is None else points[1])]


define_op(
    "KmeansPlusPlusInitialization(points: float32, num_to_sample: int64, seed: int64,"
    " num_retries_per_sample: int64) -> samples: float32",
    shape=_sample_shape,
    kernel=kernels.plus_plus,
    static=(1, 3),
    effects=CHECKS,
    requires=[requirements.rank(2, 0), requirements.scalar(1, 2, 3)],
    gradient=NotDifferentiable("which points are drawn changes in leaps"),
)

define_op(
    "KMC2ChainInitialization(distances: float32, seed: int64) -> index: int64",
    shape=lambda op: [()],
    kernel=kernels.chain,
    effects=CHECKS,
    requires=[requirements.rank(1, 0), requirements.scalar(1)],
    gradient=NotDifferentiable("which point is drawn changes in leaps"),
)


def _pass_shape(op: Operation) -> list[Dims]:
    points, centers = op.inputs[0].dims, op.inputs[1].dims
    known: int = op.attrs["num_clusters"]
    clusters = known if known >= 0 else (None if centers is None else centers[0])
    dims = next((d[1] for d in (centers, points) if d is not None and d[1] is not None), None)
    rows = None if points is None else points[0]
    return [(rows,), (rows,), (clusters, dims), (clusters,)]


# `moves` is the sum of (point - center) over the points of a center, `counts` how many they are.
define_op(
    "HeadraceNearestCenters(points: T, centers: T)"
    " -> (indices: int64, distances: T, moves: T, counts: int64)",
    attrs="T: {float32, float64}, num_clusters: int = -1",
    shape=_pass_shape,
    kernel=kernels.nearest_centers,
    interpret=kernels.nearest_centers_on_cpu,
    effects=CHECKS,
    requires=[requirements.rank(2, 0, 1)],
    gradient=_NO_GRADIENT,
    cost=lambda op: 4.0 * _size(op, 0) * (_rows(op, 1) or 64),
    traits=Traits(
        numpy_wins_from=0,
        only_here="TensorFlow has several ops that do this one after the other",
    ),
)


def _size(op: Operation, position: int) -> float:
    result = 1.0
    for size in op.inputs[position].dims or ():
        result *= 64 if size is None else size
    return result
