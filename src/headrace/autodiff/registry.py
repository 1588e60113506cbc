"""Gradient rules that programs register themselves, by op type or by a name of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.errors import suggest
from headrace.graph.tensor import Operation
from headrace.ops.core import registry as ops

_rules: dict[str, Callable[..., Any] | ops.NotDifferentiable] = {}


class RegisterGradient:
    """Decorator that registers a gradient rule ``rule(op, *output_grads) -> input_grads``.

    The name is an op type without a rule, or any name used with ``Graph.gradient_override_map``.

    >>> @tf.RegisterGradient("HalfGradient")
    ... def half(op, gradient):
    ...     return 0.5 * gradient
    >>> x = tf.constant(3.0)
    >>> with tf.get_default_graph().gradient_override_map({"Identity": "HalfGradient"}):
    ...     y = tf.identity(x)
    >>> float(tf.Session().run(tf.gradients(y, x)[0]))
    0.5
    """

    def __init__(self, op_type: str) -> None:
        if not isinstance(op_type, str):
            raise TypeError("op_type must be a string")
        self._op_type = op_type

    def __call__(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Register ``rule``.

        Raises:
            KeyError: if the name has a rule already.
        """
        _register(self._op_type, rule)
        return rule


def not_differentiable(op_type: str) -> None:
    """State that ops of a type have no gradient: gradients stop there without an error.

    Raises:
        TypeError: if ``op_type`` is no string.
        KeyError: if the type has a gradient, or this was said of it before.
    """
    if not isinstance(op_type, str):
        raise TypeError("op_type must be a string")
    _register(op_type, ops.NotDifferentiable("declared by the program"))


def _register(name: str, rule: Callable[..., Any] | ops.NotDifferentiable) -> None:
    definition = ops.find_op_def(name)
    if name in _rules or (definition is not None and definition.gradient is not None):
        raise KeyError(f"Registering two gradients with name '{name}'!")
    _rules[name] = rule


def rule_for(op: Operation) -> Callable[..., Any] | ops.NotDifferentiable | None:
    """The rule for ``op``; None means the vector-Jacobian product of its kernel.

    Raises:
        LookupError: if the op asks for a rule that nobody registered.
    """
    override = op.attrs.get("_gradient_op_type")
    if override is not None:
        rule = _rules.get(override)
        if rule is None:
            definition = ops.find_op_def(override)
            if definition is None or definition.gradient is None:
                raise LookupError(
                    f"No gradient defined for operation '{op.name}' (op type: {op.type}): its "
                    f"gradient override '{override}' is not registered.{suggest(override, _rules)}"
                )
            rule = definition.gradient
        return rule
    return op.op_def.gradient if op.op_def.gradient is not None else _rules.get(op.type)
