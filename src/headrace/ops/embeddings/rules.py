"""Updates of rows: the rules of the optimisers, on arrays of NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError
from headrace.ops.state.training import RULES, RuleSpec


def rule_spec(name: str) -> RuleSpec:
    """The rule of ``ResourceApply<name>``.

    Raises:
        InvalidArgumentError: if there is none.
    """
    found = RULES.get(name)
    if found is None:
        raise InvalidArgumentError(
            None, None, f"Tables of embeddings know no rule {name!r}; they know {sorted(RULES)}."
        )
    return found


def on_rows(name: str, arguments: Sequence[Any], options: dict[str, bool]) -> Any:
    """``rule(values, *slots, gradients) -> new values and slots``.

    Args:
        arguments: scalars, in the order of the op ``ResourceApply<name>``, without the gradient.
    """
    spec = rule_spec(name)
    rule = partial(spec.rule, np, **{o: options[o] for o in spec.options})
    before = spec.grad_at - spec.states

    def updated(*arrays: Any) -> Any:
        *states, grads = arrays
        # As many threads call it, each says for itself that infinities and NaNs may come.
        with np.errstate(all="ignore"):
            return rule(*states, *arguments[:before], grads, *arguments[before:])

    return updated
