"""The optimisers. Each class says where its algorithm was published."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.control.basic import group
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.train.rule_optimizer import RuleOptimizer

__all__ = [
    "AdadeltaOptimizer",
    "AdagradOptimizer",
    "AdamOptimizer",
    "GradientDescentOptimizer",
    "MomentumOptimizer",
    "RMSPropOptimizer",
]


class GradientDescentOptimizer(RuleOptimizer):
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

    def _inputs(self, var: Any) -> dict[str, Any]:
        return {"alpha": self._hyper(self._rate, "alpha", var)}

    def _resource_apply_dense(self, grad: Tensor, var: Any) -> Any:
        return raw.ResourceApplyGradientDescent(
            var.handle, self._hyper(self._rate, "alpha", var), grad, use_locking=self._use_locking
        )

    def _resource_apply_sparse_duplicate_indices(
        self, grad: Tensor, var: Any, indices: Tensor
    ) -> Any:
        step = raw.Mul(grad, raw.Neg(self._hyper(self._rate, "alpha", var)))
        return raw.ResourceScatterAdd(var.handle, indices, step)


class MomentumOptimizer(RuleOptimizer):
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


class AdagradOptimizer(RuleOptimizer):
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


class AdadeltaOptimizer(RuleOptimizer):
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


class AdamOptimizer(RuleOptimizer):
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


class RMSPropOptimizer(RuleOptimizer):
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
