"""Headrace under the name ``tensorflow``: a finder for ``sys.meta_path`` and what it serves.

`install` puts the finder first. From then on ``import tensorflow``, ``tensorflow.python...``,
``tensorflow.core...``, ``tensorflow.contrib...`` give modules whose names are looked up in Headrace
when they are first used. Where each is found:

1. `headrace.compat.module_table` names the sources of modules, and of single names;
2. ``known_modules.txt`` knows the public name of what TensorFlow's internal modules define:
   ``tensorflow.python.training.saver`` has ``Saver``, which is ``tf.train.Saver``;
3. what is left is looked for in the module's sources in turn.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from headrace.compat.module_table import ROWS, Row, row_of
from headrace.errors import suggest
from headrace.namespaces.missing import attribute_error, is_known, known_names, reason

__all__ = ["AliasModule", "install"]

_FILE = Path(__file__).with_name("known_modules.txt")

#: Folders whose modules TensorFlow's own modules import, most used first.
_FOLDERS = (
    "framework",
    "ops",
    "platform",
    "util",
    "training",
    "eager",
    "client",
    "layers",
    "lib.io",
)
_IMPORTED_FROM = tuple(f"python.{folder}" for folder in _FOLDERS)


@cache
def known_modules() -> dict[str, dict[str, str]]:
    """For each internal module of TensorFlow 1.15 the public names of what it defines."""
    modules = {}
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        path, _, rest = line.partition(":")
        pairs = (entry.partition("=") for entry in rest.split())
        modules[path] = {name: public or name for name, _, public in pairs}
    return modules


@cache
def _packages() -> frozenset[str]:
    """Every module path below ``tensorflow`` that can be imported, with those above it."""
    found = {"contrib." + name for name in known_names()["contrib"]}
    for path in (*known_modules(), *ROWS, *known_names(), *found):
        while path:
            found.add(path)
            path = path.rpartition(".")[0]
    return frozenset(found)


def is_module(path: str) -> bool:
    """Whether ``tensorflow.<path>`` is a module: in TensorFlow, and so here too."""
    return path in _packages()


#: What is served; the second has been the package of `tf.estimator` since release 1.13.
_ROOTS = ("tensorflow", "tensorflow_estimator")


class AliasModule(ModuleType):
    """A module of TensorFlow whose names are Headrace's, looked up when first used."""

    def __init__(self, name: str, path: str, row: Row) -> None:
        super().__init__(name, f"Headrace as {name}.")
        self.__dict__["_path"] = path
        self.__dict__["_row"] = row

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return [n for n in dir(self) if not n.startswith("_")]
        row: Row = self.__dict__["_row"]
        if name.startswith("__") and name not in row.names:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name)
        found, value = _look_up(self, name)
        if not found:
            raise attribute_error(self.__name__, name, dir(self))
        self.__dict__[name] = value
        return value

    def __dir__(self) -> list[str]:
        row: Row = self.__dict__["_row"]
        names = {*self.__dict__, *row.names, *known_modules().get(self.__dict__["_path"], ())}
        for source in row.sources:
            module = _module(source)
            if module is not None:
                names.update(dir(module))
        return sorted(names - {"_path", "_row"})

    def __reduce__(self) -> Any:
        return import_module, (self.__name__,)


def _look_up(module: AliasModule, name: str) -> tuple[bool, Any]:
    row: Row = module.__dict__["_row"]
    path: str = module.__dict__["_path"]
    if name in row.names:
        return True, _attribute(row.names[name])
    inner = f"{path}.{name}" if path else name
    # In `tf` itself names count before modules: `tf.nn` is Headrace's own.
    if path and is_module(inner) and not _is_name(path, name):
        return True, import_module(f"{module.__name__}.{name}")
    public = known_modules().get(path, {}).get(name)
    candidates = [f"headrace.{public}"] if public else []
    candidates += [f"{source}.{name}" for source in row.sources]
    for candidate in candidates:
        try:
            return True, _attribute(candidate)
        except (AttributeError, ModuleNotFoundError):
            continue
    if is_module(inner):
        return True, import_module(f"{module.__name__}.{name}")
    imported = _imported(path, name)
    return imported is not None, imported


def _imported(path: str, name: str) -> ModuleType | None:
    """The module ``name`` among those that ``tensorflow.<path>`` imports, or is likely to.

    Programs take modules from others: ``from tensorflow.python.ops.rnn import rnn_cell_impl``.
    """
    if not path.startswith(("python.", "contrib.")):
        return None
    for folder in (path.rpartition(".")[0], *_IMPORTED_FROM):
        if is_module(f"{folder}.{name}"):
            return import_module(f"tensorflow.{folder}.{name}")
    return None


def _is_name(path: str, name: str) -> bool:
    """Whether ``tf.<path>.<name>`` is a public function or class, not a module."""
    return name in known_names().get(path, ()) and f"{path}.{name}" not in known_names()


@cache
def _module(name: str) -> Any:
    """The Headrace module of that name, or None where there is none yet."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("headrace"):
            raise
        return None


def _attribute(path: str) -> Any:
    """What a dotted path names: a module, or an attribute (of an attribute ...) of one."""
    parts = path.split(".")
    value: Any = import_module(parts[0])
    for i, part in enumerate(parts[1:], 2):
        try:
            value = getattr(value, part)
        except AttributeError:
            if not isinstance(value, ModuleType):
                raise
            value = import_module(".".join(parts[:i]))
    return value


class _Finder(MetaPathFinder, Loader):
    """Serves ``tensorflow`` and everything below it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] not in _ROOTS:
            return None
        inner = _path(fullname)
        if inner and not is_module(inner):
            raise ModuleNotFoundError(_no_module(fullname, inner), name="tensorflow")
        spec = ModuleSpec(fullname, self, origin=_origin(inner), is_package=True)
        spec.has_location = True
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        path = _path(spec.name)
        return AliasModule(spec.name, path, row_of(path))

    def exec_module(self, module: ModuleType) -> None:
        """Nothing runs: names are looked up when they are used."""


def _path(fullname: str) -> str:
    """The path of a module below ``tensorflow``; ``tensorflow.compat.v1`` is another name of it."""
    path = fullname.partition(".")[2]
    return path.removeprefix("compat.v1").removeprefix(".")


def _origin(path: str) -> str:
    import headrace

    root = Path(str(headrace.__file__)).parent
    file = root.joinpath(*path.split("."), "__init__.py") if path else root / "__init__.py"
    return str(file if file.exists() else root / "__init__.py")


def _no_module(fullname: str, path: str) -> str:
    why = reason(path)
    if why:
        return f"{fullname!r} is not part of Headrace yet: {why}."
    parent, _, name = path.rpartition(".")
    siblings = [p.rpartition(".")[2] for p in _packages() if p.rpartition(".")[0] == parent]
    parent_module = sys.modules.get(f"tensorflow.{parent}".rstrip("."))
    siblings += [] if parent_module is None else dir(parent_module)
    near = suggest(name, (s for s in siblings if s != name))
    yet = " yet" if is_known(path) else ""
    return f"{fullname!r} is not part of Headrace{yet}.{near}"


_FINDER = _Finder()


def install() -> ModuleType:
    """Let ``import tensorflow`` give Headrace in this process, and return that module.

    Raises:
        ImportError: if TensorFlow itself is imported already.
    """
    loaded = sys.modules.get("tensorflow")
    if loaded is not None and not isinstance(loaded, AliasModule):
        where = getattr(loaded, "__file__", None) or "a place unknown"
        if not _is_our_shim(where):
            raise ImportError(
                f"TensorFlow itself is imported already (from {where}), and modules that hold it "
                "would go on using it beside Headrace. Import headrace.compat.tensorflow before "
                "the first `import tensorflow`, or run the program with `headrace run`.",
                name="tensorflow",
            )
        del sys.modules["tensorflow"]
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    # The module itself: tests put functions of their own in place of its `info` and `warning`.
    sys.modules["tensorflow.python.platform.tf_logging"] = import_module("headrace.logging")
    module = import_module("tensorflow")
    if "keras" in sys.modules and "headrace.keras.loading" in sys.modules:
        sys.modules["headrace.keras.loading"].hide_alias()
    return module


def _is_our_shim(file: str) -> bool:
    return Path(file) == Path(__file__).parent / "site" / "tensorflow.py"
