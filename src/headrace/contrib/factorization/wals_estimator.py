"""Weighted alternating least squares as an estimator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import headrace as tf
from headrace.contrib.factorization.wals_model import WALSModel
from headrace.contrib.learn.estimators import Estimator
from headrace.contrib.learn.model_fn import ModelFnOps
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core.build import raw
from headrace.ops.state import share
from headrace.train.session_run_hook import SessionRunArgs, SessionRunHook

__all__ = ["WALSMatrixFactorization"]


class _Sweeps:
    """Which side is solved for, which of its rows are done, and how many sweeps are over.

    Args:
        sizes: how many rows and columns there are.
    """

    def __init__(self, sizes: tuple[int, int]) -> None:
        def variable(value: Any, name: str) -> Any:
            return tf.Variable(value, trainable=False, name=name)

        self.is_row_sweep = variable(True, "is_row_sweep")
        self.completed = variable(0, WALSMatrixFactorization.COMPLETED_SWEEPS)
        self.is_done = variable(False, "is_sweep_done")
        names = ("sweep_hook_processed_rows", "sweep_hook_processed_cols")
        self._done = [
            variable(tf.zeros([size], tf.bool), name)
            for size, name in zip(sizes, names, strict=True)
        ]

    def switch(self) -> Operation:
        """The other side comes, of which nothing is done."""
        ops = [done.assign(tf.zeros_like(done), read_value=False) for done in self._done]
        other = tf.logical_not(self.is_row_sweep.read_value())
        with tf.control_dependencies([other]):
            ops += [
                self.is_row_sweep.assign(other, read_value=False),
                self.is_done.assign(False, read_value=False),
            ]
        switched: Operation = tf.group(*ops)
        return switched

    def after(self, update: Any, turn: Tensor, batch: tuple[Tensor, Tensor]) -> Operation:
        """Counts what an update has solved for, and the step.

        Args:
            turn: whether it was one of rows.
            batch: the numbers of the rows, and those of the columns.
        """
        marks = []
        with tf.control_dependencies([update]):
            turns = turn, tf.logical_not(turn)
            for done, ids, is_turn in zip(self._done, batch, turns, strict=True):
                own = tf.boolean_mask(ids, tf.fill(tf.shape(ids), is_turn))
                ones = tf.ones_like(own, tf.bool)
                marks.append(raw.ResourceScatterUpdate(done.handle, own, ones))
        with tf.control_dependencies(marks):
            rows, columns = (tf.reduce_all(done.read_value()) for done in self._done)
            is_over = tf.where(turn, rows, columns)
            ops = [
                self.is_done.assign(is_over, read_value=False),
                self.completed.assign_add(tf.to_int32(is_over), read_value=False),
                tf.train.get_or_create_global_step().assign_add(1, read_value=False),
            ]
            counted: Operation = tf.group(*ops)
            return counted


class _SweepHook(SessionRunHook):
    """Begins a sweep where the last one is over, and ends training after so many.

    Args:
        prepare: the ops to run before a sweep of rows, and before one of columns.
        max_sweeps: None: training ends otherwise.
    """

    def __init__(self, sweeps: _Sweeps, prepare: list[Any], max_sweeps: int | None) -> None:
        self._sweeps, self._prepare, self._max_sweeps = sweeps, prepare, max_sweeps
        self._switch = sweeps.switch()
        self._begun = False

    def before_run(self, run_context: Any) -> SessionRunArgs:
        session = run_context.session
        is_over = session.run(self._sweeps.is_done)
        if is_over:
            session.run(self._switch)
        if is_over or not self._begun:
            session.run(self._prepare[0 if session.run(self._sweeps.is_row_sweep) else 1])
            self._begun = True
        return SessionRunArgs(None)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if self._max_sweeps is None:
            return
        if run_context.session.run(self._sweeps.completed) >= self._max_sweeps:
            run_context.request_stop()


def _features(features: Any, mode: str) -> tuple[Any, Any, Any]:
    """Rows, columns, and whether rows are asked for, which training does not tell."""
    keys = WALSMatrixFactorization
    wanted = [keys.INPUT_ROWS, keys.INPUT_COLS]
    if mode != tf.contrib.learn.ModeKeys.TRAIN:
        wanted.append(keys.PROJECT_ROW)
    missing = [key for key in wanted if key not in features]
    if missing:
        raise ValueError(
            f"Features must have {', '.join(wanted)} to {mode}; {missing[0]} is missing."
        )
    return features[wanted[0]], features[wanted[1]], features.get(keys.PROJECT_ROW)


class WALSMatrixFactorization(Estimator):
    """Factors of a sparse matrix, by sweeps of weighted alternating least squares.

    A sweep solves for the factors of all rows, in batches, the next for those of all columns, and
    so on (`tf.contrib.factorization.WALSModel`; Hu, Koren and Volinsky, ICDM 2008). It is over when
    each row or column has been in a batch, so each must have an entry. What is in a batch of the
    other side is not looked at.

    ``input_fn`` gives (features, None); features are a dictionary: under ``INPUT_ROWS`` a
    SparseTensor with whole rows, numbered as in the matrix; under ``INPUT_COLS`` one with whole
    columns, as rows of the transposed matrix; to evaluate and to project, a boolean scalar under
    ``PROJECT_ROW``; to project maybe weights under ``PROJECTION_WEIGHTS``.

    Args:
        num_rows, num_cols: the size of the matrix.
        embedding_dimension: how many numbers a factor has.
        regularization_coeff: None is 0.
        max_sweeps: training ends after so many sweeps; None: after so many steps as `fit` says.
        use_factors_weights_cache_for_training, use_gramian_cache_for_training: taken, without
            effect.
        unobserved_weight, row_init, col_init, num_row_shards, num_col_shards, row_weights,
        col_weights: as for `tf.contrib.factorization.WALSModel`.
        model_dir: where checkpoints are; a temporary directory if None.
        config: a `tf.contrib.learn.RunConfig`; variables go to parameter servers, of workers there
            is one.

    Raises:
        ValueError: for more workers than one; when it runs, for features that are missing, and as
            `WALSModel`.

    >>> import numpy as np
    >>> matrix = np.float32([[2, 4], [3, 6]])
    >>> def whole():
    ...     places = [[0, 0], [0, 1], [1, 0], [1, 1]]
    ...     rows = tf.SparseTensor(places, matrix.ravel(), [2, 2])
    ...     columns = tf.SparseTensor(places, matrix.T.ravel(), [2, 2])
    ...     return {"input_rows": rows, "input_cols": columns}, None
    >>> model = tf.contrib.factorization.WALSMatrixFactorization(
    ...     2, 2, 1, unobserved_weight=0, regularization_coeff=1e-6, col_init=[[1.0], [1.0]]
    ... )
    >>> model = model.fit(input_fn=whole, steps=6)
    >>> (model.get_row_factors()[0] @ model.get_col_factors()[0].T).round(2)
    array([[2., 4.],
           [3., 6.]], dtype=float32)
    """

    INPUT_ROWS = "input_rows"
    INPUT_COLS = "input_cols"
    PROJECT_ROW = "project_row"
    PROJECTION_WEIGHTS = "projection_weights"
    PROJECTION_RESULT = "projection"
    COMPLETED_SWEEPS = "completed_sweeps"

    def __init__(
        self,
        num_rows: int,
        num_cols: int,
        embedding_dimension: int,
        unobserved_weight: float = 0.1,
        regularization_coeff: float | None = None,
        row_init: Any = "random",
        col_init: Any = "random",
        num_row_shards: int = 1,
        num_col_shards: int = 1,
        row_weights: Any = 1,
        col_weights: Any = 1,
        use_factors_weights_cache_for_training: bool = True,
        use_gramian_cache_for_training: bool = True,
        max_sweeps: int | None = None,
        model_dir: Any = None,
        config: Any = None,
    ) -> None:
        self._shards = num_row_shards, num_col_shards

        def model_fn(features: Any, labels: Any, mode: str) -> ModelFnOps:
            model = WALSModel(
                num_rows,
                num_cols,
                embedding_dimension,
                unobserved_weight,
                regularization_coeff,
                row_init,
                col_init,
                num_row_shards,
                num_col_shards,
                row_weights,
                col_weights,
                use_gramian_cache=mode == tf.contrib.learn.ModeKeys.TRAIN,
            )
            return _model_ops(model, (num_rows, num_cols), features, mode, max_sweeps)

        super().__init__(model_fn, model_dir, config)
        if self.config is not None and self.config.num_worker_replicas > 1:
            raise ValueError(
                "WALSMatrixFactorization runs on one worker; for more, run the ops of "
                "tf.contrib.factorization.WALSModel."
            )

    def _factors(self, side: int) -> list[Any]:
        name = ("row_factors", "col_factors")[side]
        return [self.get_variable_value(f"{name}_shard_{i}") for i in range(self._shards[side])]

    def get_row_factors(self) -> list[Any]:
        """The factors of the rows, an array ``[rows, embedding_dimension]`` for each shard.

        Raises:
            ValueError: before training.
        """
        return self._factors(0)

    def get_col_factors(self) -> list[Any]:
        """The factors of the columns, as those of the rows."""
        return self._factors(1)

    def get_projections(self, input_fn: Callable[..., Any]) -> Iterator[Any]:
        """The factors of rows or columns that need not be in the matrix.

        Args:
            input_fn: gives them, and ``PROJECT_ROW``.

        Yields:
            Vectors of ``embedding_dimension`` numbers, by the first entries of the rows.
        """
        found = self.predict(input_fn=input_fn)
        return (each[self.PROJECTION_RESULT] for each in found)


def _model_ops(
    model: WALSModel,
    sizes: tuple[int, int],
    features: Any,
    mode: str,
    max_sweeps: int | None,
) -> ModelFnOps:
    rows, cols, is_row = _features(features, mode)
    if mode == tf.contrib.learn.ModeKeys.INFER:
        return _projects(model, features, mode)
    if mode == tf.contrib.learn.ModeKeys.EVAL:
        loss = tf.cond(
            is_row,
            lambda: tf.add_n(model.row_losses(rows)[:2]),
            lambda: tf.add_n(model.col_losses(cols, transpose_input=True)[:2]),
        )
        return ModelFnOps(mode, {}, loss, eval_metric_ops={})
    share.left_to_chief("A WALSMatrixFactorization")
    sweeps = _Sweeps(sizes)
    turn = sweeps.is_row_sweep.read_value()

    def update(is_turn_of_rows: bool) -> Any:
        if is_turn_of_rows:
            found = model.update_row_factors(rows)
        else:
            found = model.update_col_factors(cols, transpose_input=True)
        with tf.control_dependencies([found[1]]):
            return [tf.identity(part) for part in found[2:]]

    squares, regularization, weights = tf.cond(turn, lambda: update(True), lambda: update(False))
    loss = squares + regularization
    tf.summary.scalar("loss", loss)
    tf.summary.scalar("root_weighted_squared_error", tf.sqrt(squares / weights))
    tf.summary.scalar("completed_sweeps", sweeps.completed)
    batch = tf.unique(rows.indices[:, 0])[0], tf.unique(cols.indices[:, 0])[0]
    prepare = [model.row_update_prep_gramian_op, model.col_update_prep_gramian_op]
    return ModelFnOps(
        mode,
        {},
        loss,
        sweeps.after(loss, turn, batch),
        {},
        training_hooks=[_SweepHook(sweeps, prepare, max_sweeps)],
    )


def _projects(model: WALSModel, features: Any, mode: str) -> ModelFnOps:
    keys = WALSMatrixFactorization
    rows, cols, is_row = _features(features, mode)
    weights = features.get(keys.PROJECTION_WEIGHTS)
    found = tf.cond(
        is_row,
        lambda: model.project_row_factors(rows, projection_weights=weights),
        lambda: model.project_col_factors(cols, transpose_input=True, projection_weights=weights),
    )
    return ModelFnOps(mode, {keys.PROJECTION_RESULT: found})
