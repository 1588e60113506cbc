"""Decoding of CTC outputs: the best path, and prefix beam search.

Source of the beam search: Graves, "Supervised Sequence Labelling with Recurrent Neural Networks",
section 7.5.3; probabilities, ties and limits as in TensorFlow.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError

Array = np.ndarray[Any, Any]


def as_sparse(paths: Sequence[Any]) -> tuple[Array, Array, Array]:
    """One path for each sequence as a sparse matrix: indices, values and shape."""
    counts = np.array([len(p) for p in paths], np.int64)
    rows = np.repeat(np.arange(len(paths)), counts)
    columns = np.concatenate([np.arange(n) for n in counts]) if len(paths) else rows
    values = np.array([symbol for path in paths for symbol in path], np.int64)
    shape = np.array([len(paths), counts.max(initial=0)], np.int64)
    return np.stack([rows, columns], 1).astype(np.int64), values, shape


def greedy(
    logits: Array, lengths: Array, blank: int, merge_repeated: bool
) -> tuple[list[Array], Array]:
    """The symbol with the highest logit of each step, without blanks.

    Args:
        logits: ``[steps, batch, classes]``.
        lengths: steps of each sequence.
        merge_repeated: equal symbols in a row count once.

    Returns:
        The symbols of each sequence, and ``[batch, 1]``: minus the sum of the highest logits.
    """
    best = logits.argmax(2)
    top = np.take_along_axis(logits, best[..., None], 2)[..., 0]
    inside = np.arange(len(logits))[:, None] < lengths
    scores = -np.where(inside, top, 0).sum(0, dtype=logits.dtype)
    kept = inside & (best != blank)
    if merge_repeated:
        kept[1:] &= best[1:] != best[:-1]
    return [best[kept[:, b], b] for b in range(logits.shape[1])], scores[:, None]


def beam_search(
    logits: Array, lengths: Array, width: int, top: int, merge_repeated: bool
) -> tuple[list[list[list[int]]], Array]:
    """The most probable label sequences; the last class is the blank.

    Args:
        logits: ``[steps, batch, classes]``.
        width: how many prefixes survive each step.
        top: how many sequences to return.
        merge_repeated: equal symbols in a row count once in what is returned.

    Returns:
        For each sequence its ``top`` label sequences, the most probable first, and their
        log-probabilities ``[batch, top]``.

    Raises:
        InvalidArgumentError: if there are fewer than ``top`` prefixes.
    """
    paths, scores = [], []
    with np.errstate(all="ignore"):
        for b in range(logits.shape[1]):
            beam = _Beam(width, logits.dtype)
            for row in logits[: lengths[b], b]:
                beam.step(row)
            if len(beam.total) < top:
                raise InvalidArgumentError(
                    None, None, "Less leaves in the beam search than requested."
                )
            paths.append([beam.labels(k, merge_repeated) for k in range(top)])
            scores.append(beam.total[:top])
    return paths, np.array(scores, logits.dtype).reshape(len(scores), top)


class _Beam:
    """The prefixes that are alive, the most probable first.

    A prefix is a node of a tree: its last symbol and the node before it. For each the beam has the
    log-probability of all alignments that end in a blank, in the symbol, and of both.
    """

    def __init__(self, width: int, dtype: Any) -> None:
        self.width = width
        #: Of every node of the tree: the node before it, and its symbol.
        self.parents = [-1]
        self.symbols = [-1]
        self.children: dict[tuple[int, int], int] = {}
        self.nodes = [0]
        self.blank = np.zeros(1, dtype)
        self.total = np.zeros(1, dtype)
        self.label = np.full(1, -np.inf, dtype)

    def labels(self, position: int, merge: bool) -> list[int]:
        """The symbols of a prefix."""
        found: list[int] = []
        node = self.nodes[position]
        while node > 0:
            symbol = self.symbols[node]
            if not merge or not found or found[-1] != symbol:
                found.append(symbol)
            node = self.parents[node]
        return found[::-1]

    def step(self, row: Array) -> None:
        """One more row of logits."""
        top = row.max()
        offset = top + np.log(np.exp(row - top).sum(dtype=row.dtype))
        log_y = row - offset
        place = {node: i for i, node in enumerate(self.nodes)}
        symbols = np.array([self.symbols[n] for n in self.nodes])
        before = np.array([place.get(self.parents[n], -1) for n in self.nodes])
        label, blank, total = self._stay(log_y, symbols, before)
        grown = self._grow(log_y, symbols)
        self._select(label, blank, total, grown, self._known(place))

    def _stay(self, log_y: Array, symbols: Array, before: Array) -> tuple[Array, Array, Array]:
        """Prefixes that remain as they are: by a blank, by their last symbol again, or because a
        shorter prefix reaches them now."""
        at = np.maximum(before, 0)
        repeats = symbols == symbols[at]
        reached = np.where(repeats, self.blank[at], self.total[at])
        reached = np.where(before >= 0, reached, -np.inf).astype(log_y.dtype)
        label = _either(self.label, reached) + log_y[np.maximum(symbols, 0)]
        label = np.where(symbols < 0, -np.inf, label).astype(log_y.dtype)
        blank = self.total + log_y[-1]
        return label, blank, _either(blank, label)

    def _grow(self, log_y: Array, symbols: Array) -> Array:
        """Log-probabilities of all longer prefixes, ``[prefixes, symbols]``."""
        grown: Array = self.total[:, None] + log_y[None, :-1]
        rows = np.flatnonzero(symbols >= 0)
        grown[rows, symbols[rows]] = self.blank[rows] + log_y[symbols[rows]]
        return grown

    def _known(self, place: dict[int, int]) -> dict[int, dict[int, int]]:
        """For prefixes by position: longer ones that are alive already, by symbol."""
        known: dict[int, dict[int, int]] = {}
        for node, position in place.items():
            parent = place.get(self.parents[node])
            if parent is not None:
                known.setdefault(parent, {})[self.symbols[node]] = position
        return known

    def _select(self, label: Array, blank: Array, total: Array, grown: Array, known: Any) -> None:
        """Let the most probable survive; those that fall out make room one by one.

        A prefix that fell out and is met again as a longer form of another one does not grow in
        this step: so TensorFlow has it, and results depend on it.
        """
        count, width = len(total), self.width
        heap = [(value, -k) for k, value in enumerate(total.tolist())]
        heapq.heapify(heap)
        fallen: set[int] = set()
        stopped: set[int] = set()
        classes = grown.shape[1]
        best = grown.max(1, initial=-np.inf).tolist()
        for k, old in enumerate(self.total.tolist()):
            full = len(heap) >= width
            if k in stopped or old == -np.inf or (full and old <= heap[0][0]):
                continue
            mine = known.get(k, {})
            row, least = grown[k], heap[0][0] if full else -np.inf
            likely = [] if best[k] <= least else (row > least).nonzero()[0].tolist()
            for symbol in sorted({*likely, *mine}) if mine else likely:
                if symbol in mine:
                    if mine[symbol] in fallen:
                        stopped.add(mine[symbol])
                    continue
                entry = (float(row[symbol]), -(count + k * classes + symbol))
                if len(heap) < width:
                    heapq.heappush(heap, entry)
                elif entry[0] > heap[0][0]:
                    fallen.add(-heapq.heapreplace(heap, entry)[1])
        self._keep([-k for _, k in sorted(heap, reverse=True)], label, blank, total, grown)

    def _keep(
        self, order: list[int], label: Array, blank: Array, total: Array, grown: Array
    ) -> None:
        """Make the chosen ones, old prefixes and then longer ones by number, the beam."""
        count, classes = grown.shape
        nodes = []
        for k in order:
            if k < count:
                nodes.append(self.nodes[k])
            else:
                parent, symbol = divmod(k - count, classes)
                nodes.append(self._child(self.nodes[parent], symbol))
        fresh = np.full(grown.size, -np.inf, label.dtype)
        self.nodes = nodes
        self.total = np.concatenate([total, grown.ravel()])[order]
        self.blank = np.concatenate([blank, fresh])[order]
        self.label = np.concatenate([label, grown.ravel()])[order]

    def _child(self, node: int, symbol: int) -> int:
        child = self.children.get((node, symbol))
        if child is None:
            child = self.children[(node, symbol)] = len(self.parents)
            self.parents.append(node)
            self.symbols.append(symbol)
        return child


def _either(a: Array, b: Array) -> Array:
    """Log of the sum of two probabilities."""
    high, low = np.maximum(a, b), np.minimum(a, b)
    added: Array = np.where(low == -np.inf, high, high + np.log1p(np.exp(low - high)))
    return added
