"""Examples in docstrings, and the one in the README, run and give what they say."""

from __future__ import annotations

import builtins
import contextlib
import doctest
import importlib
import inspect
import io
import pathlib
import pkgutil
import sys

import pytest

import headrace as tf

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tools"))
import make_api_reference

ROOT = pathlib.Path(__file__).parent.parent


def _modules():
    for info in pkgutil.walk_packages(tf.__path__, "headrace."):
        # compat.tensorflow would make this process import Headrace as `tensorflow`.
        if "_pb2" not in info.name and not info.name.endswith(("__main__", "compat.tensorflow")):
            yield info.name


def _examples():
    finder = doctest.DocTestFinder(exclude_empty=True)
    found, made = set(), {}
    for name in _modules():
        module = importlib.import_module(name)
        # What tf and Python both have (`range`, `bool`) is Python's, as for a reader who has `tf`.
        names = {**vars(tf), "tf": tf, **vars(builtins), **vars(module)}
        for test in finder.find(module, name, globs=names):
            if test.examples:
                found.add(test.docstring)
                yield pytest.param(test, id=test.name)
        functions = filter(inspect.isfunction, vars(module).values())
        own = (f for f in functions if f.__module__.startswith("headrace."))
        made.update((f.__doc__, f) for f in own if ">>> " in (f.__doc__ or ""))
    # The finder passes by what a factory in another module made.
    for text, function in made.items():
        if text not in found:
            name = f"{function.__module__}.{function.__qualname__}"
            for test in finder.find(function, name, globs={"tf": tf}):
                yield pytest.param(test, id=test.name)


@pytest.mark.parametrize("example", list(_examples()))
def test_docstring_example(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    output = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    result = runner.run(example, out=output.write)
    assert result.failed == 0, output.getvalue()
    assert not any(e.options.get(doctest.SKIP) for e in example.examples), "an example is skipped"


def test_readme_example(monkeypatch):
    text = (ROOT / "README.md").read_text()
    code = text.split("```python\n")[1].split("```")[0]
    assert len([line for line in code.splitlines() if line.strip()]) == 15
    monkeypatch.chdir(ROOT)
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(code.replace("range(1000)", "range(300)"), "README.md", "exec"), {})
    assert float(output.getvalue()) > 0.85


def test_every_public_class_has_an_example():
    namespaces = [*make_api_reference.NAMESPACES, *make_api_reference.CONTRIB]
    classes = make_api_reference.public_classes(namespaces)
    assert len(classes) > 330
    assert [name for name, value in classes.items() if ">>> " not in (value.__doc__ or "")] == []


#: What a reader of the pipeline opens: each says what goes in and what comes out, and shows it.
_LECTURE = [
    "graph",
    "graph_files",
    "autodiff",
    *(f"passes.{p.stem}" for p in sorted((ROOT / "src/headrace/passes").glob("[a-z]*.py"))),
    "passes",
    "placement",
    "partition",
    "executor",
    "session",
    "distributed",
    "distributed.worker.machine",
    "distributed.master.machine",
    "distributed.links.links",
    "distributed.wire.codec",
    "train.checkpoint",
    "saved_model",
    "ops",
    *(f"ops.{p.parent.name}" for p in sorted((ROOT / "src/headrace/ops").glob("*/__init__.py"))),
]


@pytest.mark.parametrize("name", _LECTURE)
def test_parts_of_the_pipeline_open_with_an_example(name):
    assert ">>> " in (importlib.import_module(f"headrace.{name}").__doc__ or "")
