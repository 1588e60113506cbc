"""What a stage asks about an op stands in the definition of the op, not in lists of names."""

import ast
from pathlib import Path

import pytest

import headrace
from headrace.ops.core import registry
from headrace.ops.core.registry import all_op_defs, get_op_def

SOURCE = Path(headrace.__file__).parent
#: So many names may stand together: for a rewrite of these very ops, say.
FEW = 4


def tables(text, names):
    """Pairs (line, names of ops) of statements that hold collections of such names, and more.

    Lists of other names, such as `__all__`, may have some that ops have too: only collections
    that consist of names of ops count.
    """
    for statement in ast.walk(ast.parse(text)):
        if not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.For, ast.If, ast.Return)):
            continue
        parts = [getattr(statement, k, None) for k in ("value", "iter", "test")]
        found = []
        for node in (n for p in parts if p is not None for n in ast.walk(p)):
            if isinstance(node, ast.Dict):
                elements = [k for k in node.keys if k is not None]
            elif isinstance(node, (ast.Set, ast.Tuple, ast.List)):
                elements = [e for e in node.elts if not isinstance(e, ast.Starred)]
            else:
                continue
            texts = [e.value for e in elements if isinstance(e, ast.Constant)]
            if texts and len(texts) == len(elements) and names.issuperset(texts):
                found += texts
        if found:
            yield statement.lineno, found


def room_of(path):
    """The room of operations that a module is in, or its package. Rooms may list their own ops."""
    first, *rest = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(["headrace", first, *rest[:1]]) if first == "ops" else f"headrace.{first}"


ROOMS = {}
for _path in sorted(SOURCE.rglob("*.py")):
    ROOMS.setdefault(room_of(_path), []).append(_path)


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_no_module_lists_ops_of_other_rooms_by_name(room):
    names = {n for n, m in registry._DEFINED_IN.items() if not f"{m}.".startswith(f"{room}.")}
    large = {
        f"{path.relative_to(SOURCE)}:{line}": found
        for path in ROOMS[room]
        for line, found in tables(path.read_text(), names)
        if len(found) > FEW
    }
    assert not large, f"make these traits of the ops (ops/core/traits.py): {large}"


def test_the_check_finds_a_table():
    names = {"Add", "Sub", "Mul", "Neg", "Abs"}
    text = '_SET = frozenset({"Add", "Sub"}).union(("Mul", "Neg", "Abs"))'
    assert [(line, set(found)) for line, found in tables(text, names)] == [(1, names)]
    assert not list(tables('__all__ = ["Add", "other"]', names))


def test_traits_agree_with_the_op():
    for name, d in all_op_defs().items():
        traits = d.traits
        if traits.hands_on or traits.elements_of is not None:
            assert d.inputs, name
            assert d.outputs, name
            assert not d.effects.writes, name
        if traits.elements_of is not None:
            assert d.effects.pure, name
        if traits.keeps_zero:
            assert traits.elementwise, name
            assert len(d.inputs) == 1, name
        if traits.light:
            assert d.interpret is not None, name
        if traits.repeats or traits.calls_once:
            assert d.lower is not None, name
        if traits.shared:
            assert d.makes_handle, name
        if traits.as_shape is not None:
            assert not traits.is_view, name
    assert get_op_def("ReadVariableOp").traits.is_view
    assert not get_op_def("IdentityN").traits.is_view


def test_readers_and_profiles_ask_definitions():
    assert get_op_def("FusedBatchNormGradV3").traits.stated_outputs == 3
    assert get_op_def("FusedBatchNormV3").traits.stated_outputs is None
    assert [n for n, d in all_op_defs().items() if d.makes_handle == "variable"] == ["VarHandleOp"]
    stages = {"graph_files/import_nodes.py": "BatchNorm", "profiler/nodes.py": "VarHandle"}
    for path, name in stages.items():
        assert name not in (SOURCE / path).read_text()
