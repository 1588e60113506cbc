"""The functions of ``tf.collective``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.graph import dtypes
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public


@public("collective.all_reduce")
def all_reduce(
    t: Any,
    group_size: int,
    group_key: int,
    instance_key: int,
    merge_op: str = "Add",
    final_op: str = "Id",
    subdiv_offsets: Sequence[int] = (0,),
    communication_hint: str = "auto",
) -> Tensor:
    """The sum, product, least or greatest of a tensor over the members of a group.

    Members are operations with the same keys: of one step on several devices, of steps of several
    threads, or of the steps that the tasks of a cluster run, each for itself. Each gets bit for bit
    the same. Between tasks large tensors go round a ring (Patarasuk and Yuan, *Bandwidth optimal
    all-reduce algorithms for clusters of workstations*, 2009), small ones through a tree.

    Args:
      t: the tensor of this member, numeric, of any shape that is the same in all members.
      group_size: how many members there are.
      group_key: names the group; instance_key: names this operation within the group.
      merge_op: "Add", "Mul", "Min" or "Max".
      final_op: "Id", or "Div" for division by the number of members.
      subdiv_offsets: taken for compatibility.
      communication_hint: "ring" for our own links, "nccl" for XLA's collectives if all members are
        processes of one multi-process runtime of JAX (see "All-reduce" in the documentation),
        "auto" for these if the runtime has accelerators. What XLA cannot do (products, complex
        numbers) goes over our links.

    Returns:
      A tensor of the dtype and shape of ``t``.

    Raises:
      ValueError: for fewer than one member.
      InvalidArgumentError: when run, if the tensors of the members differ in dtype or shape; the
        error names them all.

    >>> a, b = tf.constant([1.0, 5.0]), tf.constant([3.0, 1.0])
    >>> means = [tf.collective.all_reduce(t, 2, 7, 1, "Add", "Div") for t in (a, b)]
    >>> with tf.Session() as sess:
    ...     sess.run(means)
    [array([2., 3.], dtype=float32), array([2., 3.], dtype=float32)]
    """
    _check(group_size, "all_reduce")
    return raw.CollectiveReduce(
        t,
        group_size=group_size,
        group_key=group_key,
        instance_key=instance_key,
        merge_op=merge_op,
        final_op=final_op,
        subdiv_offsets=list(subdiv_offsets),
        communication_hint=communication_hint,
    )


@public("collective.reduce_scatter")
def reduce_scatter(
    t: Any,
    group_size: int,
    group_key: int,
    instance_key: int,
    merge_op: str = "Add",
    final_op: str = "Id",
    communication_hint: str = "auto",
) -> Tensor:
    """The part of a sum over the members of a group that belongs to this member.

    Args:
      t: the tensor of this member, numeric, of shape [n, ...], the same in all members; ``n`` is
        a multiple of ``group_size``.
      group_size, group_key, instance_key, merge_op, final_op: see `tf.collective.all_reduce`.
      communication_hint: see `tf.collective.all_reduce`.

    Returns:
      Rows [r * n / group_size, (r + 1) * n / group_size) of what `all_reduce` gives, for the member
      of rank r. Ranks follow tasks, then devices, then names of operations.

    Raises:
      ValueError: for fewer than one member, or a first dimension that cannot be divided.
      InvalidArgumentError: when run, if the tensors of the members differ in dtype or shape.

    >>> t = tf.constant([1.0, 2.0])
    >>> parts = [tf.collective.reduce_scatter(t, 2, group_key=1, instance_key=2) for _ in "ab"]
    >>> with tf.Session() as sess:
    ...     sess.run(parts)
    [array([2.], dtype=float32), array([4.], dtype=float32)]
    """
    _check(group_size, "reduce_scatter")
    return raw.CollectiveReduceScatter(
        t,
        group_size=group_size,
        group_key=group_key,
        instance_key=instance_key,
        merge_op=merge_op,
        final_op=final_op,
        communication_hint=communication_hint,
    )


@public("collective.all_gather")
def all_gather(
    t: Any,
    group_size: int,
    group_key: int,
    instance_key: int,
    communication_hint: str = "auto",
) -> Tensor:
    """The tensors of all members of a group behind each other.

    Args:
      t: the tensor of this member, of shape [n, ...]; ``n`` may differ between members.
      group_size, group_key, instance_key: see `tf.collective.all_reduce`.
      communication_hint: see `tf.collective.all_reduce`.

    Returns:
      A tensor of shape [sum of n, ...], in the order of tasks, then devices, then names.

    Raises:
      ValueError: for fewer than one member.
      InvalidArgumentError: when run, if dtypes, or shapes beyond the first dimension, differ.

    >>> parts = [tf.collective.all_gather(t, 2, group_key=1, instance_key=3) for t in ([1, 2], [3])]
    >>> with tf.Session() as sess:
    ...     sess.run(parts)[1]
    array([1, 2, 3], dtype=int32)
    """
    _check(group_size, "all_gather")
    return raw.CollectiveGather(
        t,
        group_size=group_size,
        group_key=group_key,
        instance_key=instance_key,
        shape=[0],
        communication_hint=communication_hint,
    )


@public("collective.broadcast_send")
def broadcast_send(
    t: Any,
    shape: Any,
    dtype: Any,
    group_size: int,
    group_key: int,
    instance_key: int,
    communication_hint: str = "auto",
) -> Tensor:
    """Gives a tensor to the other members of a group, which call `tf.collective.broadcast_recv`.

    Args:
      t: the tensor; its shape and type are ``shape`` and ``dtype``.
      group_size, group_key, instance_key: see `tf.collective.all_reduce`.
      communication_hint: taken for compatibility.

    Returns:
      ``t``, once the members are there.

    Raises:
      ValueError: for fewer than one member, or a tensor of another shape or type.

    >>> sent = tf.collective.broadcast_send(tf.constant([4, 2]), [2], tf.int32, 2, 1, 4)
    >>> came = tf.collective.broadcast_recv([2], tf.int32, 2, 1, 4)
    >>> with tf.Session() as sess:
    ...     sess.run([sent, came])[1]
    array([4, 2], dtype=int32)
    """
    _check(group_size, "broadcast_send")
    tensor = convert_to_tensor(t)
    if not tensor.shape.is_compatible_with(shape):
        raise ValueError(
            "Shape of broadcast_send tensor not equal to declared shape: "
            f"{tensor.shape} and {shape}"
        )
    if tensor.dtype != dtypes.as_dtype(dtype):
        raise ValueError(
            f"Type of broadcast_send tensor not equal to declared type: {tensor.dtype.name} and "
            f"{dtypes.as_dtype(dtype).name}"
        )
    return raw.CollectiveBcastSend(
        tensor,
        group_size=group_size,
        group_key=group_key,
        instance_key=instance_key,
        shape=TensorShape(shape),
        communication_hint=communication_hint,
    )


@public("collective.broadcast_recv")
def broadcast_recv(
    shape: Any,
    dtype: Any,
    group_size: int,
    group_key: int,
    instance_key: int,
    communication_hint: str = "auto",
) -> Tensor:
    """The tensor that another member of a group gives by `tf.collective.broadcast_send`.

    Args:
      shape, dtype: of the tensor; the shape is fully known.
      group_size, group_key, instance_key: see `tf.collective.all_reduce`.
      communication_hint: taken for compatibility.

    Returns:
      A tensor of that shape and dtype.

    Raises:
      ValueError: for fewer than one member.
      InvalidArgumentError: when run, if the sender's shape or dtype is another one.

    >>> tf.collective.broadcast_recv([2, 3], tf.float32, 2, group_key=1, instance_key=5).shape
    TensorShape([Dimension(2), Dimension(3)])
    """
    _check(group_size, "broadcast_recv")
    return raw.CollectiveBcastRecv(
        T=dtypes.as_dtype(dtype),
        group_size=group_size,
        group_key=group_key,
        instance_key=instance_key,
        shape=TensorShape(shape),
        communication_hint=communication_hint,
    )


def _check(group_size: int, function: str) -> None:
    if group_size < 1:
        raise ValueError(
            f"Parameter group_size to {function} must be at least 1, got {group_size}."
        )
