"""`tensorflow.python.platform.googletest`: the test case below `tf.test.TestCase`.

Libraries derive classes from both, as TensorFlow's own tests do, so the base may not be the derived
class. The rest is `headrace.test` and absl's.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from absl.testing.absltest import TestCase

from headrace.test.running import get_temp_dir as GetTempDir

__all__ = ["GetTempDir", "TestCase"]


def __getattr__(name: str) -> Any:
    try:
        return getattr(import_module("headrace.test"), name)
    except AttributeError:
        return getattr(import_module("absl.testing.absltest"), name)
