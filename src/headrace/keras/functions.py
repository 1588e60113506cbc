"""Functions of tf.keras 1.x that take their arguments in another order than those of Keras 3."""

from __future__ import annotations

from typing import Any

from headrace.keras.loading import load_keras


def to_categorical(y: Any, num_classes: int | None = None, dtype: str = "float32") -> Any:
    """Class numbers as rows with a one: an array of the shape of ``y`` with an axis behind it.

    Args:
        y: integers from 0 to ``num_classes - 1``.
        num_classes: by default the largest number and 1.

    Raises:
        IndexError: if a number is not less than ``num_classes``.

    >>> tf.keras.utils.to_categorical([1, 0], 3).tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    """
    return load_keras().utils.to_categorical(y, num_classes).astype(dtype)


def Input(
    shape: Any = None,
    batch_size: int | None = None,
    name: str | None = None,
    dtype: Any = None,
    sparse: bool = False,
    tensor: Any = None,
    **kwargs: Any,
) -> Any:
    """The symbolic input of a functional model.

    Args:
        shape: without the batch; ``batch_shape`` (a keyword) is the whole one.

    Raises:
        ValueError: if a ``tensor`` is given: call the layers of the model on it.
    """
    if tensor is not None:
        raise ValueError(
            f"tf.keras.Input(tensor={tensor!r}): a Keras model is not tied to tensors of a graph. "
            "Make the model of an Input without it, and call the model on the tensor."
        )
    return load_keras().Input(
        shape, batch_size=batch_size, name=name, dtype=dtype, sparse=sparse or None, **kwargs
    )


def save_model(
    model: Any,
    filepath: Any,
    overwrite: bool = True,
    include_optimizer: bool = True,
    save_format: str | None = None,
    signatures: Any = None,
) -> None:
    """Write a model to a file: ``.keras`` or HDF5 (``.h5``, ``.hdf5``), as its name says.

    What is loaded from it has weights of the same shapes, types and values.

    Raises:
        ValueError: for the format ``tf``: export the graph with `tf.saved_model`.
    """
    if save_format == "tf" or signatures is not None:
        raise ValueError(
            "Keras models are saved in Keras's own formats (.keras, .h5). For a SavedModel call "
            "the model on a placeholder and use tf.saved_model.simple_save, or an Estimator."
        )
    options = {} if str(filepath).endswith(".keras") else {"include_optimizer": include_optimizer}
    model.save(filepath, overwrite=overwrite, **options)
