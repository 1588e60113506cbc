"""Values that consist of several tensors: IndexedSlices, SparseTensor, RaggedTensor."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Self

from headrace.graph.tensor import Tensor


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


def composite_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let ``function`` take composite values where one of them says what it does with them.

    It runs as it is; only when it meets a composite value where it wants a tensor, that value's
    ``_call_function`` is asked.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except CompositeOperand as operand:
            result = operand.value._call_function(function, args, kwargs)
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
