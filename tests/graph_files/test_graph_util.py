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


def test_what_is_no_graph_is_refused_by_its_type(tmp_path):
    for call in (
        lambda: tf.graph_util.remove_training_nodes("graph.pb"),
        lambda: tf.io.write_graph("graph.pb", str(tmp_path), "out.pb"),
    ):
        with pytest.raises(TypeError, match=r"must be a graph_pb2\.GraphDef proto, but got"):
            call()
    assert list(tmp_path.iterdir()) == []
