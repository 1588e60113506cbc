"""Traits: what other stages ask about an op, besides what it computes.

They stand in the definition of the op, so that no stage keeps a list of names.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from headrace.graph.tensor import Dims, Operation


class Batch(NamedTuple):
    """How an op treats a batch whose elements do not depend on each other.

    Attributes:
        inputs: the inputs whose first axis is the batch.
        shape: the input that tells the shape of the output, its batch in front; -1: none does.
        adds_up: the output is a sum over the batch, to which elements of zeros add nothing; else
            its first axis is the batch.
    """

    inputs: tuple[int, ...]
    shape: int = -1
    adds_up: bool = False


class Stacked(NamedTuple):
    """How XLA and NumPy compute with stacks: many values of one shape along a new first axis.

    Both take the attributes that the op's own ``kernel`` and ``interpret`` take.
    """

    kernel: Callable[..., Any]
    interpret: Callable[..., Any]


@dataclass(frozen=True)
class Traits:
    """What an op is like.

    Attributes:
        hands_on: what output 0 has of input 0: its ``value`` as it is (of a handle: that of the
            variable), or its ``elements``, all and in order, in another shape. With ``each``,
            every output is the input at its place.
        computes: False for ops that only hand on, store or order values: a program of such ops
            would only copy.
        elements_of: the inputs of whose elements the outputs consist, for ops that choose and
            move elements: what is true of all of those is true of the outputs.
        linear: the inputs in which the outputs are linear, taken together; ``each``: in each input
            by itself, as a product is. (Views, and what moves elements, are linear in these.)
        divides: it is ``linear`` in input 0, and divides that by input 1.
        reduces: what it makes of the elements along the axes that input 1 has, of all without one.
        takes_out: it takes values out of a resource, others in each step: one ``element``, or
            ``rows``, whose first axis has one for each example.
        light: NumPy computes it for integers in about the time that it takes to look at them.
        fast_on_numpy: NumPy computes it in the time that a program of XLA's takes on one core.
        numpy_calls: so many calls NumPy takes for it, each of which looks at all elements once, in
            order; 0: nobody has counted them.
        product: it multiplies matrices; NumPy has a library for that of floating point numbers.
        numpy_wins: ``numpy_wins(*inputs)``, of arrays of which only shapes and types are known,
            asked while a program is traced: whether NumPy, on all cores, takes so much less time
            than XLA on a CPU that the op runs beside the program of the step. None: never.
        numpy_wins_from: the same, asked before anything is traced: from so many elements of output
            0 on, as the graph tells them. An unknown size counts as 0. None: never.
        repeats: its function bodies run any number of times.
        calls_once: its function body runs exactly once.
        own_arguments: its functions take values of their own (elements of a dataset) in the place
            of its inputs.
        elementwise: each element of the outputs depends on one element of each input; inputs
            broadcast. Ragged tensors are taken by their flat values.
        keeps_zero: elementwise, of one input, and zero where that is zero: of a SparseTensor it
            takes the values.
        cheap: arithmetic that XLA repeats for each user rather than keep its results.
        rounding: XLA joins the constants of neighbours of one kind, and so rounds otherwise.
        own_check: it hands on input 0 after a look at it that only Headrace knows: files have
            Identity in its place.
        counts: data makes the number of rows of its outputs, as the number of distinct ids is made:
            hardly ever the same twice.
        by_hand: it is a part of control flow of the old kind: before a step runs, it is raised to
            functions.
        batch: how it treats a batch; None where its elements may depend on each other.
        only_here: TensorFlow has no such op, and files for it cannot be written with this one: why.
            (Ops of ours that are written as others have a rule instead, see
            `graph_files.export_graph`.)
        library: the module of TensorFlow 1.x by which programs load the library that has it: files
            are written with it, and only such programs can load them.
        as_shape: ``as_shape(op)``: of an op whose output may list the sizes of a shape, what the
            graph tells of that shape, with None for each size that it does not tell.
        partial_gradients: its gradient rule takes None for each output that nothing uses, where
            others get zeros.
        shared: it owns state that the workers of a cluster share: `tf.train.replica_device_setter`
            puts it on parameter servers.
        stated_outputs: for how many outputs the shapes that a file states count; None: for all.
            For ops with outputs that nothing reads, of which releases state different shapes.
        row_updates: where the indices and the new rows stand among the inputs of an op that changes
            rows of input 0, and whose programs pass over indices behind the last row.
        all_rows: it has ``row_updates``, and changes the other rows, too.
        origin: ``origin(op)``: the operation that decides what its outputs are like, which errors
            of what takes them name: the last stage of a dataset; None if the graph does not tell.
        device_arrays: it runs on the host, but takes arrays where they lie.
        alone: in a cluster, a step with it runs while no other step uses its variables.
        stacked: how many equal ones are computed at once (`executor.side_by_side`): of each input a
            stack, or the one value that all share; the result is a stack. Elementwise ops do so
            by themselves.
        takes_stack: for an op that takes a list: the same of one stack of all.
        made_once: where several take its output, a program on CPUs is to write it down, rather than
            to make it anew for each (see `executor.made_once`).
        flops: ``flops(op)``: floating point operations as TensorFlow's profiler counts them; it
            may raise ValueError where shapes are not known. None counts nothing.
    """

    hands_on: Literal["", "value", "elements", "each"] = ""
    elements_of: slice | None = None
    linear: slice | Literal["each"] | None = None
    divides: bool = False
    reduces: Literal["", "sum", "mean", "other"] = ""
    takes_out: Literal["", "element", "rows"] = ""
    light: bool = False
    fast_on_numpy: bool = False
    numpy_calls: int = 0
    product: bool = False
    numpy_wins: Callable[..., bool] | None = None
    numpy_wins_from: int | None = None
    computes: bool = True
    repeats: bool = False
    calls_once: bool = False
    own_arguments: bool = False
    elementwise: bool = False
    keeps_zero: bool = False
    cheap: bool = False
    rounding: Literal["", "sum", "product"] = ""
    own_check: bool = False
    counts: bool = False
    by_hand: bool = False
    batch: Batch | None = None
    only_here: str = ""
    library: str = ""
    as_shape: Callable[[Operation], Dims] | None = None
    partial_gradients: bool = False
    shared: bool = False
    stated_outputs: int | None = None
    row_updates: tuple[int, int] | None = None
    all_rows: bool = False
    origin: Callable[[Operation], Operation | None] | None = None
    device_arrays: bool = False
    alone: bool = False
    stacked: Stacked | None = None
    takes_stack: Stacked | None = None
    made_once: bool = False
    flops: Callable[[Operation], int] | None = None

    @property
    def is_view(self) -> bool:
        """Whether output 0 has all the elements of input 0, in order."""
        return self.hands_on in ("value", "elements")

    def but(self, **changes: Any) -> Traits:
        """The same traits with some others."""
        return dataclasses.replace(self, **changes)


PLAIN = Traits()
#: The result is input 0.
SAME = Traits(hands_on="value", computes=False, elements_of=slice(1), light=True)
#: The result is input 0 in another shape.
RESHAPED = Traits(hands_on="elements", elements_of=slice(1), light=True)
#: The result is made of elements of input 0.
PICKED = Traits(elements_of=slice(1), light=True)
#: Data makes the number of rows of the result.
COUNTS = Traits(counts=True)
LOOP = Traits(repeats=True)
CALL = Traits(calls_once=True)
#: Input 0 as it is, after a look at it.
LOOKS = Traits(linear=slice(1))
#: Ops of `tf.contrib.boosted_trees`: TensorFlow has them in a library of their own.
BOOSTED = Traits(library="tf.contrib.boosted_trees")
ELEMENTWISE = Traits(elementwise=True)
KEEPS_ZERO = Traits(elementwise=True, keeps_zero=True)
