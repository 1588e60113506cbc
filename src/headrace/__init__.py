"""Headrace: graphs of tensor operations, run on any mix of devices and machines.

``import headrace as tf``: public names are those of TensorFlow 1.x.
"""

import sys as _sys

from headrace.namespaces import missing as _missing
from headrace.namespaces.lazy import lazy as _lazy

_sys.modules[__name__].__class__ = _missing.Namespace
_missing.Namespace.home_of_old_names = "headrace.compat.old_names"

#: Namespaces that are lists of names are in `api/`, and imported as ``headrace.nn``.
__path__.append(f"{__path__[0]}/api")

from headrace import (
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
from headrace.autodiff import control_flow as _control_flow_gradients
from headrace.autodiff import vjp as _vjp
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
from headrace.graph_files.import_graph import import_graph_def
from headrace.ops import every as _every
from headrace.ops.array.api import *
from headrace.ops.array.arranging_api import *
from headrace.ops.array.dynamic_api import *
from headrace.ops.array.gather_api import *
from headrace.ops.array.indexed_slices import *
from headrace.ops.array.joining_api import *
from headrace.ops.array.layout_api import *
from headrace.ops.array.slicing_api import *
from headrace.ops.array.sort import *
from headrace.ops.control.basic import *
from headrace.ops.control.checking_api import *
from headrace.ops.control.checking_print import print_v2 as print
from headrace.ops.control.checking_types import *
from headrace.ops.control.flow_api import *
from headrace.ops.control.functional import *
from headrace.ops.control.script import *
from headrace.ops.control.tensor_array import *
from headrace.ops.core.build import (
    constant,
    convert_to_tensor,
    placeholder,
    register_tensor_conversion_function,
)
from headrace.ops.core.build import raw as raw_ops
from headrace.ops.core.static import static_value as get_static_value
from headrace.ops.image.patches import *
from headrace.ops.io.accumulators_api import *
from headrace.ops.io.queues_api import *
from headrace.ops.io.readers_api import *
from headrace.ops.io.tables import *
from headrace.ops.math.binary import *
from headrace.ops.math.cast import *
from headrace.ops.math.clip import *
from headrace.ops.math.comparison import *
from headrace.ops.math.counting import *
from headrace.ops.math.cumulative import *
from headrace.ops.math.einsum import *
from headrace.ops.math.elementwise import *
from headrace.ops.math.fft import *
from headrace.ops.math.linalg_api import *
from headrace.ops.math.matmul import *
from headrace.ops.math.nary import *
from headrace.ops.math.norms import *
from headrace.ops.math.operators import *
from headrace.ops.math.quantization import *
from headrace.ops.math.quantized import *
from headrace.ops.math.reduction_api import *
from headrace.ops.math.segment_api import *
from headrace.ops.parsing.api import *
from headrace.ops.parsing.decoding_api import *
from headrace.ops.ragged.ragged_tensor import *
from headrace.ops.random.api import *
from headrace.ops.sparse.api import *
from headrace.ops.sparse.math import *
from headrace.ops.sparse.sparse_tensor import *
from headrace.ops.state.initializers import *
from headrace.ops.state.partitioned import *
from headrace.ops.state.scopes_api import *
from headrace.ops.state.session_tensors import *
from headrace.ops.state.template import *
from headrace.ops.state.variable_scope import *
from headrace.ops.state.variables import *
from headrace.ops.state.variables_api import *
from headrace.ops.strings.api import *
from headrace.session.engines import register_engine as _register_engine
from headrace.session.session import InteractiveSession, Session, get_default_session

__version__ = "0.1.0"

_register_engine("grpc", "headrace.distributed.services.client:open_engine")

#: Messages, switches of other releases, and namespaces are imported when first asked for. What
#: stays missing comes to `Namespace`, which knows old names and what TensorFlow has.
__getattr__, __dir__ = _lazy(
    __name__,
    {
        "headrace.graph.proto": (
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
        ),
        "headrace.version": (
            *("COMPILER_VERSION", "GIT_VERSION", "VERSION", "GRAPH_DEF_VERSION"),
            *("GRAPH_DEF_VERSION_MIN_CONSUMER", "GRAPH_DEF_VERSION_MIN_PRODUCER"),
        ),
        "headrace.behavior": (
            *("control_flow_v2_enabled", "disable_control_flow_v2", "disable_eager_execution"),
            *("disable_tensor_equality", "disable_v2_behavior", "disable_v2_tensorshape"),
            *("enable_control_flow_v2", "enable_eager_execution", "enable_tensor_equality"),
            *("enable_v2_behavior", "enable_v2_tensorshape", "executing_eagerly", "is_tensor"),
            *("load_file_system_library", "load_library", "load_op_library"),
        ),
        "headrace.logging": ("get_logger",),
    },
    modules=(
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
        "lookup",
        "losses",
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
    ),
)
