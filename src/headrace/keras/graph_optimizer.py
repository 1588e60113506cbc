"""An optimiser of Keras in a graph: each variable is updated beside its slots, where it is.

What an optimiser makes of all gradients together is a number or two, which travel to each update:
the factor of `global_clipnorm`, and, where a `LossScaleOptimizer` is around it, whether all
gradients are finite.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Tensor
from headrace.keras.arrays import arrays_enter
from headrace.keras.loading import load_keras
from headrace.ops.control.jax_call import add_call
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.state.initializers import Zeros
from headrace.train.optimizer import Optimizer

__all__ = ["GradientNotes", "KerasRule", "inner_optimizer"]


class GradientNotes:
    """What workers tell each other with their gradients: a vector of float64.

    Its first element is the learning rate, then come what metrics have counted, then how state that
    is not trained (moving averages) has changed; these add up to its values.

    Args:
        metrics, state: how many elements there are of these.
        copies: of how many workers a gradient is the average.
    """

    def __init__(self, metrics: int, state: int, copies: int) -> None:
        self.metrics, self.state, self.copies = metrics, state, copies

    @property
    def size(self) -> int:
        return 1 + self.metrics + self.state

    def first(self, state: Sequence[Any]) -> Any:
        """The vector before the first update: nothing is counted, and state has these values."""
        told = np.zeros(1 + self.metrics)
        return np.concatenate([told, *(np.ravel(np.asarray(v, np.float64)) for v in state)])

    def parts(self, notes: Any) -> tuple[Any, Any]:
        """Of a vector what metrics have counted, and state that is not trained."""
        return notes[1 : 1 + self.metrics], notes[1 + self.metrics :]

    def next(self, old: Any, told: Any) -> Any:
        """The vector after an update: counts are those of all workers, changes are averages."""
        counted = 1 + self.metrics
        scale = np.ones(self.size)
        scale[1:counted] = self.copies
        kept = np.ones(self.size)
        kept[0] = 0
        return old * kept + told * scale


class _One:
    """The rule of an optimiser of Keras for one variable.

    Attributes:
        slots: the optimiser's variables for it, but for the learning rate.
    """

    def __init__(self, optimizer: Any, variable: Any) -> None:
        keras = load_keras()
        config = {**optimizer.get_config(), "learning_rate": 0.0}
        self._rule = type(optimizer).from_config(config)
        # Only shape, type and name count: weight decay asks for names.
        like = keras.Variable(
            np.zeros(variable.shape, np.float32), dtype=variable.dtype, name=variable.name
        )
        like._path, like.constraint = variable.path, variable.constraint
        decays = optimizer._use_weight_decay(variable)
        self._rule._use_weight_decay = lambda _: decays
        self._rule.build([like])
        self._clip = self._rule._clip_gradients
        rate = self._rule._learning_rate
        self._rate_at = next(i for i, v in enumerate(self._rule.variables) if v is rate)
        self.slots = [v for v in self._rule.variables if v is not rate]

    def apply(
        self,
        value: Any,
        grad: Any,
        rate: Any,
        *slots: Any,
        is_finite: Any = None,
        factor: Any = None,
    ) -> list[Any]:
        """The new value and the new slots, of arrays.

        Args:
            is_finite: a bool scalar, whether anything changes at all.
            factor: by what gradients are multiplied in the place of being clipped.
        """

        def multiply(grads: list[Any]) -> list[Any]:
            return [g * factor.astype(g.dtype) for g in grads]

        clip = self._clip if factor is None else multiply
        (new,), states = self._run(value, grad, rate, slots, clip)
        del states[self._rate_at]
        found, old = [new, *states], [value, *slots]
        if is_finite is None:
            return found
        return [jnp.where(is_finite, a, b) for a, b in zip(found, old, strict=True)]

    def squares(self, *given: Any) -> Any:
        """The sum of squares of what the optimiser clips, by the first arguments of `apply`."""
        seen: list[Any] = []

        def look(grads: list[Any]) -> list[Any]:
            seen.extend(grads)
            return grads

        value, grad, rate, *slots = given
        self._run(value, grad, rate, slots, look)
        return jnp.sum(jnp.square(seen[0]))

    def _run(
        self, value: Any, grad: Any, rate: Any, slots: Sequence[Any], clip: Callable[..., Any]
    ) -> Any:
        own = [*slots[: self._rate_at], rate, *slots[self._rate_at :]]
        self._rule._clip_gradients = clip
        return self._rule.stateless_apply(own, [grad], [value])


class _LossScale:
    """How a `LossScaleOptimizer` goes on: its counter of steps, and the scale of losses."""

    def __init__(self, optimizer: Any) -> None:
        self._growth = optimizer.dynamic_growth_steps
        self.slots = [optimizer.step_counter, optimizer.dynamic_scale]

    def next(self, is_finite: Any, counter: Any, scale: Any) -> list[Any]:
        """The two after an update by gradients that are finite, or are not."""
        grows = is_finite & (counter == self._growth - 1)
        factor = jnp.where(is_finite, jnp.where(grows, 2.0, 1.0), 0.5)
        counter = jnp.where(is_finite & ~grows, counter + 1, 0)
        return [counter.astype(self.slots[0].dtype), scale * factor.astype(scale.dtype)]


class KerasRule(Optimizer):
    """What an optimiser of Keras does to variables, by its own code.

    The learning rate comes with the gradients: the first element of the gradient of ``notes``.

    Args:
        optimizer: built, of Keras; variables: those of Keras, by their variables in the graph.
            Gradients come without the scale of a `LossScaleOptimizer`.
        notes: the variable of `GradientNotes`; layout: what is in it.
    """

    def __init__(
        self, optimizer: Any, variables: dict[Any, Any], notes: Any, layout: GradientNotes
    ) -> None:
        super().__init__(False, optimizer.name)
        inner = inner_optimizer(optimizer)
        self._variables, self._notes, self._layout = variables, notes, layout
        self._rules: dict[Any, Any] = {v: _One(inner, k) for v, k in variables.items()}
        self._scale = None if inner is optimizer else _LossScale(optimizer)
        if self._scale is not None:
            self._rules[notes] = self._scale
        self._limit = inner.global_clipnorm
        self._rate: Any = None
        #: What each update takes that is made of all gradients, by the names that it has there.
        self._together: dict[str, Tensor] = {}

    def slots_of(self, variable: Any) -> list[tuple[str, Any]]:
        """The slots of a variable: the path that each has in Keras, and its variable here.

        Those of the notes are the state of a `LossScaleOptimizer`.
        """
        slots = self._rules[variable].slots if variable in self._rules else []
        return [(k.path, self.get_slot(variable, f"slot_{i}")) for i, k in enumerate(slots)]

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        zeros = Zeros()
        for variable in var_list:
            for i, slot in enumerate(
                self._rules[variable].slots if variable in self._rules else ()
            ):
                self._get_or_make_slot_with_initializer(
                    variable,
                    zeros,
                    tuple(slot.shape),
                    convert_to_tensor(np.zeros((), slot.dtype)).dtype,
                    f"slot_{i}",
                    f"{self._name}_{i}",
                )

    def _updates(self, pairs: Sequence[Any]) -> list[Any]:
        told = next(grad for grad, v in pairs if v is self._notes)
        self._rate = raw.Cast(told[0], DstT=convert_to_tensor(np.float32(0)).dtype)
        own = [(grad, v) for grad, v in pairs if v is not self._notes]
        self._together = {}
        if self._scale is not None:
            self._together["is_finite"] = self._of_all(own, _is_finite, _all)
        if self._limit:
            factor = functools.partial(_factor, self._limit)
            self._together["factor"] = self._of_all(own, None, factor)
        return super()._updates(pairs)

    def _of_all(
        self, pairs: Sequence[Any], part: Callable[..., Any] | None, join: Callable[..., Any]
    ) -> Tensor:
        """What is made of all gradients: a part beside each variable, and all parts of these.

        Args:
            part: of a gradient; None: the squares of what is clipped.
        """
        graph, parts = get_default_graph(), []
        for grad, variable in pairs:
            with graph.colocate_with(variable):
                inputs = [grad] if part else self._given(grad, variable)
                parts += _call(part or self._rules[variable].squares, inputs, "part")
        with graph.colocate_with(self._notes):
            return _call(join, parts, "of_all")[0]

    def _given(self, grad: Tensor, variable: Any) -> list[Tensor]:
        """What the rule of a variable takes.

        Values are read when gradients are there: where an update waits for those of all workers,
        the variables may be assigned to meanwhile.
        """
        with get_default_graph().control_dependencies([grad, self._rate]):
            slots = [slot.read_value() for _, slot in self.slots_of(variable)]
            return [variable.read_value(), grad, self._rate, *slots]

    def _resource_apply_dense(self, grad: Tensor, var: Any) -> Any:
        if var is self._notes:
            return self._note(grad)
        rule = self._rules[var]
        names, count = list(self._together), len(self._together)

        def update(*values: Any) -> list[Any]:
            together = dict(zip(names, values, strict=False))
            found: list[Any] = rule.apply(*values[count:], **together)
            return found

        kept = [slot for _, slot in self.slots_of(var)]
        new = _call(update, [*self._together.values(), *self._given(grad, var)], "update")
        return _assigned([var, *kept], new)

    def _note(self, told: Tensor) -> Any:
        notes = self._notes
        kept = [slot for _, slot in self.slots_of(notes)]
        with get_default_graph().control_dependencies([told]):
            before, *now = [v.read_value() for v in (notes, *kept)]
        new = _call(self._layout.next, [before, told], "notes")
        if self._scale is not None:
            new += _call(self._scale.next, [self._together["is_finite"], *now], "loss_scale")
        return _assigned([notes, *kept], new)


def inner_optimizer(optimizer: Any) -> Any:
    """The optimiser that updates variables: what a `LossScaleOptimizer` is around."""
    return getattr(optimizer, "inner_optimizer", optimizer)


def _is_finite(grad: Any) -> Any:
    return jnp.all(jnp.isfinite(grad))


def _all(*parts: Any) -> Any:
    return jnp.all(jnp.stack(parts))


def _factor(limit: float, *squares: Any) -> Any:
    """By what gradients are multiplied whose squares add up to these; none if one is infinite."""
    norm = jnp.sqrt(sum(squares))
    return limit * jnp.minimum(1.0 / norm, 1.0 / limit) + (norm - norm)


def _assigned(variables: Sequence[Any], values: Sequence[Tensor]) -> Any:
    changes = [v.assign(n).op for v, n in zip(variables, values, strict=True)]
    with get_default_graph().control_dependencies(changes):
        return raw.NoOp()


def _call(function: Any, inputs: Sequence[Tensor], name: str) -> list[Tensor]:
    def flat(*values: Any) -> list[Any]:
        with arrays_enter():
            found = function(*values)
        return found if isinstance(found, list) else [found]

    return add_call(flat, inputs, name)
