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
_WITH_SHAPES = 804
_WITH_ERRORS = 915


def _functions():
    _walked()  # loads what is loaded on first use: after that, namespaces list the same each time
    return _walked()


def _walked():
    # Level by level: what was imported before, and so where a module is met first, must not matter.
    found, modules, level = {}, set(), [tf]
    for _ in range(3):
        below = []
        for namespace in level:
            for name in dir(namespace):
                value = None if name.startswith("_") else getattr(namespace, name)
                if inspect.isfunction(value) and value.__module__.startswith("headrace"):
                    found[value] = inspect.getdoc(value) or ""
                elif inspect.ismodule(value) and value.__name__.startswith("headrace."):
                    below += [] if value in modules else [value]
                    modules.add(value)
        level = below
    return found


def test_public_functions_tell_shapes_and_errors():
    found = _functions()
    shapes = sum(bool(_SHAPES.search(text)) for text in found.values())
    errors = sum("Raises:" in text for text in found.values())
    assert (shapes >= _WITH_SHAPES, errors >= _WITH_ERRORS) == (True, True), (shapes, errors)
    assert len(found) > 1180


def test_functions_of_layers_tell_what_their_layers_share():
    text = inspect.getdoc(tf.layers.separable_conv2d)
    assert "depth_multiplier:" in text
    assert "kernel_size, strides" in text
    assert "`Conv`" not in text
    assert text.count("Raises:") == 1
