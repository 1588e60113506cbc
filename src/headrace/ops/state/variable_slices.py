"""``variable[...]``: a slice of the value, to which a value can be assigned."""

from __future__ import annotations

from typing import Any

from headrace.graph.tensor import Tensor
from headrace.ops.array.slicing_api import getitem
from headrace.ops.state.variables import Variable


def _getitem(self: Variable, key: Any) -> Tensor:
    """A slice of the value, with ``assign(value)`` to change that part of the variable."""
    return getitem(self.value(), key, self)


setattr(Variable, "__getitem__", _getitem)  # noqa: B010  (as `Tensor` has it, from above)
