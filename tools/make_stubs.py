"""Write the stub files of modules that are lists of names, for type checkers and editors.

    python tools/make_stubs.py [--check]

Each module that is a list of names, some of them late (`headrace.namespaces.lazy`) or marked where
they are (`headrace.ops.core.public`), has a ``.pyi``: its imports, and those names as imports too.
So has `raw` (`raw_stub.py`). Namespaces of ``api/`` are found through the package's ``__path__``,
which checkers do not read: the stub of each is where its name says, so that ``import headrace.nn``
is known to them. Functions that are made by a call are written out (`stub_signatures.py`).
``--check`` writes nothing and ends with status 1 if a file is not what it would be.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import sys
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TypeGuard

import raw_stub
import stub_signatures

from headrace.namespaces.lazy import LATE
from headrace.namespaces.missing import Namespace
from headrace.ops.core.public import MARKED

SRC = Path(__file__).resolve().parents[1] / "src"
HEAD = "# Written by tools/make_stubs.py from {source}; do not edit.\n"


def stub_of(module: str, late: dict[str, str]) -> str:
    """The text of the stub of a module."""
    path = source_of(module)
    body = ast.parse(path.read_text(encoding="utf-8")).body
    lines = list(chain.from_iterable(_lines(node, module) for node in body))
    lines += _marked(module)
    own = {t.id for n in body if isinstance(n, ast.Assign) for t in n.targets if _is_name(t)}
    for name, source in sorted(late.items(), key=lambda item: item[1]):
        if name in own:
            continue
        home, _, attribute = source.partition(":")
        if not attribute:
            home, _, attribute = home.rpartition(".")
        lines += _imports(home, attribute, name)
    return HEAD.format(source=path.name) + "\n".join(dict.fromkeys(lines)) + "\n"


def source_of(module: str) -> Path:
    """The file of a module."""
    return Path(str(importlib.import_module(module).__file__))


def _marked(module: str) -> list[str]:
    """Imports of what the rooms of operations mark as public for a namespace."""
    if not fills(source_of(module).read_text(encoding="utf-8")):
        return []
    marked = MARKED.get(module.partition(".")[2], {})
    lines = []
    for name, (value, home) in sorted(marked.items(), key=lambda item: (item[1].module, item[0])):
        here = vars(sys.modules[home])
        found = name if here.get(name) is value else next(k for k, v in here.items() if v is value)
        lines += _imports(home, found, name)
    return lines


def fills(text: str) -> bool:
    """Whether a module takes what is marked for it."""
    return "_fill(__name__)" in text


def _lines(node: ast.stmt, module: str) -> list[str]:
    """What a statement at the top of a module is in its stub."""
    if isinstance(node, ast.ImportFrom) and node.module and node.module != "__future__":
        if node.names[0].name == "*":
            names = stub_signatures.exported(node.module)
            if not any(_made(node.module, name, name) for name in names):
                return [f"from {node.module} import *"]
            return list(chain.from_iterable(_imports(node.module, n, n) for n in sorted(names)))
        return list(
            chain.from_iterable(
                _imports(node.module, alias.name, alias.asname or alias.name)
                for alias in node.names
                if not (alias.asname or alias.name).startswith("_")
            )
        )
    if isinstance(node, ast.AnnAssign) and _is_name(node.target):
        is_private = node.target.id.startswith("_")
        return [] if is_private else [f"{node.target.id}: {ast.unparse(node.annotation)}"]
    if isinstance(node, ast.Assign) and _is_name(node.targets[0]):
        name = node.targets[0].id
        if name == "__all__":
            return [f"__all__ = {importlib.import_module(module).__all__}"]
        if name == "__version__":
            return [ast.unparse(node)]
        if not name.startswith("_"):
            return [f"{name} = {node.value.id}"] if _is_name(node.value) else []
    return []


def _imports(module: str, name: str, asname: str) -> list[str]:
    """An import that counts as public: ``from x import y as y``."""
    if not module:
        return [f"import {name} as {asname}"]
    made = _made(module, name, asname)
    if made:
        return made
    if name == asname:
        return [f"from {module} import {name} as {name}"]
    return [f"from {module} import {name} as _{asname}", f"{asname} = _{asname}"]


def _made(module: str, name: str, asname: str) -> list[str]:
    """The definition of a function that a call makes; nothing for all else."""
    if f"{module}.{name}" in sys.modules or not stub_signatures.is_made(module, name):
        return []
    function = vars(sys.modules[module])[name]
    is_ours = function.__module__.startswith("headrace.")  # absl tells its own types
    return stub_signatures.definition(function, asname) if is_ours else []


def _is_name(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name)


def namespace_stub(module: str) -> str:
    """The text of the stub of a namespace of ``api/`` that is no list: its public names."""
    space = importlib.import_module(module)
    home = module.replace("headrace", "headrace.api", 1)
    lines = []
    names = dir(space) if isinstance(space, Namespace) else space.__all__
    for name in filter(lambda name: not name.startswith("_"), names):
        inner = f"{module}.{name}"
        source = module if inner in _namespaces() else home
        made = [] if inner in _namespaces() else _made(module, name, name)
        lines += made or [f"from {source} import {name} as {name}"]
    return HEAD.format(source=f"dir({module})") + "\n".join(lines) + "\n"


def stub_path(module: str) -> Path:
    """Where checkers look for a module; for one of ``api/`` it is not beside the source."""
    path = SRC / module.replace(".", "/")
    is_package = source_of(module).name == "__init__.py"
    return path / "__init__.pyi" if is_package else path.with_suffix(".pyi")


@cache
def _namespaces() -> set[str]:
    """The modules of ``api/``, under the names that they are imported by."""
    root = SRC / "headrace" / "api"
    paths = (path.relative_to(root).with_suffix("").parts for path in sorted(root.rglob("*.py")))
    names = (".".join(parts).removesuffix("__init__").removesuffix(".") for parts in paths)
    return {f"headrace.{name}" for name in names if name}


@cache
def _lists() -> list[str]:
    """The modules that consist of names from elsewhere: some of them late, marked, or made."""
    found = []
    for path in sorted((SRC / "headrace").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        has_late_or_marked = "__getattr__, __dir__ = " in text or fills(text)
        if not (has_late_or_marked or path.name == "__init__.py") or "TYPE_CHECKING" in text:
            continue
        body = ast.parse(text).body
        if any(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in body):
            continue
        name = ".".join(path.relative_to(SRC).with_suffix("").parts)
        name = name.removesuffix(".__init__").replace("headrace.api.", "headrace.")
        if has_late_or_marked or _has_made(name, body):
            found.append(name)
    return found


def _has_made(module: str, body: list[ast.stmt]) -> bool:
    """Whether a module takes a function that a call makes from elsewhere."""
    imports = [node for node in body if isinstance(node, ast.ImportFrom)]
    names = [alias.asname or alias.name for node in imports for alias in node.names]
    return any(stub_signatures.is_made(module, name) for name in names)


def stubs() -> Iterator[tuple[Path, str]]:
    """Every stub file and its text."""
    for module in _lists():
        yield stub_path(module), stub_of(module, LATE.get(module, {}))
    for module in _namespaces() - set(_lists()):
        yield stub_path(module), namespace_stub(module)
    yield SRC / "headrace" / "ops" / "core" / "raw_ops.pyi", raw_stub.text()


def main(arguments: list[str]) -> int:
    """Write or check every stub; returns the status of the process."""
    parser = argparse.ArgumentParser(description="Write stub files of lists of names.")
    parser.add_argument("--check", action="store_true", help="only say what is not current")
    check = parser.parse_args(arguments).check
    stale = []
    for path, text in stubs():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(path)
            if not check:
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, encoding="utf-8")
    for path in stale:
        print(f"{path.relative_to(SRC)}: {'run tools/make_stubs.py' if check else 'written'}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
