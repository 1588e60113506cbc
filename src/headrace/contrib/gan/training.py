"""Training the models of ``tf.contrib.gan``: generator and discriminator in turns."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import headrace as tf
from headrace.contrib.gan.namedtuples import CycleGANModel, GANTrainOps, GANTrainSteps

__all__ = [
    "RunTrainOpsHook",
    "gan_train",
    "gan_train_ops",
    "get_joint_train_hooks",
    "get_sequential_train_hooks",
    "get_sequential_train_steps",
]

_ONE_EACH = GANTrainSteps(1, 1)


def _update_ops(
    given: Sequence[Any] | None, generator: str, discriminator: str, check: bool
) -> tuple[list[Any], list[Any]]:
    """The update operations of generator and discriminator.

    Raises:
        ValueError: if some belong to neither and ``check`` says that they must.
    """
    key = tf.GraphKeys.UPDATE_OPS
    wanted = tf.get_collection(key) if given is None else list(given)
    of_generator = tf.get_collection(key, generator)
    of_discriminator = tf.get_collection(key, discriminator)
    unused = set(wanted) - set(of_generator) - set(of_discriminator)
    if check and unused:
        raise ValueError(f"There are unused update ops: {unused}")
    return (
        [op for op in dict.fromkeys(of_generator) if op in wanted],
        [op for op in dict.fromkeys(of_discriminator) if op in wanted],
    )


def _of_cycle(model: Any, loss: Any, options: dict[str, Any]) -> GANTrainOps:
    with tf.name_scope("cyclegan_x2y_train"):
        x2y = gan_train_ops(model.model_x2y, loss.loss_x2y, **options)
    with tf.name_scope("cyclegan_y2x_train"):
        y2x = gan_train_ops(model.model_y2x, loss.loss_y2x, **options)
    return GANTrainOps(
        (x2y.generator_train_op, y2x.generator_train_op),
        (x2y.discriminator_train_op, y2x.discriminator_train_op),
        tf.train.get_or_create_global_step().assign_add(1),
    )


def gan_train_ops(
    model: Any,
    loss: Any,
    generator_optimizer: Any,
    discriminator_optimizer: Any,
    check_for_unused_update_ops: bool = True,
    is_chief: bool = True,
    **kwargs: Any,
) -> GANTrainOps:
    """The operations that train generator and discriminator, each with its own variables.

    Running one gives its loss, a scalar.

    Args:
        loss: what `gan_loss` gives of the model.
        check_for_unused_update_ops: whether updates that belong to neither are an error.
        kwargs: for ``tf.contrib.training.create_train_op``; also ``update_ops``.

    Raises:
        TypeError: if the model, the loss or an optimizer is none.
        ValueError: if there are such updates.
    """
    if isinstance(model, CycleGANModel):
        options = {
            "generator_optimizer": generator_optimizer,
            "discriminator_optimizer": discriminator_optimizer,
            "check_for_unused_update_ops": check_for_unused_update_ops,
            "is_chief": is_chief,
            **kwargs,
        }
        return _of_cycle(model, loss, options)
    for given, name, field in (
        (model, "model", "generator_scope"),
        (loss, "loss", "generator_loss"),
    ):
        if not hasattr(given, field):
            raise TypeError(
                f"`{name}` must be what tf.contrib.gan.gan_{name} gives, got {given!r:.100}."
            )
    counted = tf.train.get_or_create_global_step().assign_add(1)
    updates = _update_ops(
        kwargs.pop("update_ops", None),
        model.generator_scope.name,
        model.discriminator_scope.name,
        check_for_unused_update_ops,
    )
    parts = (
        ("generator", loss.generator_loss, generator_optimizer, model.generator_variables),
        (
            "discriminator",
            loss.discriminator_loss,
            discriminator_optimizer,
            model.discriminator_variables,
        ),
    )
    made = [
        _train_op(*part, own, is_chief, kwargs) for part, own in zip(parts, updates, strict=True)
    ]
    hooks = [hook for _, more in made for hook in more]
    return GANTrainOps(made[0][0], made[1][0], counted, hooks)


def _train_op(
    kind: str,
    total_loss: Any,
    optimizer: Any,
    variables: Any,
    updates: list[Any],
    is_chief: bool,
    options: dict[str, Any],
) -> tuple[Any, list[Any]]:
    """What trains the generator, or the discriminator; and the hooks that it needs."""
    step, hooks = None, []
    if _is_synchronous(optimizer):
        # Such an optimiser counts a step of its own.
        global_step = tf.train.get_or_create_global_step()
        step = tf.get_variable(
            f"dummy_global_step_{kind}",
            shape=[],
            dtype=global_step.dtype.base_dtype,
            initializer=tf.zeros_initializer(),
            trainable=False,
            collections=[tf.GraphKeys.GLOBAL_VARIABLES],
        )
        updates = [*updates, step.assign(global_step)]
        hooks = [optimizer.make_session_run_hook(is_chief)]
    with tf.name_scope(f"{kind}_train"):
        train_op = tf.contrib.training.create_train_op(
            total_loss=total_loss,
            optimizer=optimizer,
            variables_to_train=variables,
            global_step=step,
            update_ops=updates,
            **options,
        )
    return train_op, hooks


def _is_synchronous(optimizer: Any) -> bool:
    kind = getattr(tf.train, "SyncReplicasOptimizer", None)
    return kind is not None and isinstance(optimizer, kind)


def _checked_steps(train_steps: Any) -> GANTrainSteps:
    """The two numbers. Raises TypeError unless there are two, ValueError if one is negative."""
    try:
        steps = GANTrainSteps(*(operator.index(n) for n in train_steps))
    except TypeError:
        raise TypeError(
            f"`train_steps` must be a GANTrainSteps of two integers, got {train_steps!r:.100}."
        ) from None
    if min(steps) < 0:
        raise ValueError(f"`train_steps` must not be negative, got {steps}.")
    return steps


class RunTrainOpsHook(tf.train.SessionRunHook):
    """Runs operations so many times before each step.

    Args:
        train_ops: operations or a list of them; train_steps: how many times.

    >>> inner = tf.Variable(0)
    >>> hook = tf.contrib.gan.RunTrainOpsHook(inner.assign_add(1), train_steps=5)
    >>> read = inner.read_value()
    >>> with tf.train.MonitoredSession(hooks=[hook]) as sess:
    ...     int(sess.run(read)), int(sess.run(read))
    (5, 10)
    """

    def __init__(self, train_ops: Any, train_steps: int) -> None:
        self._train_ops = list(train_ops) if isinstance(train_ops, (list, tuple)) else [train_ops]
        self._train_steps = train_steps

    def before_run(self, run_context: Any) -> None:
        """Run them."""
        for _ in range(self._train_steps):
            run_context.session.run(self._train_ops)


def get_sequential_train_hooks(
    train_steps: GANTrainSteps = _ONE_EACH,
) -> Callable[[GANTrainOps], list[Any]]:
    """A function that gives hooks which train the generator, then the discriminator.

    Raises:
        TypeError: if ``train_steps`` are not two integers.
        ValueError: if one is negative.
    """

    train_steps = _checked_steps(train_steps)

    def hooks(train_ops: GANTrainOps) -> list[Any]:
        return [
            RunTrainOpsHook(train_ops.generator_train_op, train_steps.generator_train_steps),
            RunTrainOpsHook(
                train_ops.discriminator_train_op, train_steps.discriminator_train_steps
            ),
            *train_ops.train_hooks,
        ]

    return hooks


def get_joint_train_hooks(
    train_steps: GANTrainSteps = _ONE_EACH,
) -> Callable[[GANTrainOps], list[Any]]:
    """A function that gives hooks which train both in one step, and then who is to have more.

    Raises:
        TypeError: if ``train_steps`` are not two integers.
        ValueError: if one is negative.
    """
    generator_steps, discriminator_steps = _checked_steps(train_steps)
    both = min(generator_steps, discriminator_steps)

    def hooks(train_ops: GANTrainOps) -> list[Any]:
        generator, discriminator = train_ops.generator_train_op, train_ops.discriminator_train_op
        return [
            RunTrainOpsHook([generator, discriminator], both),
            RunTrainOpsHook(generator, generator_steps - both),
            RunTrainOpsHook(discriminator, discriminator_steps - both),
            *train_ops.train_hooks,
        ]

    return hooks


def gan_train(
    train_ops: GANTrainOps,
    logdir: str | None,
    get_hooks_fn: Callable[[GANTrainOps], list[Any]] | None = None,
    master: str = "",
    is_chief: bool = True,
    scaffold: Any = None,
    hooks: Sequence[Any] | None = None,
    chief_only_hooks: Any = None,
    save_checkpoint_secs: float | None = 600,
    save_summaries_steps: int | None = 100,
    config: Any = None,
) -> Any:
    """Train until a hook stops it, as ``tf.contrib.training.train`` does.

    Args:
        train_ops: what `gan_train_ops` gives.
        get_hooks_fn: makes the hooks that train; by default both in turns, once each.

    Returns:
        What the last step counted, a scalar.

    Raises:
        ValueError: if there is no ``logdir`` where checkpoints or summaries are asked for.
    """
    own = (get_hooks_fn or get_sequential_train_hooks())(train_ops)
    return tf.contrib.training.train(
        train_ops.global_step_inc_op,
        logdir,
        master=master,
        is_chief=is_chief,
        scaffold=scaffold,
        hooks=[*(hooks or ()), *own],
        chief_only_hooks=chief_only_hooks,
        save_checkpoint_secs=save_checkpoint_secs,
        save_summaries_steps=save_summaries_steps,
        config=config,
    )


def get_sequential_train_steps(
    train_steps: GANTrainSteps = _ONE_EACH,
) -> Callable[[Any, GANTrainOps, Any, dict[str, Any]], tuple[Any, Any]]:
    """A step function for ``tf.contrib.slim.learning.train``; gives the summed losses, a scalar.

    Raises:
        TypeError: if ``train_steps`` are not two integers.
        ValueError: if one is negative.
    """

    train_steps = _checked_steps(train_steps)

    def step(
        sess: Any, train_ops: GANTrainOps, global_step: Any, train_step_kwargs: dict[str, Any]
    ) -> tuple[Any, Any]:
        options = dict(train_step_kwargs)
        should_stop = options.pop("should_stop", None)
        total = 0.0
        for op, count in (
            (train_ops.generator_train_op, train_steps.generator_train_steps),
            (train_ops.discriminator_train_op, train_steps.discriminator_train_steps),
        ):
            for _ in range(count):
                loss, _ = tf.contrib.slim.learning.train_step(sess, op, global_step, options)
                total += loss
        sess.run(train_ops.global_step_inc_op)
        return total, False if should_stop is None else sess.run(should_stop)

    return step
