"""Tests of tf.estimator leave no writer open."""

from __future__ import annotations

import pytest

import headrace as tf


@pytest.fixture(autouse=True)
def _own_writers(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    yield
    tf.summary.FileWriterCache.clear()
