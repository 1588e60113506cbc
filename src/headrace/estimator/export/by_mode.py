"""Exporting as functions, the way ``tf.contrib.estimator`` has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headrace.estimator.mode_keys import ModeKeys

__all__ = [
    "export_all_saved_models",
    "export_saved_model_for_mode",
]


def export_saved_model_for_mode(
    estimator: Any,
    export_dir_base: Any,
    input_receiver_fn: Callable[[], Any],
    assets_extra: Mapping[str, Any] | None = None,
    as_text: bool = False,
    checkpoint_path: Any = None,
    mode: str = ModeKeys.PREDICT,
) -> bytes:
    """`tf.estimator.Estimator.export_saved_model` with ``mode`` as ``experimental_mode``.

    Features of the receiver have shape ``[batch, ...]``.

    Raises:
        ValueError: without a receiver, a checkpoint, or all variables in it.
    """
    path: bytes = estimator.export_saved_model(
        export_dir_base, input_receiver_fn, assets_extra, as_text, checkpoint_path, mode
    )
    return path


def export_all_saved_models(
    estimator: Any,
    export_dir_base: Any,
    input_receiver_fn_map: Mapping[str, Callable[[], Any]],
    assets_extra: Mapping[str, Any] | None = None,
    as_text: bool = False,
    checkpoint_path: Any = None,
) -> bytes:
    """`tf.estimator.Estimator.experimental_export_all_saved_models` as a function.

    Features of the receivers have shape ``[batch, ...]``.

    Raises:
        ValueError: without a receiver, a checkpoint, or all variables in it.
    """
    path: bytes = estimator.experimental_export_all_saved_models(
        export_dir_base, input_receiver_fn_map, assets_extra, as_text, checkpoint_path
    )
    return path
