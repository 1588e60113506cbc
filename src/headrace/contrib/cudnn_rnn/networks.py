"""Running a network of one vector of parameters; and the classes of older releases around it."""

from __future__ import annotations

from typing import Any

from headrace.contrib.cudnn_rnn.cells import gru_step
from headrace.contrib.cudnn_rnn.params import GRU, LSTM, TANH, Form, check_input_mode
from headrace.graph import dtypes
from headrace.ops.array.api import transpose
from headrace.ops.array.arranging_api import reverse, reverse_sequence
from headrace.ops.array.joining_api import concat, split, stack
from headrace.ops.core.build import constant, convert_to_tensor
from headrace.ops.math.cast import cast
from headrace.ops.math.elementwise import sigmoid, tanh
from headrace.ops.nn.activations import relu
from headrace.ops.nn.embedding import dropout as drop
from headrace.rnn.basic_cells import LSTMStateTuple
from headrace.rnn.cell import affine
from headrace.rnn.dynamic import run_loop


class _Step:
    """One step of a part of the network, as a cell."""

    def __init__(self, form: Form, weights: list[Any], biases: list[Any]) -> None:
        self.mode = form.mode
        self.weights = weights
        self.biases = biases
        self.output_size = units = form.num_units
        self.state_size: Any = LSTMStateTuple(units, units) if form.mode == LSTM else units

    def __call__(self, inputs: Any, state: Any) -> Any:
        if self.mode == GRU:
            new = gru_step(inputs, state, self.weights, self.biases, tanh)
            return new, new
        if self.mode != LSTM:
            activation = tanh if self.mode == TANH else relu
            new = activation(affine([inputs, state], self.weights[0], self.biases[0]))
            return new, new
        gates = affine([inputs, state.h], self.weights[0], self.biases[0])
        i, j, f, o = split(gates, 4, axis=1)
        c = sigmoid(f) * state.c + sigmoid(i) * tanh(j)
        h = sigmoid(o) * tanh(c)
        return h, LSTMStateTuple(c, h)


def run_network(
    form: Form,
    inputs: Any,
    h: Any,
    c: Any,
    params: Any,
    lengths: Any = None,
    time_major: bool = True,
    dropout: float = 0.0,
    seed: int | None = None,
) -> tuple[Any, Any, Any]:
    """Run all layers.

    Args:
        inputs: ``[time, batch, input_size]`` (``[batch, time, input_size]`` unless time-major).
        h, c: ``[layers * directions, batch, units]``; ``c`` for LSTM networks only.
        lengths: int vector ``[batch]``; past the end outputs are zeros and the state stays.
        dropout: share of the inputs of all layers but the first that is dropped.

    Returns:
        Outputs, and the final ``h`` and ``c`` (an empty vector where there is none).
    """
    x = inputs if time_major else transpose(inputs, [1, 0, 2])
    if lengths is not None:
        lengths = cast(convert_to_tensor(lengths), dtypes.int32)
    cells = form.cells(params)
    final_h, final_c = [], []
    for layer in range(form.num_layers):
        if layer > 0 and dropout:
            x = drop(x, rate=dropout, seed=seed)
        directions = []
        for d in range(form.num_dirs):
            part = layer * form.num_dirs + d
            state = LSTMStateTuple(c[part], h[part]) if form.mode == LSTM else h[part]
            given = _backwards(x, lengths) if d else x
            outputs, state = run_loop(
                _Step(form, *cells[part]), given, state, lengths, inputs.dtype
            )
            directions.append(_backwards(outputs, lengths) if d else outputs)
            final_h.append(state.h if form.mode == LSTM else state)
            final_c.append(state.c if form.mode == LSTM else None)
        x = directions[0] if form.num_dirs == 1 else concat(directions, 2)
    last_c = stack(final_c) if form.mode == LSTM else constant([], inputs.dtype)
    return (x if time_major else transpose(x, [1, 0, 2])), stack(final_h), last_c


def _backwards(x: Any, lengths: Any) -> Any:
    return reverse(x, [0]) if lengths is None else reverse_sequence(x, lengths, 0, 1)


class Network:
    """A network whose vector of parameters the caller keeps, as releases up to 1.3 had it.

    Args:
        mode: "lstm", "gru", "rnn_relu" or "rnn_tanh".
        (others): sizes, and what `run_network` takes.
    """

    def __init__(
        self,
        mode: str,
        num_layers: int,
        num_units: int,
        input_size: int,
        input_mode: str = "linear_input",
        direction: str = "unidirectional",
        dtype: Any = dtypes.float32,
        dropout: float = 0.0,
        seed: int = 0,
        num_proj: int | None = None,
    ) -> None:
        check_input_mode(input_mode)
        if num_proj:
            raise ValueError("Projections (num_proj) are not supported.")
        self.form = Form(mode, num_layers, num_units, input_size, direction)
        self.input_mode = input_mode
        self._dropout = dropout
        self._seed = seed

    @property
    def input_size(self) -> int:
        """Size of the inputs."""
        return self.form.input_size

    @property
    def num_units(self) -> int:
        """Size of the state."""
        return self.form.num_units

    @property
    def num_layers(self) -> int:
        """Number of layers."""
        return self.form.num_layers

    @property
    def rnn_mode(self) -> str:
        """Kind of network."""
        return self.form.mode

    @property
    def direction(self) -> str:
        """One direction or two."""
        return self.form.direction

    def params_size(self) -> Any:
        """Length of the vector of parameters, an int32 scalar."""
        return constant(self.form.size, dtypes.int32)

    def params_to_canonical(self, params: Any) -> Any:
        """Lists of the matrices and biases in the vector."""
        return self.form.split(params)

    def canonical_to_params(self, weights: Any, biases: Any) -> Any:
        """The vector of such matrices and biases."""
        return self.form.join(weights, biases)

    def __call__(self, input_data: Any, input_h: Any, *args: Any, **kwargs: Any) -> Any:
        """Run it: ``(inputs, h[, c], params, ...)`` gives the outputs and the final states.

        Further arguments: ``is_training``, ``sequence_lengths``, ``time_major``, in the orders of
        all releases: a bool in the place of the lengths says whether to train.
        """
        names = ["input_c"] if self.form.mode == LSTM else []
        names += ["params", "sequence_lengths", "time_major", "is_training"]
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        lengths = given.get("sequence_lengths")
        training = given.get("is_training", True)
        if isinstance(lengths, bool):
            lengths, training = None, lengths
        outputs, h, c = run_network(
            self.form,
            convert_to_tensor(input_data),
            input_h,
            given.get("input_c"),
            given["params"],
            lengths,
            given.get("time_major", True),
            self._dropout if training else 0.0,
            self._seed or None,
        )
        return (outputs, h, c) if self.form.mode == LSTM else (outputs, h)


__all__ = ["Network", "run_network"]
