"""Golden programs: small graph programs that TensorFlow and Headrace must agree on.

A program takes the module to run under (`tensorflow.compat.v1` or `headrace`), builds a graph with
public 1.x names only, and answers `{output name: fetch}` or `{output name: (fetch, feed)}`. A
program that needs several steps takes the session too and answers `{output name: array}`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

FAMILIES = (
    "array",
    "math",
    "nn",
    "state",
    "optimizers",
    "random",
    "control_flow",
    "gradients",
    "linalg",
    "sampling",
    "image",
    "spectral",
    "metrics",
    "strings",
    "distributions",
    "inputs",
    "rnn",
    "ctc",
    "quantization",
    "layers",
    "losses",
    "sparse",
    "ragged",
    "parsing",
    "datasets",
    "mixed_precision",
)

#: Families that use `tf.contrib`, or what later releases do otherwise: TensorFlow 1.15 makes them,
#: so their modules, this one and `make_goldens.py` stay within Python 3.7.
CONTRIB_FAMILIES: tuple[str, ...] = (
    "quantized_ops",
    "contrib_image",
    "contrib_gan",
    "contrib_layers",
    "feature_columns",
    "estimators",
    "contrib_estimator",
    "contrib_learn",
    "boosted_trees",
    "contrib_slim",
    "contrib_legacy_seq2seq",
    "contrib_lookup",
    "contrib_metrics",
    "contrib_nets",
    "contrib_rnn",
    "contrib_seq2seq",
    "contrib_crf",
    "contrib_boosted_quantiles",
    "contrib_boosted_splits",
    "contrib_boosted_stats",
    "contrib_boosted_training",
    "contrib_boosted_trees",
    "contrib_feature_columns",
    "feature_column_inputs",
    "sync_replicas",
)

#: Families that combine what others test: run op by op, for compiling takes seconds.
INTERPRETED = (
    "contrib_boosted_quantiles",
    "contrib_boosted_splits",
    "contrib_boosted_stats",
    "contrib_boosted_training",
    "contrib_boosted_trees",
    "contrib_crf",
    "contrib_gan",
    "contrib_estimator",
    "contrib_learn",
    "contrib_legacy_seq2seq",
    "contrib_metrics",
    "contrib_rnn",
    "contrib_seq2seq",
    "contrib_feature_columns",
    "feature_column_inputs",
    "estimators",
    "boosted_trees",
)

if TYPE_CHECKING:
    Results = dict[str, np.ndarray]


@dataclass(frozen=True)
class Program:
    """One golden program; `rtol`/`atol` replace the tolerance of the dtype where they are given.

    `needs` names what a release of Headrace may still lack; without it the program is skipped.
    `slow` programs take more than a second or two.
    """

    family: str
    name: str
    function: Callable[..., Mapping[str, Any]]
    with_session: bool
    rtol: float | None
    atol: float | None
    needs: tuple[str, ...] = ()
    slow: bool = False


_programs: dict[str, dict[str, Program]] = {}


def golden(
    function: Callable[..., Mapping[str, Any]] | None = None,
    *,
    with_session: bool = False,
    rtol: float | None = None,
    atol: float | None = None,
    needs: tuple[str, ...] = (),
    slow: bool = False,
) -> Any:
    """Register a program under its function's name in the family named by its module."""

    def register(target: Callable[..., Mapping[str, Any]]) -> Callable[..., Mapping[str, Any]]:
        family = target.__module__.rpartition(".")[2]
        programs = _programs.setdefault(family, {})
        if target.__name__ in programs:
            raise ValueError(f"golden program {family}/{target.__name__} is defined twice")
        programs[target.__name__] = Program(
            family, target.__name__, target, with_session, rtol, atol, needs, slow
        )
        return target

    return register if function is None else register(function)


def programs(family: str) -> dict[str, Program]:
    """The programs of one family by name, in the order of definition."""
    importlib.import_module(f"{__name__}.{family}")
    return _programs[family]


def run(program: Program, tf: Any) -> Results:
    """Run one program in a fresh graph and session of `tf`; every result is a NumPy array."""
    with tf.Graph().as_default(), tf.Session() as session:
        if program.with_session:
            raw = dict(program.function(tf, session))
        else:
            raw = _fetch(session, program.function(tf), tf)
    return {name: _as_array(value) for name, value in raw.items()}


def _fetch(session: Any, outputs: Mapping[str, Any], tf: Any) -> dict[str, Any]:
    """Fetch all outputs that share a feed in one step."""
    groups: dict[int, tuple[Any, dict[str, Any]]] = {}
    for name, output in outputs.items():
        fetch, feed = output if isinstance(output, tuple) else (output, None)
        groups.setdefault(id(feed), (feed, {}))[1][name] = fetch
    session.run(tf.global_variables_initializer())
    raw: dict[str, Any] = {}
    for feed, fetches in groups.values():
        raw.update(session.run(fetches, feed_dict=feed))
    return {name: raw[name] for name in outputs}


def _as_array(value: Any) -> np.ndarray:
    """Strings become fixed-width bytes: object arrays could be stored only by pickle."""
    array = np.asarray(value)
    return array.astype("S") if array.dtype.kind in "OSU" else array
