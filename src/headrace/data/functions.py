"""Graph functions of elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.data import structure as nested
from headrace.graph.func_graph import FuncGraph
from headrace.graph.tensor import Tensor
from headrace.ops.control.functions import build_body
from headrace.ops.core.build import function_placeholder


class ElementFunction:
    """A user's function as a graph function of the components of its arguments.

    Args:
        function: takes one argument for each of ``structures``; with ``spread``, the items of a
            tuple as an argument each, and the whole of any other structure.
        name: what it is for, as errors say it.
        output: the structure that results must have; by default what the function returns.

    Attributes:
        body: the function; ``captured``: what it takes beside the components.
        output: the structure of its result.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        structures: list[Any],
        name: str,
        *,
        output: Any = None,
        spread: bool = True,
    ) -> None:
        self.output = output

        def traced(*flat: Tensor) -> list[Tensor]:
            args: list[Any] = []
            at = 0
            for structure in structures:
                count = len(nested.flatten(structure))
                args.append(nested.values(structure, flat[at : at + count]))
                at += count
            if spread and len(args) == 1 and type(args[0]) is tuple:
                args = list(args[0])
            return self._flat(function(*args), name)

        signature = [
            (leaf.flat_type, leaf.flat_shape.as_tuple, "arg")
            for structure in structures
            for leaf in nested.flatten(structure)
        ]
        self.body, outputs = build_body(name, traced, signature)
        with self.body.as_default():
            self.body.outputs = [
                t if t.graph is self.body else self.body.capture(t) for t in outputs
            ]

    def _flat(self, result: Any, name: str) -> list[Tensor]:
        if result is None:
            raise TypeError(
                f"The function of Dataset.{name} returned None; it must return tensors."
            )
        if isinstance(result, list):  # what an operation with several outputs gives
            result = tuple(result)
        if self.output is None:
            self.output = nested.of_value(result)
        return nested.components(self.output, result)

    @property
    def captured(self) -> list[Tensor]:
        return self.body.capture_inputs


def copied_by_value(tensor: Tensor) -> FuncGraph:
    """A function without inputs that computes ``tensor``, as a one-shot iterator needs it.

    Raises:
        ValueError: if it depends on what is not the same in every step: placeholders, variables.
    """
    body = FuncGraph(
        f"dataset_{tensor.graph.unique_name('factory')}", tensor.graph, function_placeholder
    )
    copies: dict[Tensor, Tensor] = {}
    order: list[Any] = []
    pending = [(tensor.op, False)]
    seen = set()
    while pending:
        op, is_ready = pending.pop()
        if is_ready:
            order.append(op)
        elif op not in seen:
            seen.add(op)
            pending.append((op, True))
            pending.extend((t.op, False) for t in op.inputs)
    for op in order:
        if op.type.startswith("Placeholder"):
            raise ValueError(
                f"Cannot capture a placeholder (name:{op.name}, type:{op.type}) by value."
            )
        if op.op_def.is_stateful or op.op_def.makes_handle:
            message = (
                f"Cannot capture a stateful node (name:{op.name}, type:{op.type}) by value: a "
                "one-shot iterator makes its dataset by itself. Use "
                "tf.data.make_initializable_iterator(dataset), and run its initializer."
            )
            raise ValueError(message)
        with body.as_default():
            copy = body.add_op(
                op.op_def,
                [copies[t] for t in op.inputs],
                op.attrs,
                [t.dtype for t in op.outputs],
                op.name,
                [],
                op.device,
            )
        copy.site = op.site
        copies.update(zip(op.outputs, copy.outputs, strict=True))
        for old, new in zip(op.outputs, copy.outputs, strict=True):
            new.set_shape(old.shape)
    body.outputs = [copies[tensor]]
    tensor.graph.outermost._functions[body.name] = body
    return body


__all__: list[str] = []
