"""``tf.contrib.opt``: optimisers for asynchronous training, around those of ``tf.train``.

Other optimisers of TensorFlow's ``tf.contrib.opt`` are not here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from headrace.contrib.opt_averaging import (
    AGNOptimizer,
    ElasticAverageOptimizer,
    ModelAverageOptimizer,
)
from headrace.contrib.opt_copies import (
    AGNCustomGetter,
    ElasticAverageCustomGetter,
    ModelAverageCustomGetter,
)
from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.array.indexed_slices import IndexedSlices
from headrace.ops.control.flow_api import cond
from headrace.ops.core.build import constant, convert_to_tensor, raw
from headrace.ops.state.variable_scope import get_variable
from headrace.summary import scalar
from headrace.train.global_step import get_global_step
from headrace.train.optimizer import GradVar, Optimizer
from headrace.train.wrapped_optimizer import WrappedOptimizer

__all__ = [
    "AGNCustomGetter",
    "AGNOptimizer",
    "DelayCompensatedGradientDescentOptimizer",
    "DropStaleGradientOptimizer",
    "ElasticAverageCustomGetter",
    "ElasticAverageOptimizer",
    "GuardedOptimizer",
    "ModelAverageCustomGetter",
    "ModelAverageOptimizer",
    "StalenessOptimizer",
]


class StalenessOptimizer(WrappedOptimizer):
    """Tells how stale each gradient is, and drops those that are too stale.

    The *staleness* of a gradient is how many updates others have made between the moment when its
    step read the global step, which it does as it reads the variables, and the moment when it is
    applied. A step that drops its gradients does not count up the global step.

    Args:
        opt: the optimiser that applies gradients.
        max_delay: the largest staleness that is applied; None for no bound.

    Attributes:
        local_step: the global step as the gradients' step has read it: an int64 scalar.
        staleness: of the gradients of a step: an int64 scalar. Also a summary,
            ``gradient_staleness``.
        is_applied: whether they were applied: a bool scalar.

    Raises:
        TypeError: if ``opt`` is no optimiser.
        ValueError: if ``max_delay`` is negative; from `apply_gradients` without a global step.

    >>> x = tf.Variable(4.0)
    >>> step = tf.train.get_or_create_global_step()
    >>> opt = tf.contrib.opt.StalenessOptimizer(tf.train.GradientDescentOptimizer(0.25), 3)
    >>> train = opt.minimize(x * x, global_step=step)
    >>> with tf.Session() as sess:
    ...     sess.run(tf.global_variables_initializer())
    ...     _, staleness = sess.run([train, opt.staleness])
    ...     int(staleness), float(sess.run(x))
    (0, 2.0)
    """

    def __init__(
        self,
        opt: Optimizer,
        max_delay: int | None = None,
        use_locking: bool = False,
        name: str = "Staleness",
    ) -> None:
        super().__init__(opt, use_locking, name)
        if max_delay is not None and max_delay < 0:
            raise ValueError(f"max_delay must not be negative: {max_delay}")
        self._max_delay = max_delay
        self.local_step: Any = None
        self.staleness: Any = None
        self.is_applied: Any = None

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[GradVar]:
        """Pairs (gradient, variable) of ``opt``; the step they begin with is noted.

        Raises:
            ValueError: if the graph has no global step.
        """
        step = get_global_step()
        if step is None:
            raise ValueError(
                "Staleness is counted in global steps: call "
                "tf.train.get_or_create_global_step() first."
            )
        self.local_step = raw.Cast(step.value(), DstT=dtypes.int64)
        return super().compute_gradients(*args, **kwargs)

    def apply_gradients(
        self, grads_and_vars: Iterable[GradVar], global_step: Any = None, name: str | None = None
    ) -> Any:
        """An op that applies the gradients, unless they are too stale."""
        if global_step is None or self.local_step is None:
            raise ValueError(
                f"{type(self).__name__} needs global_step, and gradients of its own "
                "compute_gradients."
            )
        graph = get_default_graph()
        pairs = list(grads_and_vars)
        with (
            graph.control_dependencies(_ends(pairs)),
            graph.colocate_with(global_step),
        ):
            now = raw.Cast(global_step.read_value(), DstT=dtypes.int64)
            self.staleness = raw.Sub(now, self.local_step)
        scalar("gradient_staleness", raw.Cast(self.staleness, DstT=dtypes.float32))

        def apply() -> Operation:
            return self._opt.apply_gradients(pairs, global_step, name)

        if self._max_delay is None:
            self.is_applied = constant(True)
            with graph.control_dependencies([self.staleness]):
                return apply()
        limit = convert_to_tensor(self._max_delay, dtypes.int64)
        self.is_applied = _applied_if(raw.LessEqual(self.staleness, limit), apply)
        return self.is_applied.op


class DropStaleGradientOptimizer(StalenessOptimizer):
    """Drops gradients whose staleness is larger than ``staleness``, and counts them.

    The variable ``stale_counter`` has their number; its share of all steps is a summary.

    Args:
        opt: the optimiser that applies gradients; ``staleness``: the largest that is applied.

    >>> x = tf.Variable(4.0)
    >>> step = tf.train.get_or_create_global_step()
    >>> sgd = tf.train.GradientDescentOptimizer(0.25)
    >>> train = tf.contrib.opt.DropStaleGradientOptimizer(sgd, 0).minimize(x * x, step)
    >>> with tf.Session() as sess:
    ...     sess.run(tf.global_variables_initializer())
    ...     float(sess.run(train))  # dropped so far
    0.0
    """

    def __init__(
        self,
        opt: Optimizer,
        staleness: int,
        use_locking: bool = False,
        name: str = "DropStaleGradient",
    ) -> None:
        super().__init__(opt, staleness, use_locking, name)

    def apply_gradients(
        self, grads_and_vars: Iterable[GradVar], global_step: Any = None, name: str | None = None
    ) -> Any:
        """How many gradients have been dropped, after this one was applied or dropped: a float32
        scalar."""
        super().apply_gradients(grads_and_vars, global_step, name)
        graph = get_default_graph()
        with graph.colocate_with(global_step):
            counter = get_variable("stale_counter", initializer=0.0, trainable=False)
            dropped = raw.Cast(raw.LogicalNot(self.is_applied), DstT=dtypes.float32)
            count = counter.assign_add(dropped)
            steps = raw.Cast(global_step.read_value(), DstT=dtypes.float32)
            share = raw.RealDiv(count, raw.AddV2(steps, constant(1.0)))
        scalar("Gradient staleness percentage", share)
        return count


class GuardedOptimizer(WrappedOptimizer):
    """Looks for gradients that are infinite or no numbers before anything is applied.

    Inside a `tf.train.SyncReplicasOptimizer` or `tf.train.AllReduceOptimizer` it looks at the
    averages, and all workers do the same, also where each has a part of the variables.

    Args:
        opt: the optimiser that applies gradients.
        nan_gradients: ``"skip"`` leaves all variables as they are, counts the global step and goes
            on; ``"stop"`` raises InvalidArgumentError that names the variable; ``"report"``
            applies them all the same. Each writes the summary ``nan_gradients`` (1 if there are
            any), and `has_nan` is the bool scalar.

    Raises:
        ValueError: for another word; for "skip" and "stop" around an optimiser whose workers wait
            for each other's gradients.

    >>> x = tf.Variable(4.0)
    >>> sgd = tf.train.GradientDescentOptimizer(0.25)
    >>> train = tf.contrib.opt.GuardedOptimizer(sgd, "skip").minimize(x * float("nan"))
    >>> with tf.Session() as sess:
    ...     sess.run(tf.global_variables_initializer())
    ...     sess.run(train)
    ...     float(sess.run(x))
    4.0
    """

    def __init__(
        self,
        opt: Optimizer,
        nan_gradients: str = "stop",
        use_locking: bool = False,
        name: str = "Guarded",
    ) -> None:
        super().__init__(opt, use_locking, name)
        if nan_gradients not in ("skip", "stop", "report"):
            raise ValueError(
                f"nan_gradients must be 'skip', 'stop' or 'report', not {nan_gradients!r}"
            )
        if nan_gradients != "report" and opt.waits_for_gradients:
            kind = type(opt).__name__
            raise ValueError(
                f"The workers of a {kind} wait for each other's gradients, so none may leave its "
                f"own out. Put the guard inside: {kind}(GuardedOptimizer(opt, ...), ...)."
            )
        self._action = nan_gradients
        self._agree: Callable[[Tensor], Tensor] | None = None
        self.has_nan: Any = None

    def use_agreement(self, agree: Callable[[Tensor], Tensor]) -> None:
        """See `WrappedOptimizer.use_agreement`."""
        self._agree = agree
        super().use_agreement(agree)

    def apply_gradients(
        self, grads_and_vars: Iterable[GradVar], global_step: Any = None, name: str | None = None
    ) -> Any:
        """An op that applies the gradients, after a look at all of them."""
        graph = get_default_graph()
        pairs = [(g, v) for g, v in grads_and_vars]
        finite = [_is_finite(g) for g, _ in pairs if g is not None]
        all_finite = raw.All(raw.Pack(finite), [0]) if finite else constant(True)
        if self._agree is not None:
            all_finite = self._agree(all_finite)
        self.has_nan = raw.LogicalNot(all_finite)
        scalar("nan_gradients", raw.Cast(self.has_nan, DstT=dtypes.float32))
        if self._action == "skip":
            done = _applied_if(all_finite, lambda: self._opt.apply_gradients(pairs))
            if global_step is None:
                return done.op
            # Skipped steps count: replicas tell by the step which gradients are stale.
            with graph.control_dependencies([done]), graph.colocate_with(global_step):
                return global_step.assign_add(1, read_value=False)
        if self._action == "stop":
            pairs = _checked(pairs, all_finite)
        return self._opt.apply_gradients(pairs, global_step, name)


class DelayCompensatedGradientDescentOptimizer(Optimizer):
    """Gradient descent that corrects gradients for what has changed since they were computed.

    Zheng et al., "Asynchronous Stochastic Gradient Descent with Delay Compensation" (ICML 2017),
    equation 10: a gradient ``g``, computed at ``w_bak`` and applied at ``w``, counts as
    ``g + variance_parameter * g * g * (w - w_bak)``. For each worker there is a slot
    ``shadow_<index>`` with its ``w_bak``: the values after its last update, where it reads next.

    Args:
        learning_rate: of gradient descent; ``variance_parameter``: lambda of the paper.
        num_workers: how many workers there are.

    Raises:
        ValueError: if ``num_workers`` is not positive, or the index of a worker too large.

    >>> x = tf.Variable(4.0)
    >>> opt = tf.contrib.opt.DelayCompensatedGradientDescentOptimizer(0.25, 1.0, num_workers=2)
    >>> train = [opt.minimize(3.0 * x, worker_index=i) for i in range(2)]
    >>> with tf.Session() as sess:
    ...     sess.run(tf.global_variables_initializer())
    ...     sess.run(train[0])  # 4 - 0.25 * 3
    ...     sess.run(train[1])  # 3.25 - 0.25 * (3 + 9 * (3.25 - 4))
    ...     float(sess.run(x))
    4.1875
    """

    def __init__(
        self,
        learning_rate: Any,
        variance_parameter: Any,
        num_workers: int = 1,
        use_locking: bool = False,
        name: str = "DelayCompensatedGradientDescent",
    ) -> None:
        super().__init__(use_locking, name)
        if num_workers <= 0:
            raise ValueError(f"num_workers must be a positive value, not {num_workers}.")
        self._learning_rate = learning_rate
        self._variance_parameter = variance_parameter
        self._num_workers = num_workers
        self._worker_index = 0

    def minimize(self, *args: Any, worker_index: int = 0, **kwargs: Any) -> Operation:
        """See `tf.train.Optimizer.minimize`; ``worker_index``: which worker runs the op."""
        if not 0 <= worker_index < self._num_workers:
            raise ValueError(
                f"worker_index must be at least 0 and below num_workers={self._num_workers}, "
                f"not {worker_index}"
            )
        self._worker_index = worker_index
        return super().minimize(*args, **kwargs)

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            for index in range(self._num_workers):
                name = f"shadow_{index}"
                self._get_or_make_slot(var, var.initialized_value, name, f"{self._name}/{name}")

    def _prepare(self) -> None:
        self._rate = self._tensor(self._learning_rate, "learning_rate")
        self._variance = self._tensor(self._variance_parameter, "variance_parameter")

    def _shadow(self, var: Any) -> Any:
        return self.get_slot(var, f"shadow_{self._worker_index}")

    def _delta(self, var: Any, grad: Tensor, value: Tensor, shadow: Tensor) -> Tensor:
        rate, variance = self._hyper(self._rate, "lr", var), self._hyper(self._variance, "v", var)
        curvature = raw.Mul(variance, raw.Mul(grad, grad))
        corrected = raw.AddV2(grad, raw.Mul(curvature, raw.Sub(value, shadow)))
        delta: Tensor = raw.Mul(rate, corrected)
        return delta

    def _resource_apply_dense(self, grad: Tensor, var: Any) -> Any:
        shadow = self._shadow(var)
        delta = self._delta(var, grad, var.read_value(), shadow.read_value())
        # Subtracted, not assigned: no update that others make meanwhile is lost.
        with get_default_graph().control_dependencies([var.assign_sub(delta, read_value=False)]):
            return shadow.assign(var.read_value(), read_value=False)

    def _resource_apply_sparse(self, grad: Tensor, var: Any, indices: Tensor) -> Any:
        shadow = self._shadow(var)
        delta = self._delta(var, grad, var.sparse_read(indices), shadow.sparse_read(indices))
        done = var.scatter_sub(IndexedSlices(delta, indices))
        with get_default_graph().control_dependencies([done]):
            rows = IndexedSlices(var.sparse_read(indices), indices)
            return shadow.scatter_update(rows)


def _ends(pairs: Sequence[GradVar]) -> list[Any]:
    """What has run when the gradients are there."""
    return [getattr(g, "values", g) for g, _ in pairs if g is not None]


def _applied_if(condition: Tensor, apply: Callable[[], Any]) -> Any:
    """Whether ``apply()`` has run: a bool scalar."""

    def applied() -> Tensor:
        with get_default_graph().control_dependencies([apply()]):
            return raw.Identity(constant(True))

    return raw.Identity(cond(condition, applied, lambda: constant(False)))


def _is_finite(grad: Any) -> Tensor:
    values = grad.values if isinstance(grad, IndexedSlices) else grad
    finite: Tensor = raw.All(raw.Reshape(raw.IsFinite(values), [-1]), [0])
    return finite


def _checked(pairs: Sequence[GradVar], all_finite: Tensor) -> list[GradVar]:
    """The gradients, once all of them were found finite: one that is not stops every update."""
    # After what was agreed upon: others wait for what this worker says, also if it stops.
    with get_default_graph().control_dependencies([all_finite]):
        checks: list[Any] = [
            raw.CheckNumerics(
                getattr(g, "values", g), message=f"Gradient of {v.name} is not finite"
            )
            for g, v in pairs
            if g is not None
        ]
    with get_default_graph().control_dependencies(checks):
        elsewhere = "A gradient that another worker applies is not finite"
        checks.append(raw.Assert(all_finite, [elsewhere]))
    with get_default_graph().control_dependencies(checks):
        return [(_after(g), v) for g, v in pairs]


def _after(grad: Any) -> Any:
    if isinstance(grad, IndexedSlices):
        return IndexedSlices(raw.Identity(grad.values), grad.indices, grad.dense_shape)
    return None if grad is None else raw.Identity(grad)
