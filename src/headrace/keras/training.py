"""Models of Keras that train: datasets of ours, optimisers of `tf.train`, files of 1.x."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from typing import Any

import jax.numpy as jnp

from headrace.data.dataset import Dataset
from headrace.data.iterators import Iterator as GraphIterator
from headrace.errors import OutOfRangeError
from headrace.graph.tensor import Tensor
from headrace.keras import shared_fit
from headrace.keras.arrays import mark, on_arrays
from headrace.keras.loading import keras_inner, load_keras
from headrace.keras.log_names import install as install_names
from headrace.keras.log_names import old_names
from headrace.keras.sessions import get_session
from headrace.keras.strategies import check_strategy
from headrace.keras.sync import in_step
from headrace.train import optimizers as train_optimizers
from headrace.train.optimizer import Optimizer

#: Methods that read the values of a model; those that change them.
_READ = ("evaluate", "predict", "test_on_batch", "predict_on_batch", "get_weights", "save")
_CHANGE = ("fit", "train_on_batch", "set_weights", "load_weights")
_TRAIN = ("fit", "train_on_batch")


def install() -> None:
    """Let models take our datasets and optimisers, and follow the values of sessions."""
    keras = load_keras()
    for name in (*_READ, *_CHANGE):
        owner = keras.Model if name not in ("get_weights", "set_weights") else keras.layers.Layer
        _in_step(owner, name)
    keras.Model.fit_generator = keras.Model.fit
    keras.Model.evaluate_generator = keras.Model.evaluate
    keras.Model.predict_generator = keras.Model.predict
    # Functional models of Keras 3 have these two; a Sequential had them in 1.x, too.
    keras.Sequential.input_names = property(lambda self: [t.name for t in self.inputs])
    keras.Sequential.output_names = property(lambda self: [self.layers[-1].name])
    _hook_save_weights(keras.Model)
    # Keras asks whether a class has the `compile` of this one.
    _hook_compile(keras_inner("trainers.trainer").Trainer)
    install_names(keras_inner("trainers.trainer").Trainer)
    shared_fit.install()
    _hook_end(keras_inner("trainers.epoch_iterator").EpochIterator)
    _hook_assign(keras_inner("backend.common.variables").Variable)


def _in_step(owner: Any, name: str) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        is_shared = name in _TRAIN and shared_fit.sharing() is not None
        if is_shared:
            args, kwargs = (), shared_fit.taken(original, self, args, kwargs)
        args = tuple(_batches(a) for a in args)
        kwargs = {k: _batches(v) for k, v in kwargs.items()}
        with in_step(self, name in _CHANGE):
            result = original(self, *args, **kwargs)
            if is_shared and name == "fit":
                shared_fit.ended(self)
            return result

    setattr(owner, name, method)


# -- datasets -----------------------------------------------------------------------------------


def _batches(value: Any) -> Any:
    """What Keras reads batches from, in the place of a dataset or an iterator."""
    if isinstance(value, Dataset):
        return _adapter(lambda: _elements(value.make_one_shot_iterator))
    if isinstance(value, GraphIterator):
        return _adapter(lambda: _elements(lambda: value))
    return value


def _adapter(read: Callable[[], Iterator[Any]]) -> Any:
    base = keras_inner("trainers.data_adapters.data_adapter").DataAdapter
    unknown = property(lambda self: None)
    members = {
        "get_numpy_iterator": lambda self: read(),
        "get_jax_iterator": lambda self: read(),
        "num_batches": unknown,
        "batch_size": unknown,
        "has_partial_batch": unknown,
        "partial_batch_size": unknown,
    }
    return type("BatchesOfGraph", (base,), members)()


def _hook_end(epoch_class: Any) -> None:
    """A dataset of ours ends where it ends: that is an epoch, and nothing to warn of."""
    original = epoch_class._interrupted_warning

    def warn(self: Any) -> None:
        ours = type(self.data_adapter).__name__ == "BatchesOfGraph"
        if not ours or self.steps_per_epoch is not None:
            original(self)

    epoch_class._interrupted_warning = warn


def _elements(make: Callable[[], Any]) -> Iterator[Any]:
    """The elements as tuples of arrays, read in the session of Keras."""
    session = get_session()
    with session.graph.as_default():
        element = make().get_next()
    while True:
        try:
            batch = session.run(element)
        except OutOfRangeError:
            return
        yield batch if isinstance(batch, tuple) else (batch,)


# -- variables ----------------------------------------------------------------------------------


def _hook_assign(variable_class: Any) -> None:
    """A variable that is assigned another one gets an array of its own.

    Steps of Keras donate the arrays of the model's variables. One array of two variables is donated
    twice, or gone while the other still has it: so it was with averages of weights (`use_ema`),
    which weights are assigned at the end of `fit`.
    """
    original = variable_class.assign

    @functools.wraps(original)
    def assign(self: Any, value: Any) -> Any:
        if isinstance(value, variable_class):
            value = jnp.copy(value.value)
        return original(self, value)

    variable_class.assign = assign


# -- optimisers ---------------------------------------------------------------------------------


def _hook_compile(trainer: Any) -> None:
    original = trainer.compile

    @functools.wraps(original)
    def compile_model(
        self: Any, optimizer: Any = "rmsprop", loss: Any = None, *args: Any, **kwargs: Any
    ) -> None:
        check_strategy(kwargs.pop("distribute", None))
        # For `model_to_estimator`.
        object.__setattr__(self, "_headrace_metrics", kwargs.get("metrics"))
        object.__setattr__(self, "_headrace_optimizer", optimizer)
        if isinstance(optimizer, Optimizer):
            optimizer = keras_optimizer(optimizer)
        if "metrics" in kwargs:
            kwargs["metrics"] = _on_arrays(old_names(kwargs["metrics"]))
        original(self, optimizer, _on_arrays(loss), *args, **kwargs)

    trainer.compile = compile_model


def _on_arrays(value: Any) -> Any:
    """Losses and metrics that are functions of a program may call our operations."""
    if isinstance(value, dict):
        return {k: _on_arrays(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_on_arrays(v) for v in value]
    module = str(getattr(value, "__module__", "") or "")
    if callable(value) and hasattr(value, "__name__") and not module.startswith("keras."):
        return mark(on_arrays(value))
    return value


def _number(value: Any) -> float:
    if callable(value):
        value = value()
    if isinstance(value, Tensor) or hasattr(value, "_to_tensor"):
        raise ValueError(
            f"model.compile takes a tf.train optimiser whose arguments are numbers, not {value!r}. "
            "Use a schedule of tf.keras.optimizers.schedules, or train the model in a graph."
        )
    return float(value)


def keras_optimizer(optimizer: Any) -> Any:
    """The optimiser of Keras that does what one of `tf.train` does.

    Raises:
        ValueError: if Keras has none, or an argument is a tensor.
    """
    found = _EQUAL.get(type(optimizer))
    if found is None:
        names = ", ".join(sorted(c.__name__ for c in _EQUAL))
        raise ValueError(
            f"model.compile cannot take {type(optimizer).__name__}: Keras has no optimiser that "
            f"does the same. It takes {names}, or those of tf.keras.optimizers."
        )
    return found(load_keras().optimizers, optimizer)


_EQUAL: dict[type, Callable[[Any, Any], Any]] = {
    train_optimizers.GradientDescentOptimizer: lambda k, o: k.SGD(_number(o._learning_rate)),
    train_optimizers.MomentumOptimizer: lambda k, o: k.SGD(
        _number(o._learning_rate), momentum=_number(o._momentum), nesterov=o._use_nesterov
    ),
    train_optimizers.AdagradOptimizer: lambda k, o: k.Adagrad(
        _number(o._learning_rate),
        initial_accumulator_value=_number(o._initial_accumulator_value),
        epsilon=0.0,
    ),
    train_optimizers.AdamOptimizer: lambda k, o: k.Adam(
        _number(o._lr), _number(o._beta1), _number(o._beta2), epsilon=_number(o._epsilon)
    ),
}


def tensor_optimizer(model: Any) -> Any:
    """An optimiser of `tf.train` that does what that of a compiled model does.

    Raises:
        ValueError: if there is none.
    """
    given = vars(model).get("_headrace_optimizer")
    if isinstance(given, Optimizer):
        return given
    used = model.optimizer
    rate = float(used.learning_rate)
    settings = used.get_config()
    kind = type(used).__name__
    if isinstance(settings.get("learning_rate"), dict):
        kind += " with a schedule"
    if kind == "SGD" and not settings["momentum"]:
        return train_optimizers.GradientDescentOptimizer(rate)
    if kind == "SGD":
        return train_optimizers.MomentumOptimizer(
            rate, settings["momentum"], use_nesterov=settings["nesterov"]
        )
    if kind == "Adam" and not settings["amsgrad"]:
        return train_optimizers.AdamOptimizer(
            rate, settings["beta_1"], settings["beta_2"], settings["epsilon"]
        )
    raise ValueError(
        f"tf.train has no optimiser that does the same as {kind} of Keras. Compile the model "
        "with one of tf.train, or with SGD or Adam."
    )


# -- files --------------------------------------------------------------------------------------


def _hook_save_weights(model_class: Any) -> None:
    original = model_class.save_weights

    @functools.wraps(original)
    def save_weights(
        self: Any, filepath: Any, overwrite: bool = True, *args: Any, **kw: Any
    ) -> Any:
        """``name.weights.h5`` as Keras 3 writes it; other ``.h5`` and ``.hdf5`` as 1.x did."""
        kw.pop("save_format", None)
        text = os.fspath(filepath)
        with in_step(self, False):
            if text.endswith(".weights.h5") or not text.endswith((".h5", ".hdf5")):
                return original(self, filepath, overwrite, *args, **kw)
            if os.path.exists(text) and not overwrite:
                raise FileExistsError(f"{text} exists, and overwrite is False.")
            import h5py

            with h5py.File(text, "w") as file:
                keras_inner("legacy.saving.legacy_h5_format").save_weights_to_hdf5_group(file, self)
        return None

    model_class.save_weights = save_weights
