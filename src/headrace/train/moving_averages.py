"""Moving averages of variables and tensors."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.control.basic import group, init_scope
from headrace.ops.core.build import constant, convert_to_tensor, raw
from headrace.ops.state import variable_scope
from headrace.ops.state.variable_kinds import VariableAggregation
from headrace.ops.state.variables import Variable
from headrace.train import slot_creator
from headrace.train.optimizer import Optimizer
from headrace.train.wrapped_optimizer import WrappedOptimizer

__all__ = ["ExponentialMovingAverage", "MovingAverageOptimizer"]


def assign_moving_average(
    variable: Any, value: Any, decay: Any, zero_debias: bool = True, name: str | None = None
) -> Any:
    """``variable -= (1 - decay) * (variable - value)``.

    With ``zero_debias`` the start at zero is corrected for, as in Adam (Kingma and Ba, ICLR 2015,
    section 3): the average is right from the first update on.

    Returns:
        The new average as a tensor, the output of an op with the given name.
    """
    graph = get_default_graph()
    with graph.name_scope(name or "AssignMovingAvg") as scope, graph.colocate_with(variable):
        rate = raw.Sub(constant(1.0), convert_to_tensor(decay, dtypes.float32))
        if variable.dtype.base_dtype is not dtypes.float32:
            rate = raw.Cast(rate, DstT=variable.dtype.base_dtype)
        if zero_debias:
            delta = _debiased_delta(variable, convert_to_tensor(value), rate)
        else:
            delta = raw.Mul(raw.Sub(convert_to_tensor(variable), convert_to_tensor(value)), rate)
        update = variable.assign_sub(delta, read_value=False)
        with graph.control_dependencies([update]):
            return raw.ReadVariableOp(variable.handle, dtype=variable.dtype, name=scope)


def _debiased_delta(variable: Any, value: Tensor, rate: Tensor) -> Tensor:
    """What to subtract from ``variable`` to make it the corrected average."""
    graph = get_default_graph()
    with variable_scope.variable_scope(variable.op.name, values=[variable, value, rate]):
        shape = variable.shape

        def zeros() -> Tensor:
            return raw.Fill(shape.as_list(), constant(0, variable.dtype))

        with init_scope():
            biased = variable_scope.get_variable(
                _unique_name("biased"), initializer=zeros(), trainable=False
            )
            local_step = variable_scope.get_variable(
                _unique_name("local_step"),
                initializer=constant(0, variable.dtype),
                trainable=False,
            )
    update = raw.Mul(raw.Sub(convert_to_tensor(biased), value), rate)
    new_biased = biased.assign_sub(update)
    one = constant(1, variable.dtype)
    count = local_step.assign_add(one)
    with graph.control_dependencies([new_biased.op, count.op]):
        seen = raw.Sub(one, raw.Pow(raw.Sub(one, rate), local_step.read_value()))
        return raw.Sub(convert_to_tensor(variable), raw.RealDiv(biased.read_value(), seen))


def _unique_name(name: str) -> str:
    """``name``, numbered if the open variable scope has such a variable and shares none."""
    scope = variable_scope.get_variable_scope()
    if scope.reuse:
        return name
    taken = {v.op.name for v in scope.global_variables()}
    names = itertools.chain([name], (f"{name}_{i}" for i in itertools.count(1)))
    return next(n for n in names if f"{scope.name}/{n}" not in taken)


class ExponentialMovingAverage:
    """Keeps exponentially decaying averages of variables or tensors.

    Polyak and Juditsky, "Acceleration of stochastic approximation by averaging" (1992), say why:
    the averages vary less than the values.

    ``apply`` makes the averages and the op that updates them; ``average`` gives them back.

    Args:
        decay: close to 1.0, such as 0.999.
        num_updates: when given, the decay used is ``min(decay, (1 + n) / (10 + n))``.
        zero_debias: correct averages of tensors for their start at zero.

    >>> x = tf.Variable(0.0)
    >>> average = tf.train.ExponentialMovingAverage(decay=0.75)
    >>> maintain = average.apply([x])
    >>> with tf.Session() as sess:
    ...     sess.run(tf.global_variables_initializer())
    ...     sess.run(x.assign(4.0).op)
    ...     sess.run(maintain)
    ...     float(sess.run(average.average(x)))  # 0.75 * 0 + 0.25 * 4
    1.0
    """

    def __init__(
        self,
        decay: Any,
        num_updates: Any = None,
        zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:
        self._decay = decay
        self._num_updates = num_updates
        self._zero_debias = zero_debias
        self._name = name
        self._averages: dict[Any, Variable] = {}

    @property
    def name(self) -> str:
        return self._name

    def apply(self, var_list: Sequence[Any] | None = None) -> Operation:
        """An op that moves the averages of ``var_list`` (all trainable variables by default).

        Raises:
            TypeError: if an element is not of a floating type.
            ValueError: if an element has an average already.
        """
        graph = get_default_graph()
        if var_list is None:
            var_list = graph.get_collection(GraphKeys.TRAINABLE_VARIABLES)
        debiased = set()
        for var in var_list:
            if not var.dtype.base_dtype.is_floating:
                raise TypeError(f"The variables must be half, float, or double: {var.name}")
            if var not in self._averages:
                self._averages[var] = self._new_average(var)
                if not isinstance(var, Variable) and self._zero_debias:
                    debiased.add(self._averages[var])
        with graph.name_scope(self._name) as scope:
            decay = self._current_decay()
            updates = [
                assign_moving_average(
                    self._averages[v], convert_to_tensor(v), decay, self._averages[v] in debiased
                )
                for v in var_list
            ]
            return group(*updates, name=scope)

    def _new_average(self, var: Any) -> Variable:
        graph = get_default_graph()
        with init_scope():
            if isinstance(var, Variable):
                average = slot_creator.create_slot(
                    var, var.initialized_value, self._name, colocate_with_primary=True
                )
                graph.add_to_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, var)
            else:
                average = slot_creator.create_zeros_slot(var, self._name)
        # In the replicas of a strategy it is that of the mean of their values.
        average._aggregation = VariableAggregation.MEAN
        return average

    def _current_decay(self) -> Tensor:
        decay = convert_to_tensor(self._decay, dtypes.float32, name="decay")
        if self._num_updates is None:
            return decay
        updates = convert_to_tensor(self._num_updates)
        count = raw.Cast(updates, DstT=dtypes.float32)
        early = raw.RealDiv(raw.AddV2(constant(1.0), count), raw.AddV2(constant(10.0), count))
        return raw.Minimum(decay, early)

    def average(self, var: Any) -> Variable | None:
        """The variable that holds the average of ``var``, or None."""
        return self._averages.get(var)

    def average_name(self, var: Any) -> str:
        """The name under which checkpoints hold the average of ``var``."""
        if var in self._averages:
            return self._averages[var].op.name
        return get_default_graph().unique_name(f"{var.op.name}/{self._name}", mark_as_used=False)

    def variables_to_restore(
        self, moving_avg_variables: Sequence[Any] | None = None
    ) -> dict[str, Any]:
        """Names in checkpoints to variables: averaged variables load their averages."""
        graph = get_default_graph()
        if moving_avg_variables is None:
            averaged = graph.get_collection(GraphKeys.TRAINABLE_VARIABLES)
            averaged += graph.get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES)
        else:
            averaged = list(moving_avg_variables)
        names = {self.average_name(v): v for v in dict.fromkeys(averaged)}
        taken = {v.op.name for v in averaged}
        for var in graph.get_collection(GraphKeys.GLOBAL_VARIABLES):
            if var.op.name not in taken and var.op.name not in names:
                names[var.op.name] = var
        return names


class MovingAverageOptimizer(WrappedOptimizer):
    """Wraps an optimiser and keeps averages of the variables that it trains.

    ``swapping_saver`` saves the averages under the variables' own names, so that evaluation loads
    them without knowing.

    >>> x = tf.Variable(1.0, name="x")
    >>> plain = tf.train.GradientDescentOptimizer(0.25)
    >>> optimizer = tf.train.MovingAverageOptimizer(plain, average_decay=0.5)
    >>> train = optimizer.minimize(x * x)
    >>> saver = optimizer.swapping_saver()  # writes the averages under the variables' names
    >>> with tf.Session() as sess:
    ...     sess.run(tf.global_variables_initializer())
    ...     sess.run(train)
    ...     float(sess.run(x)), float(tf.train.load_variable(saver.save(sess, "./model"), "x"))
    (0.5, 0.75)
    """

    def __init__(
        self,
        opt: Optimizer,
        average_decay: Any = 0.9999,
        num_updates: Any = None,
        sequential_update: bool = True,
    ) -> None:
        super().__init__(opt, False, "MovingAverageOptimizer")
        self._ema = ExponentialMovingAverage(average_decay, num_updates=num_updates)
        self._sequential_update = sequential_update
        self._swapped: dict[str, Any] = {}

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Operation:
        """Apply the gradients, then move the averages."""
        pairs = list(grads_and_vars)
        graph = get_default_graph()
        train_op = super().apply_gradients(pairs, global_step, name)
        variables = [v for g, v in pairs if g is not None]
        waits = [train_op] if self._sequential_update else []
        with graph.control_dependencies(waits):
            averages = self._ema.apply(variables)
        self._swapped = {
            v.op.name: self._ema.average(v) for v in variables if self._ema.average(v) is not None
        }
        return group(train_op, averages, name="train_with_avg")

    def swapping_saver(
        self, var_list: Any = None, name: str = "swapping_saver", **kwargs: Any
    ) -> Any:
        """A Saver that writes averages in the place of the variables they average.

        Raises:
            RuntimeError: before ``apply_gradients`` or ``minimize`` was called.
        """
        from headrace.train.saver import Saver

        if not self._swapped:
            raise RuntimeError("Must call apply_gradients or minimize before swapping_saver")
        if var_list is None:
            var_list = get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES)
        names = var_list if isinstance(var_list, dict) else {v.op.name: v for v in var_list}
        swapped = dict(names)
        for key, var in names.items():
            average = self._swapped.get(var.op.name)
            if average is not None:
                swapped[key] = average
                swapped[average.op.name] = var
        return Saver(swapped, name=name, **kwargs)
