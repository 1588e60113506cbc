"""Dense, Dropout and Flatten."""

from __future__ import annotations

from typing import Any

from headrace.graph import dtypes
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Tensor
from headrace.layers import arguments
from headrace.layers.base import InputSpec, Layer
from headrace.ops.array import api
from headrace.ops.core.build import raw
from headrace.ops.math.cast import cast
from headrace.ops.math.einsum import tensordot
from headrace.ops.nn import activations, embedding
from headrace.ops.sparse.sparse_tensor import SparseTensor


class Dense(Layer):
    """``activation(inputs @ kernel + bias)``: ``[..., n]`` becomes ``[..., units]``.

    Args:
        units: size of the last dimension of the output.
        activation: function of the result, or its name; None for none.
        kernel_initializer: by default that of the variable scope, else Glorot uniform: Glorot and
            Bengio, "Understanding the difficulty of training deep feedforward neural networks"
            (2010), equation 16.

    Raises:
        ValueError: if the last dimension of the inputs is not known, or there is only one.
        TypeError: if the layer's type is not floating or complex.

    >>> layer = tf.layers.Dense(3, activation=tf.nn.relu)
    >>> layer(tf.zeros([2, 5])).shape.as_list()
    [2, 3]
    >>> layer.kernel.shape.as_list(), layer.bias.shape.as_list()
    ([5, 3], [3])
    """

    def __init__(
        self,
        units: Any,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = arguments.ZEROS,
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            trainable=trainable,
            name=name,
            activity_regularizer=arguments.regularizer(activity_regularizer),
            **kwargs,
        )
        self.units = int(units)
        self.activation = arguments.activation(activation)
        self.use_bias = use_bias
        self.kernel_initializer = arguments.initializer(kernel_initializer)
        self.bias_initializer = arguments.initializer(bias_initializer)
        self.kernel_regularizer = arguments.regularizer(kernel_regularizer)
        self.bias_regularizer = arguments.regularizer(bias_regularizer)
        self.kernel_constraint = kernel_constraint
        self.bias_constraint = bias_constraint
        self.input_spec = InputSpec(min_ndim=2)

    def build(self, input_shape: Any) -> None:
        dtype = dtypes.as_dtype(self.dtype or dtypes.float32)
        if not (dtype.is_floating or dtype.is_complex):
            raise TypeError(
                f"Unable to build `Dense` layer with non-floating point dtype {dtype.name}"
            )
        depth = TensorShape(input_shape).as_list()[-1]
        if depth is None:
            raise ValueError(
                "The last dimension of the inputs to `Dense` should be defined. Found `None`."
            )
        self.input_spec = InputSpec(min_ndim=2, axes={-1: depth})
        self.kernel = self.add_weight(
            "kernel",
            shape=[depth, self.units],
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                "bias",
                shape=[self.units],
                initializer=self.bias_initializer,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )
        self.built = True

    def call(self, inputs: Any) -> Any:
        rank = inputs.shape.rank
        if isinstance(inputs, SparseTensor):
            outputs = raw.SparseTensorDenseMatMul(
                inputs.indices, inputs.values, inputs.dense_shape, self.kernel
            )
        elif rank > 2:
            outputs = tensordot(inputs, self.kernel, [[rank - 1], [0]])
            outputs.set_shape([*inputs.shape.as_list()[:-1], self.units])
        else:
            outputs = raw.MatMul(cast(inputs, self.dtype), self.kernel)
        if self.bias is not None:
            outputs = activations.bias_add(outputs, self.bias)
        return outputs if self.activation is None else self.activation(outputs)

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        shape = TensorShape(input_shape).with_rank_at_least(2)
        if shape.as_list()[-1] is None:
            raise ValueError(
                f"The innermost dimension of input_shape must be defined, but saw: {input_shape}"
            )
        return TensorShape([*shape.as_list()[:-1], self.units])


class Dropout(Layer):
    """Sets a random part ``rate`` of the inputs to 0 and scales the others, when training.

    The output has the shape and type of the inputs.

    Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting" (2014),
    section 4.

    Args:
        noise_shape: shape of the random choice, broadcast to the inputs; entries of None are
            those of the inputs.

    Raises:
        ValueError: in a call that trains, if ``rate`` is not in [0, 1), or inputs are no floats.

    >>> layer = tf.layers.Dropout(rate=0.5)
    >>> with tf.Session() as sess:
    ...     sess.run(layer(tf.ones([4]))).tolist()  # not in training: as it is
    ...     set(sess.run(layer(tf.ones([1000]), training=True)).tolist()) == {0.0, 2.0}
    [1.0, 1.0, 1.0, 1.0]
    True
    """

    def __init__(
        self,
        rate: Any = 0.5,
        noise_shape: Any = None,
        seed: int | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.rate = rate
        self.noise_shape = noise_shape
        self.seed = seed

    def _get_noise_shape(self, inputs: Tensor) -> Any:
        """The noise shape with the sizes of the inputs where it has None."""
        if self.noise_shape is None or isinstance(self.noise_shape, Tensor):
            return self.noise_shape
        sizes = api.shape(inputs)
        return [sizes[i] if n is None else n for i, n in enumerate(self.noise_shape)]

    def call(self, inputs: Any, training: Any = False) -> Any:
        def dropped() -> Any:
            return embedding.dropout(
                inputs, noise_shape=self._get_noise_shape(inputs), seed=self.seed, rate=self.rate
            )

        return arguments.smart_cond(
            False if training is None else training, dropped, lambda: raw.Identity(inputs)
        )

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        return TensorShape(input_shape)


class Flatten(Layer):
    """``[batch, ...]`` as ``[batch, elements]``; channels come last even if they came second.

    Raises:
        ValueError: for an unknown ``data_format``, or inputs of unknown rank or of rank 0.

    >>> tf.layers.Flatten()(tf.zeros([2, 3, 4])).shape.as_list()
    [2, 12]
    """

    def __init__(self, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._first = arguments.channels_first(data_format)
        self.data_format = data_format or "channels_last"
        self.input_spec = InputSpec(min_ndim=1)

    def call(self, inputs: Any) -> Any:
        rank = inputs.shape.rank
        if self._first and rank > 1:
            inputs = raw.Transpose(inputs, [0, *range(2, rank), 1])
        batch = inputs.shape.as_list()[0] or api.shape(inputs)[0]
        # The number of elements does not tell that of the rows if there are none.
        count: Any = self.compute_output_shape(inputs.shape).as_list()[1]
        if count is None and not inputs.shape.as_list()[0]:
            count = raw.Prod(api.shape(inputs)[1:], 0)
        outputs = api.reshape(inputs, (batch, -1 if count is None else count))
        outputs.set_shape(self.compute_output_shape(inputs.shape))
        return outputs

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        batch, *rest = TensorShape(input_shape).with_rank_at_least(1).as_list()
        count: int | None = 1
        for size in rest:
            count = None if size is None or count is None else count * size
        return TensorShape([batch, count])


dense = arguments.functional(Dense)


def dropout(
    inputs: Any,
    rate: Any = 0.5,
    noise_shape: Any = None,
    seed: int | None = None,
    training: Any = False,
    name: str | None = None,
) -> Tensor:
    """`Dropout`, made and called on ``inputs``; nothing is dropped unless ``training``.

    Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting" (2014),
    section 4; what stays is scaled by ``1 / (1 - rate)`` at once, so that nothing is left to do
    when the model is used.

    Args:
        inputs: floats of any shape, which the result has.
        rate: the share that becomes 0, in [0, 1): a number or a scalar tensor.
        noise_shape: a shape that broadcasts to that of ``inputs``; along its dimensions of size 1
            values are dropped together.
        training: a bool, or a bool scalar tensor.

    Raises:
        ValueError: if inputs are no floats, ``rate`` is out of range, or ``noise_shape`` does not
            fit.
    """
    result: Tensor = Dropout(rate, noise_shape, seed, name).apply(inputs, training=training)
    return result


def flatten(inputs: Any, name: str | None = None, data_format: str = "channels_last") -> Tensor:
    """`Flatten`, made and called on ``inputs``: ``[batch, a, b ...]`` as ``[batch, a * b ...]``.

    Raises:
        TypeError: if ``inputs`` is no tensor or array.
        ValueError: if the rank is 0 or unknown, or for an unknown ``data_format``.

    >>> flatten(tf.zeros([2, 3, 4])).shape.as_list()
    [2, 12]
    """
    result: Tensor = Flatten(data_format=data_format, name=name).apply(inputs)
    return result


__all__ = ["Dense", "Dropout", "Flatten", "dense", "dropout", "flatten"]
