"""Values that consist of several tensors: IndexedSlices, SparseTensor, RaggedTensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

from headrace.graph.tensor import Tensor


class CompositeTensor:
    """A value made of several tensors. Loops, branches, fetches and feeds take it as one.

    A subclass says of which parts it consists, and how parts make one of its kind again.
    """

    __slots__ = ()

    #: Whether ``Session.run`` can return it.
    _fetchable = True

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
