# Written by tools/make_stubs.py from __init__.py; do not edit.
from headrace.api import bitwise as bitwise
from headrace.api import debugging as debugging
from headrace import errors as errors
from headrace.api import graph_util as graph_util
from headrace.api import initializers as initializers
from headrace.api import io as io
from headrace.api import linalg as linalg
from headrace.api import math as math
from headrace.api import nn as nn
from headrace.api import queue as queue
from headrace.api import random as random
from headrace.api import signal as signal
from headrace.api import spectral as spectral
from headrace import train as train
from headrace.autodiff.custom import custom_gradient as custom_gradient
from headrace.autodiff.gradients import AggregationMethod as AggregationMethod
from headrace.autodiff.gradients import UnconnectedGradients as UnconnectedGradients
from headrace.autodiff.gradients import gradients as gradients
from headrace.autodiff.hessians import hessians as hessians
from headrace.autodiff.registry import RegisterGradient as RegisterGradient
from headrace.autodiff.registry import not_differentiable as _NoGradient
NoGradient = _NoGradient
from headrace.autodiff.registry import not_differentiable as _NotDifferentiable
NotDifferentiable = _NotDifferentiable
from headrace.autodiff.registry import not_differentiable as _no_gradient
no_gradient = _no_gradient
from headrace.errors import OpError as OpError
from headrace.graph.devices import DeviceSpec as DeviceSpec
from headrace.graph.dtypes import *
from headrace.graph.graph import Graph as Graph
from headrace.graph.graph import get_default_graph as get_default_graph
from headrace.graph.graph import reset_default_graph as reset_default_graph
from headrace.graph.keys import GraphKeys as GraphKeys
from headrace.graph.shapes import Dimension as Dimension
from headrace.graph.shapes import TensorShape as TensorShape
from headrace.graph.tensor import Operation as Operation
from headrace.graph.tensor import Tensor as Tensor
from headrace.graph.tensor_proto import MakeNdarray as _make_ndarray
make_ndarray = _make_ndarray
from headrace.graph.tensor_proto import make_tensor_proto as make_tensor_proto
from headrace.graph.wire_precision import wire_precision as wire_precision
from headrace.graph_files.import_graph import import_graph_def as import_graph_def
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
from headrace.ops.control.checking_print import print_v2 as _print
print = _print
from headrace.ops.control.checking_types import *
from headrace.ops.control.flow_api import *
from headrace.ops.control.functional import *
from headrace.ops.control.script import *
from headrace.ops.control.tensor_array import *
from headrace.ops.core.build import constant as constant
from headrace.ops.core.build import convert_to_tensor as convert_to_tensor
from headrace.ops.core.build import placeholder as placeholder
from headrace.ops.core.build import register_tensor_conversion_function as register_tensor_conversion_function
from headrace.ops.core.build import raw as _raw_ops
raw_ops = _raw_ops
from headrace.ops.core.static import static_value as _get_static_value
get_static_value = _get_static_value
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
from headrace.session.session import InteractiveSession as InteractiveSession
from headrace.session.session import Session as Session
from headrace.session.session import get_default_session as get_default_session
__version__ = '0.1.0'
from headrace.api import app as app
from headrace.api.behavior import control_flow_v2_enabled as control_flow_v2_enabled
from headrace.api.behavior import disable_control_flow_v2 as disable_control_flow_v2
from headrace.api.behavior import disable_eager_execution as disable_eager_execution
from headrace.api.behavior import disable_tensor_equality as disable_tensor_equality
from headrace.api.behavior import disable_v2_behavior as disable_v2_behavior
from headrace.api.behavior import disable_v2_tensorshape as disable_v2_tensorshape
from headrace.api.behavior import enable_control_flow_v2 as enable_control_flow_v2
from headrace.api.behavior import enable_eager_execution as enable_eager_execution
from headrace.api.behavior import enable_tensor_equality as enable_tensor_equality
from headrace.api.behavior import enable_v2_behavior as enable_v2_behavior
from headrace.api.behavior import enable_v2_tensorshape as enable_v2_tensorshape
from headrace.api.behavior import executing_eagerly as executing_eagerly
from headrace.api.behavior import is_tensor as is_tensor
from headrace.api.behavior import load_file_system_library as load_file_system_library
from headrace.api.behavior import load_library as load_library
from headrace.api.behavior import load_op_library as load_op_library
from headrace import compat as compat
from headrace.api import config as config
from headrace import contrib as contrib
from headrace import distributions as distributions
from headrace.api import dtypes as dtypes
from headrace import examples as examples
from headrace.api import flags as flags
from headrace.api import gfile as gfile
from headrace.graph.proto import AttrValue as AttrValue
from headrace.graph.proto import ConfigProto as ConfigProto
from headrace.graph.proto import Event as Event
from headrace.graph.proto import GPUOptions as GPUOptions
from headrace.graph.proto import GraphDef as GraphDef
from headrace.graph.proto import GraphOptions as GraphOptions
from headrace.graph.proto import HistogramProto as HistogramProto
from headrace.graph.proto import LogMessage as LogMessage
from headrace.graph.proto import MetaGraphDef as MetaGraphDef
from headrace.graph.proto import NameAttrList as NameAttrList
from headrace.graph.proto import NodeDef as NodeDef
from headrace.graph.proto import OptimizerOptions as OptimizerOptions
from headrace.graph.proto import RunMetadata as RunMetadata
from headrace.graph.proto import RunOptions as RunOptions
from headrace.graph.proto import SessionLog as SessionLog
from headrace.graph.proto import Summary as Summary
from headrace.graph.proto import SummaryMetadata as SummaryMetadata
from headrace.graph.proto import TensorInfo as TensorInfo
from headrace import image as image
from headrace import layers as layers
from headrace import logging as logging
from headrace.logging import get_logger as get_logger
from headrace import lookup as lookup
from headrace import losses as losses
from headrace.api import manip as manip
from headrace import metrics as metrics
from headrace.api import nest as nest
from headrace import profiler as profiler
from headrace.api import python_io as python_io
from headrace.api import quantization as quantization
from headrace.api import ragged as ragged
from headrace.api import resource_loader as resource_loader
from headrace import saved_model as saved_model
from headrace.api import sets as sets
from headrace.api import sparse as sparse
from headrace.api import strings as strings
from headrace import summary as summary
from headrace.api import sysconfig as sysconfig
from headrace import test as test
from headrace.api import user_ops as user_ops
from headrace.api import version as version
from headrace.api.version import COMPILER_VERSION as COMPILER_VERSION
from headrace.api.version import GIT_VERSION as GIT_VERSION
from headrace.api.version import GRAPH_DEF_VERSION as GRAPH_DEF_VERSION
from headrace.api.version import GRAPH_DEF_VERSION_MIN_CONSUMER as GRAPH_DEF_VERSION_MIN_CONSUMER
from headrace.api.version import GRAPH_DEF_VERSION_MIN_PRODUCER as GRAPH_DEF_VERSION_MIN_PRODUCER
from headrace.api.version import VERSION as VERSION
