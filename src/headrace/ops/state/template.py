"""``tf.make_template``: a function whose variables are made once and shared by all calls."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.ops.core.public import public
from headrace.ops.state.variable_kinds import AUTO_REUSE
from headrace.ops.state.variable_scope import VariableScope, variable_scope


class Template:
    """A function with a variable scope: the first call makes its variables, later ones share.

    Raises:
        ValueError: if a call after the first makes a variable that is trained.
    """

    def __init__(
        self,
        name: str,
        func: Callable[..., Any],
        create_scope_now: bool = False,
        unique_name: str | None = None,
        custom_getter: Callable[..., Any] | None = None,
    ) -> None:
        if name is None:
            raise ValueError("name cannot be None.")
        self._name = name
        self._func = func
        self._unique_name = unique_name
        self._custom_getter = custom_getter
        self._called = False
        self._scope: VariableScope | None = None
        if create_scope_now:
            with self._new_scope() as scope:
                self._scope = scope

    def _new_scope(self) -> variable_scope:
        return variable_scope(self._unique_name, self._name, custom_getter=self._custom_getter)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._scope is None:
            with self._new_scope() as scope:
                self._scope = scope
                return self._call(args, kwargs)
        with variable_scope(self._scope, reuse=self._called or AUTO_REUSE):
            return self._call(args, kwargs)

    def _call(self, args: Any, kwargs: Any) -> Any:
        trained = get_default_graph().get_collection_ref(GraphKeys.TRAINABLE_VARIABLES)
        before = len(trained)
        result = self._func(*args, **kwargs)
        if self._called and len(trained) != before:
            new = ", ".join(v.name for v in trained[before:])
            raise ValueError(
                "Trainable variable created when calling a template after the first time, perhaps "
                f"you used tf.Variable when you meant tf.get_variable: {new}"
            )
        self._called = True
        return result

    @property
    def name(self) -> str:
        return self._name

    @property
    def func(self) -> Callable[..., Any]:
        """The function."""
        return self._func

    @property
    def variable_scope(self) -> VariableScope | None:
        """The scope of its variables; None before it is known."""
        return self._scope

    var_scope = variable_scope

    @property
    def variable_scope_name(self) -> str | None:
        """The name of the scope, without a slash at its end."""
        return None if self._scope is None else self._scope.name.rstrip("/")

    def _in_scope(self, key: str) -> list[Any]:
        name = self.variable_scope_name
        return [] if name is None else get_default_graph().get_collection(key, f"{name}/")

    @property
    def trainable_variables(self) -> list[Any]:
        """The variables inside the scope that are trained."""
        return self._in_scope(GraphKeys.TRAINABLE_VARIABLES)

    @property
    def global_variables(self) -> list[Any]:
        """The global variables inside the scope."""
        return self._in_scope(GraphKeys.GLOBAL_VARIABLES)

    @property
    def local_variables(self) -> list[Any]:
        """The local variables inside the scope."""
        return self._in_scope(GraphKeys.LOCAL_VARIABLES)

    @property
    def variables(self) -> list[Any]:
        """The global and the local variables inside the scope."""
        return self.global_variables + self.local_variables

    @property
    def non_trainable_variables(self) -> list[Any]:
        """The variables inside the scope that are not trained."""
        trained = set(map(id, self.trainable_variables))
        return [v for v in self.variables if id(v) not in trained]

    weights = variables
    trainable_weights = trainable_variables
    non_trainable_weights = non_trainable_variables


@public("make_template")
def make_template(
    name_: str,
    func_: Callable[..., Any],
    create_scope_now_: bool = False,
    unique_name_: str | None = None,
    custom_getter_: Callable[..., Any] | None = None,
    **kwargs: Any,
) -> Template:
    """``func_`` as a function that makes its variables once and shares them between calls.

    Args:
        name_: name of the variable scope, made unique.
        create_scope_now_: fix the scope now, not at the first call.
        unique_name_: name of the scope as it is.
        custom_getter_: custom getter of the scope.
        kwargs: arguments for ``func_`` in every call.

    Raises:
        ValueError: if ``name_`` is None.

    >>> import headrace as tf
    >>> scale = tf.make_template("scale", lambda x: x * tf.get_variable("w", []))
    >>> a, b = scale(1.0), scale(2.0)
    >>> [v.name for v in scale.variables]
    ['scale/w:0']
    """
    function = functools.partial(func_, **kwargs) if kwargs else func_
    return Template(name_, function, create_scope_now_, unique_name_, custom_getter_)
