"""Several steps in one run, and small loops of `tf.contrib.distribute`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.distribute.contexts import get_replica_context, get_strategy
from headrace.errors import OutOfRangeError
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Operation
from headrace.ops.control.basic import group
from headrace.ops.state.variables_api import global_variables_initializer
from headrace.session.session import Session

__all__ = ["Monitor", "MultiStepContext", "StandardInputStep", "StandardSingleLossStep", "Step"]


class MultiStepContext:
    """What the steps of one run give.

    >>> strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    >>> with strategy.scope():
    ...     numbers = strategy.make_dataset_iterator(tf.data.Dataset.range(4).batch(1))
    ...     def step(context, x):
    ...         context.set_last_step_output("x", x)
    ...     context = strategy.extended.experimental_run_steps_on_iterator(step, numbers, 3)
    >>> with tf.Session() as sess:
    ...     sess.run(numbers.initializer)
    ...     sess.run(context.last_step_outputs["x"]).tolist()
    [2]
    """

    def __init__(self) -> None:
        self.last_step_outputs: dict[str, Any] = {}
        self.non_tensor_outputs: dict[str, Any] = {}
        self.run_op: Operation | None = None

    def set_last_step_output(self, name: str, output: Any, reduce_op: Any = None) -> None:
        """Give an output of the last step, summed or averaged over replicas if asked for."""
        context = get_replica_context()
        if reduce_op is not None and context is None:
            output = get_strategy().reduce(reduce_op, output)
        elif reduce_op is not None and context is not None:
            output = context.all_reduce(reduce_op, output)
        self.last_step_outputs[name] = output

    def set_non_tensor_output(self, name: str, output: Any) -> None:
        """Give something that is no tensor."""
        self.non_tensor_outputs[name] = output


def run_steps(
    extended: Any, fn: Callable[..., Any], iterator: Any, iterations: int, initial_values: Any
) -> MultiStepContext:
    """So many steps behind each other, as one operation.

    Raises:
        TypeError: if ``iterations`` is no number.
    """
    if not isinstance(iterations, int):
        raise TypeError(
            f"The number of steps of a run is a Python int, not {iterations!r}: each step is a "
            "part of the graph."
        )
    context, graph = MultiStepContext(), get_default_graph()
    context.last_step_outputs = dict(initial_values or {})
    done: list[Any] = []
    with extended._across("experimental_run_steps_on_iterator"):
        for _ in range(iterations):
            with graph.control_dependencies(done):
                before = graph.version
                result = fn(context, iterator.get_next())
                done = [op for op in graph.get_operations()[before:] if _is_effect(op)]
                done += [] if result is None else [extended._strategy.group(result)]
        context.run_op = group(*done)
    return context


def _is_effect(op: Operation) -> bool:
    return not op.outputs or bool(op.op_def.is_stateful and not op.op_def.makes_handle)


class Step:
    """Base of steps that are called to make their operation.

    Args:
        distribution: a strategy.

    >>> tf.contrib.distribute.Step(tf.distribute.OneDeviceStrategy("/cpu:0")).initialize()
    []
    """

    def __init__(self, distribution: Any) -> None:
        self._distribution = distribution

    @property
    def distribution(self) -> Any:
        """The strategy."""
        return self._distribution

    def initialize(self) -> Any:
        """What to run before the first step."""
        return []

    def __call__(self) -> Any:
        """The operation of the step."""
        raise NotImplementedError("must be implemented in descendants")


class StandardInputStep(Step):
    """A step that reads a dataset.

    Args:
        dataset_fn: function that gives a dataset of a replica's batches.
        distribution: a strategy.

    >>> step = tf.contrib.distribute.StandardInputStep(
    ...     lambda: tf.data.Dataset.range(2), tf.distribute.OneDeviceStrategy("/cpu:0"))
    >>> isinstance(step.initialize(), tf.Operation)
    True
    """

    def __init__(self, dataset_fn: Callable[..., Any], distribution: Any) -> None:
        super().__init__(distribution)
        self._iterator = distribution.make_input_fn_iterator(lambda _: dataset_fn())

    def initialize(self) -> Any:
        """The operation that begins the data."""
        return self._iterator.initialize()


class StandardSingleLossStep(StandardInputStep):
    """Steps of training with one loss.

    Args:
        dataset_fn: function that gives a dataset of a replica's batches.
        loss_fn: function of a context and a batch that gives the loss.
        optimizer: a `tf.train.Optimizer`.
        distribution: a strategy.
        iterations_per_step: so many updates in one run.

    >>> strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    >>> with strategy.scope():
    ...     w = tf.get_variable("w", initializer=1.0)
    ...     step = tf.contrib.distribute.StandardSingleLossStep(
    ...         lambda: tf.data.Dataset.from_tensors(2.0).repeat(), lambda _, x: w * x,
    ...         tf.train.GradientDescentOptimizer(0.1), strategy, iterations_per_step=2)
    ...     begin, train = step.initialize(), step()
    >>> with tf.Session() as sess:
    ...     sess.run([begin, w.initializer])
    ...     sess.run(train)
    ...     round(float(sess.run(w)), 3)
    [None, None]
    0.6
    """

    def __init__(
        self,
        dataset_fn: Callable[..., Any],
        loss_fn: Callable[..., Any],
        optimizer: Any,
        distribution: Any,
        iterations_per_step: int = 1,
    ) -> None:
        super().__init__(dataset_fn, distribution)
        self._loss_fn, self._optimizer = loss_fn, optimizer
        self._iterations = iterations_per_step

    def __call__(self) -> Any:
        """The operation that makes the updates."""
        strategy = self._distribution

        def update(context: Any, batch: Any) -> Any:
            def in_replica(*parts: Any) -> Any:
                return self._optimizer.minimize(self._loss_fn(context, *parts))

            parts = batch if isinstance(batch, tuple) else (batch,)
            return strategy.group(strategy.experimental_run_v2(in_replica, parts))

        with strategy.scope():
            context = strategy.extended.experimental_run_steps_on_iterator(
                update, self._iterator, self._iterations
            )
        return context.run_op


class Monitor:
    """Runs a step again and again.

    Args:
        step_callable: a function that makes the operation of a step, such as a `Step`.
        session: a session; without one it has one of its own.

    >>> strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    >>> v = tf.get_variable("v", initializer=0)
    >>> class Counts(tf.contrib.distribute.Step):
    ...     def __call__(self):
    ...         return v.assign_add(1)
    >>> with tf.Session() as sess:
    ...     monitor = tf.contrib.distribute.Monitor(Counts(strategy), sess)
    ...     monitor.run_steps(3)
    ...     int(sess.run(v))
    3
    """

    def __init__(self, step_callable: Any, session: Any = None) -> None:
        self._session = Session() if session is None else session
        begin, self._step = step_callable.initialize(), step_callable()
        self._session.run([begin, global_variables_initializer()])

    def run_steps(self, num_steps: int | None = None) -> None:
        """Run so many steps; without a number to the end of the data.

        Raises:
            ValueError: if the number is less than 1.
        """
        if num_steps is not None and num_steps < 1:
            raise ValueError(f"num_steps must be at least 1, not {num_steps}.")
        made = 0
        try:
            while num_steps is None or made < num_steps:
                self._session.run(self._step)
                made += 1
        except OutOfRangeError:
            if num_steps is not None:
                raise
