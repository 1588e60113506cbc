"""No function of the source is a copy of another one: what two modules need has one home."""

import ast
import copy
from collections import defaultdict
from pathlib import Path

import pytest

import headrace

SOURCE = Path(headrace.__file__).parent
#: Bodies of fewer nodes of the syntax tree are names for an expression: ``return x is None``.
SMALL = 13

#: Copies that stay, and why.
KEPT = {
    # Two operations with the same kernel, whose arguments have other names: they are of one file.
    ("ops/image/boxes.py:_sample_v1", "ops/image/boxes.py:_sample_v2"),
    ("ops/io/tables.py:_import", "ops/io/tables.py:_fill"),
    # The public functions of the old and the new name, each with its own arguments.
    ("logging.py:log", "logging.py:vlog"),
    ("logging.py:warn", "logging.py:warning"),
    # Short forms of `define_op` for the operations of one file, which only look alike today.
    ("ops/io/accumulators.py:_define", "ops/io/barriers.py:_define"),
    # No stage below both knows texts; above them there is nothing in common.
    ("graph/attr_proto.py:_text", "ops/strings/regex.py:as_bytes"),
    ("autodiff/gradients.py:as_list", "ops/ragged/array.py:_list"),
    ("ops/control/checking_print.py:_text", "ops/io/tables_kernels.py:_shown"),
    ("ops/data/pipeline.py:as_string", "ops/io/readers.py:_text"),
}


def body_of(function):
    """A function's statements without its docstring, its arguments by their places."""
    function = copy.deepcopy(function)
    body = [s for s in function.body if not isinstance(getattr(s, "value", None), ast.Constant)]
    arguments = function.args.posonlyargs + function.args.args + function.args.kwonlyargs
    places = {argument.arg: f"argument {i}" for i, argument in enumerate(arguments)}
    nodes = [node for statement in body for node in ast.walk(statement)]
    for node in nodes:
        if isinstance(node, ast.Name):
            node.id = places.get(node.id, node.id)
    return len(nodes), (len(arguments), ast.dump(ast.Module(body, [])))


def copies(texts, small=SMALL):
    """Groups of names ``file:function`` of functions of modules that have one body."""
    found = defaultdict(list)
    for path, text in texts.items():
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef) and not node.decorator_list:
                size, key = body_of(node)
                if size >= small:
                    found[key].append(f"{path}:{node.name}")
    return {tuple(group) for group in found.values() if len(group) > 1}


@pytest.mark.slow
def test_no_function_is_a_copy():
    paths = sorted(SOURCE.rglob("*.py"))
    texts = {p.relative_to(SOURCE).as_posix(): p.read_text() for p in paths}
    assert copies(texts) - KEPT == set()


@pytest.mark.slow
def test_what_stays_is_still_there():
    paths = {name.partition(":")[0] for group in KEPT for name in group}
    assert copies({path: (SOURCE / path).read_text() for path in sorted(paths)}) >= KEPT


def test_the_check_finds_a_copy_with_other_names():
    one = 'def shown(dims):\n    "Text."\n    return "?" if dims is None else str(list(dims))'
    other = 'def _text(shape):\n    return "?" if shape is None else str(list(shape))'
    assert copies({"a.py": one, "b.py": other}) == {("a.py:shown", "b.py:_text")}
