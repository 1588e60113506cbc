"""What an ``input_fn`` returns: a dataset, tensors, or a pair of features and labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from headrace import logging
from headrace.data.dataset import Dataset
from headrace.data.iterators import make_initializable_iterator
from headrace.errors import OpError
from headrace.estimator.callables import described
from headrace.graph import nest
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.tensor import Tensor
from headrace.ops.sparse.sparse_tensor import SparseTensor
from headrace.ops.state import share
from headrace.train.session_run_hook import SessionRunHook

__all__ = ["Inputs", "inputs_of"]


class DatasetInitializerHook(SessionRunHook):
    """Begins the iteration over a dataset in each new session.

    >>> from headrace.estimator.input_results import DatasetInitializerHook
    >>> iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(2))
    >>> number = iterator.get_next()
    >>> with tf.train.SingularMonitoredSession(hooks=[DatasetInitializerHook(iterator)]) as sess:
    ...     int(sess.run(number))
    0
    """

    def __init__(self, iterator: Any) -> None:
        self._iterator = iterator

    def begin(self) -> None:
        self._initializer = self._iterator.initializer

    def after_create_session(self, session: Any, coord: Any) -> None:
        session.run(self._initializer)


class EmptyInputHook(SessionRunHook):
    """Says so if a loop has made no step: what should have given its input.

    Args:
        loop: "Training" or "Evaluation".
    """

    def __init__(self, loop: str, inputs: Inputs) -> None:
        self._loop, self._inputs = loop, inputs
        self._any_step = False

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self._any_step = True

    def end(self, session: Any) -> None:
        if not self._any_step and not share.is_left_to_chief():
            logging.warning(
                "%s with estimator made no steps. Perhaps input is empty or misspecified. %s",
                self._loop,
                self._inputs.text(),
            )


class Inputs:
    """Features and labels in a graph, and where they come from.

    Attributes:
        features, labels: tensors, or structures of them; labels may be None.
        hooks: SessionRunHooks that the input needs.
        dataset: the dataset that gives them, or None.
        function: the input_fn, as messages name it.
    """

    def __init__(
        self, features: Any, labels: Any, dataset: Any, hooks: list[Any], function: str
    ) -> None:
        self.features = features
        self.labels = labels
        self.dataset = dataset
        self.hooks = hooks
        self.function = function

    def hooks_of(self, loop: str) -> list[SessionRunHook]:
        """The hooks of a loop that is to make steps: "Training" or "Evaluation"."""
        return [*self.hooks, EmptyInputHook(loop, self)]

    @contextmanager
    def named(self, building: bool = False) -> Iterator[None]:
        """Let errors of the model, and of the input itself, tell what gives the input.

        Args:
            building: within it the model is built; else it runs, and restores checkpoints.
        """
        try:
            yield
        except (ValueError, TypeError, KeyError) as error:
            error.add_note(self.text())
            raise
        except OpError as error:
            kind = error.op.type if error.op is not None else ""
            if (building and not kind) or "Dataset" in kind or "Iterator" in kind:
                error.add_note(self.text())
            raise

    def may_end(self) -> bool:
        """Whether a dataset or a queue gives the features: tensors alone never end."""
        if self.dataset is not None:
            return True
        tensors = [t for t in nest.flatten(self.features) if isinstance(t, Tensor)]
        if any(t.op.type == "IteratorGetNext" for t in tensors):
            return True
        return bool(get_default_graph().get_collection(GraphKeys.QUEUE_RUNNERS))

    def text(self) -> str:
        """What the model was given, and which stage of which dataset gives it."""
        lines = [
            f"The input_fn {self.function} gives",
            f"  features: {_kinds(self.features)}",
            f"  labels: {_kinds(self.labels)}",
        ]
        if self.dataset is not None:
            op = self.dataset._variant_tensor.op
            lines.append(f"  from the dataset stage {op.type} ('{op.name}')")
            if op.site is not None:
                lines.append(f'  made by: File "{op.site.filename}", line {op.site.lineno}')
                lines.append(f"    {op.site.line.strip()}")
            if not _makes_batches(op):
                lines.append("  no stage of it makes batches: dataset.batch(...) does")
        return "\n".join(lines)


#: Parts of the names of stages whose elements may be batches, whatever they are made from.
_MAY_BATCH = ("Batch", "Bucket", "Window", "Map", "Generator", "Group", "Scan", "Zip", "Sample")


def _makes_batches(op: Any) -> bool:
    """Whether some stage may make batches: False where elements surely come one by one."""
    while not any(part in op.type for part in _MAY_BATCH):
        variants = [t for t in op.inputs if t.dtype.name == "variant"]
        if len(variants) != 1:
            return "Slice" not in op.type and "Range" not in op.type
        op = variants[0].op
    return True


def inputs_of(result: Any, input_fn: Any) -> Inputs:
    """Features and labels of what an input_fn has returned.

    Raises:
        ValueError: for a list or tuple of another length than 2, and for None.
        TypeError: if there is something that is no tensor.
    """
    function = described(input_fn)
    dataset, hooks = None, []
    if isinstance(result, Dataset):
        dataset = result
        iterator = make_initializable_iterator(result)
        hooks.append(DatasetInitializerHook(iterator))
        result = iterator.get_next()
    if result is None:
        raise ValueError(
            f"The input_fn {function} returned None. It should return a tf.data.Dataset, features, "
            "or a pair (features, labels)."
        )
    labels = None
    if isinstance(result, (list, tuple)):
        if len(result) != 2:
            raise ValueError(
                "input_fn should return (features, labels) as a len 2 tuple. "
                f"{function} gives {len(result)} parts: {_kinds(result)}"
            )
        result, labels = result
    for what, value in (("features", result), ("labels", labels)):
        _check_tensors(what, value, function)
    return Inputs(result, labels, dataset, hooks, function)


def _check_tensors(what: str, value: Any, function: str) -> None:
    for key, part in _items(value):
        if part is None or isinstance(part, Dataset) or type(part).__module__ == "numpy":
            raise TypeError(
                f"The {what}{key} that the input_fn {function} returns must be a tensor, not "
                f"{type(part).__name__}. tf.estimator.inputs.numpy_input_fn and "
                "tf.data.Dataset.from_tensor_slices make tensors of arrays."
            )


def _items(value: Any) -> list[tuple[str, Any]]:
    if value is None:
        return []
    if isinstance(value, Mapping):
        return [(f" {key!r}", part) for key, part in value.items()]
    return [("", value)]


def _kinds(value: Any) -> str:
    """dtypes and shapes of a structure."""
    if value is None:
        return "None"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k!r}: {_kinds(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "(" + ", ".join(map(_kinds, value)) + ")"
    if isinstance(value, (Tensor, SparseTensor)):
        kind = "" if isinstance(value, Tensor) else "sparse "
        return f"{kind}{value.dtype.name} {value.get_shape()}"
    return type(value).__name__
