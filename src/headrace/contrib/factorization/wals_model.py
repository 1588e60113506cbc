"""Weighted alternating least squares as a graph."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Real
from typing import Any

import headrace as tf
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core.build import raw

__all__ = ["WALSModel"]

#: New factors, the op that stores them, the loss, what regularization adds, the sum of weights.
Update = tuple[Tensor, Operation, Tensor, Tensor, Tensor]
#: The last three of them.
Losses = tuple[Tensor, Tensor, Tensor]


class WALSModel:
    """Factors of a sparse matrix by weighted alternating least squares.

    With A of ``input_rows`` x ``input_cols``, it looks for U and V that make
    ``sum_ij w_ij (a_ij - u_i . v_j)^2 + regularization * (|U|^2 + |V|^2)`` small, where entries
    that are not there count as 0 and ``w_ij`` is ``unobserved_weight``, plus
    ``row_weights[i] * col_weights[j]`` for those that are (Hu, Koren and Volinsky, ICDM 2008).
    A sweep runs ``row_update_prep_gramian_op``, ``initialize_row_update_op`` and then the updates
    of all rows, in batches, by any number of workers; then the same for columns.

    Args:
        input_rows, input_cols: the size of the matrix.
        n_components: how many numbers a factor has.
        unobserved_weight: of all entries; 0 looks at the observed ones alone.
        regularization: None is 0.
        row_init, col_init: "random" (standard normal), the factors, a list of those of each
            shard, or a function that returns either.
        num_row_shards, num_col_shards: how many variables hold the factors.
        row_weights, col_weights: a number, one for each row or column, or a list of such for each
            shard; both None: observed entries weigh no more than others.
        use_factors_weights_cache: taken, without effect: a step reads what it needs.
        use_gramian_cache: whether products of all factors are those of the last
            ``..._prep_gramian_op``, or each step makes them.

    Raises:
        ValueError: for sizes below 1, weights below 0, one weight None and the other not, and
            factors or weights of another shape.
        InvalidArgumentError: when run, for indices outside the matrix, numbers that are not finite,
            and rows whose equations have no single solution.

    >>> matrix = tf.SparseTensor([[0, 0], [0, 1], [1, 0], [1, 1]], [2.0, 4.0, 3.0, 6.0], [2, 2])
    >>> model = tf.contrib.factorization.WALSModel(
    ...     2, 2, 1, unobserved_weight=0, regularization=1e-6, row_init=[[1.0], [1.0]]
    ... )
    >>> rows, columns = model.update_row_factors(matrix)[1], model.update_col_factors(matrix)[1]
    >>> with tf.Session() as sess:
    ...     sess.run(model.initialize_op)
    ...     for _ in range(3):
    ...         sess.run(model.col_update_prep_gramian_op)
    ...         sess.run(columns)
    ...         sess.run(model.row_update_prep_gramian_op)
    ...         sess.run(rows)
    ...     u, v = sess.run([model.row_factors[0], model.col_factors[0]])
    >>> (u @ v.T).round(3)
    array([[2., 4.],
           [3., 6.]], dtype=float32)
    """

    def __init__(
        self,
        input_rows: int,
        input_cols: int,
        n_components: int,
        unobserved_weight: float = 0.1,
        regularization: float | None = None,
        row_init: Any = "random",
        col_init: Any = "random",
        num_row_shards: int = 1,
        num_col_shards: int = 1,
        row_weights: Any = 1,
        col_weights: Any = 1,
        use_factors_weights_cache: bool = True,
        use_gramian_cache: bool = True,
    ) -> None:
        sizes = {
            "input_rows": input_rows,
            "input_cols": input_cols,
            "n_components": n_components,
            "num_row_shards": num_row_shards,
            "num_col_shards": num_col_shards,
        }
        for name, value in sizes.items():
            if value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")
        for name, number in (
            ("unobserved_weight", unobserved_weight),
            ("regularization", regularization or 0.0),
        ):
            if number < 0:
                raise ValueError(f"{name} must not be below 0, but is {number}")
        if (row_weights is None) != (col_weights is None):
            raise ValueError("row_weights and col_weights must both be None, or neither")
        self._sizes = (input_rows, input_cols)
        self._components = n_components
        self._unobserved, self._regularization = unobserved_weight, regularization or 0.0
        names, shards = ("row", "col"), (num_row_shards, num_col_shards)
        inits, weights = (row_init, col_init), (row_weights, col_weights)
        self._factors = [
            _factors(f"{names[i]}_factors", self._sizes[i], n_components, shards[i], inits[i])
            for i in (0, 1)
        ]
        self._weights = [
            None
            if weights[i] is None
            else _weights(f"{names[i]}_weights", self._sizes[i], shards[i], weights[i])
            for i in (0, 1)
        ]
        square = [n_components, n_components]
        self._is_prepared = use_gramian_cache
        self._gramians = [
            tf.Variable(tf.zeros(square), name=f"{name}_gramian", trainable=False) for name in names
        ]
        self._prepare = [
            gramian.assign(self._product(side), read_value=False)
            for side, gramian in enumerate(self._gramians)
        ]

    def _product(self, side: int) -> Tensor:
        parts = [tf.matmul(f, f, transpose_a=True) for f in self._factors[side]]
        product: Tensor = tf.add_n(parts)
        return product

    def _gramian(self, side: int) -> Tensor:
        """The products of the components of all factors, ``[n_components, n_components]``."""
        if not self._is_prepared:
            return self._product(side)
        prepared: Tensor = self._gramians[side].value()
        return prepared

    @property
    def row_factors(self) -> list[Any]:
        """The factors of the rows: a variable ``[rows, n_components]`` for each shard."""
        return self._factors[0]

    @property
    def col_factors(self) -> list[Any]:
        """The factors of the columns, as those of the rows."""
        return self._factors[1]

    @property
    def row_weights(self) -> list[Any] | None:
        """The weights of the rows: a variable for each shard, or None."""
        return self._weights[0]

    @property
    def col_weights(self) -> list[Any] | None:
        """The weights of the columns, as those of the rows."""
        return self._weights[1]

    @property
    def initialize_op(self) -> Operation:
        """Gives all variables their first values; the chief runs it."""
        found = [*self._factors[0], *self._factors[1], *self._gramians]
        for weights in self._weights:
            found += weights or []
        op: Operation = tf.variables_initializer(found)
        return op

    @property
    def worker_init(self) -> Operation:
        """To be run once by each worker: there is nothing to prepare."""
        op: Operation = tf.no_op()
        return op

    initialize_row_update_op = worker_init
    initialize_col_update_op = worker_init

    @property
    def row_update_prep_gramian_op(self) -> Operation:
        """To be run before rows are updated, and after columns were."""
        op: Operation = self._prepare[1]
        return op

    @property
    def col_update_prep_gramian_op(self) -> Operation:
        """To be run before columns are updated, and after rows were."""
        op: Operation = self._prepare[0]
        return op

    def update_row_factors(self, sp_input: Any, transpose_input: bool = False) -> Update:
        """The step that solves for the factors of the rows of a batch.

        Args:
            sp_input: a SparseTensor with all entries of these rows, under their numbers in the
                whole matrix; the other rows have none.
            transpose_input: it is given as ``[columns, rows]``.

        Returns:
            The new factors ``[rows of the batch, n_components]``; the op that stores them; the
            loss with them, without regularization; what that adds; and the sum of all weights.
            The last three are scaled from the rows of the batch to all rows.
        """
        return self._update(0, sp_input, transpose_input)

    def update_col_factors(self, sp_input: Any, transpose_input: bool = False) -> Update:
        """The step that solves for the factors of columns, as that for rows.

        Args:
            sp_input: a SparseTensor with all entries of these columns.
            transpose_input: it is given as ``[columns, rows]``.

        Returns:
            As for rows.
        """
        return self._update(1, sp_input, transpose_input)

    def row_losses(self, sp_input: Any, transpose_input: bool = False) -> Losses:
        """What `update_row_factors` says of the loss, of the sizes and of the weights.

        Args:
            sp_input, transpose_input: as there; nothing is stored.
        """
        return self._solve_and_compare(0, sp_input, transpose_input)[2]

    def col_losses(self, sp_input: Any, transpose_input: bool = False) -> Losses:
        """What `update_col_factors` says of them.

        Args:
            sp_input, transpose_input: as there; nothing is stored.
        """
        return self._solve_and_compare(1, sp_input, transpose_input)[2]

    def project_row_factors(
        self, sp_input: Any, transpose_input: bool = False, projection_weights: Any = None
    ) -> Tensor:
        """The factors of rows that need not be in the matrix; nothing is stored.

        Args:
            sp_input: a SparseTensor with their entries, numbered as they like.
            transpose_input: it is given as ``[columns, rows]``.
            projection_weights: a weight for each of the rows, by their numbers; None is 1.

        Returns:
            ``[rows with entries, n_components]``, by their first entries.
        """
        return self._solve(0, *_places(0, sp_input, transpose_input), projection_weights)[0]

    def project_col_factors(
        self, sp_input: Any, transpose_input: bool = False, projection_weights: Any = None
    ) -> Tensor:
        """The factors of columns that need not be in the matrix, as those of rows.

        Args:
            sp_input, transpose_input, projection_weights: as for rows.

        Returns:
            As for rows.
        """
        return self._solve(1, *_places(1, sp_input, transpose_input), projection_weights)[0]

    # -- the systems ----------------------------------------------------------------------------

    def _solve(
        self, side: int, own: Tensor, other: Tensor, values: Tensor, own_weights: Any
    ) -> tuple[Tensor, ...]:
        """New factors; whose they are, that of each entry, the entries' other factors, weights."""
        ids, owners = tf.unique(own)
        factors = tf.nn.embedding_lookup(self._factors[1 - side], other, "div")
        other_weights = self._weights[1 - side]
        if other_weights is None:
            weights = tf.zeros_like(values)
        else:
            weights = tf.nn.embedding_lookup(other_weights, other, "div")
            if own_weights is not None:
                weights *= tf.gather(tf.cast(tf.convert_to_tensor(own_weights), tf.float32), own)
        new = raw.HeadraceWeightedSolve(
            ids,
            owners,
            factors,
            weights,
            values,
            self._gramian(1 - side),
            unobserved_weight=self._unobserved,
            regularization=self._regularization,
        )
        new.set_shape([None, self._components])
        return new, ids, owners, factors, weights

    def _update(self, side: int, sp_input: Any, transposed: bool) -> Update:
        new, ids, losses = self._solve_and_compare(side, sp_input, transposed)
        with tf.control_dependencies([new]):
            update = tf.group(*_store(self._factors[side], self._sizes[side], ids, new))
        return new, update, *losses

    def _solve_and_compare(
        self, side: int, sp_input: Any, transposed: bool
    ) -> tuple[Tensor, Tensor, Losses]:
        """New factors, whose they are, and the losses with them."""
        own, other, values = _places(side, sp_input, transposed)
        weights: Any = self._weights[side]
        weights = None if weights is None else tf.concat([w.value() for w in weights], 0)
        new, ids, owners, factors, weights = self._solve(side, own, other, values, weights)
        count = tf.cast(tf.maximum(tf.size(ids), 1), tf.float32)
        scale = self._sizes[side] / count
        found = tf.reduce_sum(tf.gather(new, owners) * factors, 1)
        squares = (self._unobserved + weights) * tf.square(values - found)
        gramian = self._gramian(1 - side)
        everywhere = tf.reduce_sum(tf.matmul(new, gramian) * new)
        observed = tf.reduce_sum(squares - self._unobserved * tf.square(found))
        loss = scale * (observed + self._unobserved * everywhere)
        others = tf.trace(gramian)
        regularization = self._regularization * (scale * tf.reduce_sum(new * new) + others)
        all_weights = self._unobserved * self._sizes[0] * self._sizes[1]
        return new, ids, (loss, regularization, all_weights + scale * tf.reduce_sum(weights))


def _places(side: int, sp_input: Any, transposed: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Of each entry: its row and column, those that are solved for first, and its value."""
    if not isinstance(sp_input, tf.SparseTensor):
        raise ValueError(f"sp_input must be a SparseTensor, not {sp_input!r}")
    own, other = (1, 0) if (side == 1) != transposed else (0, 1)
    indices = sp_input.indices
    return indices[:, own], indices[:, other], tf.cast(sp_input.values, tf.float32)


def _shard_sizes(size: int, shards: int) -> list[int]:
    each, more = divmod(size, shards)
    return [each + (i < more) for i in range(shards)]


def _store(shards: list[Any], size: int, ids: Tensor, new: Tensor) -> list[Operation]:
    """The ops that write rows of factors into their shards."""
    if len(shards) == 1:
        return [raw.ResourceScatterUpdate(shards[0].handle, ids, new)]
    ops, begin = [], 0
    for shard, count in zip(shards, _shard_sizes(size, len(shards)), strict=True):
        here = (ids >= begin) & (ids < begin + count)
        rows, values = tf.boolean_mask(ids, here) - begin, tf.boolean_mask(new, here)
        ops.append(raw.ResourceScatterUpdate(shard.handle, rows, values))
        begin += count
    return ops


def _split(name: str, value: Any, sizes: list[int]) -> list[Any]:
    """The first values of each shard: given as a list of those, or as one that is cut.

    Raises:
        ValueError: if they do not fit.
    """
    if len(sizes) == 1 and not (isinstance(value, (list, tuple)) and len(value) == 1):
        value = [value]
    parts = [tf.cast(tf.convert_to_tensor(part), tf.float32) for part in value]
    if [p.shape.as_list()[0] for p in parts] != sizes:
        raise ValueError(
            f"{name} must be given for shards of {sizes}, not {[p.shape for p in parts]}"
        )
    return parts


def _factors(name: str, size: int, components: int, shards: int, init: Any) -> list[Any]:
    sizes = _shard_sizes(size, shards)
    init = init() if callable(init) else init
    if isinstance(init, str):
        if init != "random":
            raise ValueError(f"{name} start as 'random' or from values, not as {init!r}")
        parts = [tf.random_normal([n, components]) for n in sizes]
    else:
        parts = _split(name, init, sizes)
        for part in parts:
            if part.shape.ndims != 2 or part.shape[1].value != components:
                raise ValueError(
                    f"{name} must have {components} components, not shape {part.shape}"
                )
    return [
        tf.Variable(part, name=f"{name}_shard_{i}", trainable=False) for i, part in enumerate(parts)
    ]


def _weights(name: str, size: int, shards: int, given: Any) -> list[Any]:
    sizes = _shard_sizes(size, shards)
    if isinstance(given, Real):
        parts = [tf.fill([n], float(given)) for n in sizes]
        wrong = float(given) < 0
    elif isinstance(given, Iterable):
        given = list(given)
        nested = any(isinstance(each, Iterable) for each in given)
        rows = [list(each) for each in given] if nested else [given]
        parts = _split(name, rows if shards > 1 or nested else given, sizes)
        wrong = any(float(w) < 0 for row in rows for w in row)
    else:
        raise ValueError(f"{name} must be None, a number, or numbers, not {given!r}")
    if wrong:
        raise ValueError(f"{name} must not be below 0")
    return [
        tf.Variable(part, name=f"{name}_shard_{i}", trainable=False) for i, part in enumerate(parts)
    ]
