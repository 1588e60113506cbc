"""Old graphs with queues and tables around and in loops: no step waits for itself.

TensorFlow 1.15 wrote the graphs and gave the values (`tools/make_queue_loop_goldens.py`).
"""

import json
from pathlib import Path

import numpy as np
import pytest

import headrace as tf
from headrace.settings import flags

FILE = Path(__file__).resolve().parent.parent / "golden" / "queue_loops.npz"
GOLDEN = np.load(FILE)
NAMES = sorted({key.split("/")[0] for key in GOLDEN.files})
#: Ends what waits for ever; a step that is right never comes near it.
LIMIT_MS = 20_000


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("interpret", ["auto", pytest.param("never", marks=pytest.mark.slow)])
def test_structure(name, interpret, monkeypatch):
    monkeypatch.setattr(flags, "interpret", interpret)
    graph_def = tf.GraphDef.FromString(GOLDEN[f"{name}/graph"].tobytes())
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
    options = tf.RunOptions(timeout_in_ms=LIMIT_MS)
    with tf.Session(graph=graph) as session:
        for number, fetches in enumerate(json.loads(str(GOLDEN[f"{name}/steps"]))):
            values = session.run(fetches, options=options)
            for fetch, value in zip(fetches, values, strict=True):
                key = f"{name}/{number}/{fetch}"
                if key in GOLDEN.files:
                    np.testing.assert_allclose(value, GOLDEN[key], rtol=1e-5)
                else:
                    assert value is None
