"""An optimiser of Keras in a graph: each variable is updated beside its slots, where it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Tensor
from headrace.keras.arrays import arrays_enter
from headrace.keras.loading import load_keras
from headrace.ops.control.jax_call import add_call
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.state.initializers import Zeros
from headrace.train.optimizer import Optimizer

__all__ = ["GradientNotes", "KerasRule"]


class GradientNotes:
    """What workers tell each other with their gradients: a vector of float64.

    Its first element is the learning rate, then come what metrics have counted, then how state that
    is not trained (moving averages) has changed.

    Args:
        metrics, state: how many elements there are of these.
        copies: of how many workers a gradient is the average.
    """

    def __init__(self, metrics: int, state: int, copies: int) -> None:
        self.metrics, self.state, self.copies = metrics, state, copies

    @property
    def size(self) -> int:
        return 1 + self.metrics + self.state

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
        rate = self._rule._learning_rate
        self._rate_at = next(i for i, v in enumerate(self._rule.variables) if v is rate)
        self.slots = [v for v in self._rule.variables if v is not rate]

    def apply(self, value: Any, grad: Any, rate: Any, *slots: Any) -> list[Any]:
        """The new value and the new slots, of arrays."""
        own = list(slots)
        own.insert(self._rate_at, rate)
        (new,), states = self._rule.stateless_apply(own, [grad], [value])
        del states[self._rate_at]
        return [new, *states]


class KerasRule(Optimizer):
    """What an optimiser of Keras does to variables, by its own code.

    The learning rate comes with the gradients: the first element of the gradient of ``notes``.

    Args:
        optimizer: built, of Keras; variables: those of Keras, by their variables in the graph.
        notes: the variable of `GradientNotes`; layout: what is in it.
    """

    def __init__(
        self, optimizer: Any, variables: dict[Any, Any], notes: Any, layout: GradientNotes
    ) -> None:
        super().__init__(False, optimizer.name)
        self._variables, self._notes, self._layout = variables, notes, layout
        self._rules: dict[Any, _One] = {v: _One(optimizer, k) for v, k in variables.items()}
        self._rate: Any = None

    def slots_of(self, variable: Any) -> list[tuple[str, Any]]:
        """The slots of a variable: the path that each has in Keras, and its variable here."""
        rule = self._rules[variable]
        return [(k.path, self.get_slot(variable, f"slot_{i}")) for i, k in enumerate(rule.slots)]

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        zeros = Zeros()
        for variable in var_list:
            if variable is self._notes:
                continue
            for i, slot in enumerate(self._rules[variable].slots):
                self._get_or_make_slot_with_initializer(
                    variable,
                    zeros,
                    tuple(slot.shape),
                    convert_to_tensor(np.zeros((), slot.dtype)).dtype,
                    f"slot_{i}",
                    f"{self._name}_{i}",
                )

    def _updates(self, pairs: Sequence[Any]) -> list[Any]:
        self._rate = next(grad for grad, v in pairs if v is self._notes)[0]
        return super()._updates(pairs)

    def _resource_apply_dense(self, grad: Tensor, var: Any) -> Any:
        if var is self._notes:
            return var.assign(_call(self._layout.next, [var.read_value(), grad], "notes")[0]).op
        rule = self._rules[var]
        kept: list[Any] = [self.get_slot(var, f"slot_{i}") for i in range(len(rule.slots))]
        rate = raw.Cast(self._rate, DstT=convert_to_tensor(np.float32(0)).dtype)
        inputs = [var.read_value(), grad, rate, *[s.read_value() for s in kept]]
        new = _call(rule.apply, inputs, "update")
        changes = [v.assign(n).op for v, n in zip([var, *kept], new, strict=True)]
        with get_default_graph().control_dependencies(changes):
            return raw.NoOp()


def _call(function: Any, inputs: Sequence[Tensor], name: str) -> list[Tensor]:
    def flat(*values: Any) -> list[Any]:
        with arrays_enter():
            found = function(*values)
        return found if isinstance(found, list) else [found]

    return add_call(flat, inputs, name)
