"""Training ops and loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headrace import logging, summary
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.tensor import Tensor
from headrace.ops.array.indexed_slices import IndexedSlices
from headrace.ops.control.basic import no_op
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.math import clip
from headrace.ops.math.cast import cast
from headrace.ops.state.scopes_api import control_dependencies, name_scope
from headrace.train.global_step import get_or_create_global_step
from headrace.train.monitored_session import MonitoredTrainingSession
from headrace.train.optimizer import GradVar, Optimizer

#: ``global_step`` of a function: that of the graph.
USE_GLOBAL_STEP = 0


def add_gradients_summaries(grads_and_vars: Sequence[GradVar]) -> list[Any]:
    """A histogram and the norm of each gradient, of any shape: scalar strings.

    Raises:
        TypeError: if they are no pairs of a gradient and a variable, or a gradient is of no real
            type.
    """
    made = []
    for grad, var in grads_and_vars:
        if grad is None:
            logging.info("Var %s has no gradient", var.op.name)
            continue
        values = grad.values if isinstance(grad, IndexedSlices) else grad
        made.append(summary.histogram(f"{var.op.name}_gradient", values))
        made.append(summary.scalar(f"{var.op.name}_gradient_norm", clip.global_norm([values])))
    return made


def clip_gradient_norms(gradients_to_variables: Sequence[GradVar], max_norm: Any) -> list[GradVar]:
    """Each gradient with a norm of ``max_norm`` at most; shapes stay, None stays None.

    Raises:
        TypeError: if they are no pairs of a gradient and a variable, or ``max_norm`` is no number.
    """

    def clipped(grad: Any) -> Any:
        if isinstance(grad, IndexedSlices):
            values = clip.clip_by_norm(grad.values, max_norm)
            return IndexedSlices(values, grad.indices, grad.dense_shape)
        return None if grad is None else clip.clip_by_norm(grad, max_norm)

    return [(clipped(grad), var) for grad, var in gradients_to_variables]


def clip_gradient_norms_fn(max_norm: Any) -> Callable[[Sequence[GradVar]], list[GradVar]]:
    """A function for ``transform_grads_fn`` of `create_train_op`: `clip_gradient_norms`.

    Each gradient keeps its shape.

    Raises:
        TypeError: when it is called, if ``max_norm`` is no number.
    """
    return lambda gradients: clip_gradient_norms(gradients, max_norm)


def multiply_gradients(
    grads_and_vars: Any, gradient_multipliers: Mapping[Any, Any]
) -> list[GradVar]:
    """Gradients times factors, by variable or by name of its op.

    Factors are scalars, or of a shape that can be repeated to that of the gradient.

    Raises:
        ValueError: if an argument is of another kind or empty, such a gradient is None, or a factor
            does not fit.
    """
    if not isinstance(grads_and_vars, list):
        raise ValueError("`grads_and_vars` must be a list.")
    if not gradient_multipliers:
        raise ValueError("`gradient_multipliers` is empty.")
    if not isinstance(gradient_multipliers, Mapping):
        raise ValueError("`gradient_multipliers` must be a dict.")
    found = []
    for grad, var in grads_and_vars:
        key = var if var in gradient_multipliers else var.op.name
        if key in gradient_multipliers:
            if grad is None:
                raise ValueError("Requested multiple of `None` gradient.")
            factor = cast(convert_to_tensor(gradient_multipliers[key]), grad.dtype)
            if isinstance(grad, IndexedSlices):
                grad = IndexedSlices(grad.values * factor, grad.indices, grad.dense_shape)
            else:
                grad = grad * factor
        found.append((grad, var))
    return found


def create_train_op(
    total_loss: Any,
    optimizer: Optimizer,
    global_step: Any = USE_GLOBAL_STEP,
    update_ops: Any = None,
    variables_to_train: Any = None,
    transform_grads_fn: Callable[[Any], Any] | None = None,
    summarize_gradients: bool = False,
    gate_gradients: int = Optimizer.GATE_OP,
    aggregation_method: int | None = None,
    colocate_gradients_with_ops: bool = False,
    check_numerics: bool = True,
) -> Tensor:
    """The loss, as a tensor of its shape that makes a step of training when it is run.

    Args:
        global_step: counts the steps; None counts none; by default that of the graph.
        update_ops: ops to run before; by default the collection ``UPDATE_OPS``.
        variables_to_train: by default all trainable variables.
        transform_grads_fn: function of the list of gradients and variables.
        check_numerics: fail where the loss is no finite number.

    Raises:
        TypeError: if the loss is no tensor, or ``optimizer`` no optimizer.
        ValueError: if a variable to train is not trainable.
        InvalidArgumentError: when run with ``check_numerics``, if the loss is not finite.
    """
    if not hasattr(optimizer, "compute_gradients"):
        raise TypeError(
            f"optimizer must be one such as tf.train.AdamOptimizer(), got {optimizer!r:.100}."
        )
    graph = get_default_graph()
    step = get_or_create_global_step() if global_step is USE_GLOBAL_STEP else global_step
    collected = graph.get_collection(GraphKeys.UPDATE_OPS)
    updates = list(dict.fromkeys(collected if update_ops is None else update_ops))
    if not set(collected) <= set(updates):
        logging.warning(
            "update_ops in create_train_op does not contain all the update_ops in "
            "GraphKeys.UPDATE_OPS"
        )
    if updates:
        with control_dependencies(updates):
            barrier = no_op(name="update_barrier")
        with control_dependencies([barrier]):
            total_loss = raw.Identity(total_loss)
    trainable = graph.get_collection(GraphKeys.TRAINABLE_VARIABLES)
    if variables_to_train is None:
        variables_to_train = trainable
    for var in variables_to_train:
        if all(var is not v for v in trainable):
            raise ValueError(f"{var!r} is not a trainable variable.")
    gradients = optimizer.compute_gradients(
        total_loss,
        variables_to_train,
        gate_gradients=gate_gradients,
        aggregation_method=aggregation_method,
        colocate_gradients_with_ops=colocate_gradients_with_ops,
    )
    if transform_grads_fn is not None:
        gradients = transform_grads_fn(gradients)
    if summarize_gradients:
        with name_scope("summarize_grads"):
            add_gradients_summaries(gradients)
    applied = optimizer.apply_gradients(gradients, global_step=step)
    with name_scope("train_op"):
        if check_numerics:
            total_loss = raw.CheckNumerics(total_loss, message="LossTensor is inf or nan")
        with control_dependencies([applied]):
            train_op: Tensor = raw.Identity(total_loss, name="control_dependency")
    graph.add_to_collection(GraphKeys.TRAIN_OP, train_op)
    return train_op


def train(
    train_op: Any,
    logdir: str | None,
    master: str = "",
    is_chief: bool = True,
    scaffold: Any = None,
    hooks: Any = None,
    chief_only_hooks: Any = None,
    save_checkpoint_secs: float | None = 600,
    save_summaries_steps: int | None = 100,
    config: Any = None,
    max_wait_secs: int = 7200,
    run_metadata: Any = None,
) -> Any:
    """Run ``train_op`` until a hook asks to stop; the last loss, an array of the shape of the op.

    Without a hook that stops it, it goes on until the input ends.

    Raises:
        TypeError: if ``train_op`` cannot be fetched.
        ValueError: if there is no ``logdir`` where checkpoints or summaries are asked for.
    """
    if logdir is None and is_chief and (save_summaries_steps or save_checkpoint_secs):
        raise ValueError(
            "logdir cannot be None when save_summaries_steps or save_checkpoint_secs is given"
        )
    with MonitoredTrainingSession(
        master=master,
        is_chief=is_chief,
        checkpoint_dir=logdir,
        scaffold=scaffold,
        hooks=hooks,
        chief_only_hooks=chief_only_hooks,
        save_checkpoint_secs=save_checkpoint_secs,
        save_summaries_steps=save_summaries_steps,
        config=config,
        max_wait_secs=max_wait_secs,
    ) as session:
        loss = None
        while not session.should_stop():
            loss = session.run(train_op, run_metadata=run_metadata)
    return loss


__all__ = [
    "add_gradients_summaries",
    "clip_gradient_norms",
    "clip_gradient_norms_fn",
    "create_train_op",
    "multiply_gradients",
    "train",
]
