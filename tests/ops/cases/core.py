"""Ops that graphs are made of, each with tests of its own."""

from __future__ import annotations

COVERED = {
    "Const": "tests/graph/test_tensor_proto.py",
    "Placeholder": "tests/session/test_session.py",
    "SymbolicGradient": "tests/autodiff/test_gradients.py",
}
