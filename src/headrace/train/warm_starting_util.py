"""tf.train.warm_start: variables that start with values of an earlier model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from headrace import logging
from headrace.files import system
from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.ops.core.build import constant, raw
from headrace.ops.state.partitioned import PartitionedVariable
from headrace.ops.state.variables import Variable
from headrace.train.checkpoint import CheckpointReader
from headrace.train.checkpoint_utils import init_from_checkpoint, load_checkpoint, start_with

__all__ = ["VocabInfo", "warm_start"]


class _VocabFields(NamedTuple):
    new_vocab: Any
    new_vocab_size: int
    num_oov_buckets: int
    old_vocab: Any
    old_vocab_size: int
    backup_initializer: Any
    axis: int


class VocabInfo(_VocabFields):
    """The vocabularies of a variable's rows (or columns), then and now.

    Args:
        new_vocab: path of the vocabulary of the model to train, one word per line.
        new_vocab_size: so many of its words are used.
        num_oov_buckets: so many entries for other words follow them.
        old_vocab: path of the vocabulary with which the checkpoint was made.
        old_vocab_size: so many of its words were used; -1 for all.
        backup_initializer: gives the entries of words that are new; zeros by default.
        axis: the axis of the variable that the words count, 0 or 1.

    Raises:
        ValueError: for another axis.

    >>> tf.train.VocabInfo("new.txt", 3, 0, old_vocab="old.txt").old_vocab_size
    -1
    """

    __slots__ = ()

    def __new__(
        cls,
        new_vocab: Any,
        new_vocab_size: int,
        num_oov_buckets: int,
        old_vocab: Any,
        old_vocab_size: int = -1,
        backup_initializer: Any = None,
        axis: int = 0,
    ) -> VocabInfo:
        if axis not in (0, 1):
            raise ValueError(
                "The only supported values for the axis argument are 0 and 1.  Provided axis: "
                f"{axis}"
            )
        return super().__new__(
            cls,
            new_vocab,
            new_vocab_size,
            num_oov_buckets,
            old_vocab,
            old_vocab_size,
            backup_initializer,
            axis,
        )


def warm_start(
    ckpt_to_initialize_from: Any,
    vars_to_warm_start: Any = ".*",
    var_name_to_vocab_info: dict[str, VocabInfo] | None = None,
    var_name_to_prev_var_name: dict[str, str] | None = None,
) -> None:
    """Let variables start with values of a checkpoint when their initialisers run.

    Args:
        ckpt_to_initialize_from: a checkpoint, or a directory with some.
        vars_to_warm_start: a regular expression that names of trainable variables begin with; a
            list of such, for all global variables; a list of variables; or None for those with a
            vocabulary only.
        var_name_to_vocab_info: vocabularies of variables by name: entries go to where their word
            is now.
        var_name_to_prev_var_name: names in the checkpoint, of variables whose names have changed.

    Returns:
        None. A variable must have the shape of its tensor in the checkpoint; with a vocabulary, but
        for the first dimension.

    Raises:
        ValueError: if a name is not that of a variable to warm-start, a tensor is not in the
            checkpoint, or sizes differ.
    """
    vocabularies = var_name_to_vocab_info or {}
    earlier = var_name_to_prev_var_name or {}
    logging.info("Warm-starting from: %s", ckpt_to_initialize_from)
    grouped = _grouped(vars_to_warm_start)
    _check_used(earlier, grouped, "var_name_to_prev_var_name")
    _check_used(vocabularies, grouped, "var_name_to_vocab_info")
    reader = load_checkpoint(ckpt_to_initialize_from)
    plain: dict[str, Any] = {}
    for name, parts in grouped.items():
        source = earlier.get(name, name)
        if name in vocabularies:
            _start_with_words(reader, source, parts, vocabularies[name])
        elif vars_to_warm_start is not None:
            plain[source] = parts
    init_from_checkpoint(ckpt_to_initialize_from, plain)
    logging.info("Warm-started %d variables.", len(plain) + len(vocabularies))


def _grouped(chosen: Any) -> dict[str, list[Variable]]:
    """The variables to warm-start, parts of one variable together, by name."""
    graph = get_default_graph()
    if chosen is None or isinstance(chosen, str):
        found = graph.get_collection(GraphKeys.TRAINABLE_VARIABLES, chosen)
    elif isinstance(chosen, list) and all(isinstance(c, str) for c in chosen):
        names = (graph.get_collection(GraphKeys.GLOBAL_VARIABLES, c) for c in chosen)
        found = list(dict.fromkeys(v for some in names for v in some))
    elif isinstance(chosen, list):
        found = list(_flat(chosen))
    else:
        raise ValueError(
            f"`vars_to_warm_start must be a `list` or `str`.  Given type is {type(chosen)}"
        )
    grouped: dict[str, list[Variable]] = {}
    for var in found:
        info = var._save_slice_info
        name = var.op.name if info is None else str(info.full_name)
        grouped.setdefault(name, []).append(var)
    return grouped


def _flat(items: Iterable[Any]) -> Iterable[Variable]:
    for item in items:
        if isinstance(item, (list, tuple, PartitionedVariable)):
            yield from _flat(item)
        elif isinstance(item, Variable):
            yield item
        else:
            raise ValueError(
                "If `vars_to_warm_start` is a list, it must be all `Variable` or all `str`.  Given "
                f"types are {type(item)}"
            )


def _check_used(given: dict[str, Any], grouped: dict[str, Any], argument: str) -> None:
    unused = sorted(given.keys() - grouped.keys())
    if unused:
        raise ValueError(
            f"You provided the following variables in {argument} that were not used: {unused}.  "
            "Perhaps you misspelled them?  Here is the list of viable variable names: "
            f"{sorted(grouped)}"
        )


# -- vocabularies ---------------------------------------------------------------------------------


def _start_with_words(
    reader: CheckpointReader, source: str, parts: Sequence[Variable], info: VocabInfo
) -> None:
    """Start the parts of a variable with the entries of their words."""
    if not reader.has_tensor(source):
        raise ValueError(
            f"Tensor {source} is not found in {reader.prefix} checkpoint. "
            f"{reader.described_names()}"
        )
    stored = reader.entry(source)
    wanted = _full_shape(parts[0])
    axis = info.axis
    places = _places(info)
    fits = len(stored.shape) == len(wanted) > axis and all(
        a == b for i, (a, b) in enumerate(zip(stored.shape, wanted, strict=True)) if i != axis
    )
    if not fits or wanted[axis] != len(places):
        raise ValueError(
            f"Shape of variable {parts[0].name} ({wanted}) doesn't match with shape of tensor "
            f"{source} ({list(stored.shape)}) from checkpoint reader: along axis {axis} the "
            f"variable needs {len(places)} entries ({info.new_vocab_size} words and "
            f"{info.num_oov_buckets} more), along the others as many as the tensor."
        )
    if places.max(initial=-1) >= stored.shape[axis]:
        raise ValueError(
            f"The vocabulary {info.old_vocab} has more words than tensor {source} of the "
            f"checkpoint has entries along axis {axis}, {stored.shape[axis]}."
        )
    for var in parts:
        begin = 0 if var._save_slice_info is None else var._save_slice_info.var_offset[axis]
        count = _own_shape(var)[axis]
        _start_part(reader, source, var, places[begin : begin + count], info)


def _full_shape(var: Variable) -> list[int]:
    info = var._save_slice_info
    return _own_shape(var) if info is None else list(info.full_shape)


def _own_shape(var: Variable) -> list[int]:
    """The shape of a variable or part; it is known, as partitions and vocabularies ask."""
    return [int(n or 0) for n in var.shape.as_list()]


def _places(info: VocabInfo) -> np.ndarray[Any, Any]:
    """For each entry of the variable its place in the old one, or -1."""
    old = {word: i for i, word in reversed(list(enumerate(_words(info.old_vocab))))}
    limit = info.old_vocab_size if info.old_vocab_size >= 0 else len(old)
    new = _words(info.new_vocab)
    if len(new) < info.new_vocab_size:
        raise ValueError(
            f"The vocabulary {info.new_vocab} has {len(new)} words; new_vocab_size is "
            f"{info.new_vocab_size}."
        )
    found = [old.get(word, -1) for word in new[: info.new_vocab_size]]
    places = [p if p < limit else -1 for p in found] + [-1] * info.num_oov_buckets
    return np.array(places, np.int64)


def _words(path: Any) -> list[bytes]:
    return [
        line.rstrip(b"\r")
        for line in system.read_regular(path, None).removesuffix(b"\n").split(b"\n")
    ]


def _start_part(
    reader: CheckpointReader,
    source: str,
    var: Variable,
    places: np.ndarray[Any, Any],
    info: VocabInfo,
) -> None:
    """Replace a variable's initialiser: old entries where there are some, else new ones."""
    stored, sizes = reader.entry(source), _own_shape(var)
    slice_info, axis = var._save_slice_info, info.axis
    ranges = [f"0,{n}" for n in stored.shape]
    for i, size in enumerate(sizes):
        if i != axis and slice_info is not None:
            ranges[i] = f"{slice_info.var_offset[i]},{size}"
    spec = " ".join(map(str, stored.shape)) + " " + ":".join(ranges)
    with start_with(var):
        [old] = raw.RestoreV2(
            constant(reader.prefix, dtypes.string),
            constant([source], dtypes.string),
            constant([spec], dtypes.string),
            dtypes=[stored.dtype],
        )
        if stored.dtype is not var.dtype:
            old = raw.Cast(old, DstT=var.dtype)
        if info.backup_initializer is None:
            fresh = constant(np.zeros(sizes, var.dtype.np_dtype), var.dtype)
        else:
            fresh = info.backup_initializer(sizes, dtype=var.dtype)
        kept = raw.GatherV2(old, constant(np.maximum(places, 0)), constant(axis), batch_dims=0)
        mask = np.expand_dims(places >= 0, [i for i in range(len(sizes)) if i != axis])
        value = raw.SelectV2(constant(mask), kept, fresh)
        var._initializer_op = var.assign(value, name="checkpoint_assign", read_value=False)
    var._initial_value = value
