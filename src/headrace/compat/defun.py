"""``Defun``: Python functions that become functions of a graph.

A call adds the operations of the body where it stands, so that it has shapes, gradients and
variables as if they had been written there. The function itself, as files hold it, is made when
somebody asks for it.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from headrace.autodiff.custom import custom_gradient
from headrace.graph import dtypes
from headrace.graph.func_graph import FuncGraph, trace
from headrace.graph.graph import Graph, get_default_graph
from headrace.graph.graph_def import function_to_function_def, library_of
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import convert_to_tensor, function_placeholder, raw

__all__ = ["DefinedFunction", "Defun", "OverloadedFunction"]

_CALL_OPTIONS = {"noinline", "compiled", "separate_compiled_gradients"}


class Defun:
    """``@Defun(types...)``: a function that becomes part of each graph where it is called.

    Args:
        input_types: a type for each argument; none: those of the arguments.
        func_name: its name, and the name scope of its operations; that of the function by default.
        grad_func: another such function, of the arguments and the gradients of the results.
        python_grad_func: a function ``(op, *gradients)`` of an operation with ``inputs``.
        kwargs: ``shape_func``, ``noinline`` and the like, which change nothing here.

    Raises:
        ValueError: when applied, if there are more or fewer types than arguments.
    """

    def __init__(self, *input_types: Any, **kwargs: Any) -> None:
        self._types = tuple([dtypes.as_dtype(t) for t in input_types])
        self._options = kwargs

    def __call__(self, function: Callable[..., Any]) -> DefinedFunction | OverloadedFunction:
        if not callable(function):
            raise ValueError(f"function {function} must be callable")
        if self._types or not _takes_arguments(function):
            return DefinedFunction(function, self._types, **self._options)
        return OverloadedFunction(function, **self._options)


def _takes_arguments(function: Callable[..., Any]) -> bool:
    return bool(inspect.signature(function).parameters)


class _Callable:
    """A function that can be called on values."""

    def __init__(
        self,
        function: Callable[..., Any],
        func_name: str | None = None,
        grad_func: Any = None,
        python_grad_func: Callable[..., Any] | None = None,
        **options: Any,
    ) -> None:
        functools.update_wrapper(self, function, updated=())  # type: ignore[arg-type]
        self._function = function
        self._given_name = func_name
        self._scope = func_name or function.__name__
        self._grad = grad_func
        self._python_grad = python_grad_func
        self._options = {
            **options,
            "func_name": func_name,
            "grad_func": grad_func,
            "python_grad_func": python_grad_func,
        }

    def _inline(self, args: Sequence[Any], types: Sequence[Any], name: str | None) -> Any:
        body = self._function
        if self._grad is not None or self._python_grad is not None:
            body = custom_gradient(self._with_gradient(body))
        with get_default_graph().name_scope(name or self._scope) as scope:
            inputs = [convert_to_tensor(a, t) for a, t in zip(args, types, strict=True)]
            return _named(body(*inputs), scope)

    def _with_gradient(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def both(*inputs: Any) -> Any:
            results = function(*inputs)

            def gradient(*grads: Any) -> Any:
                if self._grad is not None:
                    return self._grad(*inputs, *grads)
                assert self._python_grad is not None
                return self._python_grad(_Call(inputs, results), *grads)

            return results, gradient

        return both


def _refuse_unknown(options: dict[str, Any]) -> None:
    if options.keys() - _CALL_OPTIONS:
        raise ValueError(f"Unknown keyword arguments: {sorted(options)}")


class DefinedFunction(_Callable):
    """A function of arguments whose types are declared.

    Attributes:
        declared_input_types: these types.
        python_grad_func: the gradient as a Python function, or None.
    """

    def __init__(
        self, function: Callable[..., Any], input_types: Sequence[Any], **options: Any
    ) -> None:
        super().__init__(function, **options)
        self.declared_input_types = tuple(input_types)
        self.python_grad_func = self._python_grad
        self._body: FuncGraph | None = None

    def __call__(self, *args: Any, name: str | None = None, **options: Any) -> Any:
        """The results for ``args``: outputs of one operation, which is called ``name``.

        Raises:
            ValueError: for another number of arguments, or unknown options.
        """
        _refuse_unknown(options)
        types = self.declared_input_types
        if len(args) != len(types):
            raise ValueError(f"Expected number of arguments: {len(types)}, received: {len(args)}")
        return self._inline(args, types, name)

    @property
    def name(self) -> str:
        """The name in files: the one given, or that of the function and a digest of its body."""
        return self._given_name or self._traced.name

    @property
    def definition(self) -> Any:
        """The function as a FunctionDef message."""
        return function_to_function_def(self._traced)

    @property
    def captured_inputs(self) -> list[Tensor]:
        """Tensors from outside that the body uses; they are further arguments of the definition."""
        return self._traced.capture_inputs

    @property
    def stateful_ops(self) -> list[tuple[str, str]]:
        """Name and type of the operations in the body that do not only compute."""
        return [(op.name, op.type) for op in self._inner_ops() if op.op_def.is_stateful]

    @property
    def grad_func_name(self) -> str | None:
        """The name of the function that is the gradient."""
        return None if self._grad is None else self._grad.name

    def set_grad_func(self, grad_func: Any) -> None:
        """Let another function be the gradient.

        Raises:
            ValueError: if there is one already.
        """
        if self._grad is not None:
            raise ValueError(f"The function {self.name} has a gradient already.")
        self._grad = grad_func

    def add_to_graph(self, graph: Graph) -> None:
        """Let the library of ``graph`` hold this function, whether it is called there or not."""
        library = library_of(graph)
        library.setdefault(self._traced.name, self._traced)
        if self._grad is not None:
            self._grad.add_to_graph(graph)

    def _inner_ops(self) -> list[Any]:
        arguments = {t.op for t in self._traced.all_inputs}
        return [op for op in self._traced._ops if op not in arguments]

    @property
    def _traced(self) -> FuncGraph:
        """The body as a graph of its own, made when first asked for."""
        if self._body is None:
            names = list(inspect.signature(self._function).parameters)
            names += [f"arg{i}" for i in range(len(names), len(self.declared_input_types))]
            signature = list(zip(self.declared_input_types, names, strict=False))

            def call_function() -> Any:
                graph = get_default_graph()
                assert isinstance(graph, FuncGraph)
                return self._function(*[graph.add_input(t, None, n) for t, n in signature])

            body, results = trace(self._scope, call_function, (), function_placeholder)
            with body.as_default():
                body.outputs = _tensors(results, self._scope)
            body.name = self._given_name or ""
            digest = hashlib.sha1(function_to_function_def(body).SerializeToString()).digest()
            letters = base64.b64encode(digest, altchars=b"ab").decode()[:11]
            body.name = self._given_name or f"{self._scope}_{letters}"
            self._body = body
        return self._body


class OverloadedFunction(_Callable):
    """A function of arguments of any types: one function in files for each combination."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        super().__init__(function, **options)
        self._overloads: dict[tuple[Any, ...], DefinedFunction] = {}

    @property
    def name(self) -> str:
        """What its functions are called but for their digests."""
        return self._scope

    @property
    def declared_input_types(self) -> tuple[Any, ...]:
        """None are declared."""
        return ()

    def instantiate(self, input_types: Sequence[Any]) -> DefinedFunction:
        """The function of arguments of these types."""
        types = tuple([dtypes.as_dtype(t).base_dtype for t in input_types])
        if types not in self._overloads:
            options = dict(self._options)
            name = options.pop("func_name")
            if name is not None:
                name = "_".join([name, *[t.name for t in types]])
            self._overloads[types] = DefinedFunction(
                self._function, types, func_name=name, **options
            )
        return self._overloads[types]

    def __call__(self, *args: Any, name: str | None = None, **options: Any) -> Any:
        """The results for ``args``: outputs of one operation, which is called ``name``."""
        _refuse_unknown(options)
        return self._inline(args, [None] * len(args), name)


def _tensors(results: Any, name: str) -> list[Tensor]:
    """The results of a function, as tensors.

    Raises:
        ValueError: if a result among several is None.
    """
    if results is None:
        return []
    many = list(results) if isinstance(results, (list, tuple)) else [results]
    if any(r is None for r in many):
        raise ValueError(f"Function {name} can not return None.")
    return [convert_to_tensor(r) for r in many]


def _named(results: Any, scope: str) -> Any:
    """What a call gives: outputs of one operation, which has the name of the call."""
    tensors = _tensors(results, scope.rstrip("/"))
    if not tensors:
        return raw.NoOp(name=scope)
    named = list(raw.IdentityN(tensors, name=scope))
    return named if len(named) > 1 else named[0]


class _Call:
    """What a gradient function of `Defun` sees of the call: its inputs and outputs."""

    def __init__(self, inputs: Sequence[Any], results: Any) -> None:
        self.inputs = list(inputs)
        self.outputs = list(results) if isinstance(results, (list, tuple)) else [results]
