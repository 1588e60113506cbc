"""Models on several devices of one process: a tower on each, for its part of the batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import headrace as tf
from headrace.estimator.callables import argument_names
from headrace.estimator.export.outputs import (
    ClassificationOutput,
    PredictOutput,
    RegressionOutput,
)
from headrace.estimator.mode_keys import ModeKeys
from headrace.estimator.spec import EstimatorSpec
from headrace.graph.tensor import Tensor

__all__ = ["TowerOptimizer", "replicate_model_fn"]

_COLLECTION = "replicate_model_fn_graph_states"


class _Towers:
    """The towers of a graph while they are built: whose turn it is, and gradients so far."""

    def __init__(self, count: int, reduction: Any) -> None:
        self.count = count
        self.reduction = reduction
        self.current = 0
        self.used = False
        #: For each tower the gradients of its optimizers, in the order of the calls.
        self.gradients: list[list[Any]] = [[] for _ in range(count)]
        self.scopes: tuple[Any, Any] = (None, None)

    @property
    def is_last(self) -> bool:
        return self.current == self.count - 1

    def scaled(self, loss: Any) -> Any:
        """The part of a tower's loss in that of all."""
        if self.count == 1 or self.reduction == tf.losses.Reduction.SUM:
            return loss
        return tf.div(loss, float(self.count), name="averaged_loss")


def _towers() -> _Towers:
    found = tf.get_collection(_COLLECTION)
    return found[-1] if found else _Towers(1, None)


@contextmanager
def _building(towers: _Towers) -> Iterator[None]:
    states = tf.get_default_graph().get_collection_ref(_COLLECTION)
    states.append(towers)
    try:
        yield
    finally:
        states.remove(towers)


class TowerOptimizer(tf.train.Optimizer):
    """An optimizer for `tf.contrib.estimator.replicate_model_fn`: gradients of all towers at once.

    Args:
        optimizer_or_optimizer_fn: a `tf.train` optimizer, or a function that makes one.

    Raises:
        ValueError: when gradients are applied, if towers have not made the same calls.

    >>> optimizer = tf.contrib.estimator.TowerOptimizer(tf.train.AdamOptimizer())
    >>> optimizer.get_name()
    'Adam'
    """

    def __init__(self, optimizer_or_optimizer_fn: Any) -> None:
        # No call of the base: all of its state is that of the optimizer inside.
        self._given = optimizer_or_optimizer_fn

    def _inner(self) -> Any:
        if not isinstance(self._given, tf.train.Optimizer) and callable(self._given):
            self._given = self._given()
        return self._given

    def get_name(self) -> str:
        return str(self._inner().get_name())

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        return self._inner().get_slot(*args, **kwargs)

    def get_slot_names(self) -> list[str]:
        found: list[str] = self._inner().get_slot_names()
        return found

    def variables(self) -> Any:
        return self._inner().variables()

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
        towers = _towers()
        towers.used = True
        return self._inner().compute_gradients(towers.scaled(loss), *args, **kwargs)

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Any:
        towers = _towers()
        towers.used = True
        pairs = list(grads_and_vars)
        if towers.count == 1:
            return self._inner().apply_gradients(pairs, global_step, name)
        mine = towers.gradients[towers.current]
        mine.append(pairs)
        if not towers.is_last:
            with tf.control_dependencies([g for g, _ in pairs if isinstance(g, Tensor)]):
                return tf.no_op(name="train_op_placeholder")
        number = len(mine) - 1
        if any(len(made) <= number for made in towers.gradients):
            raise ValueError(
                "Each invocation of model_fn was supposed to make the same optimizer calls."
            )
        every = [made[number] for made in towers.gradients]
        variable_scope, name_scope = towers.scopes
        with tf.variable_scope(variable_scope), tf.name_scope(name_scope):
            return self._inner().apply_gradients(_summed(every), global_step, name)


def _summed(towers: Sequence[Any]) -> list[tuple[Any, Any]]:
    """The sum of all towers' gradients for each variable."""
    by_variable: dict[Any, list[Any]] = {}
    for pairs in towers:
        for gradient, variable in pairs:
            if gradient is not None:
                by_variable.setdefault(variable, []).append(gradient)
    with tf.name_scope("gradient_aggregating"):
        return [(_sum(found), variable) for variable, found in by_variable.items()]


def _sum(gradients: list[Any]) -> Any:
    if not isinstance(gradients[0], tf.IndexedSlices):
        return tf.add_n([tf.convert_to_tensor(g) for g in gradients])
    values = tf.concat([g.values for g in gradients], 0)
    indices = tf.concat([g.indices for g in gradients], 0)
    return tf.IndexedSlices(values, indices, gradients[0].dense_shape)


def replicate_model_fn(
    model_fn: Callable[..., EstimatorSpec],
    loss_reduction: Any = "weighted_sum_by_nonzero_weights",
    devices: Sequence[str] | None = None,
) -> Callable[..., EstimatorSpec]:
    """A model_fn that splits each batch among devices, with the same variables.

    Args:
        model_fn: as for `tf.estimator.Estimator`; its optimizers are
            `tf.contrib.estimator.TowerOptimizer`.
        loss_reduction: how ``model_fn`` makes its loss: with ``SUM`` those of the towers are added,
            else their mean is taken.
        devices: names of devices; by default all GPUs, or else all CPUs.

    Returns:
        ``model_fn(features, labels, mode, params, config)``; batches ``[batch, ...]`` must be
        divisible by the number of devices.

    Raises:
        ValueError: for losses that are not reduced; when it runs, for batches that are not
            divisible, other optimizers, and towers that differ.

    >>> def model_fn(features, mode):
    ...     return tf.estimator.EstimatorSpec(mode, {"twice": 2 * features})
    >>> replicated = tf.contrib.estimator.replicate_model_fn(model_fn, devices=["/cpu:0"] * 2)
    >>> estimator = tf.estimator.Estimator(replicated)
    >>> four = lambda: tf.data.Dataset.from_tensors(tf.constant([1, 2, 3, 4]))
    >>> [int(p["twice"]) for p in estimator.predict(four)]
    [2, 4, 6, 8]
    """
    if loss_reduction == tf.losses.Reduction.NONE:
        raise ValueError(
            "Tower losses need to be reduced in some way, yet "
            f"{loss_reduction} reduction is specified."
        )
    places = list(devices or _local_devices())
    alone = len(places) == 1 and "GPU" in places[0].upper()
    main = places[0] if alone else "/cpu:0"

    def replicated(
        features: Any, labels: Any, mode: str, params: Any = None, config: Any = None
    ) -> EstimatorSpec:
        with tf.name_scope("split_inputs"), tf.device(main):
            shards = _split(features, len(places))
            targets = _split(labels, len(places))
        towers = _Towers(len(places), loss_reduction)
        specs = []
        with _building(towers):
            for i, device in enumerate(places):
                towers.current = i
                given = _arguments(model_fn, targets[i], mode, params, config)
                specs.append(_tower(model_fn, shards[i], given, towers, device, main))
            if len({len(made) for made in towers.gradients}) > 1:
                raise ValueError(
                    "Each invocation of model_fn was supposed to make the same optimizer calls."
                )
        with tf.device(main):
            return _merged(specs, mode, towers)

    return replicated


def _local_devices() -> list[str]:
    """All GPUs of this process, or else all CPUs."""
    with tf.Session(graph=tf.Graph()) as session:
        found = session.list_devices()
    for kind in ("GPU", "CPU"):
        names = [device.name for device in found if device.device_type == kind]
        if names:
            return names
    return ["/cpu:0"]


def _arguments(
    model_fn: Callable[..., Any], labels: Any, mode: str, params: Any, config: Any
) -> dict[str, Any]:
    names = argument_names(model_fn)
    given = {"labels": labels, "mode": mode, "params": params, "config": config}
    return {name: value for name, value in given.items() if name in names}


def _tower(
    model_fn: Callable[..., EstimatorSpec],
    features: Any,
    given: dict[str, Any],
    towers: _Towers,
    device: str,
    main: str,
) -> EstimatorSpec:
    first = towers.current == 0

    def place(op: Any) -> str:
        return main if op.type in ("VarHandleOp", "Variable", "VariableV2") else device

    name = None if first else f"tower_{towers.current}"
    with (
        tf.variable_scope("", reuse=not first) as variable_scope,
        tf.name_scope(name or "") as name_scope,
        tf.device(place),
    ):
        if first:
            towers.scopes = variable_scope, name_scope
        spec = model_fn(features=features, **given)
        if spec.mode == ModeKeys.TRAIN and towers.count > 1 and not towers.used:
            raise ValueError(
                "Please wrap optimizers with TowerOptimizer in order to use replicate_model_fn "
                "with multiple `devices`."
            )
        return spec if spec.loss is None else spec._replace(loss=towers.scaled(spec.loss))


def _split(values: Any, count: int) -> list[Any]:
    """The values of each tower."""
    if values is None or count == 1:
        return [values] * count
    if isinstance(values, Mapping):
        parts = {key: _split(value, count) for key, value in values.items()}
        return [{key: part[i] for key, part in parts.items()} for i in range(count)]
    if isinstance(values, tf.SparseTensor):
        found: list[Any] = tf.sparse_split(sp_input=values, num_split=count, axis=0)
        return found
    tensor = tf.convert_to_tensor(values)
    size = tensor.shape[0].value
    if size is not None and size % count:
        raise ValueError(
            f"Batch size {size} needs to be divisible by the number of devices, which is {count}: "
            f"{tensor.name} of shape {tensor.shape}."
        )
    found = tf.split(tensor, count)
    return found


def _merged(specs: Sequence[EstimatorSpec], mode: str, towers: _Towers) -> EstimatorSpec:
    if len(specs) == 1:
        return specs[0]
    if mode == ModeKeys.PREDICT:
        outputs = {
            name: _joined_output([spec.export_outputs[name] for spec in specs])
            for name in specs[0].export_outputs
        }
        predictions = _joined([spec.predictions for spec in specs])
        return specs[0]._replace(predictions=predictions, export_outputs=outputs)
    loss = tf.add_n([spec.loss for spec in specs], name="loss")
    if mode == ModeKeys.TRAIN:
        return specs[-1]._replace(loss=loss)
    updates = [pair[1] for spec in specs for pair in spec.eval_metric_ops.values()]
    with tf.control_dependencies(updates):
        reduced = _reduced_metrics(towers.count)
    metrics = {name: (value, reduced) for name, (value, _) in specs[0].eval_metric_ops.items()}
    return specs[0]._replace(loss=loss, eval_metric_ops=metrics)


def _joined(values: Sequence[Any]) -> Any:
    if isinstance(values[0], dict):
        return {key: tf.concat([value[key] for value in values], 0) for key in values[0]}
    return tf.concat(list(values), 0)


def _joined_output(outputs: Sequence[Any]) -> Any:
    first = outputs[0]
    if isinstance(first, PredictOutput):
        return PredictOutput(_joined([output.outputs for output in outputs]))
    if isinstance(first, RegressionOutput):
        return RegressionOutput(_joined([output.value for output in outputs]))
    if isinstance(first, ClassificationOutput):
        scores, classes = (
            None if getattr(first, what) is None else _joined([getattr(o, what) for o in outputs])
            for what in ("scores", "classes")
        )
        return ClassificationOutput(scores, classes)
    return first


def _reduced_metrics(count: int) -> Any:
    """Counts of all towers go to those of the first one."""
    variables = tf.get_collection(tf.GraphKeys.METRIC_VARIABLES)
    each = len(variables) // count
    if len(variables) % count:
        raise ValueError(
            "Different `EstimatorSpec.eval_metric_ops` across `model_fn()` calls. Expected "
            f"{each * count} local variables, but got {len(variables)} instead."
        )
    done = []
    for i in range(each):
        others = variables[i + each :: each]
        added = tf.assign_add(variables[i], tf.add_n([v.value() for v in others]))
        with tf.control_dependencies([added]):
            done += [tf.assign(v, tf.zeros_like(v.value())) for v in others]
    return tf.group(*done)
