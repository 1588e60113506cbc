"""``tf.contrib.mixed_precision``: loss scaling, as TensorFlow 1.10 to 1.15 had it.

`tf.train.experimental` has what came after it, and the rewrite of graphs to half precision.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any

from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.control.basic import group
from headrace.ops.core.build import constant, convert_to_tensor, raw
from headrace.ops.state.variables import Variable
from headrace.train.loss_scale import all_finite
from headrace.train.loss_scale_optimizer import ScalingOptimizer
from headrace.train.optimizer import Optimizer

__all__ = [
    "ExponentialUpdateLossScaleManager",
    "FixedLossScaleManager",
    "LossScaleManager",
    "LossScaleOptimizer",
]


class LossScaleManager(abc.ABC):
    """What gives a `LossScaleOptimizer` its scale, and changes it with the gradients.

    >>> class Halving(tf.contrib.mixed_precision.LossScaleManager):
    ...     def __init__(self):
    ...         self.scale = tf.Variable(8.0, trainable=False)
    ...     def get_loss_scale(self):
    ...         return self.scale
    ...     def update_loss_scale(self, finite_grads):
    ...         return self.scale.assign(self.scale / 2.0).op
    >>> manager = Halving()
    >>> with tf.Session() as sess:
    ...     sess.run(manager.scale.initializer)
    ...     sess.run(manager.update_loss_scale(tf.constant(True)))
    ...     float(sess.run(manager.get_loss_scale()))
    4.0
    """

    @abc.abstractmethod
    def get_loss_scale(self) -> Any:
        """The scale, a float32 scalar."""

    @abc.abstractmethod
    def update_loss_scale(self, finite_grads: Any) -> Operation:
        """An op that adapts the scale.

        Args:
            finite_grads: whether all gradients of the step are finite: a bool scalar.
        """


class FixedLossScaleManager(LossScaleManager):
    """A scale that stays as it is.

    Args:
        loss_scale: at least 1.

    Raises:
        ValueError: if it is less.

    >>> manager = tf.contrib.mixed_precision.FixedLossScaleManager(5000.0)
    >>> with tf.Session() as sess:
    ...     float(sess.run(manager.get_loss_scale()))
    5000.0
    """

    def __init__(self, loss_scale: float) -> None:
        if loss_scale < 1:
            raise ValueError(f"loss scale must be at least 1, not {loss_scale}.")
        self._loss_scale = convert_to_tensor(loss_scale, dtypes.float32)

    def get_loss_scale(self) -> Tensor:
        """The scale, a float32 scalar."""
        return self._loss_scale

    def update_loss_scale(self, finite_grads: Any) -> Operation:
        """An op that does nothing."""
        op: Operation = raw.NoOp()
        return op


class ExponentialUpdateLossScaleManager(LossScaleManager):
    """A scale that grows by a factor after some finite steps, and shrinks by one after others.

    It grows after ``incr_every_n_steps`` steps in a row whose gradients are finite, unless that
    overflows, and shrinks, down to 1, when ``decr_every_n_nan_or_inf`` were not, in a row or not.
    Both counts begin again whenever it changes.

    Args:
        init_loss_scale: to begin with.
        incr_ratio, decr_ratio: the factors, above and below 1.

    >>> manager = tf.contrib.mixed_precision.ExponentialUpdateLossScaleManager(
    ...     8.0, incr_every_n_steps=2, decr_every_n_nan_or_inf=1, decr_ratio=0.5)
    >>> finite = tf.placeholder(tf.bool, [])
    >>> update = manager.update_loss_scale(finite)
    >>> with tf.Session() as sess:
    ...     sess.run(tf.global_variables_initializer())
    ...     for value in (True, True, False):
    ...         sess.run(update, {finite: value})
    ...         float(sess.run(manager.get_loss_scale()))
    8.0
    16.0
    8.0
    """

    def __init__(
        self,
        init_loss_scale: float,
        incr_every_n_steps: int,
        decr_every_n_nan_or_inf: int = 2,
        incr_ratio: float = 2,
        decr_ratio: float = 0.8,
    ) -> None:
        self._incr_every_n_steps = incr_every_n_steps
        self._decr_every_n_nan_or_inf = decr_every_n_nan_or_inf
        self._incr_ratio = incr_ratio
        self._decr_ratio = decr_ratio
        start = convert_to_tensor(init_loss_scale, dtypes.float32)
        self._loss_scale = Variable(start, trainable=False, name="loss_scale")
        self._num_good_steps = Variable(0, trainable=False, name="good_steps", dtype=dtypes.int32)
        self._num_bad_steps = Variable(0, trainable=False, name="bad_steps", dtype=dtypes.int32)

    def get_loss_scale(self) -> Any:
        """The variable that has the scale, a float32 scalar."""
        return self._loss_scale

    def update_loss_scale(self, finite_grads: Any) -> Operation:
        """An op that counts the step, and changes the scale where it is time."""
        finite = convert_to_tensor(finite_grads, dtypes.bool)
        scale, one = self._loss_scale, constant(1)
        with get_default_graph().colocate_with(scale):
            now, good = scale.read_value(), raw.AddV2(self._num_good_steps.read_value(), one)
            bad = raw.AddV2(self._num_bad_steps.read_value(), one)
            grown = raw.Mul(now, constant(float(self._incr_ratio)))
            grown = raw.SelectV2(raw.IsFinite(grown), grown, now)
            shrunk = raw.Maximum(constant(1.0), raw.Mul(now, constant(float(self._decr_ratio))))
            grows = raw.GreaterEqual(good, constant(self._incr_every_n_steps))
            shrinks = raw.GreaterEqual(bad, constant(self._decr_every_n_nan_or_inf))
            changed = raw.SelectV2(finite, grown, shrunk)
            changes = raw.SelectV2(finite, grows, shrinks)
            counted = raw.LogicalNot(changes)
            zero = constant(0)
            good = raw.SelectV2(raw.LogicalAnd(finite, counted), good, zero)
            more = raw.SelectV2(finite, self._num_bad_steps.read_value(), bad)
            bad = raw.SelectV2(counted, more, zero)
            return group(
                scale.assign(raw.SelectV2(changes, changed, now), read_value=False),
                self._num_good_steps.assign(good, read_value=False),
                self._num_bad_steps.assign(bad, read_value=False),
            )


class LossScaleOptimizer(ScalingOptimizer):
    """Multiplies losses by the scale of a manager, and divides their gradients by it.

    A step whose gradients are not all finite changes neither variables nor ``global_step``.

    Args:
        opt: the optimiser that applies gradients.
        loss_scale_manager: a LossScaleManager.

    Raises:
        TypeError: if ``opt`` is no optimiser.
        ValueError: if the workers of ``opt`` wait for each other's gradients.

    >>> x = tf.Variable(4.0)
    >>> manager = tf.contrib.mixed_precision.FixedLossScaleManager(5000.0)
    >>> sgd = tf.train.GradientDescentOptimizer(0.25)
    >>> train = tf.contrib.mixed_precision.LossScaleOptimizer(sgd, manager).minimize(x * x)
    >>> with tf.Session() as sess:
    ...     sess.run(x.initializer)
    ...     sess.run(train)
    ...     round(float(sess.run(x)), 5)
    2.0
    """

    def __init__(self, opt: Optimizer, loss_scale_manager: LossScaleManager) -> None:
        locking = bool(getattr(opt, "_use_locking", False))
        super().__init__(opt, True, locking, "LossScaleOptimizer")
        self._loss_scale_manager = loss_scale_manager

    def _scale(self) -> Tensor:
        return convert_to_tensor(self._loss_scale_manager.get_loss_scale())

    def _decided(
        self, grads: Sequence[Any], agree: Callable[[Tensor], Tensor] | None
    ) -> tuple[Any, Operation]:
        finite = all_finite(grads)
        if agree is not None:
            finite = agree(finite)
        return finite, self._loss_scale_manager.update_loss_scale(finite)
