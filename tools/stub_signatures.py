"""Which public functions checkers cannot read from the source, and their signatures for a stub.

A function that a call makes (``square = unary("Square", ...)``, ``dense = functional(Dense)``) is a
variable to type checkers: they see ``(*Any, **Any)``. Its stub says what `inspect.signature` finds.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

__all__ = ["definition", "exported", "is_made"]

#: Where the names of annotations come from that are no classes of this package.
_TYPING = {
    "Any": "typing",
    **dict.fromkeys(
        ("Callable", "Collection", "Iterable", "Iterator", "Mapping", "Sequence"), "collections.abc"
    ),
}


def is_made(module: str, name: str) -> bool:
    """Whether a name stands for a function that no ``def`` of this name tells about."""
    for _ in range(20):  # an alias of an import of an alias ...
        if not isinstance(vars(importlib.import_module(module)).get(name), FunctionType):
            return False
        found = _bindings(module).get(name)
        if isinstance(found, ast.ImportFrom) and found.module:
            module, name = found.module, _original(found, name)
        elif isinstance(found, ast.Name):
            name = found.id
        else:
            return isinstance(found, ast.expr)
    raise RecursionError(f"{module}.{name} is imported in a circle")


@cache
def _bindings(module: str) -> Mapping[str, ast.AST]:
    """What the statements at the top of a module bind: each name's last definition or value."""
    path = Path(str(importlib.import_module(module).__file__))
    found: dict[str, ast.AST] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign):
            found |= {t.id: node.value for t in node.targets if isinstance(t, ast.Name)}
        elif isinstance(node, ast.ImportFrom) and node.names[0].name == "*" and node.module:
            found |= dict.fromkeys(exported(node.module), node)
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name: node for alias in node.names}
    return found


def exported(module: str) -> list[str]:
    """What ``from module import *`` imports, as far as a stub tells it."""
    names = vars(importlib.import_module(module)).get("__all__")
    if names is not None:
        return list(names)
    told = ast.ImportFrom | ast.FunctionDef | ast.ClassDef | ast.Name
    found = _bindings(module).items()
    return [n for n, node in found if not n.startswith("_") and isinstance(node, told)]


def _original(node: ast.ImportFrom, name: str) -> str:
    return next((a.name for a in node.names if a.asname == name), name)


def definition(function: FunctionType, name: str) -> list[str]:
    """The lines of a stub that define a function: imports for its annotations, and itself."""
    known = vars(sys.modules[function.__module__]) | inspect.unwrap(function).__globals__
    annotations = _Annotations(known)
    signature = inspect.signature(function)
    parts = []
    star_seen = False
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            star_seen = True
        elif parameter.kind is parameter.KEYWORD_ONLY and not star_seen:
            star_seen = True
            parts.append("*")
        parts.append(_parameter(parameter, annotations))
    result = annotations.text(signature.return_annotation)
    line = f"def {name}({', '.join(parts)}) -> {result}: ..."
    if len(line) > 100:
        line = f"def {name}(\n    " + ",\n    ".join(parts) + f",\n) -> {result}: ..."
    return [*annotations.imports, line]


def _parameter(parameter: inspect.Parameter, annotations: _Annotations) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    text = f"{stars}{parameter.name}: {annotations.text(parameter.annotation)}"
    if parameter.default is parameter.empty:
        return text
    plain = isinstance(parameter.default, bool | int | float | str | None)
    return f"{text} = {parameter.default!r}" if plain else f"{text} = ..."


class _Annotations:
    """Writes annotations, and notes the imports that they need. What has no name becomes Any."""

    def __init__(self, known: Mapping[str, Any]) -> None:
        self._known = known
        self.imports: list[str] = []

    def text(self, annotation: Any) -> str:
        """An annotation, with the names that the stub imports."""
        if annotation is inspect.Parameter.empty:
            return self._imported("Any", "typing")
        found = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
        tree = ast.parse(found, mode="eval")
        if isinstance(annotation, type) and annotation.__module__ != "builtins":
            return self._imported(annotation.__name__, annotation.__module__)
        return ast.unparse(_Renamed(self).visit(tree))

    def name(self, name: str) -> str:
        """What the stub calls a name of an annotation."""
        value = self._known.get(name)
        if name in _TYPING:
            return self._imported(name, _TYPING[name])
        if isinstance(value, type) and value.__module__.startswith("headrace."):
            return self._imported(value.__name__, value.__module__)
        is_builtin = hasattr(builtins, name)  # imported too, for tf.bool is no type to checkers
        return self._imported(*((name, "builtins") if is_builtin else ("Any", "typing")))

    def _imported(self, name: str, module: str) -> str:
        self.imports.append(f"from {module} import {name} as _{name}")
        return f"_{name}"


class _Renamed(ast.NodeTransformer):
    """Replaces the names of an annotation by those that the stub imports."""

    def __init__(self, annotations: _Annotations) -> None:
        self._annotations = annotations

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self._annotations.name(node.id))

    def visit_Attribute(self, node: ast.Attribute) -> ast.Name:
        return ast.Name(self._annotations.name("Any"))  # such as np.ndarray
