"""Every op goes to a GraphDef and back, made from its definition alone."""

import numpy as np
import pytest

from headrace.graph_files.export_graph import graph_def_for_files
from headrace.harness.op_cases import check_in_files, smallest
from headrace.ops.control.jax_programs import load, trace
from headrace.ops.core.registry import all_op_defs

PROGRAM = trace(lambda x: [x], [()], [np.float32], []).program
MODULE = load(PROGRAM).mlir_module_serialized

#: Attributes that have to fit each other or the inputs, which a definition does not say.
ATTRS = {
    **{
        name: {"strides": (1, 1, 1, 1), "padding": "SAME"}
        for name in (
            *("Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput", "QuantizedConv2D"),
            *("DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropFilter"),
            "DepthwiseConv2dNativeBackpropInput",
        )
    },
    **{name: {"padding": "SAME"} for name in ("MaxPool", "MaxPoolGrad")},
    **{
        f"ImageProjectiveTransform{version}": {"interpolation": "NEAREST"}
        for version in ("V2", "V3")
    },
    "Einsum": {"equation": "a->a"},
    "FixedUnigramCandidateSampler": {"unigrams": (0.5,)},
    "JaxCall": {"program": PROGRAM},
    "XlaCallModule": {"module": MODULE, "_around": PROGRAM.split(MODULE)},
}

#: Ops with function bodies have tests of their own, for a body has to fit its op; and control flow
#: by hand, which is raised to functions on the way.
PLAIN = [
    d
    for name, d in sorted(all_op_defs().items())
    if not name.startswith("Test")
    and not any("func" in a.kind for a in d.attrs.values())
    and not d.traits.by_hand
]


@pytest.mark.parametrize("op_def", PLAIN, ids=lambda d: d.name)
def test_an_op_survives_a_file(op_def):
    check_in_files(smallest(op_def, **ATTRS.get(op_def.name, {})))


NEWER = [d for d in PLAIN if any(a.newer for a in d.attrs.values()) and not d.traits.only_here]


@pytest.mark.parametrize("op_def", NEWER, ids=lambda d: d.name)
def test_files_have_no_newer_attributes_at_their_defaults(op_def):
    op = smallest(op_def, **ATTRS.get(op_def.name, {}))
    (node,) = [n for n in graph_def_for_files(op.graph).node if n.name == op.name]
    kept = {n for n, a in op_def.attrs.items() if not a.newer and n[0] != "_"}
    assert {n for n in node.attr if not n.startswith("_")} == kept
    newer = next(n for n, a in op_def.attrs.items() if a.newer)
    assert newer in op.node_def.attr
