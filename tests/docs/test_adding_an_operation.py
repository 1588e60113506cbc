"""The diff printed in CONTRIBUTING.md adds an operation: it is applied to a copy of the tree."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PARTS = (
    *("src/headrace", "tests/conftest.py", "tests/op_record.py", "tests/object_store.py"),
    *(
        "tests/ops/cases",
        "tests/ops/test_op_cases.py",
        "tools/make_stubs.py",
        "tools/raw_stub.py",
        "tools/stub_signatures.py",
        "pyproject.toml",
    ),
)

PROGRAM = """
import numpy as np

import headrace as tf
from headrace.ops.core.build import raw


def test_cube():
    assert tf.__file__.startswith({root!r})
    assert "cube" in dir(tf) and "cube" in tf.math.__all__ and tf.math.cube is tf.cube
    x = tf.placeholder(tf.float32, [None, 2], "x")
    y = tf.cube(x, name="y")
    assert y.shape.as_list() == [None, 2]
    (gradient,) = tf.gradients(y, x)
    fetches = [y.name, gradient.name]
    message = tf.get_default_graph().as_graph_def()
    with tf.Graph().as_default() as copy:
        tf.import_graph_def(message, name="")
    for graph in (y.graph, copy):
        with tf.Session(graph=graph) as session:
            for _ in range(2):  # interpreted, then compiled
                cube, slope = session.run(fetches, {{"x:0": [[2.0, -3.0]]}})
                assert cube.tolist() == [[8.0, -27.0]]
                assert slope.tolist() == [[12.0, 27.0]]
"""


def run(root, *arguments):
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=100,
        env=os.environ | {"PYTHONPATH": str(root / "src")},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.process
def test_the_printed_diff_adds_an_operation(tmp_path):
    for part in PARTS:
        target = tmp_path / part
        target.parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy2
        copy(ROOT / part, target)  # compiled modules too: they stay valid
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (diff,) = re.findall(r"^```diff\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert re.findall(r"^\+\+\+ b/(.*)", diff, re.MULTILINE) == [
        "src/headrace/ops/math/cube.py",
        "tests/ops/cases/elementwise.py",
    ]
    subprocess.run(["git", "apply", "-"], input=diff, text=True, cwd=tmp_path, check=True)
    (tmp_path / "tests" / "test_cube.py").write_text(PROGRAM.format(root=str(tmp_path)))

    run(tmp_path, "tools/make_stubs.py")
    package = tmp_path / "src" / "headrace"
    for stub in ("__init__.pyi", "math.pyi"):
        assert "import cube as cube\n" in (package / stub).read_text()
    assert "def Cube(" in (package / "ops" / "core" / "raw_ops.pyi").read_text()

    options = ["-q", "-p", "no:cacheprovider", "-k", "cube or Cube", "tests"]
    # A test of the program, and of the row: value, shape rule, gradient, GraphDef.
    assert "5 passed" in run(tmp_path, "-m", "pytest", *options)
