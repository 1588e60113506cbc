"""Initialisers: callables that make the initial value of a variable from its shape and type."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Tensor
from headrace.ops.core.array_util import shape_argument
from headrace.ops.core.build import constant, holds_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.random import api

#: Standard deviation of a normal distribution cut off at two standard deviations.
TRUNCATED_STDDEV = 0.87962566103423978
#: Values with fewer elements are constants; larger ones are filled as the graph runs.
_CONSTANT_LIMIT = 1000


@public("initializers.Initializer")
class Initializer:
    """Makes initial values: ``initializer(shape, dtype=None, partition_info=None)``.

    >>> start = tf.constant_initializer(3)
    >>> tf.Session().run(start([2], tf.int32)).tolist()
    [3, 3]
    >>> start.get_config()
    {'value': 3, 'dtype': 'float32'}
    """

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """The initial value of a variable of ``shape``.

        ``partition_info`` tells the full shape when the variable is one part of a larger one.
        """
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        """The arguments with which an equal initialiser is made."""
        return {}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """An initialiser from `get_config`'s dictionary."""
        return cls(**config)


def _filled(shape: Any, value: Any, dtype: DType, name: str) -> Tensor:
    dims = _dims_of(shape)
    if isinstance(dims, list) and np.prod(dims, dtype=np.int64) < _CONSTANT_LIMIT:
        return constant(np.full(dims, value, dtype.np_dtype), dtype, name=name)
    result: Tensor = raw.Fill(dims, constant(value, dtype), name=name)
    return result


def _dims_of(shape: Any) -> Any:
    """The shape as a list of ints, or as a tensor if that, or one of its sizes, is one."""
    if isinstance(shape, Tensor) or (isinstance(shape, (list, tuple)) and holds_tensor(shape)):
        return shape_argument(shape)
    return TensorShape(shape).as_list()


def float_dtype(dtype: Any) -> DType:
    """A type, which must be a floating one.

    Raises:
        ValueError: if it is none.
    """
    wanted = dtypes.as_dtype(dtype).base_dtype
    if not wanted.is_floating:
        raise ValueError(f"Expected floating point type, got {wanted!r}.")
    return wanted


@public("initializers.zeros")
class Zeros(Initializer):
    """All zeros (False, or empty strings).

    >>> v = tf.get_variable("v", [2], initializer=tf.zeros_initializer())
    >>> with tf.Session() as sess:
    ...     sess.run(v.initializer)
    ...     sess.run(v).tolist()
    [0.0, 0.0]
    """

    def __init__(self, dtype: Any = dtypes.float32) -> None:
        self.dtype = dtypes.as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        wanted = dtypes.as_dtype(dtype or self.dtype).base_dtype
        return _filled(shape, b"" if wanted is dtypes.string else 0, wanted, "zeros")

    def get_config(self) -> dict[str, Any]:
        return {"dtype": self.dtype.name}


@public("initializers.ones")
class Ones(Initializer):
    """All ones.

    >>> v = tf.get_variable("v", [2], tf.int32, initializer=tf.ones_initializer())
    >>> with tf.Session() as sess:
    ...     sess.run(v.initializer)
    ...     sess.run(v).tolist()
    [1, 1]
    """

    def __init__(self, dtype: Any = dtypes.float32) -> None:
        self.dtype = dtypes.as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        return _filled(shape, 1, dtypes.as_dtype(dtype or self.dtype).base_dtype, "ones")

    def get_config(self) -> dict[str, Any]:
        return {"dtype": self.dtype.name}


@public("initializers.constant")
class Constant(Initializer):
    """A given value: a number for all elements, or a list or array with as many as needed.

    A list that is too short is extended with its last element, unless ``verify_shape``.

    Raises:
        TypeError: if ``value`` is no number, list or array.

    >>> tf.Session().run(tf.constant_initializer([1, 2])([2, 2])).tolist()
    [[1.0, 2.0], [2.0, 2.0]]
    """

    def __init__(
        self, value: Any = 0, dtype: Any = dtypes.float32, verify_shape: bool = False
    ) -> None:
        if not (np.isscalar(value) or isinstance(value, (list, tuple, np.ndarray))):
            raise TypeError(
                f"Invalid type for initial value={value} of type: {type(value).__name__}. Expected "
                "Python scalar, list or tuple of values, or numpy.ndarray."
            )
        self.value = value
        self.dtype = dtypes.as_dtype(dtype)
        self._verify_shape = verify_shape

    def __call__(
        self,
        shape: Any,
        dtype: Any = None,
        partition_info: Any = None,
        verify_shape: bool | None = None,
    ) -> Tensor:
        wanted = dtypes.as_dtype(dtype or self.dtype).base_dtype
        verify = self._verify_shape if verify_shape is None else verify_shape
        dims = _dims_of(shape)
        if np.ndim(self.value) == 0 and wanted is not dtypes.string and not verify:
            small = isinstance(dims, list) and np.prod(dims, dtype=np.int64) < _CONSTANT_LIMIT
            if not small:
                return _filled(dims, self.value, wanted, "Const")
        return constant(self.value, wanted, dims, verify_shape=verify)

    def get_config(self) -> dict[str, Any]:
        return {"value": self.value, "dtype": self.dtype.name}


@public("initializers.random_uniform")
class RandomUniform(Initializer):
    """Uniform numbers in ``[minval, maxval)``; floats default to ``[0, 1)``.

    >>> values = tf.Session().run(tf.random_uniform_initializer(-1, 1, seed=1)([1000]))
    >>> bool((values >= -1).all() and (values < 1).all()), bool((values > 0.9).any())
    (True, True)
    """

    def __init__(
        self,
        minval: Any = 0.0,
        maxval: Any = None,
        seed: int | None = None,
        dtype: Any = dtypes.float32,
    ) -> None:
        self.minval = minval
        self.maxval = maxval
        self.seed = seed
        self.dtype = dtypes.as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        return api.random_uniform(
            _dims_of(shape), self.minval, self.maxval, dtype or self.dtype, seed=self.seed
        )

    def get_config(self) -> dict[str, Any]:
        return {
            "minval": self.minval,
            "maxval": self.maxval,
            "seed": self.seed,
            "dtype": self.dtype.name,
        }


@public("initializers.random_normal")
class RandomNormal(Initializer):
    """Normal numbers of ``mean`` and ``stddev``.

    >>> values = tf.Session().run(tf.random_normal_initializer(stddev=2.0, seed=1)([1000]))
    >>> bool(1.8 < values.std() < 2.2)
    True
    """

    def __init__(
        self,
        mean: Any = 0.0,
        stddev: Any = 1.0,
        seed: int | None = None,
        dtype: Any = dtypes.float32,
    ) -> None:
        self.mean = mean
        self.stddev = stddev
        self.seed = seed
        self.dtype = float_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        return api.random_normal(
            _dims_of(shape), self.mean, self.stddev, dtype or self.dtype, seed=self.seed
        )

    def get_config(self) -> dict[str, Any]:
        return {
            "mean": self.mean,
            "stddev": self.stddev,
            "seed": self.seed,
            "dtype": self.dtype.name,
        }


@public("initializers.truncated_normal")
class TruncatedNormal(RandomNormal):
    """Normal numbers of ``mean`` and ``stddev``; those beyond two stddev are drawn again.

    >>> values = tf.Session().run(tf.truncated_normal_initializer(stddev=0.5, seed=1)([1000]))
    >>> bool(abs(values).max() < 1.0)  # two standard deviations
    True
    """

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        return api.truncated_normal(
            _dims_of(shape), self.mean, self.stddev, dtype or self.dtype, seed=self.seed
        )


@public("initializers.uniform_unit_scaling")
class UniformUnitScaling(Initializer):
    """Uniform numbers that keep the scale of a layer's input: ``factor * sqrt(3 / input size)``.

    Sussillo and Abbott, "Random walk initialization for training very deep feedforward networks"
    (2014, arXiv 1412.6558).

    >>> values = tf.Session().run(tf.uniform_unit_scaling_initializer(seed=1)([300, 10]))
    >>> bool(abs(values).max() <= 0.1)  # sqrt(3 / 300)
    True
    """

    def __init__(
        self, factor: float = 1.0, seed: int | None = None, dtype: Any = dtypes.float32
    ) -> None:
        self.factor = factor
        self.seed = seed
        self.dtype = float_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        full = _dims_of(shape if partition_info is None else partition_info.full_shape)
        input_size = float(np.prod(full[:-1])) if len(full) > 1 else 1.0
        bound = math.sqrt(3 / max(input_size, 1.0)) * self.factor
        return api.random_uniform(
            _dims_of(shape), -bound, bound, dtype or self.dtype, seed=self.seed
        )

    def get_config(self) -> dict[str, Any]:
        return {"factor": self.factor, "seed": self.seed, "dtype": self.dtype.name}


_MODES = ("fan_in", "fan_out", "fan_avg")
_DISTRIBUTIONS = ("normal", "uniform", "truncated_normal", "untruncated_normal")


@public("initializers.variance_scaling")
class VarianceScaling(Initializer):
    """Numbers of variance ``scale / n``, where n counts inputs, outputs or their average.

    A scale of 2 over the inputs: He et al., "Delving deep into rectifiers" (2015), section 2.2; of
    1 over the average: Glorot and Bengio (2010), equation 12.

    Args:
        scale: positive factor.
        mode: ``fan_in``, ``fan_out`` or ``fan_avg``.
        distribution: ``truncated_normal`` (also called ``normal``), ``untruncated_normal`` or
            ``uniform``.

    Raises:
        ValueError: if an argument is out of its range.

    >>> start = tf.variance_scaling_initializer(scale=2.0, mode="fan_in", seed=1)  # He et al.
    >>> values = tf.Session().run(start([200, 50]))
    >>> bool(0.095 < values.std() < 0.105)  # sqrt(2 / 200)
    True
    """

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: int | None = None,
        dtype: Any = dtypes.float32,
    ) -> None:
        if scale <= 0.0:
            raise ValueError(f"Argument `scale` must be a positive float. Received: {scale}")
        if mode not in _MODES:
            raise ValueError(f"Argument `mode` should be one of {_MODES}. Received: {mode}")
        distribution = distribution.lower()
        if distribution not in _DISTRIBUTIONS:
            raise ValueError(
                f"Argument `distribution` should be one of {_DISTRIBUTIONS}. Received: "
                f"{distribution}"
            )
        self.scale = scale
        self.mode = mode
        self.distribution = distribution
        self.seed = seed
        self.dtype = float_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        wanted = dtype or self.dtype
        dims = _dims_of(shape)
        fan_in, fan_out = _fans(
            dims if partition_info is None else _dims_of(partition_info.full_shape)
        )
        count = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2.0}
        variance = self.scale / max(1.0, count[self.mode])
        if self.distribution == "uniform":
            limit = math.sqrt(3.0 * variance)
            return api.random_uniform(dims, -limit, limit, wanted, seed=self.seed)
        stddev = math.sqrt(variance)
        if self.distribution == "untruncated_normal":
            return api.random_normal(dims, 0.0, stddev, wanted, seed=self.seed)
        stddev /= TRUNCATED_STDDEV
        return api.truncated_normal(dims, 0.0, stddev, wanted, seed=self.seed)

    def get_config(self) -> dict[str, Any]:
        return {
            "scale": self.scale,
            "mode": self.mode,
            "distribution": self.distribution,
            "seed": self.seed,
            "dtype": self.dtype.name,
        }


def _fans(dims: list[int]) -> tuple[float, float]:
    """Inputs and outputs of each unit of a weight tensor ``[window..., in, out]``."""
    if len(dims) < 1:
        return 1.0, 1.0
    if len(dims) == 1:
        return float(dims[0]), float(dims[0])
    window = float(np.prod(dims[:-2]))
    return dims[-2] * window, dims[-1] * window


@public("initializers.glorot_uniform")
class GlorotUniform(VarianceScaling):
    """Uniform numbers within ``sqrt(6 / (inputs + outputs))``: the default of `get_variable`.

    Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks"
    (2010), equation 16.

    >>> values = tf.Session().run(tf.glorot_uniform_initializer(seed=1)([100, 50]))
    >>> bool(abs(values).max() <= 0.2)  # sqrt(6 / (100 + 50))
    True
    """

    def __init__(self, seed: int | None = None, dtype: Any = dtypes.float32) -> None:
        super().__init__(1.0, "fan_avg", "uniform", seed, dtype)

    def get_config(self) -> dict[str, Any]:
        return {"seed": self.seed, "dtype": self.dtype.name}


@public("initializers.glorot_normal")
class GlorotNormal(VarianceScaling):
    """Truncated normal numbers of stddev ``sqrt(2 / (inputs + outputs))``.

    Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks"
    (2010), equation 12.

    >>> values = tf.Session().run(tf.glorot_normal_initializer(seed=1)([150, 50]))
    >>> bool(0.095 < values.std() < 0.105)  # sqrt(2 / (150 + 50))
    True
    """

    def __init__(self, seed: int | None = None, dtype: Any = dtypes.float32) -> None:
        super().__init__(1.0, "fan_avg", "truncated_normal", seed, dtype)

    def get_config(self) -> dict[str, Any]:
        return {"seed": self.seed, "dtype": self.dtype.name}


@public("initializers.orthogonal")
class Orthogonal(Initializer):
    """A matrix with orthogonal rows or columns, scaled by ``gain``.

    A shape of more dimensions is that of the matrix ``[product of all but the last, last]``.

    Saxe, McClelland and Ganguli, "Exact solutions to the nonlinear dynamics of learning in deep
    linear neural networks" (2014, arXiv 1312.6120).

    >>> w = tf.get_variable("w", [3, 2], initializer=tf.orthogonal_initializer(gain=2.0))
    >>> w.shape.as_list()  # its columns are orthogonal, each of length 2
    [3, 2]
    """

    def __init__(
        self, gain: float = 1.0, seed: int | None = None, dtype: Any = dtypes.float32
    ) -> None:
        self.gain = gain
        self.seed = seed
        self.dtype = float_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        dims = _dims_of(shape)
        if len(dims) < 2:
            raise ValueError(
                "The tensor to initialize, specified by argument `shape` must be at least "
                f"two-dimensional. Received shape={dims}"
            )
        rows, cols = int(np.prod(dims[:-1])), dims[-1]
        flat = [max(rows, cols), min(rows, cols)]
        noise = api.random_normal(flat, dtype=dtype or self.dtype, seed=self.seed)
        q, r = raw.Qr(noise, full_matrices=False)
        # The signs make the distribution uniform over orthogonal matrices.
        q = raw.Mul(q, raw.Sign(raw.DiagPart(r)))
        if rows < cols:
            q = raw.Transpose(q, [1, 0])
        value = raw.Reshape(q, dims)
        result: Tensor = raw.Mul(constant(self.gain, value.dtype), value)
        return result

    def get_config(self) -> dict[str, Any]:
        return {"gain": self.gain, "seed": self.seed, "dtype": self.dtype.name}


@public("initializers.identity")
class Identity(Initializer):
    """The identity matrix times ``gain``; for two-dimensional shapes only.

    >>> tf.Session().run(tf.initializers.identity(gain=2.0)([2, 3])).tolist()
    [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]]
    """

    def __init__(self, gain: float = 1.0, dtype: Any = dtypes.float32) -> None:
        self.gain = gain
        self.dtype = float_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        full = _dims_of(shape if partition_info is None else partition_info.full_shape)
        if len(full) != 2:
            raise ValueError("Identity matrix initializer can only be used for 2D matrices.")
        wanted = dtypes.as_dtype(dtype or self.dtype).base_dtype
        eye = self.gain * np.eye(*full)
        if partition_info is not None:
            offset = partition_info.var_offset
            rows, cols = _dims_of(shape)
            eye = eye[offset[0] : offset[0] + rows, offset[1] : offset[1] + cols]
        return constant(eye.astype(wanted.np_dtype), wanted, name="eye")

    def get_config(self) -> dict[str, Any]:
        return {"gain": self.gain, "dtype": self.dtype.name}


@public("initializers.lecun_normal")
def lecun_normal(seed: int | None = None) -> VarianceScaling:
    """Truncated normal numbers of stddev ``sqrt(1 / inputs)``.

    Called with a shape and a dtype, it gives a tensor of both; ``inputs`` counts what feeds one
    output. From LeCun et al., "Efficient BackProp" (1998), section 4.6.
    """
    return VarianceScaling(1.0, "fan_in", "truncated_normal", seed)


@public("initializers.lecun_uniform")
def lecun_uniform(seed: int | None = None) -> VarianceScaling:
    """Uniform numbers within ``sqrt(3 / inputs)``.

    Called with a shape and a dtype, it gives a tensor of both; ``inputs`` counts what feeds one
    output. From LeCun et al., "Efficient BackProp" (1998), section 4.6.
    """
    return VarianceScaling(1.0, "fan_in", "uniform", seed)


@public("initializers.he_normal")
def he_normal(seed: int | None = None) -> VarianceScaling:
    """Truncated normal numbers of stddev ``sqrt(2 / inputs)``.

    Called with a shape and a dtype, it gives a tensor of both; ``inputs`` counts what feeds one
    output. From He et al., "Delving Deep into Rectifiers" (2015), section 2.2.
    """
    return VarianceScaling(2.0, "fan_in", "truncated_normal", seed)


@public("initializers.he_uniform")
def he_uniform(seed: int | None = None) -> VarianceScaling:
    """Uniform numbers within ``sqrt(6 / inputs)``.

    Called with a shape and a dtype, it gives a tensor of both; ``inputs`` counts what feeds one
    output. From He et al., "Delving Deep into Rectifiers" (2015), section 2.2.
    """
    return VarianceScaling(2.0, "fan_in", "uniform", seed)


zeros_initializer = public("zeros_initializer")(Zeros)
ones_initializer = public("ones_initializer")(Ones)
constant_initializer = public("constant_initializer")(Constant)
random_uniform_initializer = public("random_uniform_initializer")(RandomUniform)
random_normal_initializer = public("random_normal_initializer")(RandomNormal)
truncated_normal_initializer = public("truncated_normal_initializer")(TruncatedNormal)
uniform_unit_scaling_initializer = public("uniform_unit_scaling_initializer")(UniformUnitScaling)
variance_scaling_initializer = public("variance_scaling_initializer")(VarianceScaling)
orthogonal_initializer = public("orthogonal_initializer")(Orthogonal)
glorot_uniform_initializer = public("glorot_uniform_initializer")(GlorotUniform)
glorot_normal_initializer = public("glorot_normal_initializer")(GlorotNormal)
