"""Ops that exist for one test only."""

from __future__ import annotations

import pytest

from headrace.ops import registry
from headrace.ops.build import apply_op


@pytest.fixture
def new_op():
    """``new_op(signature, **definition)`` defines an op and returns a function that applies it."""
    names = []

    def define(signature, **definition):
        op_def = registry.define_op(signature, **definition)
        names.append(op_def.name)

        def apply(*inputs, **attrs):
            return apply_op(op_def, inputs, attrs)

        return apply

    yield define
    for name in names:
        del registry._OPS[name], registry._DEFINED_IN[name]
