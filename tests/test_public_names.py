"""What ``dir`` and ``help`` show of the interface."""

from __future__ import annotations

import inspect
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

import pytest

import headrace as tf
import headrace.compat
from headrace.namespaces import missing
from headrace.ops.core.public import MARKED

NAMESPACES = [tf, tf.nn, tf.layers, tf.math, tf.train, tf.losses, tf.image, tf.contrib.layers]


@pytest.mark.parametrize("module", NAMESPACES, ids=lambda m: m.__name__)
def test_nothing_private_is_in_dir(module):
    for name in dir(module):
        assert not name.startswith("_") or name.startswith("__")
        value = vars(module).get(name)
        if isinstance(value, ModuleType):
            path = value.__name__.partition(".")[2]
            stated = name in missing.LATE.get(module.__name__, ())
            assert stated or path in missing._NAMESPACES or path.startswith("contrib."), name


def test_a_late_namespace_stays_in_dir_when_it_is_loaded():
    assert tf.nn.rnn_cell.__name__ == "headrace.rnn.rnn_cell"
    assert "rnn_cell" in dir(tf.nn)


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        (tf.app, "get_logger"),
        (tf.contrib.crf, "get_variable"),
        (tf.contrib.layers, "utils"),
        (tf.errors, "difflib"),
        (tf.io.gfile, "globbing"),
        (tf.losses, "raw"),
        (tf.saved_model.loader, "as_path"),
    ],
    ids=str,
)
def test_what_a_namespace_imports_for_itself_is_not_in_dir(module, imported):
    assert hasattr(module, imported)
    assert imported not in dir(module)


def test_stages_are_not_in_dir_but_can_be_reached():
    assert not {"ops", "graph", "executor", "session", "annotations"} & set(dir(tf))
    assert {"nn", "layers", "contrib", "Session", "GraphDef", "placeholder"} <= set(dir(tf))
    assert tf.ops.__name__ == "headrace.ops"


@pytest.mark.parametrize("name", [n for n in tf.layers.__all__ if n[0].islower()])
def test_functions_of_layers_have_their_own_names(name):
    function = getattr(tf.layers, name)
    assert (function.__name__, function.__qualname__) == (name, name)
    assert "inputs" in inspect.signature(function).parameters
    assert function.__doc__
    assert function.__module__.startswith("headrace.layers.")


@pytest.mark.parametrize("name", [m.name for m in iter_modules(headrace.compat.__path__)])
def test_every_name_in_dir_of_an_inner_module_is_there(name):
    module = import_module(f"headrace.compat.{name}")
    assert [n for n in dir(module) if not hasattr(module, n)] == []


@pytest.mark.parametrize("name", sorted(MARKED["math"]))
def test_functions_made_from_tables_lead_to_where_they_are(name):
    function = MARKED["math"][name].value
    found = import_module(function.__module__)
    for part in function.__qualname__.split("."):
        found = getattr(found, part)
    assert found is function
    assert function.__doc__
    assert inspect.signature(function).return_annotation is not inspect.Signature.empty
