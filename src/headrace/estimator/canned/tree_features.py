"""Feature columns as trees take them: vectors of buckets, each column as often as it is wide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import headrace as tf
from headrace.feature_column.columns import CategoricalColumn, DenseColumn, FeatureColumn
from headrace.feature_column.dense import IndicatorColumn
from headrace.feature_column.features import FeatureTransformationCache
from headrace.feature_column.numeric import BucketizedColumn
from headrace.feature_column.state import StateManager
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import raw

__all__ = ["Columns", "transformed"]


def _kind(column: Any) -> str:
    """ "indicator", "buckets" or "numbers".

    Raises:
        ValueError: for a column that trees do not take.
    """
    if isinstance(column, IndicatorColumn):
        return "indicator"
    if isinstance(column, BucketizedColumn):
        return "buckets"
    if isinstance(column, DenseColumn):
        if not hasattr(column, "dtype"):
            raise ValueError(
                f"Column {column.name} is a {type(column).__name__}; trees take numeric, "
                "bucketized and indicator columns."
            )
        return "numbers"
    if isinstance(column, CategoricalColumn):
        raise ValueError(f"CategoricalColumn must be wrapped by IndicatorColumn, got: {column}")
    raise ValueError(f"Got unexpected feature column type: {column!r}.")


def _width(column: Any) -> int:
    """How many features a column makes."""
    kind = _kind(column)
    if kind == "indicator":
        return int(column.categorical_column.num_buckets)
    if kind == "buckets":
        return 1
    shape = column.variable_shape.as_list()
    if len(shape) > 1:
        raise ValueError(
            "For now, we only support Dense column with rank of 1, but column "
            f"`{column.name}` got: {column.variable_shape}"
        )
    return int(shape[0]) if shape else 1


def transformed(features: Mapping[str, Any], columns: Iterable[Any]) -> dict[Any, Tensor]:
    """What columns make of features, by column."""
    cache, state = FeatureTransformationCache(features), StateManager()
    return {column: cache.get(column, state) for column in columns}


class Columns:
    """The feature columns of trees, in the order of their names.

    Args:
        feature_columns: numeric, bucketized and indicator columns.
        num_quantiles: how many buckets a numeric feature has.

    Raises:
        ValueError: for other columns.
    """

    def __init__(self, feature_columns: Iterable[Any], num_quantiles: int) -> None:
        columns = list(feature_columns)
        for column in columns:
            if not isinstance(column, FeatureColumn):
                raise ValueError(f"Got unexpected feature column type: {column!r}.")
        self.all = sorted(columns, key=lambda column: str(column.name))
        self._num_quantiles = num_quantiles
        self.widths = [_width(column) for column in self.all]
        self.floats = [c for c in self.all if _kind(c) == "numbers" and c.dtype.is_floating]

    @property
    def count(self) -> int:
        """How many features there are."""
        return sum(self.widths)

    @property
    def float_count(self) -> int:
        """How many features have to be bucketized by their quantiles."""
        return sum(_width(column) for column in self.floats)

    def names(self) -> list[str]:
        """The name of the column of each feature."""
        named = []
        for column, width in zip(self.all, self.widths, strict=True):
            source = column.categorical_column if _kind(column) == "indicator" else column
            named += [str(source.name)] * width
        return named

    def groups(self) -> list[tuple[int, list[int]]]:
        """Features that have as many buckets: pairs of the number of buckets, and positions.

        Bucketized columns all count as the largest of them.
        """
        found: dict[int, list[int]] = {}
        bucketized: list[int] = []
        largest, position = 2, 0
        for column, width in zip(self.all, self.widths, strict=True):
            places = list(range(position, position + width))
            position += width
            kind = _kind(column)
            if kind == "buckets":
                largest = max(largest, len(column.boundaries) + 1)
                bucketized += places
            else:
                buckets = 2 if kind == "indicator" else self._num_quantiles
                found.setdefault(buckets, []).extend(places)
        if bucketized:
            found.setdefault(largest, []).extend(bucketized)
        return list(found.items())

    def float_values(self, features: Mapping[str, Any]) -> list[Tensor]:
        """The values of the features that are bucketized by their quantiles: vectors."""
        made = transformed(features, self.floats)
        return [value for column in self.floats for value in _unstacked(made[column], column)]

    def features(
        self,
        features: Mapping[str, Any],
        boundaries: Sequence[Tensor] = (),
        made: Mapping[Any, Tensor] | None = None,
    ) -> list[Tensor]:
        """All features as vectors of buckets, int32 ``[batch]``.

        Args:
            features: tensors by name.
            boundaries: of the features that are bucketized by their quantiles.
            made: what some of the columns have made already.

        Raises:
            ValueError: for features of another rank.
        """
        known = dict(made or {})
        known.update(transformed(features, [c for c in self.all if c not in known]))
        left, result = list(boundaries), []
        for column, width in zip(self.all, self.widths, strict=True):
            kind, tensor = _kind(column), known[column]
            if kind == "buckets":
                result.append(_only_column(tensor, column))
            elif kind == "indicator":
                if tensor.shape.ndims is not None and tensor.shape.ndims > 2:
                    raise ValueError(
                        "Rank of indicator column must be no more than 2, but column "
                        f"`{column.categorical_column.name}` got: {tensor.shape}"
                    )
                result += _split(tf.to_int32(tensor), width)
            elif column in self.floats:
                # Quantiles give a boundary more at times; the last bucket has what is above.
                mine = [edges[: self._num_quantiles] for edges in left[:width]]
                left = left[width:]
                result += raw.BoostedTreesBucketize(_unstacked(tensor, column), mine)
            else:
                result += _unstacked(tf.to_int32(tensor), column)
        return result


def _split(tensor: Tensor, width: int) -> list[Tensor]:
    parts: list[Tensor] = tf.unstack(tensor, num=width, axis=1)
    return parts


def _unstacked(tensor: Tensor, column: Any) -> list[Tensor]:
    return _split(tensor, _width(column))


def _only_column(tensor: Tensor, column: Any) -> Tensor:
    shape = tensor.shape
    if shape.ndims is not None and (shape.ndims > 2 or shape[1].value not in (None, 1)):
        raise ValueError(
            "For now, only supports features equivalent to rank 1 but column "
            f"`{column.source_column.name}` got: {shape}"
        )
    found: Tensor = tf.to_int32(tf.squeeze(tensor, axis=[1]))
    return found
