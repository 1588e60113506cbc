"""Type checkers see exact types in programs of users."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).parent / "programs"
STUB = ROOT / "src" / "headrace" / "ops" / "core" / "raw_ops.pyi"


@pytest.mark.slow
@pytest.mark.process
def test_mypy_finds_the_stated_types():
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *sorted(PROGRAMS.glob("*.py"))],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=110,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_operation_is_typed_with_its_outputs():
    (methods,) = [n for n in ast.parse(STUB.read_text()).body if isinstance(n, ast.ClassDef)]
    returns = {m.name: ast.unparse(m.returns) for m in methods.body[1:]}
    assert returns["NoOp"] == "Operation"
    assert returns["TopKV2"] == "tuple[Tensor, Tensor]"
    assert returns["Unpack"] == "list[Tensor]"


@pytest.mark.parametrize(
    ("stub", "name", "arguments"),
    [
        ("__init__.pyi", "multiply", ["x", "y", "name"]),
        ("layers/__init__.pyi", "dense", ["inputs", "units", "activation"]),
        ("contrib/slim/__init__.pyi", "max_pool2d", ["inputs", "kernel_size", "stride"]),
    ],
)
def test_functions_that_a_call_makes_have_their_arguments(stub, name, arguments):
    body = ast.parse((ROOT / "src" / "headrace" / stub).read_text()).body
    (made,) = [n for n in body if isinstance(n, ast.FunctionDef) and n.name == name]
    assert [a.arg for a in made.args.args][: len(arguments)] == arguments
    assert ast.unparse(made.returns) == "_Tensor"


def test_no_function_hides_that_it_returns_any():
    source = ROOT / "src" / "headrace"
    assert not [p for p in source.rglob("*.py") if "ignore[no-any-return]" in p.read_text()]
