"""Optimisers that scale losses, and leave out updates whose gradients are not finite."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.array.indexed_slices import IndexedSlices
from headrace.ops.control.basic import group, init_scope
from headrace.ops.control.flow_api import cond
from headrace.ops.core.build import constant, convert_to_tensor, raw
from headrace.ops.state import share
from headrace.ops.state.variables import Variable
from headrace.train.loss_scale import DynamicLossScale, LossScale, all_finite, loss_scale_of
from headrace.train.optimizer import GradVar, Optimizer
from headrace.train.wrapped_optimizer import WrappedOptimizer

__all__ = ["MixedPrecisionLossScaleOptimizer", "ScalingOptimizer"]


class ScalingOptimizer(WrappedOptimizer):
    """Base of the optimisers that multiply losses by a scale and divide their gradients by it.

    A subclass gives the scale, and what follows from the gradients.

    Args:
        opt: the optimiser that applies gradients.
        may_skip: whether updates are left out whose gradients are not all finite.
        use_locking, name: of this one.

    Raises:
        ValueError: if updates may be left out, and the workers of ``opt`` wait for each other.

    >>> class Doubled(ScalingOptimizer):
    ...     def _scale(self):
    ...         return tf.constant(2.0)
    ...     def _decided(self, grads, agree):
    ...         return tf.reduce_all(tf.is_finite(grads[0])), tf.no_op()
    >>> x = tf.Variable(4.0)
    >>> opt = Doubled(tf.train.GradientDescentOptimizer(0.25), True, False, "doubled")
    >>> train = opt.minimize(x * x)
    >>> with tf.Session() as sess:
    ...     sess.run(x.initializer)
    ...     sess.run(train)
    ...     float(sess.run(x))
    2.0
    """

    def __init__(self, opt: Optimizer, may_skip: bool, use_locking: bool, name: str) -> None:
        super().__init__(opt, use_locking, name)
        if may_skip and opt.waits_for_gradients:
            kind, own = type(opt).__name__, type(self).__name__
            raise ValueError(
                f"The workers of a {kind} wait for each other's gradients, so none may leave its "
                f"own out. Put the loss scale inside: {kind}({own}(opt, ...), ...)."
            )
        self._may_skip = may_skip
        self._agree: Callable[[Tensor], Tensor] | None = None
        self._counts_skipped = False

    def _scale(self) -> Tensor:
        """The scale of this step, a float32 scalar."""
        raise NotImplementedError(f"{type(self).__name__} must define _scale.")

    def _decided(
        self, grads: Sequence[Any], agree: Callable[[Tensor], Tensor] | None
    ) -> tuple[Any, Operation]:
        """Whether gradients are to be applied (a bool, or a bool scalar), and what adapts the
        scale."""
        raise NotImplementedError(f"{type(self).__name__} must define _decided.")

    def use_agreement(self, agree: Callable[[Tensor], Tensor]) -> None:
        """See `WrappedOptimizer.use_agreement`."""
        self._agree = agree
        super().use_agreement(agree)

    def count_skipped(self) -> None:
        """See `WrappedOptimizer.count_skipped`."""
        self._counts_skipped = True
        super().count_skipped()

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> list[GradVar]:
        """Pairs (gradient, variable): of the scaled loss, divided by the scale."""
        value = convert_to_tensor(loss() if callable(loss) else loss)
        scale = self._scale()
        scaled = raw.Mul(value, _as(scale, value.dtype))
        pairs = super().compute_gradients(scaled, *args, **kwargs)
        inverse = raw.RealDiv(constant(1.0), scale)
        return [(_times(g, inverse), v) for g, v in pairs]

    def apply_gradients(
        self, grads_and_vars: Iterable[GradVar], global_step: Any = None, name: str | None = None
    ) -> Any:
        """An op that applies the gradients if all are finite, and adapts the scale.

        ``global_step`` counts the updates that are made.
        """
        if not self._may_skip:
            return super().apply_gradients(grads_and_vars, global_step, name)
        pairs = list(grads_and_vars)
        own = share.of(get_default_graph())
        if own is not None:  # the workers of a plain script decide together
            return own.apply(self, pairs, global_step, name)
        name = name or self.get_name()
        wanted, adapted = self._decided([g for g, _ in pairs], self._agree)
        counted = None if self._counts_skipped else global_step

        def apply() -> Operation:
            done: Operation = self._opt.apply_gradients(pairs, counted, f"{name}-wrapped")
            return done

        if not isinstance(self._opt, WrappedOptimizer):
            # Not in the branch, whose name theirs would begin with.
            with init_scope():
                self._opt._create_slots([v for g, v in pairs if g is not None])
        done = apply() if isinstance(wanted, bool) else _done_if(wanted, apply)
        ops: list[Operation] = [done, adapted]
        if counted is not global_step:
            with get_default_graph().control_dependencies([done]):
                ops.append(self._incremented(global_step, f"{name}-counted"))
        return group(*ops, name=name)


class MixedPrecisionLossScaleOptimizer(ScalingOptimizer):
    """Multiplies losses by a scale, and divides their gradients by it.

    Under a scale that adapts itself (`DynamicLossScale`) a step whose gradients are not all finite
    changes neither variables nor slots, nor does it count in ``global_step``; the scale shrinks.
    Variables and gradients that are applied are of the types that they have without it.

    Args:
        opt: the optimiser that applies gradients.
        loss_scale: a number, ``"dynamic"``, or a LossScale.

    Raises:
        ValueError: if ``opt`` is no optimiser, ``loss_scale`` is None or nothing of these; for a
            scale that adapts itself around an optimiser whose workers wait for each other.

    >>> x = tf.Variable(4.0)
    >>> sgd = tf.train.GradientDescentOptimizer(0.25)
    >>> opt = tf.train.experimental.MixedPrecisionLossScaleOptimizer(sgd, "dynamic")
    >>> train = opt.minimize(x * x)
    >>> with tf.Session() as sess:
    ...     sess.run(tf.global_variables_initializer())
    ...     sess.run(train)
    ...     float(sess.run(x))
    2.0
    """

    def __init__(self, opt: Optimizer, loss_scale: Any) -> None:
        if not isinstance(opt, Optimizer):
            raise ValueError(f'"opt" must be an instance of Optimizer, but got: {type(opt)}')
        scale = loss_scale_of(loss_scale)
        adapts = isinstance(scale, DynamicLossScale)
        super().__init__(opt, adapts, opt._use_locking, opt.get_name())
        self._loss_scale: LossScale = scale

    def _scale(self) -> Tensor:
        return self._loss_scale()

    def _decided(
        self, grads: Sequence[Any], agree: Callable[[Tensor], Tensor] | None
    ) -> tuple[Any, Operation]:
        scale = self._loss_scale
        if agree is None or not isinstance(scale, DynamicLossScale):
            adapted, wanted = scale.update(grads)
            return wanted, adapted
        finite = agree(all_finite(grads))
        return finite, scale._adapted(finite)

    def variables(self) -> list[Variable]:
        """The variables of the optimiser inside, and those of the scale."""
        return [*self._opt.variables(), *self._loss_scale._weights.values()]


def _as(scale: Tensor, dtype: Any) -> Tensor:
    wanted: Tensor = scale if dtype is dtypes.float32 else raw.Cast(scale, DstT=dtype)
    return wanted


def _times(grad: Any, factor: Tensor) -> Any:
    if grad is None:
        return None
    if isinstance(grad, IndexedSlices):
        values = raw.Mul(grad.values, _as(factor, grad.values.dtype))
        return IndexedSlices(values, grad.indices, grad.dense_shape)
    return raw.Mul(grad, _as(factor, grad.dtype))


def _done_if(condition: Tensor, apply: Callable[[], Operation]) -> Operation:
    """An op that runs ``apply()`` where a bool scalar is true."""

    def applied() -> Tensor:
        with get_default_graph().control_dependencies([apply()]):
            done: Tensor = raw.Identity(constant(True))
        return done

    op: Operation = raw.Identity(cond(condition, applied, lambda: constant(False))).op
    return op
