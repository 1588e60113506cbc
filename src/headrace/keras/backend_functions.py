"""The functions of `tf.keras.backend` on tensors: our operations under their names there.

On arrays of JAX (in losses and layers that Keras traces) they give arrays.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from headrace.graph import dtypes
from headrace.graph.tensor import Tensor
from headrace.keras.arrays import on_arrays
from headrace.keras.calls import on_either
from headrace.keras.loading import keras_part, load_keras
from headrace.ops.core.build import convert_to_tensor
from headrace.ops.core.public import MARKED


def _tf(name: str) -> Callable[..., Any]:
    """``tf.<name>``."""
    namespace, _, last = name.rpartition(".")
    found: Callable[..., Any] = MARKED[namespace][last].value
    return found


#: Functions that differ in their name only.
_SAME = {
    **{
        name: name
        for name in (
            *("abs", "cos", "sin", "exp", "round", "sign", "sqrt", "square", "maximum", "minimum"),
            *("equal", "not_equal", "greater", "greater_equal", "less", "less_equal", "pow"),
            *("expand_dims", "ones_like", "zeros_like", "reshape", "gather", "stop_gradient"),
            *("tile", "cumsum", "cumprod", "map_fn", "foldl", "foldr", "eye", "transpose", "stack"),
        )
    },
    "log": "log",
    "sigmoid": "sigmoid",
    "tanh": "tanh",
    "softplus": "nn.softplus",
    "softsign": "nn.softsign",
    "softmax": "nn.softmax",
    "elu": "nn.elu",
    "clip": "clip_by_value",
    "gradients": "gradients",
}
#: Reductions: ``(x, axis=None, keepdims=False)``.
_REDUCTIONS = {
    "all": "reduce_all",
    "any": "reduce_any",
    "max": "reduce_max",
    "mean": "reduce_mean",
    "min": "reduce_min",
    "prod": "reduce_prod",
    "sum": "reduce_sum",
    "logsumexp": "reduce_logsumexp",
}


def _reduction(name: str) -> Callable[..., Any]:
    def reduce(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        x = convert_to_tensor(x)
        if x.dtype is dtypes.bool and name in ("mean", "sum", "prod"):
            x = cast(x, _floatx())
        return _tf(_REDUCTIONS[name])(x, axis, keepdims)

    return reduce


def _floatx() -> str:
    found: str = keras_part("config").floatx()
    return found


def cast(x: Any, dtype: Any) -> Tensor:
    """``x`` in another type."""
    tensor: Tensor = _tf("cast")(x, dtype)
    return tensor


def var(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The variance."""
    mean = _tf("reduce_mean")
    return mean(_tf("square")(x - mean(x, axis, True)), axis, keepdims)


def std(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The standard deviation."""
    return _tf("sqrt")(var(x, axis, keepdims))


def argmax(x: Any, axis: int = -1) -> Any:
    """Indices of the largest values: int64."""
    return _tf("argmax")(x, axis)


def argmin(x: Any, axis: int = -1) -> Any:
    """Indices of the smallest values: int64."""
    return _tf("argmin")(x, axis)


def concatenate(tensors: Any, axis: int = -1) -> Any:
    """Tensors side by side."""
    return _tf("concat")(list(tensors), axis)


def dot(x: Any, y: Any) -> Any:
    """The product over the last axis of ``x`` and the last but one of ``y``."""
    x, y = convert_to_tensor(x), convert_to_tensor(y)
    if x.shape.ndims == 2 and y.shape.ndims == 2:
        return _tf("matmul")(x, y)
    return _tf("tensordot")(x, y, [[x.shape.ndims - 1], [max(0, (y.shape.ndims or 1) - 2)]])


def batch_flatten(x: Any) -> Any:
    """All axes but the first as one."""
    x = convert_to_tensor(x)
    sizes = x.shape.as_list()[1:]
    return _tf("reshape")(x, [-1, int(np.prod(sizes)) if None not in sizes else -1])


def flatten(x: Any) -> Any:
    """All elements in one axis."""
    return _tf("reshape")(x, [-1])


def permute_dimensions(x: Any, pattern: Any) -> Any:
    """The axes in another order."""
    return _tf("transpose")(x, pattern)


def squeeze(x: Any, axis: int) -> Any:
    """Without the axis ``axis``, whose size is 1."""
    return _tf("squeeze")(x, [axis])


def repeat_elements(x: Any, rep: int, axis: int) -> Any:
    """Each element along ``axis`` ``rep`` times.

    Raises:
        ValueError: if the size of that axis is not known.
    """
    x = convert_to_tensor(x)
    size = x.shape.as_list()[axis]
    if size is None:
        raise ValueError(f"repeat_elements needs the size of axis {axis} of {x.name}.")
    return _tf("gather")(x, np.repeat(np.arange(size), rep), axis=axis)


def one_hot(indices: Any, num_classes: int) -> Any:
    """Rows of zeros with a one at each index."""
    return _tf("one_hot")(indices, num_classes)


def relu(x: Any, alpha: float = 0.0, max_value: Any = None, threshold: float = 0.0) -> Any:
    """The rectified linear unit, with a slope below, a limit above and a threshold."""
    x = convert_to_tensor(x)
    below = alpha * (x - threshold) if alpha else _tf("zeros_like")(x)
    above = x if max_value is None else _tf("minimum")(x, _tf("cast")(max_value, x.dtype))
    return _tf("where")(x >= threshold, above, below)


def hard_sigmoid(x: Any) -> Any:
    """``0.2 x + 0.5``, clipped to 0 and 1."""
    return _tf("clip_by_value")(0.2 * convert_to_tensor(x) + 0.5, 0.0, 1.0)


def l2_normalize(x: Any, axis: Any = None) -> Any:
    """``x`` divided by its norm along ``axis``."""
    return _tf("nn.l2_normalize")(x, axis)


def switch(condition: Any, then_expression: Any, else_expression: Any) -> Any:
    """One of two values, or of what two functions give."""
    if callable(then_expression):
        return _tf("cond")(condition, then_expression, else_expression)
    return _tf("where")(condition, then_expression, else_expression)


def dropout(x: Any, level: float, noise_shape: Any = None, seed: int | None = None) -> Any:
    """Elements set to zero with probability ``level``, the others scaled up."""
    return _tf("nn.dropout")(x, rate=level, noise_shape=noise_shape, seed=seed)


def _crossentropy(name: str) -> Callable[..., Any]:
    def loss(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> Any:
        if name == "binary_crossentropy":  # K's is that of each element
            probabilities = output if not from_logits else _tf("sigmoid")(output)
            small = keras_part("config").epsilon()
            p = _tf("clip_by_value")(probabilities, small, 1.0 - small)
            return -(target * _tf("log")(p) + (1.0 - target) * _tf("log")(1.0 - p))
        return on_either(getattr(keras_part("losses"), name))(
            target, output, from_logits=from_logits, axis=axis
        )

    return loss


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str = "Const") -> Any:
    """A constant, of type `floatx` by default."""
    return _tf("constant")(value, dtype or _floatx(), shape, name)


def variable(value: Any, dtype: Any = None, name: str | None = None, constraint: Any = None) -> Any:
    """A variable of the graph with this first value."""
    from headrace.ops.state.variables import Variable

    array = np.asarray(value, dtypes.as_dtype(dtype or _floatx()).np_dtype)
    return Variable(array, name=name, constraint=constraint)


def zeros(shape: Any, dtype: Any = None, name: str | None = None) -> Any:
    """A variable of zeros."""
    return variable(np.zeros(shape), dtype, name)


def ones(shape: Any, dtype: Any = None, name: str | None = None) -> Any:
    """A variable of ones."""
    return variable(np.ones(shape), dtype, name)


def random_uniform(
    shape: Any, minval: float = 0.0, maxval: float = 1.0, dtype: Any = None, seed: Any = None
) -> Any:
    """Uniform numbers."""
    return _tf("random_uniform")(shape, minval, maxval, dtype or _floatx(), seed)


def random_normal(
    shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: Any = None
) -> Any:
    """Normal numbers."""
    return _tf("random_normal")(shape, mean, stddev, dtype or _floatx(), seed)


def shape(x: Any) -> Any:
    """The shape as a tensor."""
    return _tf("shape")(x)


def int_shape(x: Any) -> tuple[int | None, ...] | None:
    """The static shape as a tuple; None if the rank is not known."""
    if isinstance(x, Tensor):
        return x.dims
    found = x.shape
    return tuple(found.as_list()) if hasattr(found, "as_list") else tuple(found)


def ndim(x: Any) -> int | None:
    """The number of axes."""
    found = int_shape(x)
    return None if found is None else len(found)


def dtype(x: Any) -> str:
    """The name of the type."""
    return dtypes.as_dtype(x.dtype).base_dtype.name


def eval(x: Any) -> Any:
    """The value of a tensor or variable in `get_session`."""
    from headrace.keras.sessions import get_session

    return get_session().run(convert_to_tensor(x))


def get_value(x: Any) -> Any:
    """The value of a variable (of Keras or of the graph)."""
    from headrace.keras.sync import value_of

    if _is_keras_variable(x):
        return value_of(x)
    return eval(x) if hasattr(x, "_to_tensor") or isinstance(x, Tensor) else np.asarray(x)


def set_value(x: Any, value: Any) -> None:
    """Give a variable (of Keras or of the graph) a value."""
    from headrace.keras.sessions import get_session
    from headrace.keras.sync import set_value as set_both

    if _is_keras_variable(x):
        set_both(x, value)
    else:
        x.load(np.asarray(value, x.dtype.np_dtype), get_session())


def batch_get_value(tensors: Any) -> list[Any]:
    """The values of several variables."""
    return [get_value(t) for t in tensors]


def batch_set_value(tuples: Any) -> None:
    """Give several variables values: pairs of variable and value."""
    for x, value in tuples:
        set_value(x, value)


def _is_keras_variable(x: Any) -> bool:
    return isinstance(x, load_keras().Variable)


def update(x: Any, new_x: Any) -> Any:
    """The operation that gives a variable of the graph another value."""
    return x.assign(new_x)


def update_add(x: Any, increment: Any) -> Any:
    """The operation that adds to a variable of the graph."""
    return x.assign_add(increment)


def update_sub(x: Any, decrement: Any) -> Any:
    """The operation that subtracts from a variable of the graph."""
    return x.assign_sub(decrement)


def count_params(x: Any) -> int:
    """How many elements a variable has."""
    return int(np.prod([int(d) for d in x.shape]))


def ctc_label_dense_to_sparse(labels: Any, label_lengths: Any) -> Any:
    """Labels in rows (``labels[b, :label_lengths[b]]``) as a SparseTensor."""
    labels = convert_to_tensor(labels)
    mask = _tf("sequence_mask")(label_lengths, _tf("shape")(labels)[1])
    indices = _tf("where")(mask)
    sizes = _tf("shape")(labels, out_type=dtypes.int64)
    return _tf("SparseTensor")(indices, _tf("gather_nd")(labels, indices), sizes)


def _on_both(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` on tensors; on arrays of JAX it gives arrays."""
    of_arrays = on_arrays(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves = jax.tree.leaves((args, kwargs), is_leaf=lambda v: isinstance(v, Tensor))
        chosen = of_arrays if any(isinstance(v, jax.Array) for v in leaves) else function
        return chosen(*args, **kwargs)

    return call


def _functions() -> dict[str, Callable[..., Any]]:
    named = {
        f.__name__: f
        for f in (
            *(cast, var, std, argmax, argmin, concatenate, dot, batch_flatten, flatten),
            *(permute_dimensions, squeeze, repeat_elements, one_hot, relu, hard_sigmoid),
            *(l2_normalize, switch, dropout, ctc_label_dense_to_sparse, shape),
            *(random_uniform, random_normal),
        )
    }
    named.update({n: _reduction(n) for n in _REDUCTIONS})
    named.update({k: _late(v) for k, v in _SAME.items()})
    for name in ("binary_crossentropy", "categorical_crossentropy"):
        named[name] = _crossentropy(name)
    named["sparse_categorical_crossentropy"] = _crossentropy("sparse_categorical_crossentropy")
    result = {n: _on_both(f) for n, f in named.items()}
    for f in (
        *(constant, variable, zeros, ones, int_shape, ndim, dtype, eval, get_value, set_value),
        *(batch_get_value, batch_set_value, update, update_add, update_sub, count_params),
    ):
        result[f.__name__] = f
    return result


def _late(name: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        if name == "gradients":
            from headrace.autodiff.gradients import gradients

            return gradients(*args, **kwargs)
        return _tf(name)(*args, **kwargs)

    return call


#: By their names in `tf.keras.backend`.
FUNCTIONS = _functions()
