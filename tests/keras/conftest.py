"""Tests of `tf.keras`: skipped where Keras is not installed."""

from __future__ import annotations

import importlib.util

import pytest

if importlib.util.find_spec("keras") is None:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(autouse=True)
def names_from_the_start():
    """Each test has names and sessions of its own."""
    import headrace as tf

    tf.keras.backend.set_session(None)
    yield
    tf.keras.backend.set_session(None)
