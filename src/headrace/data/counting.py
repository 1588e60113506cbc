"""How many elements datasets have."""

from __future__ import annotations

from typing import Any

from headrace.data.dataset import Dataset, _int64, check_dataset
from headrace.data.transformations import Transformation
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import raw

#: What `cardinality` gives for datasets without end, and for those that would have to be run.
INFINITE_CARDINALITY, UNKNOWN_CARDINALITY = -1, -2


def cardinality(dataset: Dataset) -> Tensor:
    """How many elements a dataset has: an int64 scalar.

    It is found without running the dataset: -1 (`INFINITE_CARDINALITY`) if there is no end, -2
    (`UNKNOWN_CARDINALITY`) after filters, generators, files and what else only a run would tell.

    Raises:
        TypeError: if ``dataset`` is none.

    >>> import headrace as tf
    >>> count = tf.data.experimental.cardinality(tf.data.Dataset.range(5).batch(2))
    >>> int(tf.Session().run(count))
    3
    """
    check_dataset(dataset)
    made: Tensor = raw.DatasetCardinality(dataset._variant_tensor)
    return made


def assert_cardinality(expected_cardinality: Any) -> Transformation:
    """The same elements, which must be ``expected_cardinality``; `cardinality` gives that number.

    Args:
        expected_cardinality: an int64 scalar.

    Raises:
        FailedPreconditionError: when the graph runs, at the first element too many, or at the end
            if there are fewer.
    """
    return lambda dataset: dataset._same(
        raw.AssertCardinalityDataset, _int64(expected_cardinality, "expected_cardinality")
    )


__all__ = ["INFINITE_CARDINALITY", "UNKNOWN_CARDINALITY", "assert_cardinality", "cardinality"]
