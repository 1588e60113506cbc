"""``tf.contrib.learn.datasets.base``: small tables from CSV files on this machine."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from headrace import gfile

_IRIS = Path(__file__).with_name("iris.csv")


class Dataset(NamedTuple):
    """Features, and what is to be predicted."""

    data: Any
    target: Any


class Datasets(NamedTuple):
    """The three parts of a data set."""

    train: Any
    validation: Any
    test: Any


def load_csv_with_header(
    filename: Any, target_dtype: Any, features_dtype: Any, target_column: int = -1
) -> Dataset:
    """A table whose first line says how many rows and features it has.

    Data are ``[rows, features]``, targets ``[rows]``.

    Raises:
        NotFoundError: if there is no such file.
        ValueError: if a row does not fit the header or a value does not fit its type.
    """
    rows = _rows(filename)
    if not rows or len(rows[0]) < 2 or not (rows[0][0].isdigit() and rows[0][1].isdigit()):
        raise ValueError(f"{filename}: the first line must give the numbers of rows and features.")
    count, features = int(rows[0][0]), int(rows[0][1])
    if len(rows) - 1 < count or any(len(row) != features + 1 for row in rows[1 : count + 1]):
        raise ValueError(
            f"{filename}: the first line tells of {count} rows of {features} features and a "
            f"target; there are {len(rows) - 1} rows, of {sorted({len(r) for r in rows[1:]})} "
            "values."
        )
    return _table(rows[1 : count + 1], target_dtype, features_dtype, target_column)


def load_csv_without_header(
    filename: Any, target_dtype: Any, features_dtype: Any, target_column: int = -1
) -> Dataset:
    """A table with one example a line. Raises ValueError if a value does not fit its type.

    Data are ``[rows, features]``, targets ``[rows]``.

    Raises:
        NotFoundError: if there is no such file.
    """
    return _table(_rows(filename), target_dtype, features_dtype, target_column)


def _rows(filename: Any) -> list[list[str]]:
    with gfile.Open(filename) as file:
        return [row for row in csv.reader(file) if row]


def _table(
    rows: list[list[str]], target_dtype: Any, features_dtype: Any, target_column: int
) -> Dataset:
    targets = [row.pop(target_column) for row in rows]
    return Dataset(np.array(rows, dtype=features_dtype), np.array(targets, dtype=target_dtype))


def shrink_csv(filename: str, ratio: int) -> None:
    """Keep each ``ratio``-th line, in ``<name>_small.csv``.

    Raises:
        NotFoundError: if there is no such file.
    """
    with gfile.Open(filename) as file, gfile.Open(f"{_stem(filename)}_small.csv", "w") as small:
        for i, line in enumerate(file):
            if i % ratio == 0:
                small.write(line)


def _stem(filename: str) -> str:
    return filename.removesuffix(".csv")


def load_iris(data_path: str | None = None) -> Dataset:
    """Fisher's 150 irises: 4 sizes each, and which of 3 species; no file is needed.

    Data are ``[150, 4]``, targets ``[150]``.

    Raises:
        NotFoundError: if there is no such file.
    """
    return load_csv_with_header(data_path or _IRIS, target_dtype=int, features_dtype=float)


def load_boston(data_path: str | None = None) -> Dataset:
    """House prices from a file of your own: Headrace does not bring this table.

    Data are ``[506, 13]``, targets ``[506]``.

    Raises:
        FileNotFoundError: if no path is given.
    """
    if data_path is None:
        raise FileNotFoundError(
            "Headrace does not bring the table of Boston house prices. Give "
            "load_boston(data_path=...) a CSV file whose first line is '506,13,...'."
        )
    return load_csv_with_header(data_path, target_dtype=float, features_dtype=float)


def maybe_download(filename: str, work_directory: str, source_url: str) -> str:
    """The path of a file that is there; nothing is downloaded.

    Raises:
        FileNotFoundError: if it is not there.
    """
    path = os.path.join(work_directory, filename)
    if not gfile.Exists(path):
        raise FileNotFoundError(
            f"{path} does not exist, and Headrace downloads nothing: fetch {source_url} and put "
            "it there."
        )
    return path


__all__ = [
    "Dataset",
    "Datasets",
    "load_boston",
    "load_csv_with_header",
    "load_csv_without_header",
    "load_iris",
    "maybe_download",
    "shrink_csv",
]
