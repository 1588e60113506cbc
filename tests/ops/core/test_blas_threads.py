"""Small products of matrices take one thread of NumPy's library, however many it has."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.ops.core import blas_threads


class _Library:
    def __init__(self, count):
        self.count = count

    def get_num_threads(self):
        return self.count

    def set_num_threads(self, count):
        self.count = count


@pytest.fixture
def library(monkeypatch):
    library = _Library(4)
    block = blas_threads._OneThread([library])
    monkeypatch.setattr(blas_threads, "one_thread", lambda: block)
    seen = []
    matmul = np.matmul

    def counted(a, b):
        seen.append(library.count)
        return matmul(a, b)

    monkeypatch.setattr(blas_threads.np, "matmul", counted)
    library.seen = seen
    return library


@pytest.mark.parametrize(("rows", "threads"), [(8, 4), (256, 1), (40_000, 4)])
def test_products_that_one_core_does_in_a_moment_have_one_thread(library, rows, threads):
    blas_threads.matmul(np.ones((rows, 64), np.float32), np.ones((64, 128), np.float32))
    assert library.seen == [threads]
    assert library.count == 4


def test_blocks_inside_each_other_restore_what_was(library):
    block = blas_threads.one_thread()
    with block:
        with block:
            assert library.count == 1
        assert library.count == 1
    assert library.count == 4


def test_the_library_of_numpy_is_found():
    config = np.show_config(mode="dicts")["Build Dependencies"]["blas"]["name"]
    if "openblas" not in config:
        pytest.skip(f"NumPy has {config}")
    block = blas_threads.one_thread()
    (library,) = block._libraries
    before = library.get_num_threads()
    with block:
        assert library.get_num_threads() == 1
    assert library.get_num_threads() == before
