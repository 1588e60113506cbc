"""Graphs that parse Examples, written by TensorFlow (`tools/make_parsing_graphs.py`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as tf

FOLDER = Path(__file__).resolve().parents[2] / "golden" / "parsing_graphs"


def value_of(stored: dict[str, Any]) -> np.ndarray:
    values = stored["values"]
    if stored["dtype"] == "string":
        result = np.empty(len(values), object)
        result[:] = [v.encode("latin-1") for v in values]
    else:
        result = np.array(values, stored["dtype"])
    return result.reshape(stored["shape"])


@pytest.mark.parametrize("release", ["1.15", "2.21"])
def test_graphs_of_tensorflow_give_its_results(release: str) -> None:
    stored = json.loads((FOLDER / f"{release}.json").read_text())
    definition = tf.GraphDef.FromString((FOLDER / f"{release}.pb").read_bytes())
    types = {node.op for node in definition.node}
    assert ("ParseExampleV2" in types) == (release == "2.21")
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(definition, name="")
        feeds = {f"{name}:0": value_of(value) for name, value in stored["feeds"].items()}
        names = list(stored["results"])
        results = session.run([f"{name}:0" for name in names], feeds)
    assert len(names) > 25
    for name, result in zip(names, results, strict=True):
        want = value_of(stored["results"][name])
        got = np.asarray(result, want.dtype if want.dtype == object else None)
        assert (got.shape, got.dtype.kind) == (want.shape, want.dtype.kind), name
        np.testing.assert_array_equal(got, want, err_msg=name)
