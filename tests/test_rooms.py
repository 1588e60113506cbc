"""The rooms of docs/design.md: every import keeps to their order, whichever way it is written.

`lint-imports` sees import statements; here are imports of modules by string too, and circles of
modules, imports for types and on first use included. ``headrace`` itself is the door: it knows
every room, and registers what a lower one may ask a higher one for.
"""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src"
#: Modules that only make sense together: a graph, its operations, and their functions and shapes.
LARGEST_CIRCLE = 8


def _modules() -> dict[str, ast.Module]:
    found = {}
    for path in sorted((SRC / "headrace").rglob("*.py")):
        name = ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")
        if not name.endswith(("_pb2", "_pb2_grpc")):
            found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


MODULES = _modules()


def _imports(tree: ast.Module) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
    return names


def _strings(tree: ast.Module) -> set[str]:
    """Modules that are named in strings: `import_module`, `lazy` and tables of theirs."""
    return {
        node.value.partition(":")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(r"headrace(\.\w+)+(:\w+)?", node.value)
    }


def _module(name: str) -> str | None:
    """The module of a dotted name, which may go on with attributes; the door is none."""
    for found in (name, name.replace("headrace.", "headrace.api.", 1)):
        while "." in found:
            if found in MODULES and found != "headrace.api":
                return found
            found = found.rpartition(".")[0]
    return None


def _edges() -> dict[str, set[str]]:
    edges = {}
    for name, tree in MODULES.items():
        targets = {_module(target) for target in _imports(tree) | _strings(tree)}
        edges[name] = {t for t in targets if t is not None and t != name}
    return edges


def _layers() -> dict[str, int]:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (stages,) = [c for c in contracts["contracts"] if c["id"] == "stages"]
    assert stages["exhaustive"]
    return {
        room: level
        for level, line in enumerate(reversed(stages["layers"]))
        for room in line.split(" | ")
    }


def test_imports_keep_to_the_order():
    layers = _layers()
    upward = [
        f"{name} imports {target}"
        for name, targets in _edges().items()
        if name != "headrace"
        for target in targets
        if layers[target.split(".")[1]] > layers[name.split(".")[1]]
    ]
    assert not upward


_WHAT = ("Classifier", "Regressor", "Estimator")

#: Names of two classes, with the reason.
SHARED_NAMES = {
    "Dataset": "tf.contrib.learn has one of its own, of arrays",
    "Datasets": "tf.contrib.learn and the tutorials' data readers each have a public one",
    "RunConfig": "tf.estimator.tpu and tf.contrib.learn each have one with more arguments",
    "Estimator": "tf.contrib.learn has one of its own, with fit",
    "Identity": "an initializer, and a bijector",
    "ModeKeys": "tf.contrib.learn has one of its own, with INFER",
    **dict.fromkeys(
        [
            *(f"{kind}{what}" for kind in ("DNN", "Linear", "DNNLinearCombined") for what in _WHAT),
            "Head",
        ],
        "tf.contrib.learn has one of its own, with the earlier interface",
    ),
    **dict.fromkeys(
        [
            *("MirroredStrategy", "OneDeviceStrategy", "ParameterServerStrategy"),
            "CollectiveAllReduceStrategy",
        ],
        "tf.contrib.distribute has one of its own, with the arguments and methods of 1.12",
    ),
    "KMeans": "tf.contrib.factorization has the graph, tf.estimator.experimental the estimator",
    "Step": "tf.contrib.distribute has a public one",
    "TFRecordWriter": "tf.data.experimental has one of its own, which writes datasets",
}


def test_a_name_stands_for_one_class():
    homes: dict[str, list[str]] = {}
    for name, tree in MODULES.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(name)
    shared = {name: modules for name, modules in homes.items() if len(modules) > 1}
    assert {k: v for k, v in shared.items() if k not in SHARED_NAMES} == {}
    assert set(SHARED_NAMES) <= set(shared)


def test_circles_of_modules_are_small():
    circles = [c for c in _circles(_edges()) if len(c) > LARGEST_CIRCLE]
    assert not circles, [sorted(c) for c in circles]


#: Folders of tests that are no room of the product, and what is in them.
OTHER_TESTS = {
    "data": "files that tests read",
    "golden": "results of TensorFlow",
    "device": "programs on a GPU",
    "docs": "pages and notebooks",
    "errors": "texts of errors, from whichever room",
    "netns": "clusters between hosts",
    "ops/cases": "the table of cases of all operations",
    "packaging": "the wheel",
    "process": "clusters of processes",
    "programs": "whole programs",
    "tools": "the programs under tools/",
    "typing": "type checkers on programs of users",
}


def test_the_tests_mirror_the_rooms():
    tests = ROOT / "tests"
    levels = (tests, tests / "ops", tests / "distributed")
    folders = {
        path.relative_to(tests).as_posix()
        for level in levels
        for path in level.iterdir()
        if path.is_dir() and list(path.glob("**/*.py"))
    }
    homeless = {f for f in folders if not (SRC / "headrace" / f).is_dir()}
    assert homeless <= set(OTHER_TESTS)


def test_every_circle_is_in_the_design():
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    table = text.partition("| room | modules that need each other |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `([\w.]+)` \| ([^|]+) \|", table, re.M)
    shown = {
        frozenset(f"headrace.{room}.{m}" for m in re.findall(r"`(\w+)`", names))
        for room, names in rows
    }
    assert shown == {frozenset(c) for c in _circles(_edges()) if len(c) > 1}


@pytest.mark.parametrize("layer", sorted(_layers()))
def test_every_layer_is_there(layer):
    assert f"headrace.{layer}" in MODULES


def _circles(edges: dict[str, set[str]]) -> list[set[str]]:
    """Strongly connected components (Tarjan, SIAM Journal on Computing 1, 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    components = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in edges[node] - {"headrace"}:
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            start = stack.index(node)
            components.append(set(stack[start:]))
            del stack[start:]

    for node in edges:
        if node not in index:
            visit(node)
    return components


def test_the_picture_of_the_rooms_is_that_of_the_contracts():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = {c["id"]: c["layers"] for c in contracts["contracts"] if "layers" in c}
    page = (ROOT / "docs" / "design.md").read_text()
    for letter, name in (("s", "stages"), ("o", "rooms-of-ops"), ("d", "rooms-of-distributed")):
        drawn = dict(re.findall(rf'\b({letter}\d+)\["([^"]+)"\]', page))
        assert list(drawn) == [f"{letter}{i}" for i in range(len(drawn))]
        assert [label.replace(" · ", " | ") for label in drawn.values()] == layers[name]
