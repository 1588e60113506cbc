"""The vector of parameters: its layout, and the kernels and biases of cells that it holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headrace.ops.array.api import reshape, transpose
from headrace.ops.array.joining_api import concat, split

LSTM, GRU, RELU, TANH = "lstm", "gru", "rnn_relu", "rnn_tanh"
UNIDIRECTIONAL, BIDIRECTIONAL = "unidirectional", "bidirectional"

#: Gates of each kind of network.
_GATES = {LSTM: 4, GRU: 3, RELU: 1, TANH: 1}


@dataclass(frozen=True)
class Form:
    """A network's sizes. Its parts are its layers; with two directions, two for each layer.

    Raises:
        ValueError: for another direction.
    """

    mode: str
    num_layers: int
    num_units: int
    input_size: int
    direction: str = UNIDIRECTIONAL

    def __post_init__(self) -> None:
        check_direction(self.direction)

    @property
    def num_dirs(self) -> int:
        return 1 if self.direction == UNIDIRECTIONAL else 2

    @property
    def parts(self) -> int:
        return self.num_layers * self.num_dirs

    @property
    def per_part(self) -> int:
        """Matrices (and biases) of a part: one for inputs and one for the state, by gate."""
        return 2 * _GATES[self.mode]

    def input_width(self, part: int) -> int:
        """Size of the inputs of a part."""
        return self.input_size if part < self.num_dirs else self.num_dirs * self.num_units

    def weight_shapes(self) -> list[tuple[int, int]]:
        """Shapes of all matrices in order."""
        units, gates = self.num_units, _GATES[self.mode]
        shapes = []
        for part in range(self.parts):
            shapes += [(units, self.input_width(part))] * gates + [(units, units)] * gates
        return shapes

    def bias_shapes(self) -> list[list[int]]:
        """Shapes of all biases in order."""
        return [[self.num_units]] * (self.parts * self.per_part)

    @property
    def size(self) -> int:
        """Length of the vector."""
        weights = sum(rows * columns for rows, columns in self.weight_shapes())
        return weights + self.parts * self.per_part * self.num_units

    def split(self, params: Any) -> tuple[list[Any], list[Any]]:
        """The matrices and biases that the vector holds."""
        shapes = self.weight_shapes()
        biases = self.parts * self.per_part
        sizes = [r * c for r, c in shapes] + [self.num_units] * biases
        pieces = split(reshape(params, [self.size]), sizes, axis=0)
        weights = [reshape(p, s) for p, s in zip(pieces, shapes, strict=False)]
        return weights, list(pieces[len(shapes) :])

    def join(self, weights: Sequence[Any], biases: Sequence[Any]) -> Any:
        """The vector of these matrices and biases.

        Raises:
            ValueError: if there are not as many as the network has.
        """
        count = self.parts * self.per_part
        if len(weights) != count or len(biases) != count:
            raise ValueError(
                f"The network has {count} weights and biases each, but {len(weights)} and "
                f"{len(biases)} were given."
            )
        return concat([reshape(x, [-1]) for x in (*weights, *biases)], 0)

    def cells(self, params: Any) -> list[tuple[list[Any], list[Any]]]:
        """Kernels and biases of each part, as the cells of this module's names have them."""
        weights, biases = self.split(params)
        n = self.per_part
        return [
            self._to_cell(weights[k * n : (k + 1) * n], biases[k * n : (k + 1) * n])
            for k in range(self.parts)
        ]

    def _to_cell(self, w: list[Any], b: list[Any]) -> tuple[list[Any], list[Any]]:
        gates = _GATES[self.mode]
        both = [concat([w[g], w[gates + g]], 1) for g in range(gates)]
        added = [b[g] + b[gates + g] for g in range(gates)]
        if self.mode == GRU:
            kernel = transpose(concat(both[:2], 0))
            return (
                [kernel, transpose(w[2]), transpose(w[5])],
                [concat(added[:2], 0), b[2], b[5]],
            )
        if self.mode == LSTM:  # cuDNN has input, forget, memory, output; cells have memory second
            both, added = ([x[0], x[2], x[1], x[3]] for x in (both, added))
        return [transpose(concat(both, 0))], [concat(added, 0)]

    def from_cells(self, cells: Sequence[tuple[Sequence[Any], Sequence[Any]]]) -> Any:
        """The vector of such kernels and biases; the biases for inputs and state share a half."""
        weights: list[Any] = []
        biases: list[Any] = []
        for part, (kernels, offsets) in enumerate(cells):
            w, b = self._from_cell(part, kernels, offsets)
            weights += w
            biases += b
        return self.join(weights, biases)

    def _from_cell(
        self, part: int, kernels: Sequence[Any], offsets: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        gates = 2 if self.mode == GRU else _GATES[self.mode]
        both = split(transpose(kernels[0]), gates, axis=0)
        halves = split(offsets[0] * 0.5, gates, axis=0)
        if self.mode == LSTM:
            both, halves = ([x[0], x[2], x[1], x[3]] for x in (both, halves))
        widths = [self.input_width(part), self.num_units]
        cut = [split(x, widths, axis=1) for x in both]
        inputs, states = [x for x, _ in cut], [h for _, h in cut]
        own, other = list(halves), list(halves)
        if self.mode == GRU:
            inputs, states = [*inputs, transpose(kernels[1])], [*states, transpose(kernels[2])]
            own, other = [*own, offsets[1]], [*other, offsets[2]]
        return inputs + states, own + other


def check_direction(direction: str) -> None:
    """Raise ValueError for an unknown direction."""
    if direction not in (UNIDIRECTIONAL, BIDIRECTIONAL):
        raise ValueError(
            f"Invalid direction: {direction}, expecting {UNIDIRECTIONAL} or {BIDIRECTIONAL}"
        )


def check_input_mode(mode: str) -> None:
    """Raise ValueError for an unknown input mode, or one that has no matrix for inputs."""
    if mode not in ("linear_input", "skip_input", "auto_select"):
        raise ValueError(
            f"Invalid input_mode: {mode}, expect one of (linear_input, skip_input, auto_select)"
        )
    if mode == "skip_input":
        raise ValueError("input_mode skip_input is not supported: use linear_input.")


__all__ = ["Form"]
