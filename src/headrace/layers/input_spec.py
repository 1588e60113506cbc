"""What a layer demands of its inputs, and the check of it."""

from __future__ import annotations

from typing import Any

from headrace.graph import dtypes, nest


class InputSpec:
    """Type, rank and sizes of one input of a layer; what is None is not checked.

    Args:
        dtype: type of the elements.
        shape: expected shape; None stands for any size.
        ndim, max_ndim, min_ndim: exact, largest and smallest rank.
        axes: sizes of single axes, ``{axis: size}``.

    Raises:
        TypeError: if a key of ``axes`` is no integer.
        ValueError: if an axis lies beyond the rank.

    >>> layer = tf.layers.Dense(3)
    >>> output = layer(tf.zeros([2, 5]))
    >>> layer.input_spec  # what it takes from now on
    InputSpec(min_ndim=2, axes={-1: 5})
    """

    def __init__(
        self,
        dtype: Any = None,
        shape: Any = None,
        ndim: int | None = None,
        max_ndim: int | None = None,
        min_ndim: int | None = None,
        axes: dict[int, Any] | None = None,
    ) -> None:
        self.dtype = None if dtype is None else dtypes.as_dtype(dtype).name
        self.shape = shape
        self.ndim = ndim if shape is None else len(shape)
        self.max_ndim = max_ndim
        self.min_ndim = min_ndim
        try:
            self.axes = {int(axis): size for axis, size in (axes or {}).items()}
        except (ValueError, TypeError):
            raise TypeError("The keys in axes must be integers.") from None
        limit = self.ndim or self.max_ndim
        if self.axes and limit is not None and max(self.axes) > limit - 1:
            raise ValueError(
                f"Axis {max(self.axes)} is greater than the maximum allowed value: {limit - 1}"
            )

    def get_config(self) -> dict[str, Any]:
        """The arguments (type, shape, ranks, axes) with which an equal one is made."""
        return dict(vars(self))

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> InputSpec:
        """An InputSpec from `get_config`'s dictionary.

        Raises:
            TypeError: for a key that is no argument.
        """
        return cls(**config)

    def __repr__(self) -> str:
        given = [f"{name}={value}" for name, value in vars(self).items() if value]
        return f"InputSpec({', '.join(given)})"

    def problem(self, x: Any) -> str | None:
        """What is wrong with the type, rank or shape of the tensor ``x``; None if nothing is."""
        rank = x.shape.rank
        if rank is None:
            if (self.ndim, self.min_ndim, self.max_ndim) == (None, None, None):
                return self._dtype_problem(x)
            return "its rank is undefined, but the layer requires a defined rank."
        sizes = x.shape.as_list()
        full = f"Full shape received: {sizes}"
        if self.ndim is not None and rank != self.ndim:
            return f"expected ndim={self.ndim}, found ndim={rank}. {full}"
        if self.max_ndim is not None and rank > self.max_ndim:
            return f"expected max_ndim={self.max_ndim}, found ndim={rank}"
        if self.min_ndim is not None and rank < self.min_ndim:
            return f"expected min_ndim={self.min_ndim}, found ndim={rank}. {full}"
        return self._dtype_problem(x) or self._size_problem(sizes)

    def _dtype_problem(self, x: Any) -> str | None:
        if self.dtype is None or x.dtype == self.dtype:
            return None
        return f"expected dtype={self.dtype}, found dtype={x.dtype}"

    def _size_problem(self, sizes: list[int | None]) -> str | None:
        for axis, wanted in self.axes.items():
            size = getattr(wanted, "value", wanted)
            if size is not None and sizes[axis] not in (size, None):
                return (
                    f"expected axis {axis} of input shape to have value {size} but received input "
                    f"with shape {sizes}"
                )
        if self.shape is not None:
            for size, found in zip(self.shape, sizes, strict=False):
                if size is not None and found is not None and size != found:
                    return f"expected shape={self.shape}, found shape={sizes}"
        return None


def check_inputs(specs: Any, inputs: Any, layer: str) -> None:
    """Check the inputs of the layer named ``layer`` against its specs (one, nested, or None).

    Raises:
        TypeError: if one is no tensor.
        ValueError: if their number, rank, type or sizes are not as expected.
    """
    if not specs:
        return
    wanted, given = nest.flatten(specs), nest.flatten(inputs)
    if len(wanted) != len(given):
        raise ValueError(
            f"Layer {layer} expects {len(wanted)} inputs, but it received {len(given)} input "
            f"tensors. Inputs received: {given}"
        )
    for index, (spec, x) in enumerate(zip(wanted, given, strict=True)):
        if spec is not None and not hasattr(x, "shape"):
            raise TypeError(f"Input {index} of layer {layer} must be a tensor, not {x!r:.100}.")
        problem = None if spec is None else spec.problem(x)
        if problem is not None:
            raise ValueError(
                f"Input {index} of layer {layer} is incompatible with the layer: {problem}"
            )
