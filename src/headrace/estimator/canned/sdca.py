"""Stochastic dual coordinate ascent for linear models: `tf.contrib.linear_optimizer.SdcaModel`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import headrace as tf
from headrace.errors import suggest
from headrace.graph.tensor import Operation, Tensor
from headrace.lookup.tables import MutableHashTable
from headrace.ops.algorithms.dual_losses import LOSSES, OF_CLASSES
from headrace.ops.core.build import raw
from headrace.ops.state import share
from headrace.ops.state.partitioned import parts_of

__all__ = ["SdcaModel", "SparseFeatureColumn"]

#: What is kept of an example: its dual variable, its loss and that of the conjugate, weighted, and
#: its weight.
_STATE = [0.0, 0.0, 0.0, 0.0]


class SparseFeatureColumn:
    """Sparse features of a batch: entry ``k`` says that an example has a feature, and its value.

    Args:
        example_indices: whose entry it is: int64 ``[entries]``, positions in the batch.
        feature_indices: which feature: int64 ``[entries]``.
        feature_values: float32 ``[entries]``; None: all are 1.

    >>> column = tf.contrib.linear_optimizer.SparseFeatureColumn([0, 1], [5, 6], None)
    >>> column.feature_indices.dtype
    tf.int64
    """

    def __init__(self, example_indices: Any, feature_indices: Any, feature_values: Any) -> None:
        self._examples: Tensor = tf.convert_to_tensor(example_indices, tf.int64)
        self._features: Tensor = tf.convert_to_tensor(feature_indices, tf.int64)
        given = feature_values is not None
        self._values = tf.convert_to_tensor(feature_values, tf.float32) if given else None

    @property
    def example_indices(self) -> Tensor:
        return self._examples

    @property
    def feature_indices(self) -> Tensor:
        return self._features

    @property
    def feature_values(self) -> Tensor | None:
        return self._values

    def values(self) -> Tensor:
        """The values, also where none were given."""
        if self._values is not None:
            return self._values
        return tf.ones_like(self._features, tf.float32)


class _Duals:
    """The states of examples by their ids, in tables that savers save."""

    def __init__(self, key_dtype: Any, shards: int) -> None:
        self._tables = [
            MutableHashTable(
                key_dtype, tf.float32, tf.constant(_STATE), name=f"sdca_state-{i}-of-{shards}"
            )
            for i in range(shards)
        ]

    def _parts(self, ids: Tensor) -> tuple[Tensor, list[Tensor]]:
        count = len(self._tables)
        if ids.dtype == tf.string:
            owner = tf.string_to_hash_bucket_fast(ids, count)
        else:
            owner = tf.mod(ids, tf.cast(count, ids.dtype))
        owner = tf.to_int32(owner)
        return owner, tf.dynamic_partition(tf.range(tf.size(ids)), owner, count)

    def lookup(self, ids: Tensor) -> Tensor:
        found: Tensor
        if len(self._tables) == 1:
            found = self._tables[0].lookup(ids)
            return found
        _, places = self._parts(ids)
        states = [
            table.lookup(tf.gather(ids, place))
            for table, place in zip(self._tables, places, strict=True)
        ]
        found = tf.dynamic_stitch(places, states)
        return found

    def insert(self, ids: Tensor, states: Tensor) -> list[Operation]:
        if len(self._tables) == 1:
            return [self._tables[0].insert(ids, states)]
        _, places = self._parts(ids)
        return [
            table.insert(tf.gather(ids, place), tf.gather(states, place))
            for table, place in zip(self._tables, places, strict=True)
        ]

    def sums(self) -> Tensor:
        """Of all examples, ``[4]``."""
        total: Tensor = tf.add_n([tf.reduce_sum(table.export()[1], 0) for table in self._tables])
        return total


class _Weights:
    """Weights of a feature, and what they are before l1 shrinks them.

    Args:
        variable: ``[features]`` or ``[features, 1]``, or the parts of a variable that is cut up.
        shrinks: whether the two differ.
    """

    def __init__(self, variable: Any, shrinks: bool) -> None:
        parts = list(variable) if isinstance(variable, (list, tuple)) else parts_of(variable)
        self.parts: list[Any] = parts
        self.sizes = [int(part.shape.num_elements()) for part in parts]
        self.free = parts
        if not shrinks:
            return
        self.free = []
        for part in parts:
            with tf.colocate_with(part):
                first = tf.zeros(part.shape)
                name = f"{part.op.name}_unshrunk"
                self.free.append(tf.Variable(first, trainable=False, name=name))

    def whole(self, parts: Sequence[Any]) -> Tensor:
        flat = [tf.reshape(part, [-1]) for part in parts]
        joined: Tensor = tf.concat(flat, 0) if len(flat) > 1 else flat[0]
        return joined

    def _places(self, ids: Tensor) -> list[tuple[Tensor, Tensor]]:
        """For each part: which of ``ids`` are there, and where in it."""
        found, begin = [], 0
        for size in self.sizes:
            here = tf.reshape(tf.where((ids >= begin) & (ids < begin + size)), [-1])
            found.append((here, tf.gather(ids, here) - begin))
            begin += size
        return found

    def gather(self, parts: Sequence[Any], ids: Tensor) -> Tensor:
        """Weights by their numbers, ``[ids]``."""
        rows: Tensor
        if len(parts) == 1:
            rows = tf.reshape(tf.gather(parts[0], ids), [-1])
            return rows
        places = self._places(ids)
        pieces = [
            tf.reshape(tf.gather(part, rows), [-1])
            for part, (_, rows) in zip(parts, places, strict=True)
        ]
        rows = tf.dynamic_stitch([tf.to_int32(here) for here, _ in places], pieces)
        return rows

    def add(self, deltas: Tensor, shrink: Any) -> list[Operation]:
        """Add to all weights."""
        pieces = tf.split(deltas, self.sizes) if len(self.parts) > 1 else [deltas]
        ops = []
        for part, free, piece in zip(self.parts, self.free, pieces, strict=True):
            added = free.assign_add(tf.reshape(piece, free.shape), read_value=False)
            if part is not free:
                with tf.control_dependencies([added]):
                    added = part.assign(shrink(free.read_value()), read_value=False)
            ops.append(added)
        return ops

    def scatter_add(self, ids: Tensor, deltas: Tensor, shrink: Any) -> list[Operation]:
        """Add to some weights, each once."""
        single = len(self.parts) == 1
        places = [(None, ids)] if single else self._places(ids)
        ops = []
        for part, free, (here, rows) in zip(self.parts, self.free, places, strict=True):
            own = deltas if here is None else tf.gather(deltas, here)
            own = tf.reshape(own, [-1, *free.shape.as_list()[1:]])
            added = raw.ResourceScatterAdd(free.handle, rows, own)
            if part is not free:
                with tf.control_dependencies([added]):
                    now = raw.ResourceGather(free.handle, rows, dtype=tf.float32)
                    added = raw.ResourceScatterUpdate(part.handle, rows, shrink(now))
            ops.append(added)
        return ops


def _checked_options(options: Mapping[str, Any]) -> tuple[str, float, float]:
    loss = options["loss_type"]
    if loss not in LOSSES:
        raise ValueError(
            f"Unsupported loss_type: {loss!r}; there are {', '.join(LOSSES)}."
            f"{suggest(str(loss), LOSSES)}"
        )
    found = []
    for name in ("symmetric_l1_regularization", "symmetric_l2_regularization"):
        value = float(options[name])
        if value < 0:
            raise ValueError(f"{name} should be non-negative. Found ({value})")
        found.append(value)
    return loss, found[0], found[1] or 1.0


def _require(given: Any, names: Sequence[str], what: str) -> None:
    missing = [name for name in names if given.get(name) is None]
    if missing:
        raise ValueError(f"{missing[0]} must be specified in {what}.")
    for name in names:
        if name.endswith(("_features", "_features_weights")) and not isinstance(given[name], list):
            raise ValueError(f"{name} must be a list, not {given[name]!r}.")


class SdcaModel:
    """A linear model by stochastic dual coordinate ascent.

    It minimises the sum over examples of ``weight * loss(w . x, label)``, plus
    ``l1 * |w|_1 + l2 / 2 * |w|^2`` (Shalev-Shwartz and Zhang, JMLR 2013 and ICML 2014). A step
    goes over a batch in random order and gives each example's dual variable its best value, so
    there is no learning rate; what is known of examples is kept under their ids. There is no bias:
    give a feature that is 1.

    Args:
        examples: ``sparse_features``, a list of `SparseFeatureColumn`; ``dense_features``, a list
            of float32 matrices or vectors; ``example_labels`` and ``example_weights``, float32
            ``[batch]``; ``example_ids``, string or int64 ``[batch]``. Labels of two classes are 0
            and 1.
        variables: ``sparse_features_weights`` and ``dense_features_weights``: a variable, or its
            parts, for each feature column, in the same order.
        options: ``loss_type``, one of "logistic_loss", "squared_loss", "hinge_loss",
            "smooth_hinge_loss" and "poisson_loss"; ``symmetric_l1_regularization`` and
            ``symmetric_l2_regularization``, of which 0 is 1 (TensorFlow takes 1 below 1, too);
            ``num_loss_partitions``, how many workers train at the same time at most (Ma et al.,
            ICML 2015), 1 by default; ``num_table_shards``, how many tables keep the states of
            examples.

    Raises:
        ValueError: for missing or unknown options, and features without weights.
        InvalidArgumentError: when run, for labels or numbers that do not fit.

    >>> x, y = tf.constant([[1.0], [2.0], [-1.0]]), tf.constant([1.0, 1.0, 0.0])
    >>> w = tf.Variable([0.0])
    >>> model = tf.contrib.linear_optimizer.SdcaModel(
    ...     examples={
    ...         "sparse_features": [],
    ...         "dense_features": [x],
    ...         "example_labels": y,
    ...         "example_weights": tf.ones([3]),
    ...         "example_ids": tf.constant(["a", "b", "c"]),
    ...     },
    ...     variables={"sparse_features_weights": [], "dense_features_weights": [w]},
    ...     options={
    ...         "loss_type": "squared_loss",
    ...         "symmetric_l1_regularization": 0.0,
    ...         "symmetric_l2_regularization": 1.0,
    ...     },
    ... )
    >>> train, gap = model.minimize(), model.approximate_duality_gap()
    >>> with tf.Session() as sess:
    ...     sess.run(tf.global_variables_initializer())
    ...     for _ in range(20):
    ...         sess.run(train)
    ...     [round(float(v), 3) for v in sess.run(w)], bool(sess.run(gap) < 1e-4)
    ([0.429], True)
    """

    def __init__(
        self, examples: dict[str, Any], variables: dict[str, Any], options: dict[str, Any]
    ) -> None:
        if not examples or not variables or not options:
            raise ValueError("examples, variables and options must all be specified.")
        features = ("sparse_features", "dense_features")
        of_examples = ("example_labels", "example_weights", "example_ids")
        _require(examples, (*features, *of_examples), "examples")
        names = [f"{name}_weights" for name in features]
        _require(variables, names, "variables")
        regularization = ("symmetric_l1_regularization", "symmetric_l2_regularization")
        _require(options, ("loss_type", *regularization), "options")
        for name in features:
            if len(examples[name]) != len(variables[f"{name}_weights"]):
                raise ValueError(
                    f"{len(examples[name])} {name} need as many {name}_weights, not "
                    f"{len(variables[f'{name}_weights'])}."
                )
        self._loss, self._l1, self._l2 = _checked_options(options)
        self._partitions = int(options.get("num_loss_partitions") or 1)
        self._examples = examples
        self._sparse, self._dense = (
            [_Weights(v, self._l1 > 0) for v in variables[name]] for name in names
        )
        self._ids = tf.convert_to_tensor(examples["example_ids"])
        self._duals = _Duals(self._ids.dtype, int(options.get("num_table_shards") or 1))

    # -- the model ------------------------------------------------------------------------------

    def _dense_matrix(self, examples: Mapping[str, Any]) -> Tensor:
        count = tf.size(examples["example_labels"])
        given = [
            tf.reshape(tf.to_float(tf.convert_to_tensor(x)), tf.stack([count, sum(w.sizes)]))
            for x, w in zip(examples["dense_features"], self._dense, strict=True)
        ]
        if not given:
            nothing: Tensor = tf.zeros(tf.stack([count, 0]))
            return nothing
        joined: Tensor = tf.concat(given, 1) if len(given) > 1 else given[0]
        return joined

    def _joined(self, weights: Sequence[_Weights], free: bool) -> Tensor:
        if not weights:
            nothing: Tensor = tf.zeros([0])
            return nothing
        all_weights: Tensor = tf.concat([w.whole(w.free if free else w.parts) for w in weights], 0)
        return all_weights

    def _sums(self, examples: Mapping[str, Any]) -> Tensor:
        dense = self._dense_matrix(examples)
        sums: Tensor = tf.squeeze(
            tf.matmul(dense, tf.expand_dims(self._joined(self._dense, False), 1)), [1]
        )
        count = tf.size(examples["example_labels"])
        for column, weights in zip(examples["sparse_features"], self._sparse, strict=True):
            found = weights.gather(weights.parts, column.feature_indices) * column.values()
            sums += tf.unsorted_segment_sum(found, column.example_indices, count)
        return sums

    def predictions(self, examples: Mapping[str, Any]) -> Tensor:
        """What the model says of examples, float32 ``[batch]``.

        Args:
            examples: features as in the constructor, and ``example_labels``, of which only the
                number counts.

        Returns:
            The probability of class 1 for "logistic_loss", rates for "poisson_loss"; else
            ``w . x``.
        """
        sums = self._sums(examples)
        if self._loss == "logistic_loss":
            return tf.sigmoid(sums)
        return tf.exp(sums) if self._loss == "poisson_loss" else sums

    def _losses(self, examples: Mapping[str, Any]) -> Tensor:
        sums = self._sums(examples)
        labels: Tensor = tf.to_float(tf.reshape(examples["example_labels"], [-1]))
        if self._loss in OF_CLASSES:
            labels = 2.0 * labels - 1.0
        margin = labels * sums
        if self._loss == "logistic_loss":
            return tf.nn.softplus(-margin)
        if self._loss == "hinge_loss":
            return tf.nn.relu(1.0 - margin)
        if self._loss == "smooth_hinge_loss":
            short = tf.nn.relu(1.0 - margin)
            return tf.where(short < 1.0, short * short / 2.0, short - 0.5)
        if self._loss == "poisson_loss":
            losses: Tensor = tf.exp(sums) - margin
            return losses
        losses = tf.square(sums - labels) / 2.0
        return losses

    def unregularized_loss(self, examples: Mapping[str, Any]) -> Tensor:
        """The mean loss of examples by weight, a float32 scalar."""
        weights = tf.to_float(tf.reshape(examples["example_weights"], [-1]))
        total = tf.reduce_sum(self._losses(examples) * weights)
        mean: Tensor = total / tf.reduce_sum(weights)
        return mean

    def _l1_loss(self) -> Tensor:
        norms = [tf.reduce_sum(tf.abs(p)) for w in self._sparse + self._dense for p in w.parts]
        total: Tensor = self._l1 * tf.add_n(norms)
        return total

    def _l2_loss(self) -> Tensor:
        norms = [tf.reduce_sum(tf.square(p)) for w in self._sparse + self._dense for p in w.parts]
        total: Tensor = self._l2 / 2.0 * tf.add_n(norms)
        return total

    def regularized_loss(self, examples: Mapping[str, Any]) -> Tensor:
        """What is minimised, divided by the weight of these examples, a float32 scalar."""
        weight = tf.reduce_sum(tf.to_float(examples["example_weights"]))
        regularization: Tensor = (self._l1_loss() + self._l2_loss()) / weight
        return regularization + self.unregularized_loss(examples)

    def approximate_duality_gap(self) -> Tensor:
        """How far the regularized loss is from its least value at most, a float32 scalar.

        Losses of examples are those of the steps that saw them, so it is exact where a batch is all
        of the data.
        """
        _, primal, dual, weight = tf.unstack(self._duals.sums(), num=4)
        gap: Tensor = raw.DivNoNan(primal + dual + self._l1_loss() + 2.0 * self._l2_loss(), weight)
        return gap

    # -- training -------------------------------------------------------------------------------

    def _shrunk(self, weights: Tensor) -> Tensor:
        shrunk: Tensor = tf.sign(weights) * tf.nn.relu(tf.abs(weights) - self._l1 / self._l2)
        return shrunk

    def _sparse_batch(self) -> tuple[list[Tensor], list[Tensor], Tensor, Tensor, Tensor]:
        """The touched ids of each column, their weights; owner, place and value of all entries."""
        ids, weights, places = [], [], []
        columns = self._examples["sparse_features"]
        begin: Any = tf.constant(0, tf.int64)
        for column, own in zip(columns, self._sparse, strict=True):
            touched, place = tf.unique(column.feature_indices, tf.int64)
            ids.append(touched)
            weights.append(own.gather(own.free, touched))
            places.append(place + begin)
            begin += tf.size(touched, out_type=tf.int64)
        if not columns:
            none, nothing = tf.zeros([0], tf.int64), tf.zeros([0])
            return ids, weights, none, none, nothing
        owners = tf.concat([column.example_indices for column in columns], 0)
        values = tf.concat([column.values() for column in columns], 0)
        return ids, weights, owners, tf.concat(places, 0), values

    def minimize(self, global_step: Any = None, name: str | None = None) -> Operation:
        """The op of a step: a pass over the batch.

        Args:
            global_step: a variable to which it adds 1.
        """
        share.left_to_chief("Stochastic dual coordinate ascent")
        with tf.name_scope(name, "sdca/minimize"):
            touched, sparse, owners, places, values = self._sparse_batch()
            examples = self._examples
            ids, slots = tf.unique(tf.reshape(self._ids, [-1]))
            labels = tf.to_float(tf.reshape(examples["example_labels"], [-1]))
            states, dense_deltas, sparse_deltas = raw.HeadraceDualAscent(
                self._dense_matrix(examples),
                owners,
                places,
                values,
                labels,
                tf.to_float(tf.reshape(examples["example_weights"], [-1])),
                slots,
                tf.random_shuffle(tf.range(tf.size(labels))),
                self._duals.lookup(ids)[:, 0],
                self._joined(self._dense, True),
                tf.concat(sparse, 0) if sparse else tf.zeros([0]),
                loss=self._loss,
                l1=self._l1,
                l2=self._l2,
                partitions=self._partitions,
            )
            ops = [*self._duals.insert(ids, states)]
            if self._dense:
                sizes = [sum(w.sizes) for w in self._dense]
                for weights, deltas in zip(self._dense, tf.split(dense_deltas, sizes), strict=True):
                    ops += weights.add(deltas, self._shrunk)
            if self._sparse:
                pieces = tf.split(sparse_deltas, [tf.size(t) for t in touched])
                for weights, rows, deltas in zip(self._sparse, touched, pieces, strict=True):
                    ops += weights.scatter_add(rows, deltas, self._shrunk)
            if global_step is not None:
                with tf.control_dependencies(ops):
                    ops = [global_step.assign_add(1, read_value=False)]
            done: Operation = tf.group(*ops)
            return done

    def update_weights(self, train_op: Any) -> Operation:
        """An op after ``train_op``: a step has shrunk the weights already, so it adds nothing."""
        with tf.control_dependencies([train_op]):
            done: Operation = tf.no_op()
            return done
