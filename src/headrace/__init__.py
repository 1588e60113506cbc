"""Headrace: graphs of tensor operations, run on any mix of devices and machines.

``import headrace as tf``: public names are those of TensorFlow 1.x.
"""

import sys as _sys

from headrace.namespaces import missing as _missing
from headrace.namespaces.lazy import lazy as _lazy

_missing.make_namespace(_sys.modules[__name__])
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
from headrace.ops.array.api import newaxis
from headrace.ops.core.build import raw as raw_ops
from headrace.ops.every import fill as _fill
from headrace.ops.state.variable_kinds import AUTO_REUSE
from headrace.session.engines import register_engine as _register_engine
from headrace.session.session import InteractiveSession, Session, get_default_session
from headrace.settings import flags as _flags

_fill(__name__)  # with what the rooms of operations mark as public

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
        "headrace.data.specs": (
            *("OptionalSpec", "RaggedTensorSpec", "SparseTensorSpec", "TensorSpec", "TypeSpec"),
        ),
    },
    modules=(
        "app",
        "bayes",
        "collective",
        "compat",
        "config",
        "contrib",
        "data",
        "distribute",
        "distributions",
        "dtypes",
        "estimator",
        "examples",
        "feature_column",
        "flags",
        "gfile",
        "image",
        "keras",
        "layers",
        "logging",
        "lookup",
        "losses",
        "manip",
        "metrics",
        "models",
        "nest",
        "parallel",
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

if _flags.log_format == "json":
    from headrace.logging import get_logger as _get_logger

    _get_logger()

if _flags.data_parallel:
    from headrace.data_parallel.start import begin as _begin

    _begin()
