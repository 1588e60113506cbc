"""Which public functions tell their shapes and errors: all of them, but for a checked list.

A function counts once, under its first name. Shapes: its docstring speaks of the shape, rank or
size of what it takes or gives. Errors: it has a ``Raises:`` section.
"""

from __future__ import annotations

import inspect
import operator
import re

import pytest
from docstring_exceptions import NO_ERROR, NO_SHAPE, PUBLISHED, handles_tensors, listed

import headrace as tf

_SHAPES = re.compile(r"\bshapes?\b|\brank\b|\bscalars?\b|\bvectors?\b|\bmatri(x|ces)\b|``\[")

#: At least so many of the functions in `dir`; raise them with each lot of docstrings.
_WITH_SHAPES = 1203
_WITH_ERRORS = 1333


def _functions():
    _walked()  # loads what is loaded on first use: after that, namespaces list the same each time
    return _walked()


def _walked():
    # Level by level: what was imported before, and so where a module is met first, must not matter.
    found, modules, level = {}, set(), [("", tf)]
    for _ in range(6):
        below = []
        for path, namespace in level:
            for name in dir(namespace):
                value = None if name.startswith("_") else getattr(namespace, name)
                if inspect.isfunction(value) and value.__module__.startswith("headrace"):
                    found.setdefault(value, path + name)
                elif inspect.ismodule(value) and value.__name__.startswith("headrace."):
                    below += [] if value in modules else [(f"{path}{name}.", value)]
                    modules.add(value)
        level = below
    return {name: function for function, name in found.items()}


def _silent(functions, table, tells):
    return [
        name
        for name, function in functions.items()
        if not tells(inspect.getdoc(function) or "") and listed(table, name) is None
    ]


def test_public_functions_tell_shapes_and_errors():
    functions = _functions()
    texts = [inspect.getdoc(function) or "" for function in functions.values()]
    shapes = sum(bool(_SHAPES.search(text)) for text in texts)
    errors = sum("Raises:" in text for text in texts)
    assert (shapes >= _WITH_SHAPES, errors >= _WITH_ERRORS) == (True, True), (shapes, errors)
    assert len(functions) > 1390


@pytest.mark.parametrize("what", ["shapes", "errors"])
def test_every_function_outside_the_lists_tells(what):
    table, tells = {
        "shapes": (NO_SHAPE, _SHAPES.search),
        "errors": (NO_ERROR, lambda text: "Raises:" in text),
    }[what]
    assert _silent(_functions(), table, tells) == []


def test_no_function_of_tensors_is_excused():
    functions = _functions()
    shapes = {
        name
        for name, function in functions.items()
        if listed(NO_SHAPE, name) and handles_tensors(function)
    }
    # What has no error may be asked about a tensor, if all it does is to answer yes or no; what
    # takes no arguments, such as all_variables(), has none that could be wrong.
    errors = {
        name
        for name, function in functions.items()
        if listed(NO_ERROR, name)
        and (
            "raise " in inspect.getsource(function)
            or (
                handles_tensors(function)
                and inspect.signature(function).parameters
                and str(inspect.signature(function).return_annotation) != "bool"
            )
        )
    }
    assert (shapes, errors) == (set(), set())


def test_the_lists_name_only_functions_that_need_them():
    functions = _functions()
    for table, tells in ((NO_SHAPE, lambda text: False), (NO_ERROR, lambda t: "Raises:" in t)):
        for name in " ".join(table.values()).split():
            known = [each for each in functions if each == name or name[-1] == "."]
            assert known, name
            assert not any(tells(inspect.getdoc(functions[each]) or "") for each in known), name


@pytest.mark.parametrize("name", PUBLISHED.split())
def test_an_algorithm_names_its_source(name):
    text = " ".join((inspect.getdoc(operator.attrgetter(name)(tf)) or "").split())
    assert re.search(r'[A-Z][^"]* "[^"]{8,}" \((19|20)\d\d[,)]', text), text


def test_functions_of_layers_tell_what_their_layers_share():
    text = inspect.getdoc(tf.layers.separable_conv2d)
    assert "depth_multiplier:" in text
    assert "kernel_size, strides" in text
    assert "`Conv`" not in text
    assert text.count("Raises:") == 1
