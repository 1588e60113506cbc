"""Values that consist of several tensors: IndexedSlices, SparseTensor, RaggedTensor."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from headrace.graph.dtypes import DType
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Operation, Tensor

if TYPE_CHECKING:
    from headrace.graph.graph import Graph


class CompositeOperand(TypeError):
    """A composite value stands where a tensor is wanted.

    Ops and public functions that may take composite values answer this by asking ``value`` how to
    do their work on it, so that work on plain tensors pays nothing for it.
    """

    def __init__(self, value: CompositeTensor) -> None:
        self.value = value
        super().__init__(
            f"A {type(value).__name__} is no Tensor, and is not taken here."
            f"{value._conversion_hint} It is {value}"
        )


_P = ParamSpec("_P")
_R = TypeVar("_R")


def composite_function(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Let ``function`` take composite values where one of them says what it does with them.

    It runs as it is; only when it meets a composite value where it wants a tensor, that value's
    ``_call_function`` is asked.
    """

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except CompositeOperand as operand:
            result: _R = operand.value._call_function(function, args, kwargs)
            if result is NotImplemented:
                raise
            return result

    return call


class CompositeTensor:
    """A value made of several tensors. Loops, branches, fetches and feeds take it as one.

    A subclass says of which parts it consists, and how parts make one of its kind again.
    """

    __slots__ = ()

    #: Whether ``Session.run`` can return it.
    _fetchable = True
    #: How to make a tensor of it, for error messages.
    _conversion_hint = ""

    def _print_pieces(self) -> list[Any]:
        """Texts and tensors that ``tf.print`` puts one after the other."""
        return [str(self)]

    def _apply_op(self, op_def: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """The result of an op with this among its inputs, or NotImplemented."""
        return NotImplemented

    def _call_function(
        self, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        """The result of a public function with this among its arguments, or NotImplemented."""
        return NotImplemented

    def _parts(self) -> list[Tensor]:
        """The tensors it consists of, in an order of its own."""
        raise NotImplementedError

    def _from_parts(self, parts: Sequence[Tensor]) -> Self:
        """One like this, of other tensors."""
        raise NotImplementedError

    def _identity(self, identity: Callable[[Tensor], Tensor]) -> Self:
        """One like this, whose parts went through ``identity``."""
        return self._from_parts([identity(p) for p in self._parts()])

    def _value(self, parts: Sequence[Any]) -> Any:
        """What ``Session.run`` returns, from the values of the parts."""
        raise NotImplementedError

    def _fed(self, value: Any) -> Sequence[Any]:
        """The values of the parts, from what was fed in the place of this."""
        raise NotImplementedError


class PlacedElements(CompositeTensor):
    """A tensor whose elements lie in one tensor, while others say where they stand.

    Name, op, type and graph are those of the tensor of the elements.
    """

    __slots__ = ()

    @property
    def _elements(self) -> Tensor:
        """The tensor of the elements."""
        raise NotImplementedError

    @property
    def shape(self) -> TensorShape:
        """The static shape of the whole, as far as it is known."""
        raise NotImplementedError

    def get_shape(self) -> TensorShape:
        """The static shape of the whole, as far as it is known."""
        return self.shape

    @property
    def dtype(self) -> DType:
        return self._elements.dtype

    @property
    def name(self) -> str:
        return self._elements.name

    @property
    def op(self) -> Operation:
        return self._elements.op

    @property
    def graph(self) -> Graph:
        return self._elements.graph

    def consumers(self) -> list[Operation]:
        """The operations that take one of its tensors as an input."""
        return list(dict.fromkeys(op for part in self._parts() for op in part.consumers()))
