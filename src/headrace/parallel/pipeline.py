"""Pipelines: layers on several devices, a batch in parts that follow each other through them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from headrace.autodiff.gradients import gradients
from headrace.graph import nest
from headrace.graph.dtypes import float64
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.segments import segment
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.array.api import identity
from headrace.ops.array.api import shape as shape_of
from headrace.ops.array.indexed_slices import IndexedSlices
from headrace.ops.array.joining_api import concat
from headrace.ops.control.checking_api import assert_equal, assert_greater_equal
from headrace.ops.core.build import convert_to_tensor
from headrace.ops.core.registry import get_op_def
from headrace.ops.math.cast import cast
from headrace.ops.math.nary import add_n
from headrace.ops.state.scopes_api import colocate_with, control_dependencies, device
from headrace.ops.state.template import make_template
from headrace.parallel.schedule import FORWARD, Item, in_order, orders_of

#: A layer: tensors of a micro-batch in, tensors out. Several travel as a list or dictionary.
LayerFunction = Callable[[Any], Any]


class PipelineGradients(NamedTuple):
    """What `pipeline_gradients` gives.

    Attributes:
      loss: the mean over the batch, a scalar.
      gradients: (gradient, variable) pairs, as ``optimizer.apply_gradients`` takes them.
      outputs: of the last layer, for the whole batch.

    >>> x = tf.constant([[1.0], [2.0]])
    >>> double = lambda x: x * tf.get_variable("w", initializer=2.0)
    >>> step = tf.parallel.pipeline_gradients(
    ...     [double], ["/cpu:0"], x, loss=tf.reduce_mean, micro_batches=2)
    >>> [variable.name for _, variable in step.gradients]
    ['pipeline/layer_0/w:0']
    """

    loss: Tensor
    gradients: list[tuple[Any, Any]]
    outputs: Any


def pipeline(
    layers: Sequence[LayerFunction],
    devices: Sequence[Any],
    inputs: Any,
    micro_batches: int = 4,
    name: str = "pipeline",
) -> Any:
    """The layers one after another, each on its device, for parts of the batch that follow suit.

    While a device works on one part of the batch, the next device works on the part before it.

    Args:
      layers: functions of tensors; each makes its variables with ``tf.get_variable``, ``tf.layers``
        or Keras layers, once: they are shared by the parts of the batch.
      devices: one for each layer, or fewer: then each gets several layers that follow each other.
      inputs: tensors ``[batch, ...]``, a structure of them, or one; the first layer gets slices.
      micro_batches: into how many parts the batch is cut. They are equally large, or differ by one.
      name: of the scope of the variables, made unique.

    Returns:
      What the last layer gives, for the whole batch: tensors ``[batch, ...]``.

    Raises:
      ValueError: there are no layers, more devices than layers, fewer examples than micro-batches.

    >>> layers = [lambda x: x + 1.0, lambda x: x * 2.0]
    >>> y = tf.parallel.pipeline(layers, ["/cpu:0", "/cpu:0"], tf.constant([1.0, 2.0, 3.0]), 3)
    >>> with tf.Session() as session:
    ...     session.run(y).tolist()
    [4.0, 6.0, 8.0]
    """
    built = _Pipeline(layers, devices, inputs, micro_batches, name)
    items = in_order(orders_of("gpipe", len(built.stages), micro_batches))
    built.build([item for item in items if item.direction == FORWARD])
    return built.joined_outputs()


def pipeline_gradients(
    layers: Sequence[LayerFunction],
    devices: Sequence[Any],
    inputs: Any,
    loss: Callable[..., Any],
    labels: Any = None,
    micro_batches: int = 4,
    schedule: str = "1f1b",
    recompute: bool = False,
    name: str = "pipeline",
) -> PipelineGradients:
    """The loss of a pipeline of layers, and its gradients, scheduled forward and backward.

    The variables change when all parts of the batch have been through: the gradients are those of
    the layers without a pipeline, to rounding. Layers that look at a batch as a whole (batch
    normalisation) see a micro-batch.

    Args:
      layers, devices, inputs, micro_batches, name: as for `pipeline`.
      loss: ``loss(outputs)``, or ``loss(outputs, labels)`` where there are labels: the mean over a
        micro-batch, a scalar. Runs on the last device.
      labels: tensors ``[batch, ...]`` or a structure of them.
      schedule: "1f1b", forward and backward in turns: a stage keeps values of as many micro-batches
        as there are stages from it on (Narayanan et al., "PipeDream", 2019, section 3.2); or
        "gpipe", all forward, then all backward (Huang et al., "GPipe", 2019, section 2).
      recompute: keep only what enters a stage, and compute the rest once more for the backward pass
        (GPipe, section 2.3). For layers without random operations.

    Raises:
      ValueError: as `pipeline`; there is no such schedule; the loss is no scalar; ``recompute`` and
        a layer with random operations, which would draw other numbers the second time.

    >>> x = tf.constant([[1.0], [2.0], [3.0], [4.0]])
    >>> layers = [lambda x: tf.layers.dense(x, 3), lambda x: tf.layers.dense(x, 1)]
    >>> step = tf.parallel.pipeline_gradients(
    ...     layers, ["/cpu:0", "/cpu:0"], x, lambda y: tf.reduce_mean(y ** 2), micro_batches=2)
    >>> train = tf.train.GradientDescentOptimizer(0.01).apply_gradients(step.gradients)
    """
    built = _Pipeline(layers, devices, inputs, micro_batches, name, loss, labels, recompute)
    built.build(in_order(orders_of(schedule, len(built.stages), micro_batches)))
    return PipelineGradients(built.joined_loss(), built.joined_gradients(), built.joined_outputs())


class _Stage:
    """Layers that follow each other on one device, and what is known of each micro-batch there.

    Attributes:
      last: what the item before ends with; the next one waits for it.
      entered: micro-batch -> what comes in.
      given: micro-batch -> what the last layer gives.
      ends: micro-batch -> tensors that are differentiated: what goes out, or the loss.
      wanted: micro-batch -> gradients with respect to what came in.
      totals: variable -> its dense gradient so far.
      rows: variable -> its sparse gradients.
    """

    def __init__(self, layers: Sequence[LayerFunction], where: Any) -> None:
        self.layers = layers
        self.device = where
        self.last: list[Operation] = []
        self.entered: dict[int, Any] = {}
        self.given: dict[int, Any] = {}
        self.ends: dict[int, list[Tensor]] = {}
        self.wanted: dict[int, list[Any]] = {}
        self.totals: dict[Any, Tensor] = {}
        self.rows: dict[Any, list[IndexedSlices]] = {}

    def run(self, values: Any) -> Any:
        for layer in self.layers:
            values = layer(values)
        return nest.map_structure(convert_to_tensor, values)

    def add(self, variable: Any, gradient: Any) -> None:
        if isinstance(gradient, IndexedSlices):
            self.rows.setdefault(variable, []).append(gradient)
        elif gradient is not None:
            before = self.totals.get(variable)
            self.totals[variable] = gradient if before is None else before + gradient


class _Pipeline:
    """The graph of a pipeline as it is built, item by item."""

    def __init__(
        self,
        layers: Sequence[LayerFunction],
        devices: Sequence[Any],
        inputs: Any,
        micro_batches: int,
        name: str,
        loss: Callable[..., Any] | None = None,
        labels: Any = None,
        recompute: bool = False,
    ) -> None:
        layers, devices = list(layers), list(devices)
        if not layers or not devices or len(devices) > len(layers):
            raise ValueError(
                f"A pipeline takes a device for each layer, or fewer, but it got {len(layers)} "
                f"layers and {len(devices)} devices."
            )
        self.graph = get_default_graph()
        self.name = self.graph.unique_name(name)
        named = [
            make_template("layer", layer, unique_name_=f"{self.name}/layer_{i}")
            for i, layer in enumerate(layers)
        ]
        cuts = [len(layers) * i // len(devices) for i in range(len(devices) + 1)]
        self.stages = [
            _Stage(named[first:end], where)
            for first, end, where in zip(cuts, cuts[1:], devices, strict=False)
        ]
        self.loss, self.recompute = loss, recompute
        parts = MicroBatches(inputs, micro_batches)
        with device(devices[0]):
            self.inputs = parts.of(inputs)
        with device(devices[-1]):
            self.labels = None if labels is None else parts.of(labels)
            self.weights = parts.weights()

    def build(self, items: Sequence[Item]) -> None:
        for item in items:
            stage = self.stages[item.stage]
            build = self._forward if item.direction == FORWARD else self._backward
            name = f"{self.name}/stage_{item.stage}/{item.direction}_{item.micro_batch}"
            with device(stage.device), segment(name):
                build(item, stage)

    def _forward(self, item: Item, stage: _Stage) -> None:
        number = item.micro_batch
        source = self.stages[item.stage - 1].given if item.stage else self.inputs
        stage.entered[number] = _after(stage.last, source[number])
        stage.given[number], stage.ends[number] = self._run(stage, stage.entered[number], number)
        stage.last = _ops([stage.given[number], stage.ends[number]])

    def _run(self, stage: _Stage, entered: Any, number: int) -> tuple[Any, list[Tensor]]:
        """What the layers give, and what is to be differentiated."""
        given = stage.run(entered)
        if self.loss is None or stage is not self.stages[-1]:
            return given, nest.flatten(given)
        loss = self.loss(given) if self.labels is None else self.loss(given, self.labels[number])
        loss = convert_to_tensor(loss)
        if loss.shape.ndims not in (0, None):
            raise ValueError(
                "The loss of a pipeline is the mean over a micro-batch, a scalar, but "
                f"'{loss.op.name}' has shape {loss.shape}."
            )
        return given, [loss]

    def _backward(self, item: Item, stage: _Stage) -> None:
        number = item.micro_batch
        if stage is self.stages[-1]:
            seeds = [cast(self.weights[number], stage.ends[number][0].dtype)]
        else:
            seeds = self.stages[item.stage + 1].wanted.pop(number)
        seeds = _after(stage.last, seeds)
        entered, ends = stage.entered.pop(number), stage.ends[number]
        if self.recompute:
            entered = _after(stage.last, entered)
            ends = self._again(stage, entered, number)
        pairs = [(e, s) for e, s in zip(ends, seeds, strict=True) if s is not None]
        sources = nest.flatten(entered)
        variables = self.graph.get_collection(GraphKeys.TRAINABLE_VARIABLES)
        # Only up to what came in: earlier stages have gradients of their own.
        found = gradients(
            [e for e, _ in pairs],
            [*sources, *variables],
            [s for _, s in pairs],
            stop_gradients=sources,
        )
        stage.wanted[number] = found[: len(sources)]
        for variable, gradient in zip(variables, found[len(sources) :], strict=True):
            stage.add(variable, gradient)
        rows = [g.values for slices in stage.rows.values() for g in slices[-1:]]
        stage.last = _ops([stage.wanted[number], list(stage.totals.values()), rows])

    def _again(self, stage: _Stage, entered: Any, number: int) -> list[Tensor]:
        """The stage once more, from what came in."""
        first = len(self.graph.get_operations())
        _, ends = self._run(stage, entered, number)
        for op in self.graph.get_operations()[first:]:
            if get_op_def(op.type).effects.random:
                raise ValueError(
                    f"recompute=True computes '{op.name}' twice, but {op.type} draws other numbers "
                    "the second time. Leave recompute out, or take a stateless operation."
                )
        return ends

    def joined_outputs(self) -> Any:
        """What the last layer gives, for the whole batch."""
        stage = self.stages[-1]
        with device(stage.device):
            parts = [nest.flatten(stage.given[m]) for m in range(len(self.inputs))]
            joined = [concat(list(pieces), 0) for pieces in zip(*parts, strict=True)]
            return nest.pack_sequence_as(stage.given[0], joined)

    def joined_loss(self) -> Tensor:
        """The mean over the batch."""
        stage = self.stages[-1]
        with device(stage.device):
            losses = [stage.ends[m][0] for m in range(len(self.inputs))]
            return add_n(
                [x * cast(w, x.dtype) for x, w in zip(losses, self.weights, strict=True)],
                name=f"{self.name}/loss",
            )

    def joined_gradients(self) -> list[tuple[Any, Any]]:
        """(gradient, variable) pairs, over all stages."""
        pairs = []
        for variable in self.graph.get_collection(GraphKeys.TRAINABLE_VARIABLES):
            dense = [s.totals[variable] for s in self.stages if variable in s.totals]
            rows = [r for s in self.stages for r in s.rows.get(variable, ())]
            if dense or rows:
                with colocate_with(variable.op, ignore_existing=True):
                    pairs.append((_sum(dense, rows), variable))
        return pairs


class MicroBatches:
    """Where a batch is cut.

    Args:
      values: tensors ``[batch, ...]``; the first one tells the size of the batch.
      count: how many micro-batches.
    """

    def __init__(self, values: Any, count: int) -> None:
        if not isinstance(count, int) or count < 1:
            raise ValueError(f"micro_batches must be 1 or more, but it is {count!r}.")
        tensors = [convert_to_tensor(v) for v in nest.flatten(values)]
        if not tensors or tensors[0].shape.ndims == 0:
            raise ValueError("The inputs of a pipeline are tensors [batch, ...].")
        self.count = count
        self._measured = tensors[0]
        #: A number where the graph tells it, else a tensor.
        self.size: Any = tensors[0].shape.with_rank_at_least(1)[0].value
        if self.size is None:
            self.size = self._checked(shape_of(tensors[0])[0])
        elif self.size < count:
            raise ValueError(
                f"A batch of {self.size} examples cannot be cut into {count} micro-batches."
            )
        self.cuts = [self.size * i // count for i in range(count + 1)]

    def _checked(self, size: Tensor) -> Tensor:
        text = f"The batch cannot be cut into {self.count} micro-batches: it has too few examples."
        with control_dependencies([assert_greater_equal(size, self.count, message=text)]):
            return identity(size)

    def of(self, values: Any) -> list[Any]:
        """The micro-batches of tensors.

        Raises:
          ValueError: a tensor has another batch size; if only its value tells,
            InvalidArgumentError when the graph runs.
        """
        values = nest.map_structure(self._whole, values)
        return [
            nest.map_structure(lambda v, a=a, b=b: v[a:b], values)
            for a, b in zip(self.cuts, self.cuts[1:], strict=False)
        ]

    def _whole(self, value: Any) -> Tensor:
        tensor = convert_to_tensor(value)
        if tensor is self._measured:
            return tensor
        size = tensor.shape.with_rank_at_least(1)[0].value
        if size is not None and isinstance(self.size, int):
            if size != self.size:
                raise ValueError(
                    f"The tensors of a batch have one size, but '{tensor.op.name}' has {size} "
                    f"examples where there are {self.size}."
                )
            return tensor
        text = f"'{tensor.op.name}' has not as many examples as the inputs of the pipeline."
        with control_dependencies([assert_equal(shape_of(tensor)[0], self.size, message=text)]):
            return identity(tensor)

    def weights(self) -> list[Any]:
        """Which part of the batch each micro-batch is."""
        sizes = [b - a for a, b in zip(self.cuts, self.cuts[1:], strict=False)]
        if isinstance(self.size, int):
            return [size / self.size for size in sizes]
        return [cast(size, float64) / cast(self.size, float64) for size in sizes]


def _after(ops: Sequence[Operation], values: Any) -> Any:
    """The values, once the operations have run."""
    with control_dependencies(ops):
        return nest.map_structure(lambda v: None if v is None else identity(v), values)


def _ops(values: Any) -> list[Operation]:
    return list(dict.fromkeys(v.op for v in nest.flatten(values) if v is not None))


def _sum(dense: list[Tensor], rows: list[IndexedSlices]) -> Any:
    if not rows:
        return dense[0] if len(dense) == 1 else add_n(dense)
    slices = rows[0]
    if len(rows) > 1:
        slices = IndexedSlices(
            concat([r.values for r in rows], 0),
            concat([r.indices for r in rows], 0),
            rows[0].dense_shape,
        )
    return add_n([*dense, convert_to_tensor(slices)]) if dense else slices


__all__ = ["LayerFunction", "MicroBatches", "PipelineGradients", "pipeline", "pipeline_gradients"]
