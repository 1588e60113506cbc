"""Headrace: graphs of tensor operations, run on any mix of devices and machines.

``import headrace as tf``: public names are those of TensorFlow 1.x.
"""

import sys as _sys
from typing import Any as _Any

from headrace.missing import Namespace as _Namespace

_sys.modules[__name__].__class__ = _Namespace

from headrace import (
    _families,
    bitwise,
    debugging,
    errors,
    graph_util,
    initializers,
    io,
    linalg,
    math,
    nn,
    queue,
    random,
    signal,
    spectral,
    train,
)
from headrace.autodiff.custom import custom_gradient
from headrace.autodiff.gradients import (
    AggregationMethod,
    UnconnectedGradients,
    gradients,
)
from headrace.autodiff.hessians import hessians
from headrace.autodiff.registry import RegisterGradient
from headrace.autodiff.registry import not_differentiable as NoGradient
from headrace.autodiff.registry import not_differentiable as NotDifferentiable
from headrace.autodiff.registry import not_differentiable as no_gradient
from headrace.errors import OpError
from headrace.graph.devices import DeviceSpec
from headrace.graph.dtypes import *
from headrace.graph.graph import Graph, get_default_graph, reset_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.shapes import Dimension, TensorShape
from headrace.graph.tensor import Operation, Tensor
from headrace.graph.tensor_proto import MakeNdarray as make_ndarray
from headrace.graph.tensor_proto import make_tensor_proto
from headrace.graph.wire_precision import wire_precision
from headrace.ops.accumulators_api import *
from headrace.ops.array_api import *
from headrace.ops.array_layout_api import *
from headrace.ops.array_sort import *
from headrace.ops.build import (
    constant,
    convert_to_tensor,
    placeholder,
    register_tensor_conversion_function,
)
from headrace.ops.build import raw as raw_ops
from headrace.ops.checking_api import *
from headrace.ops.checking_print import print_v2 as print
from headrace.ops.checking_types import *
from headrace.ops.clip import *
from headrace.ops.comparison import *
from headrace.ops.control_basic import *
from headrace.ops.control_flow_api import *
from headrace.ops.counting import *
from headrace.ops.cumulative import *
from headrace.ops.decoding_api import *
from headrace.ops.dynamic_api import *
from headrace.ops.einsum import *
from headrace.ops.elementwise import *
from headrace.ops.elementwise_binary import *
from headrace.ops.elementwise_cast import *
from headrace.ops.elementwise_nary import *
from headrace.ops.fft import *
from headrace.ops.functional import *
from headrace.ops.gather_api import *
from headrace.ops.image_patches import *
from headrace.ops.import_graph import import_graph_def
from headrace.ops.indexed_slices import *
from headrace.ops.initializers import *
from headrace.ops.linalg_api import *
from headrace.ops.matmul import *
from headrace.ops.operators import *
from headrace.ops.parsing_api import *
from headrace.ops.partitioned import *
from headrace.ops.quantization import *
from headrace.ops.quantized import *
from headrace.ops.queues_api import *
from headrace.ops.ragged_tensor import *
from headrace.ops.random_api import *
from headrace.ops.readers_api import *
from headrace.ops.reduction_api import *
from headrace.ops.reduction_norm import *
from headrace.ops.scopes_api import *
from headrace.ops.script import *
from headrace.ops.segment_api import *
from headrace.ops.session_tensors import *
from headrace.ops.slicing_api import *
from headrace.ops.sparse_api import *
from headrace.ops.sparse_math import *
from headrace.ops.sparse_tensor import *
from headrace.ops.static import static_value as get_static_value
from headrace.ops.strings_api import *
from headrace.ops.tables import *
from headrace.ops.template import *
from headrace.ops.tensor_array import *
from headrace.ops.variable_scope import *
from headrace.ops.variables import *
from headrace.ops.variables_api import *
from headrace.session.session import InteractiveSession, Session, get_default_session

__version__ = "0.1.0"

#: Messages that are loaded when first asked for, so that importing stays fast.
_MESSAGES = frozenset(
    {
        "AttrValue",
        "ConfigProto",
        "Event",
        "GPUOptions",
        "GraphDef",
        "GraphOptions",
        "HistogramProto",
        "LogMessage",
        "MetaGraphDef",
        "NameAttrList",
        "NodeDef",
        "OptimizerOptions",
        "RunMetadata",
        "RunOptions",
        "SessionLog",
        "Summary",
        "SummaryMetadata",
        "TensorInfo",
    }
)


#: Namespaces that are imported when first asked for, so that importing stays fast.
_NAMESPACES = frozenset(
    {
        "app",
        "compat",
        "config",
        "contrib",
        "distributions",
        "dtypes",
        "examples",
        "flags",
        "gfile",
        "image",
        "layers",
        "logging",
        "losses",
        "lookup",
        "manip",
        "metrics",
        "nest",
        "profiler",
        "python_io",
        "quantization",
        "ragged",
        "resource_loader",
        "saved_model",
        "sets",
        "sparse",
        "strings",
        "summary",
        "sysconfig",
        "test",
        "user_ops",
        "version",
    }
)


#: Names of modules that are loaded when first asked for.
_LAZY = {
    **dict.fromkeys(
        (
            *("COMPILER_VERSION", "GIT_VERSION", "VERSION", "GRAPH_DEF_VERSION"),
            *("GRAPH_DEF_VERSION_MIN_CONSUMER", "GRAPH_DEF_VERSION_MIN_PRODUCER"),
        ),
        "version",
    ),
    **dict.fromkeys(
        (
            *("control_flow_v2_enabled", "disable_control_flow_v2", "disable_eager_execution"),
            *("disable_tensor_equality", "disable_v2_behavior", "disable_v2_tensorshape"),
            *("enable_control_flow_v2", "enable_eager_execution", "enable_tensor_equality"),
            *("enable_v2_behavior", "enable_v2_tensorshape", "executing_eagerly", "is_tensor"),
            *("load_file_system_library", "load_library", "load_op_library"),
        ),
        "behavior",
    ),
    "get_logger": "logging",
}


def __getattr__(name: str) -> _Any:
    from importlib import import_module

    if name in _MESSAGES:
        return getattr(import_module("headrace.graph.proto"), name)
    if name in _LAZY:
        return getattr(import_module(f"headrace.{_LAZY[name]}"), name)
    if name in _NAMESPACES:
        try:
            return import_module(f"headrace.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"headrace.{name}":
                raise
    # `missing.Namespace` takes over: it knows old names and what TensorFlow has.
    raise AttributeError(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMESPACES, *_MESSAGES, *_LAZY})
