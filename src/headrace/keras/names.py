"""Names and arguments that tf.keras of 1.x had and Keras 3 has not."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from headrace.keras.arrays import mark, on_arrays
from headrace.keras.loading import keras_inner, keras_part, load_keras

#: Names of 1.x that Keras 3 has under another one, by namespace.
OLD_NAMES: dict[str, dict[str, str]] = {
    "layers": {
        "CuDNNGRU": "GRU",
        "CuDNNLSTM": "LSTM",
        "Convolution1D": "Conv1D",
        "Convolution2D": "Conv2D",
        "Convolution3D": "Conv3D",
        "Convolution2DTranspose": "Conv2DTranspose",
        "AvgPool1D": "AveragePooling1D",
        "AvgPool2D": "AveragePooling2D",
        "AvgPool3D": "AveragePooling3D",
        "MaxPool1D": "MaxPooling1D",
        "MaxPool2D": "MaxPooling2D",
        "MaxPool3D": "MaxPooling3D",
        "GlobalAvgPool1D": "GlobalAveragePooling1D",
        "GlobalAvgPool2D": "GlobalAveragePooling2D",
        "GlobalMaxPool1D": "GlobalMaxPooling1D",
        "GlobalMaxPool2D": "GlobalMaxPooling2D",
    },
}

#: Names of 1.x that live elsewhere: ``module:name``.
MOVED: dict[str, str] = {
    "callbacks.ModelCheckpoint": "headrace.keras.checkpoint_callback:ModelCheckpoint",
    "callbacks.TensorBoard": "headrace.keras.tensorboard:TensorBoard",
    "Input": "headrace.keras.functions:Input",
    "layers.Input": "headrace.keras.functions:Input",
    "preprocessing.text.Tokenizer": "headrace.keras.preprocessing_text:Tokenizer",
    "preprocessing.text.text_to_word_sequence": (
        "headrace.keras.preprocessing_text:text_to_word_sequence"
    ),
    "models.save_model": "headrace.keras.functions:save_model",
    "utils.to_categorical": "headrace.keras.functions:to_categorical",
}


def install() -> None:
    """Let Keras take the arguments of 1.x."""
    keras = load_keras()
    for optimizer in vars(keras.optimizers).values():
        if inspect.isclass(optimizer) and issubclass(optimizer, keras.optimizers.Optimizer):
            _let_take(optimizer, _optimizer_arguments)
    _let_take(keras.layers.Layer, _layer_arguments)
    _let_take_functions()
    _hook_add(keras.Sequential)


def _let_take(cls: Any, rename: Callable[[dict[str, Any]], Any]) -> None:
    """Let a class take arguments of 1.x; ``rename`` turns them into those of now."""
    original = cls.__init__
    if "__init__" not in vars(cls):
        return

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        after = rename(kwargs)
        original(self, *args, **kwargs)
        if after is not None:
            after(self)

    # Keras asks for the arguments, to write them into configurations.
    init.__signature__ = inspect.signature(original)  # type: ignore[attr-defined]
    cls.__init__ = init


def _optimizer_arguments(kwargs: dict[str, Any]) -> None:
    if "lr" in kwargs:
        kwargs["learning_rate"] = kwargs.pop("lr")
    if kwargs.get("epsilon", 0.0) is None:
        del kwargs["epsilon"]
    decay = kwargs.pop("decay", None)
    if decay:
        schedule = keras_part("optimizers.schedules").InverseTimeDecay
        kwargs["learning_rate"] = schedule(kwargs.get("learning_rate", 0.01), 1, decay)


def _layer_arguments(kwargs: dict[str, Any]) -> Callable[[Any], None] | None:
    """Shapes of the input, which `Sequential` asks its first layer for."""
    batch_shape = kwargs.pop("batch_input_shape", None)
    shape = kwargs.pop("input_shape", None)
    size = kwargs.pop("input_dim", None)
    if batch_shape is not None:
        shape = tuple(batch_shape)[1:]
    elif size is not None:
        shape = (size,)
    if shape is None:
        return None

    def keep(layer: Any) -> None:
        layer._input_shape_arg = tuple(shape)
        if batch_shape is not None and batch_shape[0] is not None:
            layer._headrace_batch_shape = tuple(batch_shape)

    return keep


def _let_take_functions() -> None:
    """Let layers take functions on tensors, such as `tf.nn.relu`, as activations."""
    activations = keras_inner("activations")
    original = activations.get

    @functools.wraps(original)
    def get(identifier: Any) -> Any:
        found = original(identifier)
        module = str(getattr(found, "__module__", "") or "")
        if (
            callable(found)
            and not module.startswith(("keras.", "jax."))
            and not hasattr(found, "_headrace_on_arrays")
        ):
            found = mark(on_arrays(found))
        return found

    activations.get = get
    keras_part("activations").get = get


def _hook_add(sequential: Any) -> None:
    original = sequential.add

    @functools.wraps(original)
    def add(self: Any, layer: Any, rebuild: bool = True) -> None:
        shape = getattr(layer, "_headrace_batch_shape", None)
        if shape is not None and not self._layers:
            layer._input_shape_arg = None
            original(self, keras_part("layers").InputLayer(batch_shape=shape), rebuild=False)
        original(self, layer, rebuild=rebuild)

    sequential.add = add
