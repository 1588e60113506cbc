"""The Estimator of ``tf.contrib.learn``: `tf.estimator.Estimator` with an earlier interface."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from headrace.contrib.learn.export import learn_receiver
from headrace.contrib.learn.frames import extract_dask_data, extract_pandas_matrix
from headrace.contrib.learn.interfaces import BaseEstimator, NotFittedError
from headrace.contrib.learn.metric_spec import MetricSpec, metric_ops
from headrace.contrib.learn.model_fn import ModelFnOps, served_outputs
from headrace.contrib.learn.monitors import replace_monitors_with_hooks
from headrace.estimator.callables import argument_names, described
from headrace.estimator.estimator import Estimator as _Estimator
from headrace.estimator.inputs.arrays import numpy_input_fn
from headrace.estimator.mode_keys import ModeKeys
from headrace.estimator.run_config import RunConfig as _RunConfig
from headrace.estimator.spec import EstimatorSpec
from headrace.train.basic_session_run_hooks import FeedFnHook

__all__ = ["Estimator", "RunConfig", "SKCompat"]


class RunConfig(_RunConfig):
    """A `tf.estimator.RunConfig` with the arguments of an earlier one.

    Args:
        master, evaluation_master: where sessions run; "" for this process.
        num_cores, log_device_placement, gpu_memory_fraction: settings of sessions, unless
            ``session_config`` is given.
        kwargs: as for `tf.estimator.RunConfig`.

    >>> tf.contrib.learn.RunConfig(num_cores=2).session_config.inter_op_parallelism_threads
    2
    """

    def __init__(
        self,
        master: str | None = None,
        num_cores: int = 0,
        log_device_placement: bool = False,
        gpu_memory_fraction: float = 1,
        evaluation_master: str = "",
        session_config: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(session_config=session_config, **kwargs)
        if session_config is None:
            config = self._distributed_session_config()
            if config is None:
                from headrace.graph.proto import ConfigProto

                config = ConfigProto(allow_soft_placement=True)
            config.inter_op_parallelism_threads = num_cores
            config.intra_op_parallelism_threads = num_cores
            config.log_device_placement = log_device_placement
            if gpu_memory_fraction != 1:
                config.gpu_options.per_process_gpu_memory_fraction = gpu_memory_fraction
            self._session_config = config
        if master:
            self._place.master = master
        if evaluation_master:
            self._place.evaluation_master = evaluation_master


class Estimator(BaseEstimator):
    """Trains with ``fit``, evaluates and predicts with what ``model_fn`` builds.

    Args:
        model_fn: takes features, labels (or ``targets``), and any of mode, params, config and
            model_dir; gives (predictions, loss, train_op), ModelFnOps or an EstimatorSpec.
        model_dir, config, params: as for `tf.estimator.Estimator`.
        feature_engineering_fn: ``(features, labels) -> (features, labels)``, called before.

    Raises:
        ValueError: if ``model_fn`` is missing.

    >>> def model_fn(x, y, mode):
    ...     w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    ...     if mode == tf.contrib.learn.ModeKeys.INFER:
    ...         return w * x, None, None
    ...     loss = tf.reduce_mean((w * x - y) ** 2)
    ...     optimizer = tf.train.GradientDescentOptimizer(0.1)
    ...     return w * x, loss, optimizer.minimize(loss, tf.train.get_global_step())
    >>> x = np.array([[1.0], [2.0]], np.float32)
    >>> estimator = tf.contrib.learn.Estimator(model_fn, "line")
    >>> estimator = estimator.fit(x, 3 * x, steps=40)
    >>> [round(float(y[0])) for y in estimator.predict(x)]
    [3, 6]
    """

    def __init__(
        self,
        model_fn: Callable[..., Any] | None = None,
        model_dir: Any = None,
        config: _RunConfig | None = None,
        params: Any = None,
        feature_engineering_fn: Callable[..., Any] | None = None,
    ) -> None:
        if model_fn is None:
            raise ValueError("model_fn must be provided to Estimator.")
        self._user_model_fn = model_fn
        self._engineer = feature_engineering_fn
        self._metrics: Mapping[Any, Any] = {}
        #: While a model is exported: which of its outputs is the default one.
        self._export_default: tuple[str | None] | None = None
        self._core = _Estimator(self._spec, model_dir, config, {} if params is None else params)

    def _spec(
        self, features: Any, labels: Any, mode: str, params: Any, config: Any
    ) -> EstimatorSpec:
        if self._engineer is not None:
            features, labels = self._engineer(features, labels)
        names = argument_names(self._user_model_fn)
        given = {"mode": mode, "params": params, "config": config}
        given["model_dir"] = config.model_dir
        keywords = {name: given[name] for name in names if name in given}
        result = self._user_model_fn(features, labels, **keywords)
        spec = self._as_spec(result, mode)
        if mode == ModeKeys.EVAL and self._metrics:
            made = metric_ops(self._metrics, features, labels, spec.predictions)
            spec = spec._replace(eval_metric_ops={**spec.eval_metric_ops, **made})
        return spec

    def _as_spec(self, result: Any, mode: str) -> EstimatorSpec:
        if isinstance(result, EstimatorSpec):
            return result
        if not isinstance(result, ModelFnOps) and isinstance(result, tuple) and len(result) == 3:
            result = ModelFnOps(mode, *result)
        if isinstance(result, ModelFnOps):
            if self._export_default is not None:
                return served_outputs(result, self._export_default[0])
            return result.estimator_spec() if mode != ModeKeys.PREDICT else result._spec(None)
        raise ValueError(
            f"Unrecognized value returned by model_fn ({described(self._user_model_fn)}), please "
            f"return ModelFnOps. Got: {result!r:.100}"
        )

    @property
    def model_dir(self) -> str:
        """Where checkpoints and summaries are."""
        return self._core.model_dir

    @property
    def config(self) -> Any:
        """How it runs."""
        return self._core.config

    @property
    def model_fn(self) -> Any:
        """``model_fn(features, labels, mode, config)``, which gives an EstimatorSpec."""
        return self._core.model_fn

    @property
    def params(self) -> Any:
        """The hyperparameters, a copy."""
        return self._core.params

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Callable[..., Any] | None = None,
        steps: int | None = None,
        batch_size: int | None = None,
        monitors: Iterable[Any] | None = None,
        max_steps: int | None = None,
    ) -> Estimator:
        """Train on arrays, or on what an input function gives.

        Args:
            x, y: arrays of shape (examples, ...), or dictionaries of such.
            batch_size: 128 by default; monitors: monitors and hooks.
            steps, max_steps: as for `tf.estimator.Estimator.train`.

        Raises:
            ValueError: if both arrays and an input function are given, or neither.
        """
        feed = _input_fn(x, y, input_fn, batch_size, shuffle=True, epochs=None)
        self._core.train(feed, replace_monitors_with_hooks(monitors, self), steps, max_steps)
        return self

    def partial_fit(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Callable[..., Any] | None = None,
        steps: int = 1,
        batch_size: int | None = None,
        monitors: Iterable[Any] | None = None,
    ) -> Estimator:
        """`fit`, one step by default."""
        return self.fit(x, y, input_fn, steps, batch_size, monitors)

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Callable[..., Any] | None = None,
        feed_fn: Any = None,
        batch_size: int | None = None,
        steps: int | None = None,
        metrics: Mapping[Any, Any] | None = None,
        name: str | None = None,
        checkpoint_path: str | None = None,
        hooks: Iterable[Any] | None = None,
        log_progress: bool = True,
    ) -> dict[str, Any]:
        """The metrics of the latest checkpoint: numbers by name.

        Args:
            metrics: more metrics, by name: MetricSpecs, or functions of predictions and labels
                under names (name, key of the predictions).
            feed_fn: gives what to feed at each step.
            x, y, input_fn, batch_size: as for `fit`; others as for `tf.estimator.Estimator`.

        Raises:
            ValueError: if both arrays and an input function are given, or neither.
            NotFittedError: if there is no checkpoint.
        """
        feed = _input_fn(x, y, input_fn, batch_size, shuffle=False, epochs=1)
        found = list(hooks or ())
        if feed_fn is not None:
            found.append(FeedFnHook(feed_fn))
        self._require_checkpoint(checkpoint_path)
        with self.with_metrics(metrics):
            return self._core.evaluate(feed, steps or None, found, checkpoint_path, name)

    def _require_checkpoint(self, checkpoint_path: Any = None) -> None:
        if checkpoint_path is None and self._core.latest_checkpoint() is None:
            raise NotFittedError(
                f"Couldn't find trained model at {self.model_dir}. Call fit() first."
            )

    @contextmanager
    def with_metrics(self, metrics: Mapping[Any, Any] | None) -> Iterator[None]:
        """Evaluations have more metrics, MetricSpecs by name."""
        self._metrics = dict(metrics or {})
        try:
            yield
        finally:
            self._metrics = {}

    def predict(
        self,
        x: Any = None,
        input_fn: Callable[..., Any] | None = None,
        batch_size: int | None = None,
        outputs: Sequence[str] | None = None,
        as_iterable: bool = True,
        iterate_batches: bool = False,
    ) -> Any:
        """The predictions: an iterator over examples (or batches), or arrays of all.

        Args:
            outputs: which of the predictions.

        Raises:
            ValueError: if both arrays and an input function are given, or neither.
            NotFittedError: if there is no checkpoint.
        """
        self._require_checkpoint()
        feed = _input_fn(x, None, input_fn, batch_size, shuffle=False, epochs=1)
        if as_iterable:
            return self._core.predict(feed, outputs, yield_single_examples=not iterate_batches)
        return _joined(self._core.predict(feed, outputs, yield_single_examples=False))

    def export_savedmodel(
        self,
        export_dir_base: Any,
        serving_input_fn: Callable[[], Any],
        default_output_alternative_key: str | None = None,
        assets_extra: Mapping[str, Any] | None = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
        strip_default_attrs: bool = False,
    ) -> bytes:
        """Write the model as a SavedModel, into a folder named after the time.

        Args:
            serving_input_fn: gives `tf.contrib.learn.InputFnOps`, or a
                `tf.estimator.export.ServingInputReceiver`.
            default_output_alternative_key: which of several output alternatives the default
                signature gives.
            export_dir_base, assets_extra, as_text, checkpoint_path, strip_default_attrs: as for
                `tf.estimator.Estimator.export_savedmodel`.

        Returns:
            The path of the folder.

        Raises:
            ValueError: without an input function or a checkpoint, and for an unknown alternative.
        """
        if serving_input_fn is None:
            raise ValueError("serving_input_fn must be defined.")
        self._export_default = (default_output_alternative_key,)
        try:
            return self._core.export_savedmodel(
                export_dir_base,
                lambda: learn_receiver(serving_input_fn()),
                assets_extra,
                as_text,
                checkpoint_path,
                strip_default_attrs,
            )
        finally:
            self._export_default = None

    def get_variable_names(self) -> list[str]:
        """The names of all variables in the latest checkpoint."""
        return self._core.get_variable_names()

    def get_variable_value(self, name: str) -> Any:
        """The value of a variable in the latest checkpoint, an array."""
        return self._core.get_variable_value(name)


class SKCompat:
    """An Estimator with the methods of scikit-learn, on arrays.

    >>> def model_fn(x, y, mode):
    ...     step = tf.train.get_global_step().assign_add(1)
    ...     return {"twice": 2 * x}, tf.reduce_sum(x), step
    >>> model = tf.contrib.learn.SKCompat(tf.contrib.learn.Estimator(model_fn, "twice"))
    >>> x = np.array([1.0, 2.0], np.float32)
    >>> model.fit(x, x, steps=1).predict(x)["twice"].tolist()
    [2.0, 4.0]
    """

    def __init__(self, estimator: Estimator) -> None:
        self._estimator = estimator

    def fit(
        self,
        x: Any,
        y: Any,
        batch_size: int = 128,
        steps: int | None = None,
        max_steps: int | None = None,
        monitors: Iterable[Any] | None = None,
    ) -> SKCompat:
        """Train on arrays; the object itself."""
        self._estimator.fit(x, y, None, steps, batch_size, monitors, max_steps)
        return self

    def score(
        self,
        x: Any,
        y: Any,
        batch_size: int = 128,
        steps: int | None = None,
        metrics: Mapping[str, MetricSpec] | None = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """The metrics on arrays."""
        return self._estimator.evaluate(
            x, y, batch_size=batch_size, steps=steps, metrics=metrics, name=name
        )

    def predict(self, x: Any, batch_size: int = 128, outputs: Sequence[str] | None = None) -> Any:
        """The predictions for an array: an array, or arrays by name."""
        # Not that of a classifier, which gives classes alone.
        return Estimator.predict(
            self._estimator, x, batch_size=batch_size, outputs=outputs, as_iterable=False
        )


def _input_fn(
    x: Any,
    y: Any,
    input_fn: Callable[..., Any] | None,
    batch_size: int | None,
    *,
    shuffle: bool,
    epochs: int | None,
) -> Callable[..., Any]:
    if input_fn is not None:
        if x is not None or y is not None or batch_size is not None:
            raise ValueError("Can not provide both input_fn and any of x, y and batch_size.")
        return input_fn
    if x is None:
        raise ValueError("Either x or input_fn must be provided.")
    if hasattr(x, "__next__"):
        raise ValueError("x is an iterator; fit(input_fn=...) takes what gives one example more.")
    return numpy_input_fn(_arrays(x), _arrays(y), batch_size or 128, epochs, shuffle)


def _arrays(data: Any) -> Any:
    if data is None or isinstance(data, Mapping):
        return data if data is None else {key: _arrays(value) for key, value in data.items()}
    return np.asarray(extract_pandas_matrix(extract_dask_data(data)))


def _joined(batches: Iterator[Any]) -> Any:
    found = list(batches)
    if found and isinstance(found[0], dict):
        return {key: np.concatenate([b[key] for b in found]) for key in found[0]}
    return np.concatenate(found)
