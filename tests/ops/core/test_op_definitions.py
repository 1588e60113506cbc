"""Signatures of ops against TensorFlow's, so that graph files interchange."""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path

import pytest

import headrace  # noqa: F401  (registers all ops)
from headrace.graph.graph_def import op_def_to_proto
from headrace.graph.proto import OpList
from headrace.ops.core.known_attrs import is_neutral
from headrace.ops.core.registry import all_op_defs

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "op_definitions.pb.gz"
#: Gradients by vector-Jacobian product are ours; TensorFlow's op of this name has no such form.
OURS = {"SymbolicGradient"}
_RESOURCE = 20
#: Defaults that are held as "not given": (op, attribute).
NOT_GIVEN = {("ImageSummary", "bad_color")}


@cache
def peer_ops():
    return {op.name: op for op in OpList.FromString(gzip.decompress(GOLDEN.read_bytes())).op}


def arguments(args):
    """What files depend on; list outputs of private types are ours alone.

    A reference to a host resource (sparse accumulators have them) is a handle here.
    """
    return [
        (
            a.name,
            _RESOURCE if a.is_ref and a.name.endswith("handle") else a.type,
            a.type_attr,
            a.number_attr,
            a.type_list_attr,
        )
        for a in args
        if not a.type_list_attr.startswith("_")
    ]


NAMES = sorted(n for n in all_op_defs() if n not in OURS)


def test_most_ops_are_those_of_tensorflow():
    assert len([n for n in NAMES if n in peer_ops()]) > 250


@pytest.mark.parametrize("name", NAMES)
def test_definition_is_that_of_tensorflow(name):
    peer = peer_ops().get(name)
    if peer is None:
        return  # an op of our own
    ours = op_def_to_proto(all_op_defs()[name])
    assert arguments(ours.input_arg) == arguments(peer.input_arg)
    assert arguments(ours.output_arg) == arguments(peer.output_arg)
    known = {a.name: a for a in peer.attr}
    mine = {a.name: a for a in ours.attr}
    assert [a for a in mine if a not in known and not a.startswith("_")] == []
    for attr in peer.attr:
        if attr.name not in mine:
            assert attr.HasField("default_value"), f"{attr.name} is required"
            assert is_neutral(attr.name, attr.default_value), f"{attr.name} is not declared"
            continue
        assert mine[attr.name].type == attr.type
        if attr.HasField("default_value") and (name, attr.name) not in NOT_GIVEN:
            assert mine[attr.name].default_value == attr.default_value, attr.name
