"""A run of all tests fails if it leaves out an op; a run of some tests does not."""

import subprocess
import sys
from pathlib import Path

import op_record
import pytest

import headrace as tf
from headrace.graph.graph_def import graph_to_graph_def
from headrace.ops.core.registry import all_op_defs, get_op_def

TESTS = Path(__file__).resolve().parents[1]

PROJECT = {
    "pyproject.toml": """
[tool.pytest.ini_options]
testpaths = ["tests"]
addopts = ["-m", "not slow"]
markers = ["slow: takes long"]
""",
    "tests/conftest.py": 'pytest_plugins = ["op_record"]\n',
    "tests/test_one.py": """
import headrace as tf

def test_add():
    with tf.Session() as session:
        assert session.run(tf.placeholder_with_default(1.0, []) + 2.0) == 3.0
""",
}


@pytest.mark.process
@pytest.mark.parametrize(
    ("arguments", "fails"),
    [
        (["-n", "2"], True),
        (["-n", "2", "tests"], False),
        (["-k", "add"], False),
        (["tests", "--op-record"], True),
    ],
    ids=["all", "folder", "keyword", "asked"],
)
def test_only_runs_of_all_tests_need_every_op(tmp_path, arguments, fails):
    (tmp_path / "tests").mkdir()
    for name, text in PROJECT.items():
        (tmp_path / name).write_text(text)
    path = f"import sys; sys.path[:0] = [{str(TESTS)!r}, {str(Path(tf.__file__).parents[1])!r}];"
    run = f"{path} import pytest; sys.exit(pytest.main({['-p', 'no:cacheprovider', *arguments]!r}))"
    done = subprocess.run(
        [sys.executable, "-c", run], cwd=tmp_path, capture_output=True, text=True, timeout=100
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    assert done.returncode == fails
    lines = [line for line in done.stdout.splitlines() if line.startswith("No test executes the")]
    assert [line.split(" of ")[0].split()[-1] for line in lines] == list(op_record.KINDS) * fails
    for line in lines:
        ran = "gradient" not in line and "file" not in line
        assert ("'AddV2'" not in line) == ran
        assert "'Mul'" in line


def test_a_record_is_of_what_ran():
    recorder = op_record.Recorder()
    recorder.start()
    try:
        with tf.Graph().as_default() as graph, tf.Session() as session:
            x = tf.placeholder_with_default(2.0, [])
            y = tf.square(x)
            tf.gradients(y, x)
            session.run(y)
            graph_to_graph_def(graph)
        recorder.end_test()
    finally:
        recorder.stop()
    assert "Square" in recorder.found["value"] & recorder.found["gradient"]
    assert "Mul" not in recorder.found["value"]  # the gradient is built, and not run
    assert not recorder.found["file"]  # written, and not read
    lacking = op_record.missing(map(get_op_def, ("Square", "Exp", "Shape")), recorder.found)
    assert lacking["value"] == ["Exp", "Shape"]
    assert lacking["gradient"] == ["Exp"]  # a shape has none
    assert lacking["file"] == ["Exp", "Shape", "Square"]


def test_what_is_asked_of_an_op():
    assert op_record.needed(get_op_def("Exp")) == op_record.KINDS
    assert op_record.needed(get_op_def("Placeholder")) == ("file",)
    assert {n for n, d in all_op_defs().items() if not op_record.needed(d)} == {
        n for n, d in all_op_defs().items() if d.traits.by_hand
    }
