"""What an exported model takes: receivers of serialised Examples, or of tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from headrace.estimator.input_results import inputs_of
from headrace.graph import dtypes
from headrace.graph.graph import Graph
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import placeholder
from headrace.ops.parsing.api import parse_example
from headrace.ops.sparse.sparse_tensor import SparseTensor

__all__ = [
    "ServingInputReceiver",
    "SupervisedInputReceiver",
    "TensorServingInputReceiver",
    "UnsupervisedInputReceiver",
    "build_parsing_serving_input_receiver_fn",
    "build_raw_serving_input_receiver_fn",
    "build_raw_supervised_input_receiver_fn",
    "build_supervised_input_receiver_fn_from_input_fn",
]

_FEATURE, _RECEIVER, _LABEL = "feature", "input", "label"


class _ServingFields(NamedTuple):
    features: Any
    receiver_tensors: dict[str, Any]
    receiver_tensors_alternatives: Any


class ServingInputReceiver(_ServingFields):
    """The features of a model that is served, and the tensors that clients feed.

    Args:
        features: a dictionary of tensors; a tensor alone is called "feature".
        receiver_tensors: a dictionary of what is fed; a tensor alone is called "input".
        receiver_tensors_alternatives: other groups of what can be fed, by name; each makes
            signatures of its own.

    Raises:
        ValueError: for what is no tensor, and names that are no strings.

    >>> x = tf.placeholder(tf.float32, [None, 2])
    >>> receiver = tf.estimator.export.ServingInputReceiver(x, {"x": x})
    >>> sorted(receiver.features), sorted(receiver.receiver_tensors)
    (['feature'], ['x'])
    """

    __slots__ = ()

    def __new__(
        cls, features: Any, receiver_tensors: Any, receiver_tensors_alternatives: Any = None
    ) -> ServingInputReceiver:
        return super().__new__(
            cls,
            _checked(features, "feature", _FEATURE, integers=True),
            _checked(receiver_tensors, "receiver_tensor", _RECEIVER),
            _checked_alternatives(receiver_tensors_alternatives),
        )


class TensorServingInputReceiver(_ServingFields):
    """A ServingInputReceiver for a model that takes one tensor, not a dictionary.

    Args:
        features: a tensor.
        receiver_tensors, receiver_tensors_alternatives: as for `ServingInputReceiver`.

    Raises:
        ValueError: for what is no tensor, and names that are no strings.

    >>> x = tf.placeholder(tf.float32, [None, 2])
    >>> tf.estimator.export.TensorServingInputReceiver(x, x).features is x
    True
    """

    __slots__ = ()

    def __new__(
        cls, features: Any, receiver_tensors: Any, receiver_tensors_alternatives: Any = None
    ) -> TensorServingInputReceiver:
        if features is None:
            raise ValueError("features must be defined.")
        _check_tensor(features, "", "feature")
        return super().__new__(
            cls,
            features,
            _checked(receiver_tensors, "receiver_tensor", _RECEIVER),
            _checked_alternatives(receiver_tensors_alternatives),
        )


class UnsupervisedInputReceiver(ServingInputReceiver):
    """Features without labels, for graphs that train or evaluate."""

    __slots__ = ()

    def __new__(cls, features: Any, receiver_tensors: Any) -> UnsupervisedInputReceiver:
        return super().__new__(cls, features, receiver_tensors)  # type: ignore[return-value]


class _SupervisedFields(NamedTuple):
    features: Any
    labels: Any
    receiver_tensors: dict[str, Any]


class SupervisedInputReceiver(_SupervisedFields):
    """Features and labels, for graphs that train or evaluate, and the tensors that are fed."""

    __slots__ = ()

    def __new__(cls, features: Any, labels: Any, receiver_tensors: Any) -> SupervisedInputReceiver:
        _checked(features, "feature", _FEATURE, integers=True)
        _checked(labels, "label", _LABEL, integers=True)
        receivers = _checked(receiver_tensors, "receiver_tensor", _RECEIVER)
        return super().__new__(cls, features, labels, receivers)


def build_parsing_serving_input_receiver_fn(
    feature_spec: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """A function that makes a receiver of serialised `tf.train.Example` messages.

    Args:
        feature_spec: what `tf.parse_example` takes.
        default_batch_size: the size of batches; any if None.

    Returns:
        The function. Its receiver has one input, "examples", a string vector.

    Raises:
        ValueError: when the function is called, if the specification cannot be.
    """

    def serving_input_receiver_fn() -> ServingInputReceiver:
        examples = placeholder(dtypes.string, [default_batch_size], name="input_example_tensor")
        return ServingInputReceiver(parse_example(examples, feature_spec), {"examples": examples})

    return serving_input_receiver_fn


def build_raw_serving_input_receiver_fn(
    features: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """A function that makes a receiver of the features themselves.

    Args:
        features: tensors (or placeholders) whose dtypes and shapes behind the batch count.
        default_batch_size: the size of batches; any if None.

    Returns:
        The function. Its receiver has an input for each feature, under its name.

    Raises:
        ValueError: when the function is called, if a feature is no tensor.
    """

    def serving_input_receiver_fn() -> ServingInputReceiver:
        receivers = {name: _placeholder(t, default_batch_size) for name, t in features.items()}
        return ServingInputReceiver(receivers, receivers)

    return serving_input_receiver_fn


def build_raw_supervised_input_receiver_fn(
    features: Any, labels: Any, default_batch_size: int | None = None
) -> Callable[[], SupervisedInputReceiver]:
    """A function that makes a receiver of features and labels, for training and evaluation.

    Args:
        features, labels: tensors, or dictionaries of such; their dtypes and shapes count.
        default_batch_size: the size of batches; any if None.

    Raises:
        ValueError: if a name is in both.
    """
    both = set(_keys(features, _RECEIVER)) & set(_keys(labels, _LABEL))
    if both:
        raise ValueError(
            f"Features and labels must have distinct keys. Found overlapping keys: {both}"
        )

    def supervised_input_receiver_fn() -> SupervisedInputReceiver:
        given = _placeholders(features, default_batch_size)
        wanted = _placeholders(labels, default_batch_size)
        receivers = {
            **(given if isinstance(given, dict) else {_RECEIVER: given}),
            **(wanted if isinstance(wanted, dict) else {_LABEL: wanted}),
        }
        return SupervisedInputReceiver(given, wanted, receivers)

    return supervised_input_receiver_fn


def build_supervised_input_receiver_fn_from_input_fn(
    input_fn: Callable[..., Any], **input_fn_args: Any
) -> Callable[[], SupervisedInputReceiver]:
    """A function that makes a receiver of what ``input_fn`` gives: its dtypes and shapes.

    Raises:
        ValueError: if there are no labels.
    """
    with Graph().as_default():
        inputs = inputs_of(input_fn(**input_fn_args), input_fn)
        return build_raw_supervised_input_receiver_fn(inputs.features, inputs.labels)


def _keys(tensors: Any, default: str) -> list[str]:
    return list(tensors) if isinstance(tensors, Mapping) else [default]


def _placeholders(tensors: Any, size: int | None) -> Any:
    if isinstance(tensors, Mapping):
        return {name: _placeholder(t, size) for name, t in tensors.items()}
    return _placeholder(tensors, size)


def _placeholder(tensor: Any, size: int | None) -> Any:
    shape = TensorShape([size]).concatenate(tensor.get_shape()[1:])
    return placeholder(tensor.dtype, shape, name=tensor.op.name)


def _checked(tensors: Any, what: str, default: str, integers: bool = False) -> dict[Any, Any]:
    if tensors is None:
        raise ValueError(f"{what}s must be defined.")
    named = dict(tensors) if isinstance(tensors, Mapping) else {default: tensors}
    for name, tensor in named.items():
        if not isinstance(name, str) and not (integers and isinstance(name, int)):
            kinds = "strings or ints" if integers else "strings"
            raise ValueError(f"{what} keys must be {kinds}: {name}.")
        _check_tensor(tensor, f" {name}" if name != "" else "", what)
    return named


def _check_tensor(tensor: Any, name: str, what: str) -> None:
    if not isinstance(tensor, (Tensor, SparseTensor)):
        raise ValueError(f"{what}{name} must be a Tensor or SparseTensor.")


def _checked_alternatives(alternatives: Any) -> Any:
    if alternatives is None:
        return None
    if not isinstance(alternatives, Mapping):
        raise ValueError(f"receiver_tensors_alternatives must be a dict: {alternatives}.")
    return {
        name: _checked(tensors, "receiver_tensors_alternative", _RECEIVER)
        for name, tensors in alternatives.items()
    }
