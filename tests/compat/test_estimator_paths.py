"""Old programs' imports of estimators and `tf.contrib.learn`, in processes of their own."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.process


def _python(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=55,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="keras is not installed")
def test_keras_does_not_take_the_alias_for_tensorflow_when_it_comes_later():
    """Its classes are asked for `tf.TypeSpec` where a `tensorflow` can be imported."""
    _python("""
        import headrace

        layer = headrace.keras.layers.Dense(2)
        import headrace.compat.tensorflow

        assert layer.get_config()["units"] == 2
    """)
