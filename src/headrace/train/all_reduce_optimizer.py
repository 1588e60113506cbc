"""Training with variables that every worker has: gradients are summed between the workers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from headrace import logging
from headrace.errors import OpError
from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.segments import put_in_segment
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.array.indexed_slices import IndexedSlices
from headrace.ops.collective import api as collective
from headrace.ops.collective.calls import FIRST_OWN_KEY
from headrace.ops.control import basic
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.state import share
from headrace.ops.state.variables import Variable
from headrace.train.global_step import get_global_step
from headrace.train.optimizer import GradVar, Optimizer
from headrace.train.replica_updates import joining
from headrace.train.session_run_hook import SessionRunHook
from headrace.train.sharded_slots import PartSlot, part_slots, tasks_of_workers
from headrace.train.wrapped_optimizer import WrappedOptimizer

__all__ = ["AllReduceOptimizer", "broadcast_variables"]

_KEYS = "collective instance keys"
#: A worker with a part of the slots stays so long for the chief's last checkpoint.
END_SECONDS = 60.0


def next_key(group_key: int) -> int:
    """A key that this graph has not used: equal in graphs that are built alike."""
    used: list[int] = get_default_graph().get_collection_ref(f"{_KEYS} of {group_key}")
    used.append(FIRST_OWN_KEY + len(used))
    return used[-1]


def broadcast_variables(
    variables: Sequence[Any], is_chief: bool, group_size: int, group_key: int = 1
) -> Operation:
    """An op that gives all members of a group the chief's values of variables.

    Args:
        variables: the same list in all members, of whatever shapes and dtypes.
        is_chief: whether this member has the values; true in exactly one.
        group_size, group_key: see `tf.collective.all_reduce`.

    Returns:
        An Operation without output.

    Raises:
        ValueError: if a variable has no fixed shape.

    >>> v = tf.Variable([1.0, 2.0])
    >>> give = tf.train.broadcast_variables([v], is_chief=True, group_size=1)
    >>> with tf.Session() as sess:
    ...     sess.run(v.initializer)
    ...     sess.run(give)
    """
    done = []
    for variable in variables:
        shape, dtype, key = variable.shape, variable.dtype.base_dtype, next_key(group_key)
        if not shape.is_fully_defined():
            raise ValueError(f"{variable.name} cannot be broadcast: its shape is {shape}.")
        if is_chief:
            value = variable.read_value()
            done.append(collective.broadcast_send(value, shape, dtype, group_size, group_key, key))
        else:
            came = collective.broadcast_recv(shape, dtype, group_size, group_key, key)
            done.append(variable.assign(came))
    return basic.group(*done)


def shared_variables(
    variables: Sequence[Any], ahead: Any, group_size: int, group_key: int = 1
) -> Operation:
    """An op that gives all members of a group the values of the member that is ahead.

    Args:
        variables: the same list in all members.
        ahead: int64 scalar: the values of the member with the greatest number are those of all.
        group_size, group_key: see `tf.collective.all_reduce`.
    """
    here = convert_to_tensor(ahead, dtypes.int64)

    def greatest(value: Any) -> Any:
        key = next_key(group_key)
        return collective.all_reduce(value, group_size, group_key, key, "Max", "Id")

    # Of several that are as far one is taken: sums of their values would be rounded.
    is_first = raw.Equal(here, greatest(here))
    no_shape = np.zeros(0, np.int32)
    most = np.int64(2**62)
    ticket = raw.RandomUniformInt(no_shape, np.int64(0), most, seed=0, seed2=0)
    own = raw.SelectV2(is_first, ticket, convert_to_tensor(-1, dtypes.int64))
    gives = raw.Equal(own, greatest(own))
    done = []
    for variable in variables:
        value = variable.read_value()
        dtype = value.dtype.base_dtype
        if dtype == dtypes.bool:
            value = raw.Cast(value, DstT=dtypes.uint8)
        given = raw.SelectV2(gives, value, raw.ZerosLike(value))
        key = next_key(group_key)
        came = collective.all_reduce(given, group_size, group_key, key, "Add", "Id")
        done.append(variable.assign(raw.Cast(came, DstT=dtype) if dtype == dtypes.bool else came))
    return basic.group(*done)


class _BroadcastHook(SessionRunHook):
    """Gives all members the chief's variables when a session has begun.

    When a member's session is made anew, all others' are, too: they go on with the values of the
    one that has got furthest, so that no step is lost that a member has reported as done. So they
    are when a worker joins the group, whose first broadcast is given up then.
    """

    #: It comes before the first checkpoint and after the last one.
    joins_workers = True

    def __init__(self, optimizer: AllReduceOptimizer, is_chief: bool) -> None:
        self._optimizer, self._is_chief = optimizer, is_chief
        self._give: Any = None
        self._share: Any = None
        self._begin_anew: Any = None
        self._is_anew = False
        self._take_parts: Any = None
        self._was_restored: Any = None
        self._divide: Any = None
        self._all_are_here: Any = None
        self._all_are_done: Any = None

    def begin(self) -> None:
        variables = get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES)
        own = self._optimizer
        self._give = broadcast_variables(variables, self._is_chief, own.group_size, own.group_key)
        if own.group_size > 1 and not own.waits_for_gradients:
            step = get_global_step()
            ahead = 0 if step is None else raw.Cast(step.read_value(), DstT=dtypes.int64)
            self._begin_anew = raw.CollectiveBeginAnew(
                group_size=own.group_size, group_key=own.group_key
            )
            self._share = shared_variables(variables, ahead, own.group_size, own.group_key)
        slots = own.slots_of_parts
        begin = [*own.parts, *(s.slot for s in slots)]
        self._take_parts = basic.group(*[v.initializer for v in begin])
        if slots:
            self._was_restored = own.of_chief(self._is_chief, slots[0].whole[0].is_initialized())
            divided = [s.divide(self._is_chief, own.part_of_slot) for s in slots]
            with get_default_graph().control_dependencies(divided):
                self._divide = basic.group(*[s.forget() for s in slots])
            self._all_are_here = own.all_agree(convert_to_tensor(True))
            self._all_are_done = own.all_agree(convert_to_tensor(True))

    def after_create_session(self, session: Any, coord: Any) -> None:
        if self._begin_anew is not None:
            session.run(self._begin_anew)  # the first time it only says that the group may grow
        if self._is_anew and self._share is not None:
            session.run(self._share)
        else:
            self._is_anew = True
            session.run(self._give)
        # Parts follow from the variables that there are now.
        session.run(self._take_parts)
        if self._divide is not None:
            if session.run(self._was_restored):
                session.run(self._divide)
            # The chief may save from now on, and reads what the others have.
            session.run(self._all_are_here)

    def end(self, session: Any) -> None:
        if self._all_are_done is None:
            return
        from headrace.graph.proto import RunOptions

        limit = RunOptions(timeout_in_ms=int(1000 * END_SECONDS))
        try:
            session.run(self._all_are_done, options=limit)
        except OpError as error:
            logging.warning(
                "This worker leaves before all others have ended, and with it its part of the "
                "slots, which the chief can save no more: %s",
                error.message,
            )


class AllReduceOptimizer(WrappedOptimizer):
    """Averages gradients between workers that each have all variables, then applies them.

    Each worker builds the same graph, with variables of its own, and runs its own steps; their
    updates are the same, bit for bit. Gradients go in buckets, those of the last layers first,
    while those of the layers before are still computed (Sergeev and Del Balso, *Horovod: fast and
    easy distributed deep learning in TensorFlow*, 2018; Li et al., *PyTorch Distributed*, 2020,
    section 3.2). Sparse gradients are gathered. A worker that dies is left out.

    Args:
        opt: the optimiser that applies the averages.
        group_size: how many workers begin together. Others join later, if they use the hook, and
            some may leave: sums are divided by how many there are at that step.
        group_key: names the group, see `tf.collective.all_reduce`.
        bucket_bytes: gradients of one dtype share a bucket up to this size.
        average: divide sums by the number of workers that are there.
        sharded: each worker updates one part of the variables, for which alone it has slots, and
            all gather the parts (Rajbhandari et al., *ZeRO*, 2020, section 5.1). For optimisers
            that treat each element by itself. Checkpoints have slots as without it: what a
            saver restores, this worker's hook divides when its session begins. A worker that dies
            ends the training, and fewer or more go on from a checkpoint.
        name: of the scope.
        communication_hint: the way of dense gradients, see `tf.collective.all_reduce`.

    Raises:
        ValueError: for fewer than one worker, or no room in a bucket; for a dense gradient of a
            variable without a fixed shape; in sharded mode for sparse gradients and variables with
            constraints.
        RuntimeError: in a worker of a plain script.

    >>> w = tf.Variable([1.0, 2.0])
    >>> optimizer = tf.train.AllReduceOptimizer(tf.train.GradientDescentOptimizer(0.5), 1)
    >>> train = optimizer.minimize(tf.reduce_sum(w * w))
    >>> with tf.Session() as sess:
    ...     sess.run(tf.global_variables_initializer())
    ...     sess.run(train)
    ...     sess.run(w)
    array([0., 0.], dtype=float32)
    """

    joins_workers = True

    def __init__(
        self,
        opt: Optimizer,
        group_size: int,
        group_key: int = 1,
        bucket_bytes: int = 8 << 20,
        average: bool = True,
        sharded: bool = False,
        name: str = "AllReduce",
        communication_hint: str = "auto",
    ) -> None:
        if group_size < 1 or bucket_bytes < 1:
            raise ValueError(
                f"AllReduceOptimizer needs at least one worker and one byte in a bucket, not "
                f"{group_size} and {bucket_bytes}."
            )
        super().__init__(opt, False, name)
        share.refuse_own("an AllReduceOptimizer", "--all-reduce")
        self.group_size, self.group_key = group_size, group_key
        self._hint = communication_hint
        self._bucket_bytes, self._average, self._sharded = bucket_bytes, average, sharded
        #: In sharded mode the variables that hold this worker's parts, and their slots.
        self.parts: list[Any] = []
        self.slots_of_parts: list[PartSlot] = []

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> list[GradVar]:
        """``(average, variable)`` pairs; in sharded mode this worker's own gradients.

        Args:
            loss, args, kwargs: those of `Optimizer.compute_gradients`.
        """
        joining(self, "compute_gradients")
        graph = get_default_graph()
        before = len(graph.get_operations())
        pairs = self._opt.compute_gradients(loss, *args, **kwargs)
        if self._sharded or self.group_size == 1:
            return pairs
        with graph.name_scope(self._name):
            return self.averaged(pairs, before)

    @property
    def waits_for_gradients(self) -> bool:  # type: ignore[override]
        """Whether `apply_gradients` sums; else `compute_gradients` does."""
        return self._sharded

    def apply_gradients(
        self, grads_and_vars: Iterable[GradVar], global_step: Any = None, name: str | None = None
    ) -> Operation:
        """An op that applies averages; see `Optimizer.apply_gradients`."""
        joining(self, "apply_gradients")
        pairs = list(grads_and_vars)
        if not self._sharded:
            return self._opt.apply_gradients(pairs, global_step, name)
        return self._apply_parts(pairs, global_step, name)

    def make_session_run_hook(self, is_chief: bool) -> SessionRunHook:
        """A hook that gives all workers the chief's variables when their sessions begin."""
        return _BroadcastHook(self, is_chief)

    # -- buckets ----------------------------------------------------------------------------------

    def averaged(self, pairs: Sequence[GradVar], before: int) -> list[GradVar]:
        """Pairs with the averages over workers, or the sums, in the place of own gradients.

        Args:
            pairs: (gradient, variable).
            before: how many operations the graph had before the gradients.
        """
        dense = [(g, v) for g, v in reversed(pairs) if g is not None and not _is_sparse(g)]
        found: dict[Any, Any] = {}
        buckets = self._buckets(dense)
        flats = [_flat([g for g, _ in bucket]) for bucket in buckets]
        for flat, bucket in zip(flats, buckets, strict=True):
            found.update(self._sum_of(flat, bucket))
        if len(buckets) > 1:
            _make_segments(before, flats)
        sparse = [(g, v) for g, v in pairs if _is_sparse(g)]
        if sparse:
            found.update(self._gathered(sparse))
        return [(found.get(v), v) for _, v in pairs]

    def _buckets(self, pairs: Sequence[GradVar]) -> list[list[GradVar]]:
        buckets: list[list[GradVar]] = []
        room: dict[Any, tuple[list[GradVar], int]] = {}
        for grad, variable in pairs:
            count = variable.shape.num_elements()
            if count is None:
                raise ValueError(
                    f"All-reduce cannot train {variable.name}: its shape is {variable.shape}, and "
                    "gradients share buckets by their sizes. Give it a fixed shape."
                )
            size = count * grad.dtype.size
            bucket, used = room.get(grad.dtype, ([], 0))
            if not bucket or used + size > self._bucket_bytes:
                bucket, used = [], 0
                buckets.append(bucket)
            bucket.append((grad, variable))
            room[grad.dtype] = bucket, used + size
        return buckets

    def _sum_of(self, flat: Tensor, bucket: Sequence[GradVar]) -> dict[Any, Tensor]:
        with get_default_graph().name_scope(_label([v for _, v in bucket])):
            total = self._reduce(flat)
        return dict(zip([v for _, v in bucket], _parted(total, bucket), strict=True))

    def _reduce(self, value: Any) -> Tensor:
        final = "Div" if self._average else "Id"
        key = next_key(self.group_key)
        return collective.all_reduce(
            value,
            self.group_size,
            self.group_key,
            key,
            "Add",
            final,
            communication_hint=self._hint,
        )

    def _gathered(self, pairs: Sequence[GradVar]) -> dict[Any, IndexedSlices]:
        found = {}
        for grad, variable in pairs:
            with get_default_graph().name_scope(_label([variable])):
                # Of the same members, all three: one may be lost between two operations.
                values, indices, there = raw.CollectiveGatherSlices(
                    grad.values,
                    grad.indices,
                    group_size=self.group_size,
                    group_key=self.group_key,
                    instance_key=next_key(self.group_key),
                )
                if self._average:
                    values = raw.RealDiv(values, raw.Cast(there, DstT=values.dtype))
            found[variable] = IndexedSlices(values, indices, grad.dense_shape)
        return found

    # -- parts ------------------------------------------------------------------------------------

    def _apply_parts(
        self, pairs: Sequence[GradVar], global_step: Any, name: str | None
    ) -> Operation:
        if any(_is_sparse(g) for g, _ in pairs):
            raise ValueError(
                "AllReduceOptimizer(sharded=True) takes dense gradients only: parts of variables "
                "do not follow rows. Use sharded=False."
            )
        for grad, variable in pairs:
            if grad is not None and variable.constraint is not None:
                raise ValueError(
                    f"AllReduceOptimizer(sharded=True) cannot train {variable.name}: its "
                    "constraint takes the whole variable, and each worker updates a part. Use "
                    "sharded=False."
                )
        graph, own, updates = get_default_graph(), [], []
        dense = [(g, v) for g, v in reversed(pairs) if g is not None]
        with graph.name_scope(self._name):
            for number, bucket in enumerate(self._buckets(dense)):
                variables = [v for _, v in bucket]
                label = _label(variables)

                def initial(variables: Any = variables, label: str = label) -> Tensor:
                    values = _flat([v.initialized_value() for v in variables])
                    # All have the same: the greatest is any.
                    return self._part(values, f"first_{label}", "Max", "Id")

                part = Variable(
                    initial,
                    trainable=False,
                    collections=[GraphKeys.LOCAL_VARIABLES],
                    name=f"part_{number}",
                )
                self.parts.append(part)
                final = "Div" if self._average else "Id"
                grad = self._part(_flat([g for g, _ in bucket]), label, "Add", final)
                own.append(((grad, part), bucket))
        if isinstance(self._opt, WrappedOptimizer):
            self._opt.use_agreement(self.all_agree)
        step = self._opt.apply_gradients([pair for pair, _ in own], global_step, name)
        for (_, part), bucket in own:
            tasks = tasks_of_workers(part.device, self.group_size)
            self.slots_of_parts += part_slots(self._opt, part, [v for _, v in bucket], tasks)
        with graph.control_dependencies([step]), graph.name_scope(self._name):
            for (_, part), bucket in own:
                with graph.name_scope(_label([v for _, v in bucket])):
                    mine = part.read_value()
                    size = None if mine.dims is None else mine.dims[0]
                    whole = raw.CollectiveGather(
                        mine,
                        group_size=self.group_size,
                        group_key=self.group_key,
                        instance_key=next_key(self.group_key),
                        shape=[None if size is None else size * self.group_size],
                        communication_hint=self._hint,
                    )
                values = _parted(whole, bucket)
                updates += [v.assign(x).op for (_, v), x in zip(bucket, values, strict=True)]
        return basic.group(*updates)

    def all_agree(self, here: Tensor) -> Tensor:
        """Whether a bool scalar is true in all workers."""
        with get_default_graph().name_scope(f"{self._name}/agree"):
            key = next_key(self.group_key)
            number = raw.Cast(here, DstT=dtypes.int32)
            least = collective.all_reduce(number, self.group_size, self.group_key, key, "Min", "Id")
            agreed: Tensor = raw.Equal(least, 1)
            return agreed

    def of_chief(self, is_chief: bool, here: Tensor) -> Tensor:
        """The chief's value of a scalar."""
        size, group, key = self.group_size, self.group_key, next_key(self.group_key)
        with get_default_graph().name_scope(f"{self._name}/of_chief"):
            if is_chief:
                return collective.broadcast_send(here, [], here.dtype, size, group, key)
            return collective.broadcast_recv([], here.dtype, size, group, key)

    def part_of_slot(self, flat: Tensor) -> Tensor:
        """This worker's part of the sum of all workers' flat tensors."""
        with get_default_graph().name_scope(self._name):
            return self._part(flat, "slot", "Add", "Id")

    def _part(self, flat: Tensor, label: str, merge: str, final: str) -> Tensor:
        """This worker's part of a sum of flat tensors, which are filled up with zeros."""
        count = flat.shape.num_elements()
        assert count is not None
        padding = -count % self.group_size
        with get_default_graph().name_scope(label):
            padded = raw.Pad(flat, [[0, padding]]) if padding else flat
            key = next_key(self.group_key)
            return collective.reduce_scatter(
                padded, self.group_size, self.group_key, key, merge, final, self._hint
            )


def _is_sparse(grad: Any) -> bool:
    return isinstance(grad, IndexedSlices)


def _label(variables: Sequence[Any]) -> str:
    """A name for what belongs to some variables."""
    names = [re.sub(r"\W+", "_", v.op.name) for v in (variables[0], variables[-1])]
    return f"of_{names[0]}" if len(variables) == 1 else f"of_{names[0]}_to_{names[1]}"


def _flat(tensors: Sequence[Any]) -> Tensor:
    flat = [raw.Reshape(convert_to_tensor(t), [-1]) for t in tensors]
    return flat[0] if len(flat) == 1 else raw.ConcatV2(flat, 0)


def _parted(total: Tensor, bucket: Sequence[GradVar]) -> list[Tensor]:
    """The tensors that a bucket consists of."""
    found, start = [], 0
    for _, variable in bucket:
        count = variable.shape.num_elements()
        piece = raw.Slice(total, [start], [count])
        found.append(raw.Reshape(piece, variable.shape.as_list()))
        start += count
    return found


def _make_segments(before: int, buckets: Sequence[Tensor]) -> None:
    """Let what leads to each bucket be a unit of its own, so that the bucket travels when it ends.

    Args:
        before: how many operations the graph had before the gradients.
    """
    new = set(get_default_graph().get_operations()[before:])
    for number, flat in enumerate(buckets):
        put_in_segment(flat.op, new, f"gradients of bucket {number}")
