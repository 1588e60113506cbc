"""What the tests of failing steps share: cases with the full message that is expected."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import headrace as tf


class Case(NamedTuple):
    """``build`` gets placeholders without a shape, fed with ``inputs``; the step must fail.

    ``op`` is the name of the operation that the error names, ``message`` its whole text.
    """

    name: str
    inputs: tuple[Any, ...]
    build: Callable[..., Any]
    op: str
    message: str


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def ints(*values: Any) -> np.ndarray:
    return np.array(values, np.int32)


def check(case: Case) -> None:
    """Run the step twice: the class, the whole text, the op and the line that made it."""
    fed = [tf.placeholder(value.dtype) for value in case.inputs]
    fetch = case.build(*fed)
    with tf.Session() as session:
        for _ in range(2):
            with pytest.raises(tf.errors.InvalidArgumentError) as caught:
                session.run(fetch, dict(zip(fed, case.inputs, strict=True)))
            error = caught.value
            assert type(error) is tf.errors.InvalidArgumentError
            assert re.sub(r"pyfunc_\d+", "PYFUNC", error.message) == case.message
            assert error.op.name == case.op
            assert f"\n  Op: '{case.op}' (type {error.op.type})" in str(error)
            assert f'\n  Made by: File "{error.op.site.filename}", line ' in str(error)
            assert "/tests/errors/" in error.op.site.filename
