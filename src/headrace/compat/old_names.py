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
        "audio_summary": "contrib.deprecated.audio_summary",
        "batch_cholesky": "cholesky",
        "batch_cholesky_solve": "cholesky_solve",
        "batch_fft": "fft",
        "batch_fft2d": "fft2d",
        "batch_fft3d": "fft3d",
        "batch_ifft": "ifft",
        "batch_ifft2d": "ifft2d",
        "batch_ifft3d": "ifft3d",
        "batch_matmul": "compat.old_names.batch_matmul",
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
        "histogram_summary": "contrib.deprecated.histogram_summary",
        "image_summary": "contrib.deprecated.image_summary",
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
        "scalar_summary": "contrib.deprecated.scalar_summary",
        "select": "where",
        "sub": "subtract",
        "unpack": "unstack",
        "variable_op_scope": "compat.old_names.variable_op_scope",
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
    value = _find(path)
    note(old, f"tf.{_REPLACEMENTS.get(path.rpartition('.')[2], path)}")
    return value


#: What to say instead of functions that only keep arguments of old.
_REPLACEMENTS = {
    "audio_summary": "summary.audio",
    "batch_matmul": "matmul",
    "histogram_summary": "summary.histogram",
    "image_summary": "summary.image",
    "op_scope": "name_scope",
    "scalar_summary": "summary.scalar",
    "variable_op_scope": "variable_scope",
}


def _find(path: str) -> Any:
    if path.startswith("compat."):
        module, _, name = path.rpartition(".")
        return getattr(import_module(f"headrace.{module}"), name)
    return reduce(getattr, path.split("."), import_module("headrace"))


# -- functions of old ---------------------------------------------------------------------------


def batch_matmul(
    x: Any, y: Any, adj_x: bool = False, adj_y: bool = False, name: str | None = None
) -> Any:
    """`tf.matmul` with the argument names of old."""
    return _find("matmul")(x, y, adjoint_a=adj_x, adjoint_b=adj_y, name=name)


def variable_op_scope(
    values: Any, name_or_scope: Any, default_name: str | None = None, **options: Any
) -> Any:
    """`tf.variable_scope` with its arguments in the order of old."""
    return _find("variable_scope")(name_or_scope, default_name, values, **options)
