"""Optimisers whose workers train copies of their own and meet every so many steps.

Elastic averaging, model averaging and accumulated gradient normalization, as in ``tf.contrib.opt``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from headrace.contrib.opt_copies import (
    AGNCustomGetter,
    ElasticAverageCustomGetter,
    ModelAverageCustomGetter,
)
from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.array.indexed_slices import IndexedSlices
from headrace.ops.control import basic
from headrace.ops.control.flow_api import cond
from headrace.ops.core.build import constant, raw
from headrace.ops.io.accumulators_api import ConditionalAccumulator
from headrace.ops.io.queues_api import FIFOQueue
from headrace.ops.state.variable_scope import get_variable
from headrace.train.optimizer import GradVar, Optimizer
from headrace.train.saver import Saver
from headrace.train.session_run_hook import SessionRunHook
from headrace.train.wrapped_optimizer import WrappedOptimizer

__all__ = [
    "AGNOptimizer",
    "ElasticAverageOptimizer",
    "ModelAverageOptimizer",
]


class _CopiesOptimizer(WrappedOptimizer):
    """What trains a worker's copies by ``opt``, and every ``period`` steps does more."""

    def __init__(
        self, opt: Optimizer, getter: Any, wanted: type, period: int, use_locking: bool, name: str
    ) -> None:
        super().__init__(opt, use_locking, name)
        if not isinstance(getter, wanted):
            raise TypeError(
                f"{type(self).__name__} needs the {wanted.__name__} that made its variables, "
                f"not {getter!r}"
            )
        if period < 1:
            raise ValueError(
                f"{type(self).__name__}: workers meet every so many steps, at least 1, not {period}"
            )
        self._period = period
        self._getter: Any = getter
        self._local_step = get_variable(
            "local_step",
            initializer=0,
            trainable=False,
            collections=[GraphKeys.LOCAL_VARIABLES],
        )

    def _of(self, table: dict[Any, Any], copies: Sequence[Any]) -> list[Any]:
        for var in copies:
            if var not in table:
                raise ValueError(
                    f"{type(self).__name__}: {var.name} is no copy of a worker. Make it by "
                    f"tf.get_variable, in a tf.variable_scope with custom_getter="
                    f"{type(self._getter).__name__}(...)."
                )
        return [table[var] for var in copies]

    def _centers(self, copies: Sequence[Any]) -> list[Any]:
        return self._of(self._getter._global_map, copies)

    def _companions(self, copies: Sequence[Any]) -> list[Any]:
        return self._of(self._getter._local_map, copies)

    def _all_copies(self) -> list[Any]:
        copies = get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES)
        if not copies:
            raise ValueError(f"{type(self).__name__}: there are no trainable variables.")
        return list(copies)

    def _train_copies(self, pairs: Sequence[GradVar]) -> Operation:
        """Applies gradients to copies; what ``opt`` makes for them is the worker's own, too."""
        graph = get_default_graph()
        shared = set(graph.get_collection(GraphKeys.GLOBAL_VARIABLES))
        done = self._opt.apply_gradients(pairs)
        all_shared = graph.get_collection_ref(GraphKeys.GLOBAL_VARIABLES)
        for var in [v for v in all_shared if v not in shared]:
            all_shared.remove(var)
            graph.add_to_collection(GraphKeys.LOCAL_VARIABLES, var)
        return done

    def _every_period(self, after: Sequence[Any], meet: Callable[[], Any]) -> Operation:
        """Counts a step of the worker, and runs what ``meet()`` builds every ``period`` of them."""
        graph = get_default_graph()
        with graph.control_dependencies(after), graph.colocate_with(self._local_step):
            step = raw.Identity(self._local_step.assign_add(1))
            due = raw.Equal(raw.FloorMod(step, constant(self._period)), constant(0))

        def met() -> Tensor:
            with get_default_graph().control_dependencies([meet()]):
                return raw.Identity(constant(True))

        done: Operation = raw.Identity(cond(due, met, lambda: constant(False))).op
        return done

    def _checked(self, grads_and_vars: Iterable[GradVar]) -> tuple[list[GradVar], list[Any]]:
        pairs = [(g, v) for g, v in grads_and_vars]
        copies = [v for g, v in pairs if g is not None]
        if not copies:
            raise ValueError(f"{type(self).__name__}: Must supply at least one variable")
        self._centers(copies)
        return pairs, copies


class ElasticAverageOptimizer(_CopiesOptimizer):
    """Elastic averaging: copies explore, tied to a center as if by springs.

    Zhang, Choromanska and LeCun, "Deep Learning with Elastic Averaging SGD" (NIPS 2015),
    algorithm 1. Each worker trains its copies by ``opt``. Every ``communication_period`` steps it
    reads the centers; ``moving_rate`` times the difference is taken from its copies, and added to
    the centers. No worker waits for another, so none is missed that dies.

    Args:
        opt: trains the copies. num_worker: how many workers there are.
        ea_custom_getter: the `ElasticAverageCustomGetter` that made the variables.
        communication_period: steps of a worker between two meetings.
        moving_rate: 0.9 / communication_period / num_worker by default.
        rho: the strength of the springs between meetings, added to the loss as
            ``rho * l2_loss(copy - center)``; ``moving_rate`` / learning rate by default.
        synchronous: whether `get_init_op` waits for the other workers.

    Raises:
        TypeError: if ``opt`` is no optimiser or the getter is of another class.
        ValueError: for a variable that the getter did not make.

    >>> getter = tf.contrib.opt.ElasticAverageCustomGetter("/cpu:0")
    >>> with tf.variable_scope("", custom_getter=getter):
    ...     w = tf.get_variable("w", initializer=4.0)
    >>> sgd = tf.train.GradientDescentOptimizer(1.0)
    >>> opt = tf.contrib.opt.ElasticAverageOptimizer(sgd, 1, getter, 1, moving_rate=0.25, rho=0.0)
    >>> train = opt.minimize(2.0 * w)
    >>> with tf.Session() as sess:
    ...     sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    ...     sess.run(opt.get_init_op(0))
    ...     sess.run(train)
    ...     [float(x) for x in sess.run([w, tf.global_variables()[0]])]  # 2, then nearer to 4
    [None, None]
    [2.5, 3.5]
    """

    #: As described in the paper.
    BETA = 0.9

    def __init__(
        self,
        opt: Optimizer,
        num_worker: int,
        ea_custom_getter: ElasticAverageCustomGetter,
        communication_period: int = 10,
        moving_rate: float | None = None,
        rho: float | None = None,
        use_locking: bool = True,
        synchronous: bool = False,
        name: str = "ElasticAverageOptimizer",
    ) -> None:
        wanted = ElasticAverageCustomGetter
        super().__init__(opt, ea_custom_getter, wanted, communication_period, use_locking, name)
        self._num_worker = num_worker
        self._synchronous = synchronous
        if moving_rate is None:
            moving_rate = self.BETA / communication_period / num_worker
        self._moving_rate = moving_rate
        self._rho: Any = rho
        if rho is None:
            rate = getattr(opt, "_learning_rate", getattr(opt, "_lr", None))
            if rate is None or callable(rate):
                raise ValueError(
                    f"rho is moving_rate / learning rate by default; {type(opt).__name__} has no "
                    "learning rate that is a number: give rho."
                )
            self._rho = moving_rate / rate

    def compute_gradients(
        self, loss: Any, var_list: Any = None, *args: Any, **kwargs: Any
    ) -> list[GradVar]:
        """Pairs (gradient, variable) of the loss and the springs to the centers last seen."""
        copies = self._opt._variables_to_train(var_list)
        springs = [
            raw.L2Loss(raw.Sub(copy.value(), center.value()))
            for copy, center in zip(copies, self._companions(copies), strict=True)
        ]
        distance = raw.AddN([raw.Cast(s, DstT=loss.dtype) for s in springs])
        total = raw.AddV2(loss, raw.Mul(raw.Cast(self._rho, DstT=loss.dtype), distance))
        return self._opt.compute_gradients(total, copies, *args, **kwargs)

    def apply_gradients(
        self, grads_and_vars: Iterable[GradVar], global_step: Any = None, name: str | None = None
    ) -> Any:
        """An op that trains the copies, and meets the centers every ``communication_period``;
        ``global_step`` counts meetings."""
        pairs, copies = self._checked(grads_and_vars)
        done = self._train_copies(pairs)
        return self._every_period([done], lambda: self._meet(copies, global_step))

    def _meet(self, copies: Sequence[Any], global_step: Any) -> Operation:
        graph = get_default_graph()
        centers = self._centers(copies)
        updates: list[Any] = []
        for copy, seen, center in zip(copies, self._companions(copies), centers, strict=True):
            now = center.read_value()
            with graph.colocate_with(copy):
                moved = raw.Sub(copy.read_value(), now)
                moved = raw.Mul(raw.Cast(self._moving_rate, DstT=moved.dtype), moved)
                updates.append(seen.assign(now, read_value=False))
                updates.append(copy.assign_sub(moved, read_value=False))
            with graph.colocate_with(center):
                updates.append(center.assign_add(moved, read_value=False))
        if global_step is not None:
            updates.append(self._incremented(global_step, "count_meeting"))
        return basic.group(*updates)

    def get_init_op(self, task_index: int) -> Operation:
        """An op that makes copies and the centers last seen equal to the centers; with
        ``synchronous`` it then waits until all workers have run theirs."""
        copies = self._all_copies()
        inits: list[Any] = []
        for copy, seen, center in zip(
            copies, self._companions(copies), self._centers(copies), strict=True
        ):
            value = center.read_value()
            inits += [copy.assign(value, read_value=False), seen.assign(value, read_value=False)]
        if not self._synchronous:
            return basic.group(*inits)
        queues = [
            FIFOQueue(
                self._num_worker, [dtypes.bool], [[]], shared_name=f"variable_init_sync_queue{i}"
            )
            for i in range(self._num_worker)
        ]
        with get_default_graph().control_dependencies(inits):
            told = [q.enqueue(False) for i, q in enumerate(queues) if i != task_index]
        with get_default_graph().control_dependencies(told):
            heard = queues[task_index].dequeue_many(self._num_worker - 1)
        return basic.group(heard, *inits)

    def make_session_run_hook(self, is_chief: bool, task_index: int) -> SessionRunHook:
        """A hook that runs `get_init_op` in each new session."""
        return _InitHook(lambda: self.get_init_op(task_index))

    def swapping_saver(
        self, var_list: Any = None, name: str = "swapping_saver", **kwargs: Any
    ) -> Saver:
        """A saver that saves the centers under the names of the copies, for evaluation.

        Raises:
            RuntimeError: before the getter has made variables.
        """
        centers = self._getter._global_map
        if not centers:
            raise RuntimeError(
                "global_center_variable is empty, please make sure this is called after model "
                "created and ElasticAverageCustomGetter is used when declaring you model"
            )
        if var_list is None:
            var_list = self._all_copies()
        if not isinstance(var_list, dict):
            var_list = {v.op.name: v for v in var_list}
        swapped = {
            key: [centers.get(v, v) for v in var]
            if isinstance(var, list)
            else centers.get(var, var)
            for key, var in var_list.items()
        }
        return Saver(swapped, name=name, **kwargs)


class ModelAverageOptimizer(_CopiesOptimizer):
    """Model averaging: every ``interval_steps`` all copies become their average.

    McDonald, Hall and Mann, "Distributed Training Strategies for the Structured Perceptron"
    (NAACL 2010), section 4.2. Each worker trains its copies by ``opt``; every ``interval_steps``
    they go to accumulators beside the centers. The chief takes the average when that of all
    workers is there, and lets the others go on with it.

    Args:
        opt: trains the copies. num_worker: how many workers meet. is_chief: one of them.
        ma_custom_getter: the `ModelAverageCustomGetter` that made the variables.
        interval_steps: steps of a worker between two meetings.

    Raises:
        TypeError: if ``opt`` is no optimiser or the getter is of another class.
        ValueError: for a variable that the getter did not make, and without a global step.

    >>> getter = tf.contrib.opt.ModelAverageCustomGetter("/cpu:0")
    >>> with tf.variable_scope("", custom_getter=getter):
    ...     w = tf.get_variable("w", initializer=4.0)
    >>> sgd = tf.train.GradientDescentOptimizer(1.0)
    >>> opt = tf.contrib.opt.ModelAverageOptimizer(sgd, 1, True, getter, interval_steps=2)
    >>> train = opt.minimize(w, tf.train.get_or_create_global_step())
    >>> with tf.Session() as sess:
    ...     _ = sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    ...     for _ in range(3):
    ...         sess.run(train)
    ...     [float(x) for x in sess.run([w, tf.global_variables()[0]])]
    [1.0, 2.0]
    """

    def __init__(
        self,
        opt: Optimizer,
        num_worker: int,
        is_chief: bool,
        ma_custom_getter: ModelAverageCustomGetter,
        interval_steps: int = 100,
        use_locking: bool = True,
        name: str = "ModelAverageOptimizer",
    ) -> None:
        wanted = ModelAverageCustomGetter
        super().__init__(opt, ma_custom_getter, wanted, interval_steps, use_locking, name)
        self._num_worker = num_worker
        self._is_chief = is_chief
        self._sums: list[tuple[Any, Any]] = []
        self._chief_init_op: Any = None

    def apply_gradients(
        self, grads_and_vars: Iterable[GradVar], global_step: Any = None, name: str | None = None
    ) -> Any:
        """An op that trains the copies, and averages them every ``interval_steps``;
        ``global_step`` counts meetings."""
        pairs, copies = self._checked(grads_and_vars)
        if global_step is None:
            raise ValueError(f"{type(self).__name__}: Global step is required")
        centers = self._centers(copies)
        graph = get_default_graph()
        self._sums = []
        for center in centers:
            with graph.colocate_with(center):
                name_of_sum = f"{center.name}/var_accum"
                total = ConditionalAccumulator(
                    center.dtype.base_dtype, shape=center.shape, shared_name=name_of_sum
                )
                self._sums.append((total, center))
        with graph.colocate_with(global_step):
            go_on = FIFOQueue(-1, [dtypes.bool], [[]], shared_name="sync_queue")
        done = self._train_copies(pairs)
        step = self._every_period([done], lambda: self._meet(copies, global_step, go_on))
        self._chief_init_op = basic.group(*(self._set_step(global_step)))
        return step

    def _set_step(self, global_step: Any) -> list[Any]:
        step = raw.Cast(global_step.read_value(), DstT=dtypes.int64)
        told = []
        for total, center in self._sums:
            with get_default_graph().colocate_with(center):
                told.append(total.set_global_step(step))
        return told

    def _meet(self, copies: Sequence[Any], global_step: Any, go_on: Any) -> Operation:
        graph = get_default_graph()
        step = raw.Cast(global_step.read_value(), DstT=dtypes.int64)
        given: list[Any] = []
        taken: list[Any] = []
        for copy, (total, center) in zip(copies, self._sums, strict=True):
            value = copy.read_value()
            with graph.colocate_with(center):
                given.append(total.apply_grad(value, local_step=step))
        with graph.control_dependencies(given):
            if self._is_chief:
                for total, center in self._sums:
                    with graph.colocate_with(center):
                        mean = total.take_grad(self._num_worker)
                        taken.append(center.assign(mean, read_value=False))
                taken.append(self._incremented(global_step, "count_meeting"))
            with graph.control_dependencies(taken), graph.colocate_with(global_step):
                if self._is_chief:
                    tokens = raw.Fill(constant([self._num_worker - 1]), constant(False))
                    met: Any = go_on.enqueue_many([tokens])
                else:
                    met = go_on.dequeue()
        with graph.control_dependencies([met]):
            return self._pull(copies)

    def _pull(self, copies: Sequence[Any]) -> Operation:
        centers = self._centers(copies)
        pairs = zip(copies, centers, strict=True)
        return basic.group(*(v.assign(c.read_value(), read_value=False) for v, c in pairs))

    def get_init_op(self) -> Operation:
        """An op that makes the copies equal to the centers."""
        return self._pull(self._all_copies())

    def make_session_run_hook(self) -> SessionRunHook:
        """A hook that runs `get_init_op` in each new session; the chief's also tells accumulators
        the global step, so that averaging goes on after a restart."""

        def build() -> Operation:
            chief = [self._chief_init_op] if self._is_chief and self._chief_init_op else []
            return basic.group(self.get_init_op(), *chief)

        return _InitHook(build)


class AGNOptimizer(_CopiesOptimizer):
    """Accumulated gradient normalization: the mean of a worker's gradients moves the centers.

    Hermans, Spanakis and Möckel, "Accumulated Gradient Normalization" (ACML 2017), algorithm 1.
    Each worker trains its copies by ``optimizer`` and sums their gradients. Every
    ``communication_period`` steps the sum, divided by that period, is applied to the centers, also
    by ``optimizer``; then the copies become the centers. No worker waits for another.

    Args:
        optimizer: trains the copies and the centers. num_worker: how many workers there are.
        custom_getter: the `AGNCustomGetter` that made the variables.
        communication_period: steps of a worker between two meetings.

    Raises:
        TypeError: if ``optimizer`` is no optimiser or the getter is of another class.
        ValueError: for a variable that the getter did not make.

    >>> getter = tf.contrib.opt.AGNCustomGetter("/cpu:0")
    >>> with tf.variable_scope("", custom_getter=getter):
    ...     w = tf.get_variable("w", initializer=4.0)
    >>> sgd = tf.train.GradientDescentOptimizer(1.0)
    >>> opt = tf.contrib.opt.AGNOptimizer(sgd, 1, getter, communication_period=2)
    >>> train = opt.minimize(w)
    >>> with tf.Session() as sess:
    ...     _ = sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    ...     sess.run(opt.get_init_op(0))
    ...     for _ in range(2):  # to 3, to 2, and then by the mean, 1, from 4
    ...         sess.run(train)
    ...     float(sess.run(w))
    3.0
    """

    def __init__(
        self,
        optimizer: Optimizer,
        num_worker: int,
        custom_getter: AGNCustomGetter,
        communication_period: int = 10,
        use_locking: bool = True,
        name: str = "AGNOptimizer",
    ) -> None:
        wanted = AGNCustomGetter
        super().__init__(optimizer, custom_getter, wanted, communication_period, use_locking, name)
        self._num_worker = num_worker

    def apply_gradients(
        self, grads_and_vars: Iterable[GradVar], global_step: Any = None, name: str | None = None
    ) -> Any:
        """An op that trains the copies, and the centers every ``communication_period``;
        ``global_step`` counts the latter."""
        pairs, copies = self._checked(grads_and_vars)
        sums = self._companions(copies)
        done: list[Any] = [self._train_copies(pairs)]
        grads = [g for g, _ in pairs if g is not None]
        for grad, total in zip(grads, sums, strict=True):
            if isinstance(grad, IndexedSlices):
                done.append(total.scatter_add(grad))
            else:
                done.append(total.assign_add(grad, read_value=False))
        means = self._centers(copies)
        with basic.init_scope():  # slots of the centers are shared, and not of the branch below
            self._opt._create_slots(means)
        return self._every_period(done, lambda: self._meet(copies, sums, global_step))

    def _meet(self, copies: Sequence[Any], sums: Sequence[Any], global_step: Any) -> Operation:
        graph = get_default_graph()
        centers = self._centers(copies)
        means = [
            raw.RealDiv(s.read_value(), raw.Cast(self._period, DstT=s.dtype.base_dtype))
            for s in sums
        ]
        applied = self._opt.apply_gradients(zip(means, centers, strict=True), global_step)
        with graph.control_dependencies([applied]):
            updates = [
                v.assign(c.read_value(), read_value=False)
                for v, c in zip(copies, centers, strict=True)
            ]
            updates += [s.assign(raw.ZerosLike(s.read_value()), read_value=False) for s in sums]
        return basic.group(*updates)

    def get_init_op(self, task_index: int) -> Operation:
        """An op that makes copies equal to the centers, and sums of gradients zero."""
        copies = self._all_copies()
        inits = [
            v.assign(c.read_value(), read_value=False)
            for v, c in zip(copies, self._centers(copies), strict=True)
        ]
        sums = self._companions(copies)
        inits += [s.assign(raw.ZerosLike(s.read_value()), read_value=False) for s in sums]
        return basic.group(*inits)

    def make_session_run_hook(self, is_chief: bool, task_index: int) -> SessionRunHook:
        """A hook that runs `get_init_op` in each new session."""
        return _InitHook(lambda: self.get_init_op(task_index))


class _InitHook(SessionRunHook):
    """Makes a worker's copies ready in each session."""

    def __init__(self, build: Callable[[], Operation]) -> None:
        self._build = build
        self._init: Any = None

    def begin(self) -> None:
        self._init = self._build()

    def after_create_session(self, session: Any, coord: Any) -> None:
        session.run(self._init)
