"""The optimisers. Each class says where its algorithm was published."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.control.basic import group
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.train import slot_creator
from headrace.train.optimizer import Optimizer

__all__ = [
    "AdadeltaOptimizer",
    "AdagradDAOptimizer",
    "AdagradOptimizer",
    "AdamOptimizer",
    "FtrlOptimizer",
    "GradientDescentOptimizer",
    "MomentumOptimizer",
    "ProximalAdagradOptimizer",
    "ProximalGradientDescentOptimizer",
    "RMSPropOptimizer",
]


class _RuleOptimizer(Optimizer):
    """An optimiser whose step is one op: ``ResourceApply<rule>``, and one for sparse gradients."""

    _rule = ""
    #: Names of the slots, in the order in which the op takes them.
    _slot_order: tuple[str, ...] = ()

    def _inputs(self, var: Any) -> dict[str, Any]:
        """The op's arguments beside variable, slots, gradient and indices."""
        raise NotImplementedError

    def _handles(self, var: Any) -> list[Tensor]:
        slots = [self.get_slot(var, s) for s in self._slot_order]
        return [var.handle, *[s.handle for s in slots if s is not None]]

    def _apply(self, kind: str, var: Any, **gradient: Any) -> Operation:
        definition = getattr(raw, kind + self._rule)
        arguments = {**self._inputs(var), **gradient, "use_locking": self._use_locking}
        op: Operation = definition(*self._handles(var), **arguments)
        return op

    def _resource_apply_dense(self, grad: Tensor, var: Any) -> Any:
        return self._apply("ResourceApply", var, grad=grad)

    def _resource_apply_sparse_duplicate_indices(
        self, grad: Tensor, var: Any, indices: Tensor
    ) -> Any:
        # The op itself sums the gradients of equal rows, without leaving the compiled region.
        return self._apply("ResourceSparseApply", var, grad=grad, indices=indices)

    def _resource_apply_sparse(self, grad: Tensor, var: Any, indices: Tensor) -> Any:
        return self._resource_apply_sparse_duplicate_indices(grad, var, indices)

    def _constant_slot(
        self, var: Any, value: float, slot_name: str, op_name: str | None = None
    ) -> None:
        start = slot_creator.filled(var, value)
        self._get_or_make_slot(var, start, slot_name, op_name or self._name)


class GradientDescentOptimizer(_RuleOptimizer):
    """Plain gradient descent: ``var -= learning_rate * gradient``.

    >>> x = tf.Variable(2.0)
    >>> train = tf.train.GradientDescentOptimizer(learning_rate=0.25).minimize(x * x)
    >>> with tf.Session() as sess:
    ...     sess.run(x.initializer)
    ...     sess.run(train)  # the gradient is 4
    ...     float(sess.run(x))
    1.0
    """

    _rule = "GradientDescent"

    def __init__(
        self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent"
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate

    def _prepare(self) -> None:
        self._rate = self._tensor(self._learning_rate, "learning_rate")

    def _resource_apply_dense(self, grad: Tensor, var: Any) -> Any:
        return raw.ResourceApplyGradientDescent(
            var.handle, self._hyper(self._rate, "alpha", var), grad, use_locking=self._use_locking
        )

    def _resource_apply_sparse_duplicate_indices(
        self, grad: Tensor, var: Any, indices: Tensor
    ) -> Any:
        step = raw.Mul(grad, raw.Neg(self._hyper(self._rate, "alpha", var)))
        return raw.ResourceScatterAdd(var.handle, indices, step)


class MomentumOptimizer(_RuleOptimizer):
    """Momentum (Polyak 1964), or Nesterov's.

    Sutskever et al., "On the importance of initialization and momentum in deep learning" (2013),
    equations 1 to 4.

    >>> x = tf.Variable(2.0)
    >>> train = tf.train.MomentumOptimizer(0.25, momentum=0.5).minimize(x * x)
    >>> with tf.Session() as sess:
    ...     sess.run(tf.global_variables_initializer())
    ...     for _ in range(3):
    ...         sess.run(train)
    ...         print(sess.run(x))
    1.0
    0.0
    -0.5
    """

    _rule = "Momentum"
    _slot_order = ("momentum",)

    def __init__(
        self,
        learning_rate: Any,
        momentum: Any,
        use_locking: bool = False,
        name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._momentum = momentum
        self._use_nesterov = use_nesterov

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            self._zeros_slot(var, "momentum", self._name)

    def _prepare(self) -> None:
        self._rate = self._tensor(self._learning_rate, "learning_rate")
        self._decay = self._tensor(self._momentum, "momentum")

    def _inputs(self, var: Any) -> dict[str, Any]:
        return {
            "lr": self._hyper(self._rate, "lr", var),
            "momentum": self._hyper(self._decay, "momentum", var),
            "use_nesterov": self._use_nesterov,
        }


class AdagradOptimizer(_RuleOptimizer):
    """Adagrad, with diagonal matrices.

    Duchi, Hazan and Singer, "Adaptive subgradient methods for online learning and stochastic
    optimization" (2011), figure 1: composite mirror descent.

    >>> x = tf.Variable([1.0, 10.0])
    >>> optimizer = tf.train.AdagradOptimizer(0.5)
    >>> train = optimizer.minimize(tf.reduce_sum(x * x))
    >>> with tf.Session() as sess:
    ...     sess.run(tf.global_variables_initializer())
    ...     sess.run(train)
    ...     sess.run(optimizer.get_slot(x, "accumulator")).round(1)  # 0.1 and squared gradients
    array([  4.1, 400.1], dtype=float32)
    """

    _rule = "Adagrad"
    _slot_order = ("accumulator",)

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        use_locking: bool = False,
        name: str = "Adagrad",
    ) -> None:
        if initial_accumulator_value <= 0.0:
            raise ValueError(
                f"initial_accumulator_value must be positive: {initial_accumulator_value}"
            )
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial_accumulator_value = initial_accumulator_value

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            self._constant_slot(var, self._initial_accumulator_value, "accumulator")

    def _prepare(self) -> None:
        self._rate = self._tensor(self._learning_rate, "learning_rate")

    def _inputs(self, var: Any) -> dict[str, Any]:
        return {"lr": self._hyper(self._rate, "lr", var)}


class AdagradDAOptimizer(_RuleOptimizer):
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


class AdadeltaOptimizer(_RuleOptimizer):
    """Zeiler, "Adadelta: an adaptive learning rate method" (2012, arXiv 1212.5701), algorithm 1.

    >>> x = tf.Variable(1.0)
    >>> optimizer = tf.train.AdadeltaOptimizer(learning_rate=1.0)
    >>> train = optimizer.minimize(x * x)
    >>> optimizer.get_slot_names()
    ['accum', 'accum_update']
    >>> optimizer.get_slot(x, "accum_update").name
    'Variable/Adadelta_1:0'
    """

    _rule = "Adadelta"
    _slot_order = ("accum", "accum_update")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: Any = 0.95,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adadelta",
    ) -> None:
        super().__init__(use_locking, name)
        self._lr = learning_rate
        self._rho = rho
        self._epsilon = epsilon

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            self._zeros_slot(var, "accum", self._name)
            self._zeros_slot(var, "accum_update", self._name)

    def _prepare(self) -> None:
        self._rate = self._tensor(self._lr, "lr")
        self._rho_t = self._tensor(self._rho, "rho")
        self._epsilon_t = self._tensor(self._epsilon, "epsilon")

    def _inputs(self, var: Any) -> dict[str, Any]:
        return {
            "lr": self._hyper(self._rate, "lr", var),
            "rho": self._hyper(self._rho_t, "rho", var),
            "epsilon": self._hyper(self._epsilon_t, "epsilon", var),
        }


class AdamOptimizer(_RuleOptimizer):
    """Adam: Kingma and Ba, "Adam: a method for stochastic optimization" (2015, arXiv 1412.6980).

    Algorithm 1, in the shorter order at the end of section 2, whose epsilon this one is.
    With sparse gradients the moments of all rows decay and all rows move, as if the gradient were
    dense.

    >>> x = tf.Variable([1.0, 100.0])
    >>> train = tf.train.AdamOptimizer(0.5).minimize(tf.reduce_sum(x * x))
    >>> with tf.Session() as sess:
    ...     sess.run(tf.global_variables_initializer())  # its slots are variables, too
    ...     sess.run(train)
    ...     sess.run(x).round(3)  # the first step is as long as the rate, whatever the gradient
    array([ 0.5, 99.5], dtype=float32)
    """

    _rule = "Adam"
    _slot_order = ("m", "v")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        super().__init__(use_locking, name)
        self._lr = learning_rate
        self._beta1 = beta1
        self._beta2 = beta2
        self._epsilon = epsilon

    def _get_beta_accumulators(self) -> tuple[Any, Any]:
        graph = get_default_graph()
        return (
            self._get_non_slot_variable("beta1_power", graph=graph),
            self._get_non_slot_variable("beta2_power", graph=graph),
        )

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        first = min(var_list, key=lambda v: v.name)
        beta1, beta2 = (self._call_if_callable(b) for b in (self._beta1, self._beta2))
        self._create_non_slot_variable(beta1, "beta1_power", first)
        self._create_non_slot_variable(beta2, "beta2_power", first)
        for var in var_list:
            self._zeros_slot(var, "m", self._name)
            self._zeros_slot(var, "v", self._name)

    def _prepare(self) -> None:
        self._lr_t = self._tensor(self._lr, "learning_rate")
        self._beta1_t = self._tensor(self._beta1, "beta1")
        self._beta2_t = self._tensor(self._beta2, "beta2")
        self._epsilon_t = self._tensor(self._epsilon, "epsilon")
        self._powers = [convert_to_tensor(p) for p in self._get_beta_accumulators()]

    def _inputs(self, var: Any) -> dict[str, Any]:
        return {
            "beta1_power": self._hyper(self._powers[0], "beta1_power", var),
            "beta2_power": self._hyper(self._powers[1], "beta2_power", var),
            "lr": self._hyper(self._lr_t, "lr", var),
            "beta1": self._hyper(self._beta1_t, "beta1", var),
            "beta2": self._hyper(self._beta2_t, "beta2", var),
            "epsilon": self._hyper(self._epsilon_t, "epsilon", var),
        }

    def _finish(self, update_ops: Sequence[Any], name_scope: str) -> Operation:
        graph = get_default_graph()
        beta1_power, beta2_power = self._get_beta_accumulators()
        # The updates use the powers of this step: these move on afterwards.
        with graph.control_dependencies(update_ops), graph.colocate_with(beta1_power):
            moved = [
                beta1_power.assign(raw.Mul(self._powers[0], self._beta1_t)).op,
                beta2_power.assign(raw.Mul(self._powers[1], self._beta2_t)).op,
            ]
        return group(*update_ops, *moved, name=name_scope)


class RMSPropOptimizer(_RuleOptimizer):
    """RMSProp with momentum; on request centred by the mean.

    Tieleman and Hinton, "Neural networks for machine learning" (2012), lecture 6.5; centred:
    Graves, "Generating sequences with recurrent neural networks" (2013, arXiv 1308.0850),
    equations 38 to 41.

    >>> x = tf.Variable([1.0, 100.0])
    >>> train = tf.train.RMSPropOptimizer(0.5, decay=0.75).minimize(tf.reduce_sum(x * x))
    >>> with tf.Session() as sess:
    ...     sess.run(tf.global_variables_initializer())
    ...     sess.run(train)
    ...     sess.run(x).round(2)
    array([ 0.24, 99.  ], dtype=float32)
    """

    def __init__(
        self,
        learning_rate: Any,
        decay: Any = 0.9,
        momentum: Any = 0.0,
        epsilon: Any = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        name: str = "RMSProp",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._decay = decay
        self._momentum = momentum
        self._epsilon = epsilon
        self._centered = centered
        self._rule = "CenteredRMSProp" if centered else "RMSProp"
        self._slot_order = ("mg", "rms", "momentum") if centered else ("rms", "momentum")

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            self._constant_slot(var, 1.0, "rms")
            if self._centered:
                self._zeros_slot(var, "mg", self._name)
            self._zeros_slot(var, "momentum", self._name)

    def _prepare(self) -> None:
        self._rate = self._tensor(self._learning_rate, "learning_rate")
        self._decay_t = self._tensor(self._decay, "decay")
        self._momentum_t = self._tensor(self._momentum, "momentum")
        self._epsilon_t = self._tensor(self._epsilon, "epsilon")

    def _inputs(self, var: Any) -> dict[str, Any]:
        return {
            "lr": self._hyper(self._rate, "lr", var),
            "rho": self._hyper(self._decay_t, "rho", var),
            "momentum": self._hyper(self._momentum_t, "momentum", var),
            "epsilon": self._hyper(self._epsilon_t, "epsilon", var),
        }


class FtrlOptimizer(_RuleOptimizer):
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


class ProximalGradientDescentOptimizer(_RuleOptimizer):
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


class ProximalAdagradOptimizer(_RuleOptimizer):
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
