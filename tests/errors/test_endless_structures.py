"""Lists that hold themselves, or lie too deep in each other, are refused at once."""

from __future__ import annotations

import pytest

import headrace as tf


def _endless(kind: str):
    endless: list = []
    if kind == "alone":
        endless.append(endless)
    elif kind == "twice":
        endless.extend([endless, endless])
    elif kind == "below":
        endless.extend([[endless], [endless]])
    elif kind == "after a number":
        endless.extend([1.0, endless])
    elif kind == "after a tensor":
        endless.extend([tf.constant(1.0), endless])
    elif kind == "through a tuple":
        endless.append((endless,))
    elif kind == "through a dictionary":
        endless.append({"a": endless})
    return endless


_KINDS = [
    "alone",
    "twice",
    "below",
    "after a number",
    "after a tensor",
    "through a tuple",
    "through a dictionary",
]
_CALLS = {
    "constant": tf.constant,
    "convert_to_tensor": tf.convert_to_tensor,
    "make_tensor_proto": tf.make_tensor_proto,
    "concat": lambda v: tf.concat(v, 0),
    "add": lambda v: tf.constant(1.0) + v,
    "fill": lambda v: tf.fill(v, 1.0),
    "zeros": tf.zeros,
    "Variable": tf.Variable,
    "flatten": tf.contrib.framework.nest.flatten,
    "run": lambda v: tf.Session().run(v),
    "feed": lambda v: tf.Session().run(tf.constant(0.0), {tf.placeholder(tf.float32): v}),
    "ragged": tf.ragged.constant,
    "gradients": lambda v: tf.gradients(v, v),
    "while_loop": lambda v: tf.while_loop(lambda *_: True, lambda *a: a, v),
    "cond": lambda v: tf.cond(tf.constant(True), lambda: v, lambda: v),
    "add_n": tf.add_n,
    "tuple": tf.tuple,
    "group": tf.group,
    "map_fn": lambda v: tf.map_fn(lambda x: x, v),
}


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("call", _CALLS)
def test_a_list_that_holds_itself(call: str, kind: str) -> None:
    """Some took years, others ended in Python's RecursionError."""
    tf.constant(0)
    with pytest.raises((TypeError, ValueError, NotImplementedError)):
        _CALLS[call](_endless(kind))


def test_what_the_error_says() -> None:
    with pytest.raises(ValueError, match=r"The list holds itself, directly or .*: \[\[\.\.\.\]\]"):
        tf.constant(_endless("alone"))
    deep: list = []
    for _ in range(70):
        deep = [deep]
    with pytest.raises(ValueError, match="The list is nested more than 64 deep"):
        tf.constant(deep)
    with pytest.raises(TypeError, match="A list that is fed to 'x:0' holds a tensor"):
        tf.Session().run(tf.constant(0), {tf.placeholder("float", name="x"): [tf.constant(1.0)]})


def test_what_is_shared_is_not_endless() -> None:
    shared = [1.0, 2.0]
    assert tf.contrib.framework.nest.flatten([shared, shared]) == [1.0, 2.0, 1.0, 2.0]
    assert tf.constant([shared, shared]).shape == (2, 2)
