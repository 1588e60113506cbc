"""Headrace: graphs of tensor operations, run on any mix of devices and machines.

``import headrace as tf``: public names are those of TensorFlow 1.x.
"""

from headrace import errors
from headrace.autodiff.gradients import (
    AggregationMethod,
    UnconnectedGradients,
    gradients,
    hessians,
)
from headrace.autodiff.registry import RegisterGradient
from headrace.autodiff.registry import not_differentiable as NoGradient
from headrace.autodiff.registry import not_differentiable as NotDifferentiable
from headrace.autodiff.registry import not_differentiable as no_gradient
from headrace.errors import OpError
from headrace.graph.devices import DeviceSpec
from headrace.graph.dtypes import *  # noqa: F403
from headrace.graph.graph import Graph, get_default_graph, reset_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.shapes import Dimension, TensorShape
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.build import (
    constant,
    convert_to_tensor,
    placeholder,
    register_tensor_conversion_function,
)
from headrace.ops.build import (
    raw as raw_ops,
)
from headrace.ops.control_basic import *  # noqa: F403
from headrace.ops.scopes_api import *  # noqa: F403
from headrace.ops.static import static_value as get_static_value
from headrace.ops.variables import *  # noqa: F403
from headrace.ops.variables_api import *  # noqa: F403
from headrace.session.session import InteractiveSession, Session, get_default_session

__version__ = "0.1.0"
