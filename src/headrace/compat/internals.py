"""Functions of TensorFlow's internal modules that programs call although they are not public.

Only what has no place in Headrace's own interface is here; everything else is an alias
(`module_table`).
"""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from headrace.graph.graph import Graph, get_default_graph
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.control.flow_api import cond
from headrace.ops.core.build import convert_to_tensor
from headrace.ops.core.static import static_shape, static_value
from headrace.ops.state.scopes_api import control_dependencies, graph_of, name_scope

_uids = itertools.count(1)
_uid_lock = threading.Lock()


# -- framework/ops ------------------------------------------------------------------------------


def convert_n_to_tensor(
    values: Sequence[Any], dtype: Any = None, name: str | None = None, preferred_dtype: Any = None
) -> list[Tensor]:
    """Each of ``values`` as a tensor."""
    return [
        convert_to_tensor(
            value, dtype, name if name is None else f"{name}_{i}", preferred_dtype=preferred_dtype
        )
        for i, value in enumerate(values)
    ]


def internal_convert_n_to_tensor(
    values: Sequence[Any],
    dtype: Any = None,
    name: str | None = None,
    as_ref: bool = False,
    preferred_dtype: Any = None,
    ctx: Any = None,
) -> list[Tensor]:
    """Each of ``values`` as a tensor."""
    return convert_n_to_tensor(values, dtype, name, preferred_dtype)


@contextmanager
def op_scope(values: Any, name: str | None, default_name: str | None = None) -> Iterator[str]:
    """The name scope of an operation, with its inputs first (the order before release 1.0)."""
    with name_scope(name, default_name, values) as scope:
        yield scope


def strip_name_scope(name: str, export_scope: str | None) -> str:
    """``name`` without ``export_scope`` at its head."""
    if not export_scope:
        return name
    head = export_scope.rstrip("/") + "/"
    for mark in ("^", "loc:@", ""):
        if name.startswith(mark + head):
            return mark + name[len(mark + head) :]
    return name


def prepend_name_scope(name: str, import_scope: str | None) -> str:
    """``name`` inside ``import_scope``."""
    if not import_scope:
        return name
    head = import_scope.rstrip("/") + "/"
    for mark in ("^", "loc:@"):
        if name.startswith(mark):
            return mark + head + name[len(mark) :]
    return head + name


def name_from_scope_name(name: str) -> str:
    """A scope's name without the slash at its end."""
    return name[:-1] if name.endswith("/") else name


def get_name_scope() -> str:
    """The name scope that operations would be made in."""
    return get_default_graph().get_name_scope()


def get_all_collection_keys() -> list[Any]:
    """The keys of all collections of the default graph."""
    return get_default_graph().get_all_collection_keys()


def uid() -> int:
    """A number that no call in this process gave before."""
    with _uid_lock:
        return next(_uids)


def inside_function() -> bool:
    """Whether a function's body is being built."""
    return get_default_graph().building_function


def executing_eagerly_outside_functions() -> bool:
    """False: there is no eager mode."""
    return False


def _get_graph_from_inputs(op_input_list: Any, graph: Graph | None = None) -> Graph:
    return graph if graph is not None else graph_of(op_input_list)


def get_gradient_function(op: Operation) -> Any:
    """The gradient rule of an operation, or None where there is none."""
    from headrace.autodiff.registry import rule_for

    rule = rule_for(op) if op.inputs else None
    return rule if callable(rule) else None


class RegisterShape:
    """Does nothing: operations bring their shape functions (releases before 1.0 registered them).

    Usable as ``@RegisterShape("Op")`` and as ``RegisterShape("Op")(function)``.
    """

    def __init__(self, op_type: str) -> None:
        self.op_type = op_type

    def __call__(self, function: Callable[..., Any] | None) -> Callable[..., Any] | None:
        return function


# -- framework/tensor_util, smart_cond, common_shapes -------------------------------------------


def constant_value_as_shape(tensor: Any) -> TensorShape:
    """The shape that a one-dimensional integer tensor stands for, as far as it is known."""
    return TensorShape.of(static_shape(convert_to_tensor(tensor)))


def is_tensor(x: Any) -> bool:
    """Whether ``x`` is a tensor, a variable or made of tensors."""
    from headrace.graph.composite import CompositeTensor

    return isinstance(x, (Tensor, CompositeTensor)) or hasattr(x, "_to_tensor")


def smart_constant_value(pred: Any) -> bool | None:
    """The value of a predicate if it is known while the graph is built, or None.

    Raises:
        TypeError: if ``pred`` is neither 0, 1, a bool nor a tensor.
    """
    if isinstance(pred, (bool, int)) and pred in (0, 1):
        return bool(pred)
    if isinstance(pred, Tensor) or hasattr(pred, "_to_tensor"):
        value = static_value(convert_to_tensor(pred))
        return None if value is None else bool(value)
    raise TypeError(
        f"`pred` must be a Tensor, or a Python bool, or 1 or 0. Found instead: {type(pred)}"
    )


constant_value = smart_constant_value


def smart_cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    name: str | None = None,
) -> Any:
    """The result of the branch that is known to be taken, or of ``tf.cond``.

    Raises:
        TypeError: if a branch cannot be called.
    """
    if not callable(true_fn) or not callable(false_fn):
        raise TypeError("`true_fn` and `false_fn` must be callable.")
    known = smart_constant_value(pred)
    if known is None:
        return cond(pred, true_fn=true_fn, false_fn=false_fn, name=name)
    return true_fn() if known else false_fn()


def unknown_shape(op: Operation) -> list[TensorShape]:
    """An unknown shape for each output of ``op``."""
    return [TensorShape(None) for _ in op.outputs]


def unchanged_shape(op: Operation) -> list[TensorShape]:
    """The shape of the first input of ``op``."""
    return [op.inputs[0].get_shape()]


def scalar_shape(op: Operation) -> list[TensorShape]:
    """The shape of a scalar."""
    return [TensorShape([])]


def broadcast_shape(shape_x: TensorShape, shape_y: TensorShape) -> TensorShape:
    """The shape that two shapes broadcast to.

    Raises:
        ValueError: if they do not.
    """
    from headrace.graph.shapes import as_static, broadcast_static

    return TensorShape.of(broadcast_static(as_static(shape_x), as_static(shape_y)))


def is_broadcast_compatible(shape_x: TensorShape, shape_y: TensorShape) -> bool:
    """Whether two shapes are known to broadcast."""
    try:
        return broadcast_shape(shape_x, shape_y).rank is not None
    except ValueError:
        return False


# -- ops/control_flow_ops, resource_variable_ops ------------------------------------------------


def with_dependencies(dependencies: Sequence[Any], output_tensor: Any, name: Any = None) -> Any:
    """``output_tensor`` once ``dependencies`` have run."""
    from headrace.ops.core.build import raw

    with name_scope(name, "control_dependency", [*dependencies, output_tensor]) as scope:  # noqa: SIM117
        with control_dependencies(dependencies):
            return raw.Identity(convert_to_tensor(output_tensor), name=scope)


def is_resource_variable(var: Any) -> bool:
    """Whether ``var`` is a variable: all of them have resource semantics."""
    from headrace.ops.state.variables import Variable

    return isinstance(var, Variable)


# -- training, framework/meta_graph -------------------------------------------------------------


def _increment_global_step(increment: int, graph: Graph | None = None) -> Tensor:
    """An operation that adds to the global step and gives its new value.

    Raises:
        ValueError: if the graph has no global step.
    """
    from headrace.train import get_global_step

    graph = graph or get_default_graph()
    step = get_global_step(graph)
    if step is None:
        raise ValueError(
            "Global step tensor should be created by tf.train.get_or_create_global_step before "
            "calling increment."
        )
    with graph.as_default(), name_scope(step.op.name + "/"), control_dependencies([step.op]):
        result: Tensor = step.assign_add(increment)
    return result


def meta_graph_filename(checkpoint_filename: str, meta_graph_suffix: str = "meta") -> str:
    """The file beside a checkpoint that holds its graph."""
    base = re.sub(r"-[\d\?]+-of-\d+$", "", checkpoint_filename)
    return f"{base}.{meta_graph_suffix}"


def ops_used_by_graph_def(graph_def: Any) -> list[str]:
    """The types of a graph's operations, those inside its functions too, each once."""
    functions = {f.signature.name: f for f in graph_def.library.function}
    found: set[str] = set()
    waiting = [node.op for node in graph_def.node]
    while waiting:
        op = waiting.pop()
        if op not in found:
            found.add(op)
            body = functions[op].node_def if op in functions else ()
            waiting.extend(node.op for node in body)
    return sorted(found - functions.keys())


def stripped_op_list_for_graph(graph_def: Any) -> Any:
    """The definitions of a graph's operations, as an ``OpList``.

    Raises:
        ValueError: if one is not known here.
    """
    from headrace.graph.graph_def import op_def_to_proto
    from headrace.graph.proto import OpList
    from headrace.ops.core.registry import get_op_def

    used = ops_used_by_graph_def(graph_def)
    return OpList(op=[op_def_to_proto(get_op_def(name)) for name in used])


# -- client/device_lib --------------------------------------------------------------------------


def list_local_devices(session_config: Any = None) -> list[Any]:
    """The devices of this process, as ``DeviceAttributes`` messages."""
    from headrace.graph.proto import DeviceAttributes
    from headrace.session.session import Session

    with Session(graph=Graph(), config=session_config) as session:
        found = session.list_devices()
    return [
        DeviceAttributes(
            name=device.name,
            device_type=device.device_type,
            memory_limit=getattr(device, "memory_limit_bytes", 0) or 0,
            incarnation=i + 1,
            physical_device_desc=getattr(device, "description", ""),
        )
        for i, device in enumerate(found)
    ]
