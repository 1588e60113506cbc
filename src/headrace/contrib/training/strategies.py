"""Strategies for `tf.train.replica_device_setter`: which parameter server takes a variable."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from headrace.graph.dtypes import DType
from headrace.graph.shapes import TensorShape

__all__ = ["GreedyLoadBalancingStrategy", "RandomStrategy", "byte_size_load_fn"]


class GreedyLoadBalancingStrategy:
    """Gives each op to the task with the least load so far, the first of equals.

    What a task gets depends on the order in which the ops are made: all replicas must make theirs
    in the same order.

    Args:
        num_tasks: how many parameter server tasks there are.
        load_fn: the load that an op brings, such as `byte_size_load_fn`.

    Raises:
        ValueError: `num_tasks` is not positive.
        TypeError: `load_fn` is no function.

    >>> training = tf.contrib.training
    >>> strategy = training.GreedyLoadBalancingStrategy(2, training.byte_size_load_fn)
    >>> with tf.device(tf.train.replica_device_setter(ps_tasks=2, ps_strategy=strategy)):
    ...     variables = [tf.get_variable(str(n), [n]) for n in (9, 2, 3)]
    >>> [v.device for v in variables]
    ['/job:ps/task:0', '/job:ps/task:1', '/job:ps/task:1']
    """

    def __init__(self, num_tasks: int, load_fn: Callable[[Any], float]) -> None:
        _check_tasks(num_tasks)
        if not callable(load_fn):
            raise TypeError(f"load_fn must be callable, not {load_fn!r}.")
        self._loads = [0.0] * num_tasks
        self._load_fn = load_fn

    def __call__(self, op: Any) -> int:
        """The task of `op`, whose load counts from now on."""
        task = self._loads.index(min(self._loads))
        self._loads[task] += self._load_fn(op)
        return task


class RandomStrategy:
    """Spreads ops by a hash of their names: the same in each process, whatever the order.

    Args:
        num_tasks: how many parameter server tasks there are.
        seed: another seed gives another distribution.

    Raises:
        ValueError: `num_tasks` is not positive.

    >>> strategy = tf.contrib.training.RandomStrategy(num_tasks=4, seed=1)
    >>> strategy(tf.constant(1, name="a").op) == strategy(tf.constant(2, name="a").op)
    True
    >>> strategy(tf.constant(1, name="b").op) in range(4)
    True
    """

    def __init__(self, num_tasks: int, seed: int = 0) -> None:
        _check_tasks(num_tasks)
        self._num_tasks = num_tasks
        self._seed = seed

    def __call__(self, op: Any) -> int:
        """The task of `op`."""
        key = f"{op.name}_{self._seed}".encode()
        # MD5 is what makes it the same distribution as in TensorFlow; nothing is secret here.
        return int(hashlib.md5(key, usedforsecurity=False).hexdigest(), 16) % self._num_tasks


def byte_size_load_fn(op: Any) -> int:
    """The bytes of an op's output; of a variable's value, where the output is its handle.

    Raises:
        ValueError: `op` has not exactly one output, or its shape is not fully defined.
    """
    if len(op.outputs) != 1:
        raise ValueError(f"Op {op.name!r} must have a single output, but has {len(op.outputs)}.")
    shape: TensorShape = op.outputs[0].shape
    dtype: DType = op.outputs[0].dtype
    if op.op_def.makes_handle == "variable":
        shape, dtype = op.attrs["shape"], op.attrs["dtype"]
    size = shape.num_elements()
    if size is None:
        raise ValueError(f"The load of op {op.name!r} is unknown: its shape is {shape}.")
    return size * dtype.size


def _check_tasks(num_tasks: int) -> None:
    if num_tasks < 1:
        raise ValueError(f"A strategy needs at least one task, not {num_tasks}.")
