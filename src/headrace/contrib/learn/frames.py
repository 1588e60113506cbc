"""Data frames and Dask arrays as the arrays that Estimators take."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.graph.tensor import Tensor

__all__ = [
    "extract_dask_data",
    "extract_dask_labels",
    "extract_pandas_data",
    "extract_pandas_labels",
    "extract_pandas_matrix",
]


def _is_frame(data: Any) -> bool:
    _require_memory(data)
    return hasattr(data, "to_numpy") and hasattr(data, "columns")


def _require_memory(data: Any) -> None:
    if isinstance(data, Tensor):
        raise TypeError(f"{data} has no values before a session runs it; give it to an input_fn.")


def extract_pandas_data(data: Any) -> Any:
    """The numbers of a data frame, an array ``[rows, columns]`` of float32.

    Other data are given back as they are.

    Raises:
        ValueError: if a column has no numbers.

    >>> tf.contrib.learn.extract_pandas_data([[1, 2]])
    [[1, 2]]
    """
    if not _is_frame(data):
        return data
    wrong = [str(name) for name, kind in data.dtypes.items() if kind.kind not in "biuf"]
    if wrong:
        raise ValueError(
            "Data types for extracting pandas data must be int, float, or bool. "
            f"Columns of other types: {', '.join(wrong)}"
        )
    return data.to_numpy().astype(np.float32)


def extract_pandas_matrix(data: Any) -> Any:
    """The values of a data frame, an array ``[rows, columns]``; other data as they are.

    Raises:
        TypeError: for a tensor.

    >>> tf.contrib.learn.extract_pandas_matrix([[1, 2]])
    [[1, 2]]
    """
    return data.to_numpy() if _is_frame(data) else data


def extract_pandas_labels(labels: Any) -> Any:
    """The values of a series, or of a frame of one column: an array ``[rows]`` or ``[rows, 1]``.

    Other labels are given back as they are.

    Raises:
        ValueError: if there are several columns, or there are no numbers.

    >>> tf.contrib.learn.extract_pandas_labels([1, 2])
    [1, 2]
    """
    if _is_frame(labels):
        if len(labels.columns) > 1:
            raise ValueError("Only one column for labels is allowed.")
        return extract_pandas_data(labels)
    return labels.to_numpy() if hasattr(labels, "to_numpy") else labels


def extract_dask_data(data: Any) -> Any:
    """The values of a Dask frame or array ``[rows, ...]``, in memory; other data as they are.

    Raises:
        TypeError: for a tensor.

    >>> tf.contrib.learn.extract_dask_data([[1, 2]])
    [[1, 2]]
    """
    _require_memory(data)
    return data.compute() if hasattr(data, "compute") else data


def extract_dask_labels(labels: Any) -> Any:
    """The values of a Dask series or array ``[rows]``, in memory; other labels as they are.

    Raises:
        ValueError: if there are several columns.

    >>> tf.contrib.learn.extract_dask_labels([1, 2])
    [1, 2]
    """
    if hasattr(labels, "compute") and len(getattr(labels, "columns", ())) > 1:
        raise ValueError("Only one column for labels is allowed.")
    return extract_dask_data(labels)
