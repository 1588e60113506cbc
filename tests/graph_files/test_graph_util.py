"""Writing graph files."""

from __future__ import annotations

import errno
import os

import pytest

import headrace as tf


def test_a_full_disk_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(source, target):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(tf.errors.ResourceExhaustedError, match=r"graph\.pb; No space left"):
        tf.train.write_graph(tf.Graph(), str(tmp_path), "graph.pb", as_text=False)
    assert list(tmp_path.iterdir()) == []
