"""Traced programs that are traced once more, with some of their equations changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax

__all__ = ["Retracing", "called", "needed", "retraced"]

#: Calls whose equations are taken in their place: by name, the parameter that has them.
_CALLS = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr"}
_CALLS |= {"custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr"}


def called(equation: Any) -> Any:
    """The traced function that an equation does no more than call; None for other equations."""
    return equation.params.get(_CALLS.get(equation.primitive.name, ""))


def needed(jaxpr: Any) -> list[Any]:
    """The equations of a traced function without those whose results nobody takes."""
    wanted = {atom for atom in jaxpr.outvars if not hasattr(atom, "val")}
    found = []
    for equation in reversed(jaxpr.eqns):
        if equation.effects or not wanted.isdisjoint(equation.outvars):
            wanted.update(atom for atom in equation.invars if not hasattr(atom, "val"))
            found.append(equation)
    return found[::-1]


class Retracing:
    """Evaluates a traced function; subclasses change equations."""

    def evaluate(self, jaxpr: Any, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        """The outputs of traced equations for some arguments."""
        known: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
        known.update(zip(jaxpr.invars, args, strict=True))

        def value_of(atom: Any) -> Any:
            # A literal has its value with it. (`jax.extend.core` has the class, and takes longer to
            # import than all of the executor.)
            return atom.val if hasattr(atom, "val") else known[atom]

        for equation in needed(jaxpr):
            given = [value_of(atom) for atom in equation.invars]
            inner = called(equation)
            if inner is None:
                outputs = self.outputs_of(equation, given)
            else:
                inner_consts = getattr(inner, "consts", ())
                outputs = self.evaluate(getattr(inner, "jaxpr", inner), inner_consts, given)
            known.update(zip(equation.outvars, outputs, strict=True))
        return [value_of(atom) for atom in jaxpr.outvars]

    def outputs_of(self, equation: Any, given: list[Any]) -> list[Any]:
        """What an equation gives that calls no traced function."""
        params = equation.primitive.get_bind_params(equation.params)
        made = equation.primitive.bind(*given, **params)
        return list(made) if equation.primitive.multiple_results else [made]


def retraced(
    function: Callable[..., Any], evaluate: Callable[[Any, Sequence[Any], list[Any]], list[Any]]
) -> Callable[..., Any]:
    """The function with its trace evaluated by ``evaluate``: of a jaxpr, constants, arguments."""

    def again(*args: Any) -> Any:
        traced, shapes = jax.make_jaxpr(function, return_shape=True)(*args)
        outputs = evaluate(traced.jaxpr, traced.consts, jax.tree.leaves(args))
        return jax.tree.unflatten(jax.tree.structure(shapes), outputs)

    return again
