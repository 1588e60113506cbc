"""The base class of optimisers around other ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from headrace.graph.tensor import Tensor
from headrace.ops.state.variables import Variable
from headrace.train.optimizer import GradVar, Optimizer
from headrace.train.replica_updates import joining


class WrappedOptimizer(Optimizer):
    """An optimiser around another one, whose gradients, updates and slots are its own.

    A subclass changes what it is there for: `compute_gradients` or `apply_gradients`, or both.

    Args:
        opt: the optimiser inside.
        use_locking, name: of this one.

    Raises:
        TypeError: if ``opt`` is no optimiser.

    >>> class Halved(WrappedOptimizer):
    ...     def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    ...         halves = [(g / 2.0, v) for g, v in grads_and_vars]
    ...         return super().apply_gradients(halves, global_step, name)
    >>> x = tf.Variable(4.0)
    >>> train = Halved(tf.train.GradientDescentOptimizer(0.5), False, "Halved").minimize(x * x)
    >>> with tf.Session() as sess:
    ...     sess.run(x.initializer)
    ...     sess.run(train)
    ...     float(sess.run(x))
    2.0
    """

    def __init__(self, opt: Optimizer, use_locking: bool, name: str) -> None:
        if not isinstance(opt, Optimizer):
            raise TypeError(f"opt must be a tf.train.Optimizer, not {opt!r}")
        super().__init__(use_locking, name)
        self._opt = opt

    def use_agreement(self, agree: Callable[[Tensor], Tensor]) -> None:
        """Have what depends on all gradients decided together with other workers.

        Called before `apply_gradients` where each worker applies a part of the gradients.

        Args:
            agree: makes of a bool scalar one that is true where all workers' are.
        """
        if isinstance(self._opt, WrappedOptimizer):
            self._opt.use_agreement(agree)

    def count_skipped(self) -> None:
        """Have updates that are left out count in the global step, too.

        Called before `apply_gradients` by who tells by the step which gradients are stale.
        """
        if isinstance(self._opt, WrappedOptimizer):
            self._opt.count_skipped()

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[GradVar]:
        """Pairs (gradient, variable) of the optimiser inside."""
        joining(self, "compute_gradients")
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self, grads_and_vars: Iterable[GradVar], global_step: Any = None, name: str | None = None
    ) -> Any:
        """An op by which the optimiser inside applies gradients."""
        return self._opt.apply_gradients(grads_and_vars, global_step, name)

    def get_slot(self, var: Any, name: str) -> Variable | None:
        """A slot of the optimiser inside."""
        return self._opt.get_slot(var, name)

    def get_slot_names(self) -> list[str]:
        """The names of the slots of the optimiser inside."""
        return self._opt.get_slot_names()

    def variables(self) -> list[Variable]:
        """The variables of the optimiser inside."""
        return self._opt.variables()


__all__ = ["WrappedOptimizer"]
