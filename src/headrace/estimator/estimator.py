"""Estimator: one object that trains, evaluates and predicts with what a ``model_fn`` builds."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from headrace import logging
from headrace.estimator import replicas
from headrace.estimator.arguments import (
    check_arguments,
    check_input_fn,
    check_positive,
    checked_hooks,
    checked_listeners,
    device_function,
    with_directory,
)
from headrace.estimator.callables import argument_names, described
from headrace.estimator.checkpoints import required_checkpoint
from headrace.estimator.endless import EndlessInputHook, warn_if_endless
from headrace.estimator.export.saving import add_meta_graph, export
from headrace.estimator.input_results import Inputs, inputs_of
from headrace.estimator.loops import evaluate_spec, predict_spec, train_spec
from headrace.estimator.mode_keys import ModeKeys
from headrace.estimator.placement import TaskType
from headrace.estimator.run_config import RunConfig
from headrace.estimator.shared_trainings import SharedTraining
from headrace.estimator.spec import EstimatorSpec
from headrace.estimator.warm_start import warm_start_settings
from headrace.files.paths import as_path
from headrace.files.system import is_directory
from headrace.graph.graph import Graph, get_default_graph
from headrace.ops.embeddings.read_only import read_only
from headrace.ops.state import share
from headrace.ops.state.scopes_api import device, set_random_seed
from headrace.train.checkpoint_state import latest_checkpoint
from headrace.train.checkpoint_utils import list_variables, load_variable
from headrace.train.evaluation import StopAfterNEvalsHook
from headrace.train.global_step import create_global_step
from headrace.train.saving_hooks import CheckpointSaverListener
from headrace.train.session_run_hook import SessionRunHook
from headrace.train.warm_starting_util import warm_start

__all__ = ["Estimator"]


class Estimator:
    """Trains, evaluates and predicts with the model that ``model_fn`` builds.

    Checkpoints and summaries go to ``model_dir``: training goes on from the latest checkpoint
    there, evaluation and prediction use it.

    Args:
        model_fn: ``model_fn(features, labels, mode, params, config)`` returns an EstimatorSpec;
            arguments other than ``features`` may be missing.
        model_dir: a directory; by default that of ``config``, or a temporary one.
        config: a `tf.estimator.RunConfig`.
        params: hyperparameters, handed to ``model_fn`` and input functions that take ``params``.
        warm_start_from: a checkpoint, a directory, a SavedModel or `WarmStartSettings`: where
            variables begin while ``model_dir`` has no checkpoint.

    Raises:
        ValueError: if ``model_fn`` takes other arguments, ``config`` has another directory, or a
            subclass replaces a method of Estimator.

    >>> def model_fn(features, labels, mode):
    ...     step = tf.train.get_global_step()
    ...     return tf.estimator.EstimatorSpec(
    ...         mode, predictions=2 * features, loss=tf.reduce_sum(features),
    ...         train_op=step.assign_add(1)
    ...     )
    >>> estimator = tf.estimator.Estimator(model_fn, "doubled")
    >>> numbers = lambda: tf.data.Dataset.range(4).batch(2)
    >>> list(map(int, estimator.predict(numbers)))
    [0, 2, 4, 6]
    """

    def __init__(
        self,
        model_fn: Callable[..., EstimatorSpec],
        model_dir: Any = None,
        config: RunConfig | None = None,
        params: Any = None,
        warm_start_from: Any = None,
    ) -> None:
        self._assert_members_are_not_overridden()
        self._config = with_directory(config, model_dir)
        if model_fn is None:
            raise ValueError("model_fn must be provided to Estimator.")
        check_arguments(model_fn, params)
        self._model_fn = model_fn
        self._params = copy.deepcopy(params or {})
        self._warm_start_settings = warm_start_settings(warm_start_from)
        self._device_fn = self._config.device_fn or device_function(self._config)
        logging.info("Using config: %s", self._config.in_one_line())

    def _assert_members_are_not_overridden(self) -> None:
        mine = {n for n in vars(Estimator) if not n.startswith("__")}
        free = {"model_fn", "_assert_members_are_not_overridden", "_call_model_fn"}
        for kind in type(self).__mro__:
            if kind is Estimator:
                return
            if kind.__module__.startswith("headrace."):
                continue
            replaced = sorted((mine - free) & vars(kind).keys())
            if replaced:
                raise ValueError(
                    "Subclasses of Estimator cannot override members of Estimator. "
                    f"{kind} does override {replaced}"
                )

    @property
    def model_dir(self) -> str:
        """Where checkpoints and summaries are."""
        return str(self._config.model_dir)

    @property
    def config(self) -> RunConfig:
        """How it runs."""
        return copy.deepcopy(self._config)

    @property
    def params(self) -> Any:
        """The hyperparameters, a copy."""
        return copy.deepcopy(self._params)

    @property
    def model_fn(self) -> Callable[..., EstimatorSpec]:
        """``model_fn(features, labels, mode, config)``, bound to the hyperparameters."""

        def public_model_fn(
            features: Any, labels: Any, mode: str, config: RunConfig
        ) -> EstimatorSpec:
            return self._call_model_fn(features, labels, mode, config)

        return public_model_fn

    def get_variable_value(self, name: str) -> Any:
        """The value of a variable in the latest checkpoint, an array.

        Raises:
            ValueError: if there is no checkpoint. NotFoundError: if it has no such variable.
        """
        return load_variable(required_checkpoint(self.model_dir), name)

    def get_variable_names(self) -> list[str]:
        """The names of all variables in the latest checkpoint.

        Raises:
            ValueError: if there is none.
        """
        return [name for name, _ in list_variables(required_checkpoint(self.model_dir))]

    def latest_checkpoint(self) -> str | None:
        """The path of the latest checkpoint, or None."""
        return latest_checkpoint(self.model_dir)

    def eval_dir(self, name: str | None = None) -> str:
        """Where the metrics of an evaluation are written: ``eval``, or ``eval_<name>``."""
        return os.path.join(self.model_dir, f"eval_{name}" if name else "eval")

    # -- train -------------------------------------------------------------------------------

    def train(
        self,
        input_fn: Callable[..., Any],
        hooks: Iterable[SessionRunHook] | None = None,
        steps: int | None = None,
        max_steps: int | None = None,
        saving_listeners: Iterable[CheckpointSaverListener] | None = None,
    ) -> Estimator:
        """Train from the latest checkpoint on, until the input ends or so many steps are made.

        Args:
            input_fn: gives a `tf.data.Dataset` of pairs (features, labels), or such a pair of
                tensors (or dictionaries of them).
            hooks: SessionRunHooks of the loop.
            steps: so many steps; ``max_steps``: up to this global step. At most one.
            saving_listeners: CheckpointSaverListeners.

        Returns:
            The Estimator.

        Raises:
            ValueError: for impossible steps, and if this task is no one to train.
            TypeError: if a hook or listener is none. RuntimeError: if this task has no server.
        """
        if self._config.task_type in (TaskType.EVALUATOR, TaskType.PS):
            is_server = self._config.task_type == TaskType.PS
            spread = " Or let `headrace launch` spread it over the workers: with --sync."
            raise ValueError(
                "Train has been called wrong configuration. Please use "
                "tf.estimator.train_and_evaluate which calls proper API according to given "
                f"configuration: this task is {self._config.task_type}."
                f"{spread if is_server else ''}"
            )
        if steps is not None and max_steps is not None:
            raise ValueError("Can not provide both steps and max_steps.")
        check_positive("steps", steps)
        check_positive("max_steps", max_steps)
        training = SharedTraining()
        if training.is_over(max_steps, self.model_dir):
            return self
        all_hooks = checked_hooks(hooks)
        if steps is not None or max_steps is not None:
            all_hooks.append(training.stop_hook(steps, max_steps))
        listeners = checked_listeners(saving_listeners)
        loss = self._train_model(input_fn, all_hooks, listeners, training)
        training.end()
        logging.info("Loss for final step: %s.", loss)
        return self

    def _train_model(
        self,
        input_fn: Callable[..., Any],
        hooks: list[SessionRunHook],
        listeners: list[CheckpointSaverListener],
        training: SharedTraining,
    ) -> Any:
        strategy = replicas.strategy_of(self._config, ModeKeys.TRAIN)
        config = replicas.config_for(self._config, strategy)
        place = self._device_fn if strategy is None else self._config.device_fn
        with Graph().as_default() as graph, graph.device(place), _scope(strategy):
            training.begin(graph)
            inputs, spec = self._build(input_fn, ModeKeys.TRAIN)
            self._warm_start(None)
            with inputs.named():
                return train_spec(spec, config, [*inputs.hooks_of("Training"), *hooks], listeners)

    # -- evaluate ----------------------------------------------------------------------------

    def evaluate(
        self,
        input_fn: Callable[..., Any],
        steps: int | None = None,
        hooks: Iterable[SessionRunHook] | None = None,
        checkpoint_path: Any = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """The metrics of a checkpoint, over so many batches or to the end of the input.

        They are written as summaries to `eval_dir` too.

        Args:
            input_fn: as for `train`.
            steps: so many batches; to the end of the input if None.
            hooks: SessionRunHooks of the loop.
            checkpoint_path: a checkpoint; by default the latest one. Without any, variables have
                their initial values.
            name: tells several evaluations from each other.

        Returns:
            Numbers by name: the metrics of the model, its mean ``loss`` and the ``global_step``.

        Raises:
            ValueError: if ``steps`` is not positive, or a metric has the name of one of these.
        """
        all_hooks = checked_hooks(hooks)
        check_positive("steps", steps)
        path = self._checkpoint(checkpoint_path, "evaluate")
        strategy = replicas.strategy_of(self._config, ModeKeys.EVAL)
        config = replicas.config_for(self._config, strategy)
        with share.graph_apart().as_default(), _scope(strategy):
            inputs, spec = self._build(input_fn, ModeKeys.EVAL)
            self._warm_start(path)
            if steps is None:
                advice = "Give evaluate(..., steps=...) or EvalSpec(steps=...)."
                warn_if_endless(inputs, "evaluation goes on", advice)
                all_hooks.append(EndlessInputHook(inputs.function))
            else:
                all_hooks.append(StopAfterNEvalsHook(steps))
            hooks = [*inputs.hooks_of("Evaluation"), *all_hooks]
            with inputs.named():
                return evaluate_spec(spec, config, hooks, path, self.eval_dir(name))

    # -- predict -----------------------------------------------------------------------------

    def predict(
        self,
        input_fn: Callable[..., Any],
        predict_keys: Sequence[str] | None = None,
        hooks: Iterable[SessionRunHook] | None = None,
        checkpoint_path: Any = None,
        yield_single_examples: bool = True,
    ) -> Iterator[Any]:
        """Yield the predictions for each example, or each batch, to the end of the input.

        Args:
            input_fn: gives a dataset or features; labels are left out.
            predict_keys: which of the predictions to give, if they are a dictionary.
            hooks: SessionRunHooks of the loop.
            checkpoint_path: a checkpoint; by default the latest one.
            yield_single_examples: False for whole batches.

        Raises:
            ValueError: if no key is known, predictions are no dictionary, or sizes of batches
                differ.
        """
        all_hooks = checked_hooks(hooks)
        path = self._checkpoint(checkpoint_path, "predict")
        graph = share.graph_apart()
        with graph.as_default():
            inputs, spec = self._build(input_fn, ModeKeys.PREDICT)
            warn_if_endless(inputs, "predict yields", "Take from it what is needed only.")
            self._warm_start(path)
            predictions = _chosen(spec.predictions, predict_keys)
        batches = predict_spec(spec, self._config, predictions, [*inputs.hooks, *all_hooks], path)
        # The caller's default graph is its own while it has a batch.
        for batch in _in_graph(graph, batches, inputs):
            if yield_single_examples:
                yield from _examples(batch)
            else:
                yield batch

    # -- export ------------------------------------------------------------------------------

    def export_saved_model(
        self,
        export_dir_base: Any,
        serving_input_receiver_fn: Callable[[], Any] | None,
        assets_extra: Mapping[str, Any] | None = None,
        as_text: bool = False,
        checkpoint_path: Any = None,
        experimental_mode: str = ModeKeys.PREDICT,
    ) -> bytes:
        """Write the model as a SavedModel, into a folder named after the time.

        Args:
            export_dir_base: the folder around it.
            serving_input_receiver_fn: makes a `tf.estimator.export.ServingInputReceiver`.
            assets_extra: files to copy to ``assets.extra``, by their path there.
            as_text: write ``saved_model.pbtxt``.
            checkpoint_path: a checkpoint; by default the latest one.
            experimental_mode: what the model is built for.

        Returns:
            The path of the folder.

        Raises:
            ValueError: without a receiver, a checkpoint, or all variables in it.
        """
        if not serving_input_receiver_fn:
            raise ValueError("An input_receiver_fn must be defined.")
        return self._export_all_saved_models(
            export_dir_base,
            {experimental_mode: serving_input_receiver_fn},
            assets_extra,
            as_text,
            checkpoint_path,
        )

    def export_savedmodel(
        self,
        export_dir_base: Any,
        serving_input_receiver_fn: Callable[[], Any] | None,
        assets_extra: Mapping[str, Any] | None = None,
        as_text: bool = False,
        checkpoint_path: Any = None,
        strip_default_attrs: bool = False,
    ) -> bytes:
        """`export_saved_model` under its old name.

        Args:
            strip_default_attrs: leave out attributes with their default values.

        Raises:
            ValueError: without a receiver, a checkpoint, or all variables in it.
        """
        if not serving_input_receiver_fn:
            raise ValueError("An input_receiver_fn must be defined.")
        return self._export_all_saved_models(
            export_dir_base,
            {ModeKeys.PREDICT: serving_input_receiver_fn},
            assets_extra,
            as_text,
            checkpoint_path,
            strip_default_attrs,
        )

    def experimental_export_all_saved_models(
        self,
        export_dir_base: Any,
        input_receiver_fn_map: Mapping[str, Callable[[], Any]],
        assets_extra: Mapping[str, Any] | None = None,
        as_text: bool = False,
        checkpoint_path: Any = None,
    ) -> bytes:
        """`export_saved_model` with a graph for each mode, all with the same variables.

        Args:
            input_receiver_fn_map: a function that makes a receiver, by mode.

        Raises:
            ValueError: without a receiver, a checkpoint, or all variables in it.
        """
        return self._export_all_saved_models(
            export_dir_base, input_receiver_fn_map, assets_extra, as_text, checkpoint_path
        )

    def _export_all_saved_models(
        self,
        export_dir_base: Any,
        input_receiver_fn_map: Mapping[str, Callable[[], Any]],
        assets_extra: Mapping[str, Any] | None = None,
        as_text: bool = False,
        checkpoint_path: Any = None,
        strip_default_attrs: bool = True,
    ) -> bytes:
        path = as_path(checkpoint_path) if checkpoint_path else latest_checkpoint(self.model_dir)
        if not path and self._warm_start_settings is not None:
            path = as_path(self._warm_start_settings.ckpt_to_initialize_from)
            path = latest_checkpoint(path) if is_directory(path) else path
        if not path:
            raise ValueError(f"Couldn't find trained model at {self.model_dir}.")
        found: str = path

        def write(builder: Any, mode: str, receiver_fn: Callable[[], Any], first: bool) -> None:
            with Graph().as_default() as graph:
                create_global_step(graph)
                set_random_seed(self._config.tf_random_seed)
                receiver = receiver_fn()
                if not hasattr(receiver, "receiver_tensors"):
                    raise TypeError(
                        f"The receiver function {described(receiver_fn)} should return a "
                        "tf.estimator.export.ServingInputReceiver; it returned "
                        f"{_result_text(receiver)}."
                    )
                labels = getattr(receiver, "labels", None)
                spec = self._call_model_fn(receiver.features, labels, mode, self.config)
                add_meta_graph(
                    builder,
                    mode,
                    receiver,
                    spec,
                    found,
                    self._config.session_config,
                    with_variables=first,
                    strip_default_attrs=strip_default_attrs,
                )

        folder = export(export_dir_base, input_receiver_fn_map, write, assets_extra, as_text)
        return folder.encode()

    # -- parts -------------------------------------------------------------------------------

    def _checkpoint(self, given: Any, verb: str) -> str | None:
        path = as_path(given) if given else latest_checkpoint(self.model_dir)
        if not path:
            logging.info(
                "Could not find trained model in model_dir: %s, running initialization to %s.",
                self.model_dir,
                verb,
            )
        return path

    def _build(self, input_fn: Callable[..., Any], mode: str) -> tuple[Inputs, EstimatorSpec]:
        """Input and model, in the default graph."""
        set_random_seed(self._config.tf_random_seed)
        create_global_step(get_default_graph())
        strategy = replicas.strategy_of(self._config, mode)
        if strategy is not None:
            return replicas.build(
                strategy,
                input_fn,
                lambda: self._call_input_fn(input_fn, mode),
                lambda features, labels: self._call_model_fn(features, labels, mode, self.config),
                mode,
            )
        inputs = inputs_of(self._call_input_fn(input_fn, mode), input_fn)
        labels = None if mode == ModeKeys.PREDICT else inputs.labels
        with inputs.named(building=True):
            return inputs, self._call_model_fn(inputs.features, labels, mode, self.config)

    def _params_for(self, mode: str) -> Any:
        """What functions of the user get as ``params``."""
        return self.params

    def _call_input_fn(self, input_fn: Callable[..., Any], mode: str) -> Any:
        check_input_fn(input_fn)
        names = argument_names(input_fn)
        given = {"mode": mode, "params": self._params_for(mode), "config": self.config}
        strategy = replicas.strategy_of(self._config, mode)
        given.update(replicas.input_arguments(input_fn, strategy))
        with device("/cpu:0"):
            return input_fn(**{name: value for name, value in given.items() if name in names})

    def _call_model_fn(
        self, features: Any, labels: Any, mode: str, config: RunConfig
    ) -> EstimatorSpec:
        names = argument_names(self._model_fn)
        given: dict[str, Any] = {
            "mode": mode,
            "params": self._params_for(mode),
            "config": config,
        }
        given = {name: value for name, value in given.items() if name in names}
        if "labels" in names:
            given["labels"] = labels
        elif labels is not None:
            raise ValueError(
                "model_fn does not take labels, but input_fn returns labels: "
                f"{described(self._model_fn)}."
            )
        logging.info("Calling model_fn.")
        with nullcontext() if mode == ModeKeys.TRAIN else read_only():
            result: Any = self._model_fn(features=features, **given)
        logging.info("Done calling model_fn.")
        if hasattr(result, "as_estimator_spec"):
            result = result.as_estimator_spec()  # that of a TPUEstimator
        if not isinstance(result, EstimatorSpec):
            raise ValueError(
                f"model_fn should return an EstimatorSpec. {described(self._model_fn)} returned "
                f"{_result_text(result)} in mode {mode!r}."
            )
        lacking = [name for name in _NEEDED.get(mode, ()) if _is_missing(getattr(result, name))]
        if lacking:
            raise ValueError(
                f"{described(self._model_fn)} was called in mode {mode!r} and returned an "
                f"EstimatorSpec of mode {result.mode!r} without {' and '.join(lacking)}. Make it "
                "of the mode that model_fn is given."
            )
        return result

    def _warm_start(self, checkpoint_path: str | None) -> None:
        settings = self._warm_start_settings
        if settings is not None and not checkpoint_path:
            logging.info("Warm-starting with WarmStartSettings: %s", settings)
            warm_start(*settings)


def _scope(strategy: Any) -> Any:
    return nullcontext() if strategy is None else strategy.scope()


#: What a spec needs in each mode; one of that mode has it.
_NEEDED = {
    ModeKeys.TRAIN: ("loss", "train_op"),
    ModeKeys.EVAL: ("loss",),
    ModeKeys.PREDICT: ("predictions",),
}


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, dict) and not value)


def _result_text(result: Any) -> str:
    if result is None:
        return "None (is its `return` missing?)"
    if isinstance(result, (tuple, list)):
        return f"a {type(result).__name__} of {len(result)} values"
    return f"{result!r:.100} of type {type(result).__name__}"


def _chosen(predictions: Any, keys: Sequence[str] | None) -> Any:
    if not keys:
        return predictions
    if not isinstance(predictions, dict):
        raise ValueError("predict_keys argument is not valid in case of non-dict predictions.")
    found = {key: value for key, value in predictions.items() if key in keys}
    if not found:
        raise ValueError(
            f"Expected to run at least one output from {list(predictions)}, provided {keys}."
        )
    return found


def _in_graph(graph: Graph, batches: Generator[Any, None, None], inputs: Inputs) -> Iterator[Any]:
    """The items of a generator that runs with ``graph`` as the default graph."""
    try:
        while True:
            with graph.as_default(), inputs.named():
                try:
                    batch = next(batches)
                except StopIteration:
                    return
            yield batch
    finally:
        with graph.as_default():
            batches.close()


def _examples(batch: Any) -> Iterator[Any]:
    """The examples of a batch."""
    if not isinstance(batch, dict):
        yield from batch
        return
    sizes = {key: value.shape[0] if value.ndim else None for key, value in batch.items()}
    if None in sizes.values() or len(set(sizes.values())) > 1:
        raise ValueError(
            f"Batch length of predictions should be same: {sizes} (None for a scalar). "
            "yield_single_examples=False gives whole batches."
        )
    count = next(iter(sizes.values()), 0) or 0
    for i in range(count):
        yield {key: value[i] for key, value in batch.items()}
