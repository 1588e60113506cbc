"""`tools/check_public_names.py`: type checkers see all public names."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import headrace as tf

TOOLS = Path(__file__).resolve().parents[2] / "tools"


@pytest.fixture(scope="module")
def tool():
    sys.path.insert(0, str(TOOLS))
    import check_public_names

    yield check_public_names
    sys.path.remove(str(TOOLS))
    del sys.modules["check_public_names"]


@pytest.fixture(scope="module")
def found(tool):
    """All public names; late modules are imported for it."""
    return {f"{path}.{name}": value for path, name, value in tool.public_names()}


def test_names_of_all_depths_are_found(found):
    assert found["tf.placeholder"] is tf.placeholder
    assert found["tf.io.gfile.glob"] is tf.io.gfile.glob
    assert found["tf.contrib.layers.xavier_initializer"] is tf.contrib.layers.xavier_initializer
    assert len(found) > 2500


def test_the_program_imports_namespaces_in_each_way(tool, found):
    lines = tool.program().splitlines()
    assert "import headrace.nn" in lines
    assert any(line.startswith("import headrace.nn as ") for line in lines)
    assert any(line.startswith("from headrace import nn as ") for line in lines)
    assert len(lines) > len(found)
    assert any(line.endswith(" = tf.train.AdamOptimizer") for line in lines)


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_checkers_know_them_all(tool, checker):
    assert tool.complaints(checker, tool.program()) == []


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_checkers_miss_what_is_not_there(tool, checker):
    source = "import headrace as tf\nimport headrace.nn\nx = tf.nn.rellu\ny = tf.nn.relu\n"
    (complaint,) = {c.partition(":")[0] for c in tool.complaints(checker, source)}
    assert complaint == "x = tf.nn.rellu"
