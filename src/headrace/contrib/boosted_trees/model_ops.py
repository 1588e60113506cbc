"""Ensembles of trees as resources that a Saver saves."""

from __future__ import annotations

from typing import Any

from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.state.resources import register_resource
from headrace.ops.state.scopes_api import control_dependencies, name_scope
from headrace.train.saveable import SaveableObject, SaveSpec

__all__ = [
    "TreeEnsembleVariable",
    "TreeEnsembleVariableSavable",
    "tree_ensemble_deserialize",
    "tree_ensemble_serialize",
    "tree_ensemble_stamp_token",
    "tree_ensemble_used_handlers",
    "tree_ensemble_variable",
]


def tree_ensemble_serialize(tree_ensemble_handle: Any, name: str | None = None) -> Any:
    """``(stamp_token, tree_ensemble_config)``: int64 and string scalars.

    Raises:
        NotFoundError: in the step, if the ensemble has not been initialised.
    """
    return raw.TreeEnsembleSerialize(tree_ensemble_handle, name=name)


def tree_ensemble_deserialize(
    tree_ensemble_handle: Any, stamp_token: Any, tree_ensemble_config: Any, name: str | None = None
) -> Operation:
    """An operation that puts other trees, and another stamp, into an ensemble.

    Args:
        stamp_token: int64 scalar.
        tree_ensemble_config: string scalar, a serialized DecisionTreeEnsembleConfig.

    Raises:
        InvalidArgumentError: in the step, if the text is no ensemble; it is empty then, with -1 for
            its stamp.
    """
    restored: Operation = raw.TreeEnsembleDeserialize(
        tree_ensemble_handle, stamp_token, tree_ensemble_config, name=name
    )
    return restored


def tree_ensemble_stamp_token(tree_ensemble_handle: Any, name: str | None = None) -> Tensor:
    """The stamp of an ensemble, an int64 scalar.

    Raises:
        TypeError: if the handle is no resource.
    """
    stamp: Tensor = raw.TreeEnsembleStampToken(tree_ensemble_handle, name=name)
    return stamp


def tree_ensemble_used_handlers(
    tree_ensemble_handle: Any, stamp_token: Any, num_all_handlers: int, name: str | None = None
) -> Any:
    """``(how many, which)`` handlers have given splits: an int64 scalar, bool ``[all handlers]``.

    Raises:
        FailedPreconditionError: in the step, if the ensemble has another stamp.
    """
    return raw.TreeEnsembleUsedHandlers(
        tree_ensemble_handle, stamp_token, num_all_handlers=num_all_handlers, name=name
    )


class TreeEnsembleVariableSavable(SaveableObject):
    """Saves an ensemble as two tensors, its stamp and its configuration.

    Args:
        tree_ensemble_handle: the resource.
        create_op: makes it; restoring runs it first.
        name: begins the names in the checkpoint.

    >>> model_ops = tf.contrib.boosted_trees.python.ops.model_ops
    >>> trees = model_ops.tree_ensemble_variable(0, "", name="trees")
    >>> [saveable] = tf.get_collection(tf.GraphKeys.SAVEABLE_OBJECTS)
    >>> type(saveable).__name__, [spec.name for spec in saveable.specs]
    ('TreeEnsembleVariableSavable', ['trees:0_stamp', 'trees:0_config'])
    """

    def __init__(self, tree_ensemble_handle: Any, create_op: Any, name: str) -> None:
        stamp, config = tree_ensemble_serialize(tree_ensemble_handle)
        specs = [SaveSpec(stamp, "", f"{name}_stamp"), SaveSpec(config, "", f"{name}_config")]
        super().__init__(tree_ensemble_handle, specs, name)
        self._create_op = create_op

    def restore(self, restored_tensors: Any, restored_shapes: Any) -> Any:
        with control_dependencies([self._create_op]):
            return tree_ensemble_deserialize(self.op, *restored_tensors)


class TreeEnsembleVariable:
    """A model of trees.

    Args:
        stamp_token: int64 scalar, the first stamp.
        tree_ensemble_config: string scalar, a serialized DecisionTreeEnsembleConfig; empty for no
            trees.
        name: of the resource.

    >>> model_ops = tf.contrib.boosted_trees.python.ops.model_ops
    >>> trees = model_ops.tree_ensemble_variable(0, "", name="trees")
    >>> trees.dtype, type(model_ops.tree_ensemble_serialize(trees)).__name__
    (tf.resource, 'tuple')
    """

    def __init__(
        self, stamp_token: Any, tree_ensemble_config: Any, name: str, container: str | None = None
    ) -> None:
        self._stamp_token = stamp_token
        self._tree_ensemble_config = tree_ensemble_config
        self._name = name
        self._resource_handle = raw.DecisionTreeEnsembleResourceHandleOp(
            container=container or "", shared_name=name.rstrip("/"), name=name
        )
        self._init_op: Any = None

    @property
    def resource_handle(self) -> Tensor:
        handle: Tensor = self._resource_handle
        return handle

    @property
    def initializer(self) -> Operation:
        """Makes the ensemble, unless it is there."""
        if self._init_op is None:
            self._init_op = raw.CreateTreeEnsembleVariable(
                self._resource_handle,
                convert_to_tensor(self._stamp_token, dtypes.int64),
                self._tree_ensemble_config,
            )
        init: Operation = self._init_op
        return init

    def is_initialized(self) -> Tensor:
        """Whether it is there, a bool scalar."""
        found: Tensor = raw.TreeEnsembleIsInitializedOp(self._resource_handle)
        return found


def tree_ensemble_variable(
    stamp_token: Any, tree_ensemble_config: Any, name: str | None, container: str | None = None
) -> Tensor:
    """The handle of a new TreeEnsembleVariable, which savers save.

    ``resources.initialize_resources(resources.shared_resources())`` initialises it.

    ``stamp_token`` is an int64 scalar, ``tree_ensemble_config`` a string, a scalar too.

    >>> import headrace as tf
    >>> from headrace.ops.state.resources import initialize_resources, shared_resources
    >>> with tf.Graph().as_default(), tf.Session() as sess:
    ...     ensemble = tree_ensemble_variable(3, "", name="trees")
    ...     _ = sess.run(initialize_resources(shared_resources()))
    ...     stamp = sess.run(tree_ensemble_stamp_token(ensemble))
    >>> int(stamp)
    3

    Raises:
        TypeError: if they are of other types.
    """
    with name_scope(name, "TreeEnsembleVariable") as scope:
        ensemble = TreeEnsembleVariable(stamp_token, tree_ensemble_config, scope, container)
        handle, create_op = ensemble.resource_handle, ensemble.initializer
        is_initialized = ensemble.is_initialized()
        saveable = TreeEnsembleVariableSavable(handle, create_op, handle.name)
    get_default_graph().add_to_collection(GraphKeys.SAVEABLE_OBJECTS, saveable)
    register_resource(handle, create_op, is_initialized)
    return handle
