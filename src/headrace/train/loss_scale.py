"""Loss scales: by what a loss is multiplied, so that its gradients stay numbers of float16.

Gradients below 6e-8 are zero in float16, and above 65504 infinite. Those of a loss that is
multiplied by a scale are that many times as large; they are divided by it before they are applied
(Micikevicius et al., "Mixed Precision Training", ICLR 2018). bfloat16 has the range of float32 and
needs no scale.
"""

from __future__ import annotations

import abc
from collections.abc import Iterable, Sequence
from typing import Any

from headrace.graph import dtypes, nest
from headrace.graph.graph import Graph, get_default_graph
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.array.indexed_slices import IndexedSlices
from headrace.ops.control.basic import group
from headrace.ops.core.build import constant, convert_to_tensor, raw
from headrace.ops.state.variables import Variable

__all__ = [
    "DynamicLossScale",
    "FixedLossScale",
    "LossScale",
    "all_finite",
    "loss_scale_of",
]


class LossScale(abc.ABC):
    """By what losses are multiplied and gradients divided.

    A subclass gives the scale when it is called, and says in `update` how it follows the gradients.

    >>> class Halving(tf.train.experimental.LossScale):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.scale = self._add_weight("scale", 8.0)
    ...     def __call__(self):
    ...         return self.scale.read_value()
    ...     def update(self, grads):
    ...         return self.scale.assign(self.scale / 2.0).op, True
    ...     def get_config(self):
    ...         return {}
    >>> scale = Halving()
    >>> update, should_apply = scale.update([])
    >>> with tf.Session() as sess:
    ...     sess.run(tf.global_variables_initializer())
    ...     sess.run(update)
    ...     float(sess.run(scale()))
    4.0
    """

    def __init__(self) -> None:
        self._weights: dict[tuple[str, Graph], Variable] = {}

    @abc.abstractmethod
    def __call__(self) -> Tensor:
        """The scale now, a float32 scalar."""

    @abc.abstractmethod
    def update(self, grads: Any) -> tuple[Operation, Any]:
        """An op that adapts the scale, and whether the gradients are to be applied.

        Args:
            grads: gradients that were divided by the scale, in any nested structure; None counts
                as none.

        Returns:
            The op; and True, or a bool scalar that is false where the update is to be skipped.
        """

    @abc.abstractmethod
    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal one."""

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> LossScale:
        """One with the arguments that `get_config` gave."""
        return cls(**config)

    def _add_weight(self, name: str, initial_value: Any, dtype: Any = None) -> Variable:
        """A variable of the scale: global, saved with the others, not trained.

        Raises:
            RuntimeError: if it has one of that name in the graph.
        """
        key = (name, get_default_graph())
        if key in self._weights:
            raise RuntimeError(f"Duplicate variables detected. {key}")
        made = Variable(initial_value, trainable=False, name=name, dtype=dtype)
        self._weights[key] = made
        return made


class FixedLossScale(LossScale):
    """A scale that stays as it is; every gradient is applied.

    Args:
        loss_scale_value: at least 1.

    Raises:
        ValueError: if it is no number, or less than 1.

    >>> with tf.Session() as sess:
    ...     float(sess.run(tf.train.experimental.FixedLossScale(128)()))
    128.0
    """

    def __init__(self, loss_scale_value: float) -> None:
        super().__init__()
        if not isinstance(loss_scale_value, (int, float)):
            raise ValueError(
                f"loss_scale_value must be a Python int or float, not {loss_scale_value!r}."
            )
        if loss_scale_value < 1:
            raise ValueError(f"loss_scale_value must be at least 1, not {loss_scale_value}.")
        self._loss_scale_value = float(loss_scale_value)

    def __call__(self) -> Tensor:
        """The scale, a float32 scalar."""
        return convert_to_tensor(self._loss_scale_value, dtypes.float32)

    def update(self, grads: Any) -> tuple[Operation, bool]:
        """Nothing to do, and True."""
        return raw.NoOp(), True

    def __repr__(self) -> str:
        return f"FixedLossScale({self._loss_scale_value})"

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal one."""
        return {"loss_scale_value": self._loss_scale_value}


class DynamicLossScale(LossScale):
    """A scale that grows while all gradients are finite, and shrinks when one is not.

    After ``increment_period`` steps in a row with finite gradients it is multiplied by
    ``multiplier``, unless that overflows. With the first gradient that is infinite or no number it
    is divided by it, down to 1, and the count begins again.

    Args:
        initial_loss_scale: to begin with. Too large costs a few skipped steps, too small many.
        increment_period: steps; multiplier: a factor.

    >>> scale = tf.train.experimental.DynamicLossScale(8.0, increment_period=1)
    >>> g = tf.placeholder(tf.float32, [])
    >>> update, should_apply = scale.update([g])
    >>> with tf.Session() as sess:
    ...     sess.run(tf.global_variables_initializer())
    ...     for value in (1.0, float("inf"), float("nan")):
    ...         applied, _ = sess.run([should_apply, update], {g: value})
    ...         bool(applied), float(sess.run(scale()))
    (True, 16.0)
    (False, 8.0)
    (False, 4.0)
    """

    def __init__(
        self,
        initial_loss_scale: float = 2.0**15,
        increment_period: int = 2000,
        multiplier: float = 2.0,
    ) -> None:
        super().__init__()
        self._initial_loss_scale = float(initial_loss_scale)
        self._increment_period = int(increment_period)
        self._multiplier = float(multiplier)
        self._current_loss_scale = self._add_weight(
            "current_loss_scale", self._initial_loss_scale, dtypes.float32
        )
        self._num_good_steps = self._add_weight("good_steps", 0, dtypes.int64)

    @property
    def initial_loss_scale(self) -> float:
        """The scale to begin with."""
        return self._initial_loss_scale

    @property
    def increment_period(self) -> int:
        """After so many steps in a row with finite gradients the scale grows."""
        return self._increment_period

    @property
    def multiplier(self) -> float:
        """By what the scale is multiplied or divided."""
        return self._multiplier

    def __call__(self) -> Tensor:
        """The scale now, a float32 scalar."""
        return self._current_loss_scale.read_value()

    def update(self, grads: Any) -> tuple[Operation, Tensor]:
        """An op that adapts the scale, and whether all gradients are finite: a bool scalar."""
        is_finite = all_finite(nest.flatten(grads))
        return self._adapted(is_finite), is_finite

    def _adapted(self, is_finite: Tensor) -> Operation:
        """An op that adapts the scale, where it is known whether all gradients are finite."""
        scale, good = self._current_loss_scale, self._num_good_steps
        with get_default_graph().colocate_with(scale):
            now, steps = scale.read_value(), good.read_value()
            grown = raw.Mul(now, constant(self._multiplier))
            shrunk = raw.Maximum(raw.RealDiv(now, constant(self._multiplier)), constant(1.0))
            # float32 ends somewhere: there the scale stays.
            grown = raw.SelectV2(raw.IsFinite(grown), grown, now)
            more = raw.AddV2(steps, constant(1, dtypes.int64))
            full = raw.GreaterEqual(more, constant(self._increment_period, dtypes.int64))
            grows = raw.LogicalAnd(is_finite, full)
            kept = raw.SelectV2(is_finite, now, shrunk)
            counts = raw.LogicalAnd(is_finite, raw.LogicalNot(full))
            zero = constant(0, dtypes.int64)
            return group(
                scale.assign(raw.SelectV2(grows, grown, kept), read_value=False),
                good.assign(raw.SelectV2(counts, more, zero), read_value=False),
            )

    def __repr__(self) -> str:
        return (
            f"DynamicLossScale(initial_loss_scale={self._initial_loss_scale}, "
            f"increment_period={self._increment_period}, multiplier={self._multiplier})"
        )

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal one."""
        return {
            "initial_loss_scale": self._initial_loss_scale,
            "increment_period": self._increment_period,
            "multiplier": self._multiplier,
        }


def loss_scale_of(identifier: Any) -> LossScale:
    """The loss scale that a number, ``"dynamic"`` or a LossScale stands for.

    Raises:
        ValueError: for anything else.
    """
    if isinstance(identifier, LossScale):
        return identifier
    if isinstance(identifier, (int, float)):
        return FixedLossScale(identifier)
    if isinstance(identifier, str) and identifier == "dynamic":
        return DynamicLossScale()
    if identifier is None:
        raise ValueError("loss_scale cannot be None")
    raise ValueError(
        f"Could not interpret loss scale identifier: {identifier!r}. It is a number, 'dynamic' or "
        "a tf.train.experimental.LossScale."
    )


def all_finite(grads: Iterable[Any]) -> Tensor:
    """Whether no gradient has an infinite element or one that is no number: a bool scalar."""
    each: Sequence[Tensor] = [_is_finite(g) for g in grads if g is not None]
    if not each:
        return constant(True)
    # Each where the gradient is; one bool travels.
    result: Tensor = raw.All(raw.Pack(each), [0])
    return result


def _is_finite(grad: Any) -> Tensor:
    values = grad.values if isinstance(grad, IndexedSlices) else convert_to_tensor(grad)
    with get_default_graph().colocate_with(values.op):
        finite: Tensor = raw.All(raw.Reshape(raw.IsFinite(values), [-1]), [0])
    return finite
