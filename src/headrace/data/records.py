"""Datasets of records with columns: CSV files, and Example protos in TFRecord files."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from headrace.data import transformations
from headrace.data.dataset import AUTOTUNE, Dataset
from headrace.data.readers import TFRecordDataset
from headrace.data.structure import Component, flat_attrs
from headrace.files import globbing
from headrace.files.records import check_compression
from headrace.graph import dtypes
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.data.files import lines_reader, pieces_of
from headrace.ops.parsing.api import parse_example

_TYPES = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64, dtypes.string)


class CsvDataset(Dataset):
    """The records of CSV files: tuples of scalars, one for each column.

    Args:
        record_defaults: for each wanted column its default, or its dtype if it must have a value.
        header: whether to leave out the first line of each file.
        select_cols: the positions of the wanted columns, in order; all by default.

    >>> import headrace as tf
    >>> with tf.gfile.GFile("iris.csv", "w") as file:
    ...     _ = file.write("size,kind\\n1.5,setosa\\n,virginica\\n")
    >>> dataset = tf.data.experimental.CsvDataset("iris.csv", [[0.0], tf.string], header=True)
    >>> row = dataset.make_one_shot_iterator().get_next()
    >>> with tf.Session() as sess:
    ...     sess.run(row)[1], float(sess.run(row)[0])
    (b'setosa', 0.0)
    """

    def __init__(
        self,
        filenames: Any,
        record_defaults: Sequence[Any],
        compression_type: Any = None,
        buffer_size: Any = None,
        header: Any = False,
        field_delim: Any = ",",
        use_quote_delim: Any = True,
        na_value: Any = "",
        select_cols: Any = None,
    ) -> None:
        defaults = [_default(given) for given in record_defaults]
        structure = tuple([Component(d.dtype, []) for d in defaults])
        made = raw.CSVDataset(
            convert_to_tensor(filenames, dtypes.string),
            compression_type or "",
            np.int64(buffer_size or 4 << 20),
            header,
            field_delim,
            use_quote_delim,
            na_value,
            np.array(select_cols or [], np.int64),
            defaults,
            **flat_attrs(structure),
        )
        super().__init__(made, structure)


def _default(given: Any) -> Tensor:
    """A default as a vector of one value, or of none."""
    if isinstance(given, (dtypes.DType, type)):
        dtype = dtypes.as_dtype(given)
        return convert_to_tensor(np.zeros(0, dtype.as_numpy_dtype), dtype)
    value = convert_to_tensor(given)
    return raw.Reshape(value, [1]) if value.shape.ndims == 0 else value


def make_csv_dataset(
    file_pattern: Any,
    batch_size: int,
    column_names: Sequence[str] | None = None,
    column_defaults: Sequence[Any] | None = None,
    label_name: str | None = None,
    select_columns: Sequence[Any] | None = None,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    header: bool = True,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    num_parallel_reads: int | None = None,
    sloppy: bool = False,
    num_rows_for_inference: int | None = 100,
    compression_type: Any = None,
    ignore_errors: bool = False,
) -> Dataset:
    """Batches of CSV files: dicts of columns, and the labels beside them if they have a name.

    Each column of a batch has the shape ``[batch_size]``; the last batch may be smaller.

    Args:
        file_pattern: names or patterns of files; column_names: by default those in the first line.
        column_defaults: as for `CsvDataset`; by default types are guessed from the first rows.
        select_columns: names or positions of the wanted columns.

    Raises:
        ValueError: if no file matches, names are there twice, or ``label_name`` is no column.
    """
    paths = _files(file_pattern, shuffle, shuffle_seed)
    quoting = csv.QUOTE_MINIMAL if use_quote_delim else csv.QUOTE_NONE
    form = {"delimiter": field_delim, "quoting": quoting}
    if column_names is None:
        column_names = _names(paths[0], form, header, compression_type)
    chosen = _positions(select_columns, column_names)
    names = [column_names[i] for i in chosen]
    if label_name is not None and label_name not in names:
        raise ValueError(f"`label_name` must be one of the columns {names}, not {label_name!r}.")
    if column_defaults is None:
        column_defaults = _guessed(
            paths, form, chosen, header, na_value, num_rows_for_inference, compression_type
        )

    def of_file(path: Any) -> Dataset:
        return CsvDataset(
            path,
            column_defaults,
            compression_type,
            None,
            header,
            field_delim,
            use_quote_delim,
            na_value,
            chosen if select_columns is not None else None,
        )

    reads = 1 if num_parallel_reads is None else num_parallel_reads
    dataset = Dataset.from_tensor_slices(paths).interleave(of_file, reads)
    if ignore_errors:
        dataset = dataset.apply(transformations.ignore_errors())
    dataset = _epochs(dataset, num_epochs, shuffle, shuffle_buffer_size, shuffle_seed)

    def columns(*values: Tensor) -> Any:
        return _with_label(dict(zip(names, values, strict=True)), label_name)

    batches = dataset.batch(batch_size, drop_remainder=num_epochs is None).map(columns)
    return batches.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


def _names(path: str, form: Any, header: bool, compression: Any) -> list[str]:
    """The names of columns in the first line of a file."""
    if not header:
        raise ValueError("Cannot infer column names without a header line.")
    return next(_rows(path, form, compression))


def _with_label(features: dict[str, Any], label: str | None) -> Any:
    """The features, and beside them the one that is the label."""
    if label is None:
        return features
    found = features.pop(label)
    return features, found


def _files(pattern: Any, shuffle: bool, seed: int | None) -> list[str]:
    patterns = [pattern] if isinstance(pattern, (str, bytes)) else list(pattern)
    paths = sorted(globbing.glob(patterns))
    if not paths:
        raise ValueError(f"No files match {pattern!r}.")
    if shuffle:
        np.random.RandomState(seed).shuffle(paths)
    return paths


def _epochs(
    dataset: Dataset, epochs: int | None, shuffle: bool, size: int, seed: int | None
) -> Dataset:
    if shuffle:
        return dataset.apply(transformations.shuffle_and_repeat(size, epochs, seed))
    return dataset if epochs == 1 else dataset.repeat(epochs)


def _rows(path: str, form: Any, compression: Any) -> Iterator[list[str]]:
    """The records of a file as lists of texts."""
    lines = pieces_of(lines_reader(check_compression(compression or ""))(path, 0))
    return csv.reader((f"{line.decode()}\n" for line, _ in lines), **form)


def _positions(selected: Sequence[Any] | None, names: Sequence[str]) -> list[int]:
    if len(set(names)) != len(names):
        raise ValueError("Cannot have duplicate column names.")
    if selected is None:
        return list(range(len(names)))
    found = []
    for column in selected:
        if isinstance(column, str):
            if column not in names:
                raise ValueError(f"There is no column {column!r}; there are {list(names)}.")
            found.append(list(names).index(column))
        else:
            found.append(int(column))
    if found != sorted(set(found)):
        raise ValueError(f"`select_columns` must name different columns in order: {selected}.")
    if found and not 0 <= found[0] <= found[-1] < len(names):
        raise ValueError(f"`select_columns` has positions outside of the {len(names)} columns.")
    return found


def _guessed(
    paths: Sequence[str],
    form: Any,
    chosen: Sequence[int],
    header: bool,
    missing: str,
    most: int | None,
    compression: Any,
) -> list[Any]:
    """Defaults of the narrowest types that hold the first values of columns: 0 or an empty text."""
    found = [-1] * len(chosen)
    seen = 0
    for path in paths:
        rows = _rows(path, form, compression)
        if header:
            next(rows, None)
        for row in rows:
            if most is not None and seen >= most:
                break
            for i, column in enumerate(chosen):
                found[i] = max(found[i], _kind(row[column], missing) if column < len(row) else -1)
            seen += 1
    return [
        [""] if _TYPES[kind] is dtypes.string else np.zeros(1, _TYPES[kind].as_numpy_dtype)
        for kind in found
    ]


def _kind(field: str, missing: str) -> int:
    """The position in `_TYPES` of the narrowest type of a field; -1 if it is empty."""
    if field in ("", missing):
        return -1
    try:
        number = int(field)
    except ValueError:
        pass
    else:
        if dtypes.int32.min <= number <= dtypes.int32.max:
            return 0
        return 1 if dtypes.int64.min <= number <= dtypes.int64.max else 4
    try:
        value = float(field)
    except ValueError:
        return 4
    is_single = abs(value) <= float(dtypes.float32.max) or not np.isfinite(value)
    return 2 if is_single else 3


def make_batched_features_dataset(
    file_pattern: Any,
    batch_size: int,
    features: dict[str, Any],
    reader: Callable[..., Dataset] = TFRecordDataset,
    label_key: str | None = None,
    reader_args: Sequence[Any] | None = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    reader_num_threads: int | None = None,
    parser_num_threads: int | None = None,
    sloppy_ordering: bool = False,
    drop_final_batch: bool = False,
) -> Dataset:
    """Batches of Example protos: dicts of features, and the labels beside them if they have a key.

    Features have the shapes that `tf.parse_example` gives for a vector of ``batch_size``.

    Args:
        file_pattern: names or patterns of files; features: as for `tf.parse_example`.
        reader: makes a dataset of serialised Examples of a file's name and ``reader_args``.

    Raises:
        ValueError: if no file matches.
        TypeError: if ``label_key`` is no key of ``features``.
    """
    if label_key is not None and label_key not in features:
        raise TypeError(f"`label_key` {label_key!r} is no feature: {sorted(features)}.")
    paths = Dataset.from_tensor_slices(_files(file_pattern, shuffle, shuffle_seed))
    reads = 1 if reader_num_threads is None else reader_num_threads
    dataset = paths.interleave(lambda path: reader(path, *(reader_args or ())), reads)
    dataset = _epochs(dataset, num_epochs, shuffle, shuffle_buffer_size, shuffle_seed)
    dataset = dataset.batch(batch_size, drop_remainder=drop_final_batch or num_epochs is None)

    def parsed(serialized: Tensor) -> Any:
        return _with_label(parse_example(serialized, features), label_key)

    batches = dataset.map(parsed, parser_num_threads)
    return batches.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


__all__ = ["CsvDataset", "make_batched_features_dataset", "make_csv_dataset"]
