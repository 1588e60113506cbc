"""Optimisers that shrink variables towards 0, by penalties l1 and l2 within the step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.graph import dtypes
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.train.rule_optimizer import RuleOptimizer

__all__ = [
    "AdagradDAOptimizer",
    "FtrlOptimizer",
    "ProximalAdagradOptimizer",
    "ProximalGradientDescentOptimizer",
]


class AdagradDAOptimizer(RuleOptimizer):
    """Adagrad by dual averaging, for sparse linear models.

    Duchi, Hazan and Singer, "Adaptive subgradient methods for online learning and stochastic
    optimization" (2011), figure 1: primal-dual subgradients.

    >>> w = tf.Variable([1.0, 1.0])
    >>> step = tf.train.get_or_create_global_step()
    >>> optimizer = tf.train.AdagradDAOptimizer(0.5, step, l1_regularization_strength=3.0)
    >>> train = optimizer.minimize(tf.reduce_sum(w * [2.0, -20.0]), global_step=step)
    >>> with tf.Session() as sess:
    ...     sess.run(tf.global_variables_initializer())
    ...     sess.run(train)
    ...     sess.run(w).round(2) + 0  # a small gradient gives a zero
    array([0.  , 0.42], dtype=float32)
    """

    _rule = "AdagradDA"
    _slot_order = ("gradient_accumulator", "gradient_squared_accumulator")

    def __init__(
        self,
        learning_rate: Any,
        global_step: Any,
        initial_gradient_squared_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "AdagradDA",
    ) -> None:
        if initial_gradient_squared_accumulator_value <= 0.0:
            raise ValueError(
                "initial_gradient_squared_accumulator_value must be positive: "
                f"{initial_gradient_squared_accumulator_value}"
            )
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial = initial_gradient_squared_accumulator_value
        self._l1 = l1_regularization_strength
        self._l2 = l2_regularization_strength
        self._global_step = global_step

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            self._constant_slot(var, 0.0, "gradient_accumulator")
            self._constant_slot(var, self._initial, "gradient_squared_accumulator")

    def _prepare(self) -> None:
        self._rate = self._tensor(self._learning_rate, "learning_rate")
        step = convert_to_tensor(self._global_step)
        # The count of the step being made, so one more than the steps behind it.
        wide = step if step.dtype is dtypes.int64 else raw.Cast(step, DstT=dtypes.int64)
        self._count = raw.AddV2(wide, convert_to_tensor(1, dtypes.int64))

    def _inputs(self, var: Any) -> dict[str, Any]:
        return {
            "lr": self._hyper(self._rate, "lr", var),
            "l1": self._hyper(self._l1, "l1", var),
            "l2": self._hyper(self._l2, "l2", var),
            "global_step": self._count,
        }


class FtrlOptimizer(RuleOptimizer):
    """FTRL-Proximal, with shrinkage l2 on request.

    McMahan et al., "Ad click prediction: a view from the trenches" (2013), algorithm 1.

    >>> w = tf.Variable([1.0, 1.0])
    >>> loss = tf.reduce_sum(w * [0.1, -20.0])
    >>> train = tf.train.FtrlOptimizer(0.5, l1_regularization_strength=3.0).minimize(loss)
    >>> with tf.Session() as sess:
    ...     sess.run(tf.global_variables_initializer())
    ...     sess.run(train)
    ...     sess.run(w).round(2) + 0  # a small gradient gives a zero
    array([0.  , 1.41], dtype=float32)
    """

    _slot_order = ("accum", "linear")

    def __init__(
        self,
        learning_rate: Any,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "Ftrl",
        accum_name: str | None = None,
        linear_name: str | None = None,
        l2_shrinkage_regularization_strength: float = 0.0,
    ) -> None:
        for label, value, wrong in (
            ("initial_accumulator_value", initial_accumulator_value, initial_accumulator_value < 0),
            ("learning_rate_power", learning_rate_power, learning_rate_power > 0),
            (
                "l1_regularization_strength",
                l1_regularization_strength,
                l1_regularization_strength < 0,
            ),
            (
                "l2_regularization_strength",
                l2_regularization_strength,
                l2_regularization_strength < 0,
            ),
            (
                "l2_shrinkage_regularization_strength",
                l2_shrinkage_regularization_strength,
                l2_shrinkage_regularization_strength < 0,
            ),
        ):
            if wrong:
                bound = "negative or zero" if label == "learning_rate_power" else "positive or zero"
                raise ValueError(f"{label} {value} needs to be {bound}")
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._power = learning_rate_power
        self._initial = initial_accumulator_value
        self._l1, self._l2 = l1_regularization_strength, l2_regularization_strength
        self._shrinkage = l2_shrinkage_regularization_strength
        self._accum_name, self._linear_name = accum_name, linear_name
        self._rule = "FtrlV2" if self._shrinkage > 0 else "Ftrl"

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            self._constant_slot(var, self._initial, "accum", self._accum_name)
            self._zeros_slot(var, "linear", self._linear_name or self._name)

    def _prepare(self) -> None:
        self._rate = self._tensor(self._learning_rate, "learning_rate")

    def _inputs(self, var: Any) -> dict[str, Any]:
        inputs = {
            "lr": self._hyper(self._rate, "lr", var),
            "l1": self._hyper(self._l1, "l1", var),
            "l2": self._hyper(self._l2, "l2", var),
            "lr_power": self._hyper(self._power, "lr_power", var),
        }
        if self._shrinkage > 0:
            inputs["l2_shrinkage"] = self._hyper(self._shrinkage, "l2_shrinkage", var)
        return inputs


class ProximalGradientDescentOptimizer(RuleOptimizer):
    """Gradient descent that shrinks towards 0: forward-backward splitting.

    Duchi and Singer, "Efficient learning using forward backward splitting" (2009), section 2.

    >>> w = tf.Variable([0.25, 1.0])
    >>> optimizer = tf.train.ProximalGradientDescentOptimizer(0.25, l1_regularization_strength=1.0)
    >>> train = optimizer.minimize(0.5 * tf.reduce_sum(w))
    >>> with tf.Session() as sess:
    ...     sess.run(w.initializer)
    ...     sess.run(train)  # a step of 0.125, then 0.25 nearer to zero
    ...     sess.run(w).tolist()
    [0.0, 0.625]
    """

    _rule = "ProximalGradientDescent"

    def __init__(
        self,
        learning_rate: Any,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "ProximalGradientDescent",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._l1, self._l2 = l1_regularization_strength, l2_regularization_strength

    def _prepare(self) -> None:
        self._rate = self._tensor(self._learning_rate, "learning_rate")

    def _inputs(self, var: Any) -> dict[str, Any]:
        return {
            "alpha": self._hyper(self._rate, "alpha", var),
            "l1": self._hyper(self._l1, "l1", var),
            "l2": self._hyper(self._l2, "l2", var),
        }

    def _resource_apply_dense(self, grad: Tensor, var: Any) -> Any:
        return self._apply("ResourceApply", var, delta=grad)


class ProximalAdagradOptimizer(RuleOptimizer):
    """Forward-backward splitting with Adagrad's rates.

    Duchi and Singer, "Efficient learning using forward backward splitting" (2009), section 2.

    >>> w = tf.Variable([0.1, 1.0])
    >>> optimizer = tf.train.ProximalAdagradOptimizer(0.1, l1_regularization_strength=2.0)
    >>> train = optimizer.minimize(tf.reduce_sum(w))
    >>> with tf.Session() as sess:
    ...     sess.run(tf.global_variables_initializer())
    ...     sess.run(train)
    ...     sess.run(w).round(2)
    array([0.  , 0.71], dtype=float32)
    """

    _rule = "ProximalAdagrad"
    _slot_order = ("accumulator",)

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "ProximalAdagrad",
    ) -> None:
        if initial_accumulator_value <= 0.0:
            raise ValueError(
                f"initial_accumulator_value must be positive: {initial_accumulator_value}"
            )
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial_accumulator_value = initial_accumulator_value
        self._l1, self._l2 = l1_regularization_strength, l2_regularization_strength

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            self._constant_slot(var, self._initial_accumulator_value, "accumulator")

    def _prepare(self) -> None:
        self._rate = self._tensor(self._learning_rate, "learning_rate")

    def _inputs(self, var: Any) -> dict[str, Any]:
        return {
            "lr": self._hyper(self._rate, "lr", var),
            "l1": self._hyper(self._l1, "l1", var),
            "l2": self._hyper(self._l2, "l2", var),
        }
