"""How many public functions tell their shapes and errors: numbers that only rise.

A function counts once, under its first name. Shapes: its docstring speaks of the shape, rank or
size of what it takes or gives. Errors: it has a ``Raises:`` section.
"""

from __future__ import annotations

import inspect
import re

import headrace as tf

_SHAPES = re.compile(r"\bshapes?\b|\brank\b|\bscalars?\b|\bvectors?\b|\bmatri(x|ces)\b|``\[")

#: At least so many of the functions in `dir`; raise them with each lot of docstrings.
_WITH_SHAPES = 694
_WITH_ERRORS = 778


def _functions():
    found, modules = {}, set()

    def walk(namespace, depth):
        for name in dir(namespace):
            value = None if name.startswith("_") else getattr(namespace, name)
            if inspect.isfunction(value) and value.__module__.startswith("headrace"):
                found[value] = inspect.getdoc(value) or ""
            elif inspect.ismodule(value) and value.__name__.startswith("headrace."):
                if depth == 2 or value in modules:
                    continue
                modules.add(value)
                walk(value, depth + 1)

    walk(tf, 0)
    return found


def test_public_functions_tell_shapes_and_errors():
    found = _functions()
    shapes = sum(bool(_SHAPES.search(text)) for text in found.values())
    errors = sum("Raises:" in text for text in found.values())
    assert (shapes >= _WITH_SHAPES, errors >= _WITH_ERRORS) == (True, True), (shapes, errors)
    assert len(found) > 1200


def test_functions_of_layers_tell_what_their_layers_share():
    text = inspect.getdoc(tf.layers.separable_conv2d)
    assert "depth_multiplier:" in text
    assert "kernel_size, strides" in text
    assert "`Conv`" not in text
    assert text.count("Raises:") == 1
