"""Names of releases 0.x, with a note in the log the first time each is used."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from importlib import import_module
from typing import Any

from headrace.ops.core.old_arguments import note

__all__ = [
    "RENAMED",
    "renamed",
]

#: For each namespace, what its old names are called now (paths below ``tf``).
RENAMED: Mapping[str, Mapping[str, str]] = {
    "": {
        "all_variables": "global_variables",
        "audio_summary": "deprecated.audio_summary",
        "batch_cholesky": "cholesky",
        "batch_cholesky_solve": "cholesky_solve",
        "batch_fft": "fft",
        "batch_fft2d": "fft2d",
        "batch_fft3d": "fft3d",
        "batch_ifft": "ifft",
        "batch_ifft2d": "ifft2d",
        "batch_ifft3d": "ifft3d",
        "batch_matmul": "deprecated.batch_matmul",
        "batch_matrix_band_part": "matrix_band_part",
        "batch_matrix_determinant": "matrix_determinant",
        "batch_matrix_diag": "matrix_diag",
        "batch_matrix_diag_part": "matrix_diag_part",
        "batch_matrix_inverse": "matrix_inverse",
        "batch_matrix_set_diag": "matrix_set_diag",
        "batch_matrix_solve": "matrix_solve",
        "batch_matrix_solve_ls": "matrix_solve_ls",
        "batch_matrix_transpose": "matrix_transpose",
        "batch_matrix_triangular_solve": "matrix_triangular_solve",
        "batch_self_adjoint_eig": "self_adjoint_eig",
        "batch_self_adjoint_eigvals": "self_adjoint_eigvals",
        "batch_svd": "svd",
        "complex_abs": "abs",
        "concat_v2": "concat",
        "histogram_summary": "deprecated.histogram_summary",
        "image_summary": "deprecated.image_summary",
        "initialize_all_tables": "tables_initializer",
        "inv": "reciprocal",
        "is_inf_v2": "is_inf",
        "listdiff": "setdiff1d",
        "merge_all_summaries": "summary.merge_all",
        "merge_summary": "summary.merge",
        "mul": "multiply",
        "neg": "negative",
        "op_scope": "compat.internals.op_scope",
        "pack": "stack",
        "scalar_summary": "deprecated.scalar_summary",
        "select": "where",
        "sub": "subtract",
        "unpack": "unstack",
        "variable_op_scope": "deprecated.variable_op_scope",
    },
    "nn": {
        "bidirectional_rnn": "nn.static_bidirectional_rnn",
        "deconv2d": "nn.conv2d_transpose",
        "rnn": "nn.static_rnn",
        "seq2seq": "contrib.legacy_seq2seq",
        "state_saving_rnn": "nn.static_state_saving_rnn",
    },
    "summary": {
        "all_summary_ops": "contrib.summary.all_summary_ops",
        "always_record_summaries": "contrib.summary.always_record_summaries",
        "create_file_writer": "contrib.summary.create_file_writer",
    },
    "train": {
        "SummaryWriter": "summary.FileWriter",
        "SummaryWriterCache": "summary.FileWriterCache",
    },
    "test": {"IsBuiltWithCuda": "test.is_built_with_cuda"},
}


def renamed(namespace: str, name: str) -> Any:
    """What the old name ``tf.<namespace>.<name>`` stands for.

    Raises:
        AttributeError: if it is no old name, or what it stands for is not there.
    """
    path = RENAMED[namespace].get(name)
    if path is None:
        raise AttributeError(name)
    old = f"tf.{namespace}.{name}" if namespace else f"tf.{name}"
    function = path.rpartition(".")[2]
    new = _REPLACEMENTS.get(function, f"tf.{path}") if "deprecated." in path else f"tf.{path}"
    value = _find(path)
    note(old, new.replace("tf.compat.internals.op_scope", "tf.name_scope"))
    return value


_REPLACEMENTS = {
    "audio_summary": "tf.summary.audio",
    "batch_matmul": "tf.matmul",
    "histogram_summary": "tf.summary.histogram",
    "image_summary": "tf.summary.image",
    "scalar_summary": "tf.summary.scalar",
    "variable_op_scope": "tf.variable_scope",
}


def _find(path: str) -> Any:
    if path.startswith("compat.internals."):
        return getattr(import_module("headrace.compat.internals"), path.rpartition(".")[2])
    if path.startswith("deprecated."):
        return globals()[path.rpartition(".")[2]]
    return reduce(getattr, path.split("."), import_module("headrace"))


# -- functions of old ---------------------------------------------------------------------------


def batch_matmul(
    x: Any, y: Any, adj_x: bool = False, adj_y: bool = False, name: str | None = None
) -> Any:
    """`tf.matmul` with the argument names of old."""
    return _find("matmul")(x, y, adjoint_a=adj_x, adjoint_b=adj_y, name=name)


def scalar_summary(tags: Any, values: Any, collections: Any = None, name: str | None = None) -> Any:
    """`tf.summary.scalar` of one tag."""
    return _summary("scalar", tags, values, collections)


def histogram_summary(
    tag: Any, values: Any, collections: Any = None, name: str | None = None
) -> Any:
    """`tf.summary.histogram` under its old name."""
    return _summary("histogram", tag, values, collections)


def image_summary(
    tag: Any,
    tensor: Any,
    max_images: int = 3,
    collections: Any = None,
    name: str | None = None,
) -> Any:
    """`tf.summary.image` with the argument names of old."""
    return _summary("image", tag, tensor, collections, max_outputs=max_images)


def audio_summary(
    tag: Any,
    tensor: Any,
    sample_rate: Any,
    max_outputs: int = 3,
    collections: Any = None,
    name: str | None = None,
) -> Any:
    """`tf.summary.audio` with the argument order of old."""
    return _summary(
        "audio", tag, tensor, collections, sample_rate=sample_rate, max_outputs=max_outputs
    )


def _summary(kind: str, tag: Any, tensor: Any, collections: Any, **options: Any) -> Any:
    """Old summaries have their tag as it is; today's have it from the operation's name.

    Raises:
        TypeError: if the tag is no string, or a list of one.
    """
    from headrace.ops.core.static import static_value

    if hasattr(tag, "op"):
        tag = static_value(tag)
        tag = None if tag is None or getattr(tag, "size", 1) != 1 else tag.item()
    if isinstance(tag, (list, tuple)) and len(tag) == 1:
        (tag,) = tag
    if isinstance(tag, bytes):
        tag = tag.decode()
    if not isinstance(tag, str):
        raise TypeError(
            f"tf.{kind}_summary takes one tag that is known while the graph is built, got {tag!r}. "
            f"Use tf.summary.{kind}, once for each value."
        )
    return _find(f"summary.{kind}")(tag, tensor, collections=collections, **options)


def variable_op_scope(
    values: Any, name_or_scope: Any, default_name: str | None = None, **options: Any
) -> Any:
    """`tf.variable_scope` with its arguments in the order of old."""
    return _find("variable_scope")(name_or_scope, default_name, values, **options)
