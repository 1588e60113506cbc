"""Input functions of pandas data frames; pandas is imported when one is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.estimator.inputs.arrays import batches_fn, check_shuffle

__all__ = ["pandas_input_fn"]


def pandas_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
    target_column: str = "target",
) -> Callable[[], Any]:
    """An input function that gives batches of a data frame: a tensor, shape (batch,), per column.

    Args:
        x: a pandas DataFrame; y: a Series, or a DataFrame for a dictionary of labels; None for
            features alone.
        batch_size, num_epochs, shuffle, queue_capacity, num_threads: as for `numpy_input_fn`.
        target_column: a name that no column of ``x`` has.

    Returns:
        A function that gives features by column, or a pair of features and labels.

    Raises:
        ImportError: if pandas is not installed.
        TypeError: if ``x`` or ``y`` is of a wrong type.
        ValueError: if the indices of ``x`` and ``y`` differ, or ``x`` has the target column.

    >>> import pandas as pd
    >>> x, y = pd.DataFrame({"age": [20, 30], "town": ["Ulm", "Bonn"]}), pd.Series([0, 1])
    >>> input_fn = tf.estimator.inputs.pandas_input_fn(x, y, shuffle=False)
    >>> features, labels = input_fn()
    >>> with tf.train.MonitoredSession() as sess:
    ...     sess.run([features["town"], labels])
    [array([b'Ulm', b'Bonn'], dtype=object), array([0, 1])]
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            "pandas_input_fn needs pandas: pip install pandas. numpy_input_fn takes a dictionary "
            "of arrays."
        ) from error
    check_shuffle(shuffle)
    if not isinstance(target_column, str):
        raise TypeError("target_column must be a string type")
    if not isinstance(x, pd.DataFrame):
        raise TypeError(f"x must be a pandas DataFrame; got {type(x).__name__}")
    labels = None
    if y is not None:
        if not isinstance(y, (pd.DataFrame, pd.Series)):
            raise TypeError(f"y must be a pandas Series or DataFrame; got {type(y).__name__}")
        if target_column in x:
            raise ValueError(
                f"Cannot use name {target_column} for target column: DataFrame already has a "
                f"column with that name: {x.columns}"
            )
        if not np.array_equal(x.index, y.index):
            raise ValueError(
                f"Index for x and y are mismatched.\nIndex for x: {x.index}\n"
                f"Index for y: {y.index}\n"
            )
        labels = _columns(y) if isinstance(y, pd.DataFrame) else {"": _array(y)}
    return batches_fn(
        _columns(x),
        labels,
        batch_size,
        num_epochs,
        bool(shuffle),
        plain=(False, not isinstance(y, pd.DataFrame)),
    )


def _columns(frame: Any) -> dict[str, Any]:
    return {str(name): _array(frame[name]) for name in frame.columns}


def _array(series: Any) -> Any:
    """The values of a column; texts as objects, categories as their values."""
    array = series.to_numpy()
    return array if array.dtype.kind in "biufc" else series.to_numpy(dtype=object)
