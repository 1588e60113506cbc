"""A hook that saves where the input of an Estimator is."""

from __future__ import annotations

from typing import Any

from headrace.data.saveable import IteratorSaveable
from headrace.graph.graph import get_default_graph
from headrace.train.checkpoint_state import latest_checkpoint
from headrace.train.saver import Saver
from headrace.train.saving_hooks import CheckpointSaverHook
from headrace.train.session_run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)

#: The collection of all iterators of a graph, as TensorFlow names it.
ITERATORS = "iterators"
#: The file that names the latest checkpoint, beside that of the model's.
_LATEST = "checkpoint_input"


class _InputSaver(Saver):
    """Keeps its own list of checkpoints, so that the model's stays as it is."""

    def save(self, sess: Any, save_path: Any, *args: Any, **options: Any) -> Any:
        options.update(latest_filename=_LATEST, write_meta_graph=False)
        return super().save(sess, save_path, *args, **options)


class CheckpointInputPipelineHook(SessionRunHook):
    """Saves where all iterators of a graph are, when the model is saved, and goes on from there.

    The checkpoints ``input.ckpt-<step>`` are beside the model's. Without the hook, training that
    goes on begins its input anew.

    Args:
        estimator: whose ``model_dir``, and whose ``config`` says how often to save.

    >>> import types
    >>> import headrace as tf
    >>> config = types.SimpleNamespace(save_checkpoints_secs=None, save_checkpoints_steps=2)
    >>> estimator = types.SimpleNamespace(model_dir="inputs", config=config)
    >>> element = tf.data.Dataset.range(9).make_one_shot_iterator().get_next()
    >>> step = tf.train.get_or_create_global_step()
    >>> train = tf.group(step.assign_add(1), element)
    >>> hook = tf.data.experimental.CheckpointInputPipelineHook(estimator)
    >>> with tf.train.SingularMonitoredSession(hooks=[hook]) as sess:
    ...     for _ in range(3):
    ...         sess.run(train)
    >>> tf.train.latest_checkpoint("inputs", "checkpoint_input")
    'inputs/input.ckpt-3'
    """

    def __init__(self, estimator: Any) -> None:
        config = estimator.config
        self._folder = estimator.model_dir
        self._how_often = config.save_checkpoints_secs, config.save_checkpoints_steps
        self._hook: CheckpointSaverHook | None = None
        self._saver: _InputSaver | None = None
        self._is_first = True

    def begin(self) -> None:
        """Make what saves the iterators of the graph.

        Raises:
            ValueError: if there is none.
        """
        iterators = [
            resource
            for resource in get_default_graph().get_collection(ITERATORS)
            if not resource.op.type.startswith("IteratorFromStringHandle")  # it is another's
        ]
        if not iterators:
            raise ValueError("CheckpointInputPipelineHook: the graph has no iterator to save.")
        self._saver = _InputSaver([IteratorSaveable(resource) for resource in iterators])
        seconds, steps = self._how_often
        self._hook = CheckpointSaverHook(
            self._folder, seconds, steps, self._saver, checkpoint_basename="input.ckpt"
        )
        self._hook.begin()

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Restoring waits for the first step: only then the iterators have been initialised."""
        self._is_first = True

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Go on where the last checkpoint was, or save the beginning."""
        assert self._hook is not None
        assert self._saver is not None
        if self._is_first:
            self._is_first = False
            latest = latest_checkpoint(self._folder, _LATEST)
            if latest is None:
                self._hook.after_create_session(run_context.session, None)
            else:
                self._saver.restore(run_context.session, latest)
        return self._hook.before_run(run_context)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Save if it is time to."""
        assert self._hook is not None
        self._hook.after_run(run_context, run_values)

    def end(self, session: Any) -> None:
        """Save at the end."""
        assert self._hook is not None
        self._hook.end(session)


__all__ = ["CheckpointInputPipelineHook"]
