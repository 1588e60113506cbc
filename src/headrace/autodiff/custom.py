"""Functions with a gradient of their own."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable
from typing import Any

from headrace.autodiff.registry import RegisterGradient
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core.build import convert_to_tensor, raw

_numbers = itertools.count()


def _takes_variables(grad_fn: Callable[..., Any]) -> bool:
    parameters = inspect.signature(grad_fn).parameters
    kinds = {parameter.kind for parameter in parameters.values()}
    return "variables" in parameters or inspect.Parameter.VAR_KEYWORD in kinds


def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator for a function that also says how its gradient is computed.

    ``f(*xs)`` returns ``(y, grad_fn)``: a tensor or a list of tensors of any shapes, and a function
    from as many tensors, each with the shape and dtype of its ``y``, to one gradient for each of
    the ``xs``, with its shape. If ``f`` uses trainable variables, ``grad_fn`` takes a keyword
    ``variables`` (their list) and returns ``(gradients of the xs, gradients of the variables)``.

    Raises:
        TypeError: when called, if ``f`` returns no such pair, or variables are used and ``grad_fn``
            takes no ``variables``.
        ValueError: when called with keyword arguments; when differentiated, if ``grad_fn`` returns
            another number of gradients.
    """

    @functools.wraps(f)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            raise ValueError(
                "The custom_gradient decorator currently supports keywords arguments only when "
                f"they are bound beforehand (functools.partial); got {sorted(kwargs)}."
            )
        graph = get_default_graph()
        before = set(graph.get_collection(GraphKeys.GLOBAL_VARIABLES))
        first_op = graph.version
        inputs = [raw.Identity(convert_to_tensor(a)) for a in args]
        given = f(*inputs)
        if not (isinstance(given, (tuple, list)) and len(given) == 2 and callable(given[1])):
            raise TypeError(
                "A function with @custom_gradient must return its result and a function that "
                f"computes the gradient: (y, grad_fn). It returned {given!r}."
            )
        result, grad_fn = given
        many = isinstance(result, (list, tuple))
        outputs = [convert_to_tensor(r) for r in (result if many else [result])]
        variables = _variables_read(graph, first_op, before)
        if variables and not _takes_variables(grad_fn):
            raise TypeError(
                "If using @custom_gradient with a function that uses variables, then grad_fn must "
                f"accept a 'variables' keyword argument. It uses {[v.name for v in variables]}."
            )
        name = f"CustomGradient-{next(_numbers)}"
        _register(name, grad_fn, len(outputs), len(inputs), variables)
        handles = [v.handle for v in variables]
        with graph.gradient_override_map({"IdentityN": name}):
            tied = raw.IdentityN([*outputs, *inputs, *handles])
        returned = list(tied[: len(outputs)])
        return type(result)(returned) if many else returned[0]

    return decorated


def _variables_read(graph: Any, first_op: int, before: set[Any]) -> list[Any]:
    """Trainable variables that ops made since ``first_op`` take."""
    made = set(graph.get_operations()[first_op:])
    trainable = graph.get_collection(GraphKeys.TRAINABLE_VARIABLES)
    return [v for v in dict.fromkeys(trainable) if any(op in made for op in v.handle.consumers())]


def _register(
    name: str,
    grad_fn: Callable[..., Any],
    output_count: int,
    input_count: int,
    variables: list[Any],
) -> None:
    def rule(op: Operation, *grads: Any) -> list[Any]:
        given = grads[:output_count]
        if variables:
            input_grads, variable_grads = grad_fn(*given, variables=variables)
            variable_grads = list(variable_grads)
        else:
            input_grads, variable_grads = grad_fn(*given), []
        flat = list(input_grads) if isinstance(input_grads, (list, tuple)) else [input_grads]
        if len(flat) != input_count or len(variable_grads) != len(variables):
            raise ValueError(
                f"The custom gradient function returned {len(flat)} gradients for {input_count} "
                f"inputs and {len(variable_grads)} for {len(variables)} variables."
            )
        tensors = [g if g is None or isinstance(g, Tensor) else _converted(g) for g in flat]
        return [None] * output_count + tensors + variable_grads

    RegisterGradient(name)(rule)


def _converted(grad: Any) -> Any:
    return grad if hasattr(grad, "dense_shape") else convert_to_tensor(grad)
