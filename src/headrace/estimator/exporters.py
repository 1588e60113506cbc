"""Exporters: which evaluated models are written as SavedModels while training goes on."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from headrace import logging
from headrace.estimator.callables import argument_names, described
from headrace.estimator.estimator import Estimator
from headrace.files import system
from headrace.files.globbing import glob
from headrace.ops.state import share
from headrace.train.summary_io import summary_iterator

__all__ = ["BestExporter", "Exporter", "FinalExporter", "LatestExporter"]


class Exporter:
    """Base of what `tf.estimator.EvalSpec` calls after each evaluation.

    >>> class Tell(tf.estimator.Exporter):
    ...     name = "tell"
    ...     def export(self, estimator, export_path, checkpoint_path, eval_result,
    ...                is_the_final_export):
    ...         print(export_path, is_the_final_export)
    >>> Tell().export(None, "m/export/tell", "m/model.ckpt-1", {}, True)
    m/export/tell True
    """

    @property
    def name(self) -> str:
        """The folder under ``export`` in the model_dir."""
        raise NotImplementedError(f"{type(self).__name__} has no name.")

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: Mapping[str, Any],
        is_the_final_export: bool,
    ) -> Any:
        """Write the model of a checkpoint, or not: the path of what was written, or None.

        Args:
            export_path: the folder of this exporter.
            eval_result: the metrics of the checkpoint.
            is_the_final_export: whether training is at its end.
        """
        raise NotImplementedError(f"{type(self).__name__} has no export().")


class _Saving(Exporter):
    """Writes SavedModels, and removes old ones."""

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Callable[[], Any] | None,
        assets_extra: Mapping[str, Any] | None,
        as_text: bool,
        exports_to_keep: int | None,
    ) -> None:
        if exports_to_keep is not None and exports_to_keep <= 0:
            raise ValueError(
                f"`exports_to_keep`, if provided, must be a positive number. Got {exports_to_keep}"
            )
        self._name = name
        self._receiver_fn = serving_input_receiver_fn
        self._assets_extra = assets_extra
        self._as_text = as_text
        self._exports_to_keep = exports_to_keep

    @property
    def name(self) -> str:
        return self._name

    def _save(self, estimator: Estimator, export_path: str, checkpoint_path: str) -> bytes:
        written = estimator.export_saved_model(
            export_path,
            self._receiver_fn,
            assets_extra=self._assets_extra,
            as_text=self._as_text,
            checkpoint_path=checkpoint_path,
        )
        self._remove_old(export_path)
        return written

    def _remove_old(self, folder: str) -> None:
        if self._exports_to_keep is None or not share.writes():
            return
        versions = sorted(int(n) for n in system.list_directory(folder) if _is_version(n))
        for version in versions[: -self._exports_to_keep]:
            system.remove_tree(os.path.join(folder, str(version)))


def _is_version(name: str) -> bool:
    return name.isdigit() and len(name) == 10


class LatestExporter(_Saving):
    """Writes every evaluated model, and keeps the latest ones.

    Args:
        name: the folder under ``export``.
        serving_input_receiver_fn, assets_extra, as_text: as for `Estimator.export_saved_model`.
        exports_to_keep: so many are kept; None for all.

    Raises:
        ValueError: if that is not positive.

    >>> tf.estimator.LatestExporter("latest", lambda: None).name
    'latest'
    """

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, Any] | None = None,
        as_text: bool = False,
        exports_to_keep: int | None = 5,
    ) -> None:
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text, exports_to_keep)

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: Mapping[str, Any],
        is_the_final_export: bool,
    ) -> bytes:
        return self._save(estimator, export_path, checkpoint_path)


class FinalExporter(_Saving):
    """Writes the model once, when training is at its end.

    Args:
        name: the folder under ``export``.
        serving_input_receiver_fn, assets_extra, as_text: as for `Estimator.export_saved_model`.

    >>> exporter = tf.estimator.FinalExporter("final", lambda: None)
    >>> exporter.export(None, "m/export/final", "m/model.ckpt-1", {}, is_the_final_export=False)
    """

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, Any] | None = None,
        as_text: bool = False,
    ) -> None:
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text, None)

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: Mapping[str, Any],
        is_the_final_export: bool,
    ) -> bytes | None:
        if not is_the_final_export:
            return None
        logging.info("Performing the final export in the end of training.")
        return self._save(estimator, export_path, checkpoint_path)


def _loss_smaller(best_eval_result: Mapping[str, Any], current_eval_result: Any) -> bool:
    """Whether the loss of the second result is smaller."""
    for name, result in (
        ("best_eval_result", best_eval_result),
        ("current_eval_result", current_eval_result),
    ):
        if not result or "loss" not in result:
            raise ValueError(f"{name} cannot be empty or no loss is found in it.")
    return bool(best_eval_result["loss"] > current_eval_result["loss"])


class BestExporter(_Saving):
    """Writes a model when it is better than all before.

    Args:
        name: the folder under ``export``.
        serving_input_receiver_fn, assets_extra, as_text: as for `Estimator.export_saved_model`.
        event_file_pattern: where earlier results are, under the model_dir, for a program that was
            started again; None to forget them.
        compare_fn: ``compare_fn(best_eval_result, current_eval_result)`` says whether the second
            is better; by default if its loss is smaller.
        exports_to_keep: so many are kept; None for all.

    Raises:
        ValueError: if ``compare_fn`` takes other arguments, or nothing is to be kept.

    >>> def more_accurate(best_eval_result, current_eval_result):
    ...     return current_eval_result["accuracy"] > best_eval_result["accuracy"]
    >>> tf.estimator.BestExporter(compare_fn=more_accurate).name
    'best_exporter'
    """

    def __init__(
        self,
        name: str = "best_exporter",
        serving_input_receiver_fn: Callable[[], Any] | None = None,
        event_file_pattern: str | None = "eval/*.tfevents.*",
        compare_fn: Callable[..., bool] = _loss_smaller,
        assets_extra: Mapping[str, Any] | None = None,
        as_text: bool = False,
        exports_to_keep: int | None = 5,
    ) -> None:
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text, exports_to_keep)
        if compare_fn is None:
            raise ValueError("`compare_fn` must not be None.")
        _check_compare_fn(compare_fn)
        self._compare_fn = compare_fn
        self._event_file_pattern = event_file_pattern
        self._model_dir: str | None = None
        self._best: Mapping[str, Any] | None = None

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: Mapping[str, Any],
        is_the_final_export: bool,
    ) -> bytes | None:
        step = int(eval_result.get("global_step", -1))
        if self._model_dir != estimator.model_dir and self._event_file_pattern:
            logging.info("Loading best metric from event files.")
            self._model_dir = estimator.model_dir
            pattern = os.path.join(estimator.model_dir, self._event_file_pattern)
            self._best = self._earlier_best(pattern, step)
        if self._best is not None and not self._compare_fn(
            best_eval_result=self._best, current_eval_result=eval_result
        ):
            return None
        logging.info("Performing best model export.")
        self._best = eval_result
        return self._save(estimator, export_path, checkpoint_path)

    def _earlier_best(self, pattern: str, step: int) -> Mapping[str, Any] | None:
        """The best result in event files, but for that of ``step``, which is just written."""
        best = None
        for path in sorted(glob(pattern)):
            for event in summary_iterator(path):
                found = {
                    v.tag: v.simple_value for v in event.summary.value if v.HasField("simple_value")
                }
                if not found or event.step == step:
                    continue
                if best is None or self._compare_fn(
                    best_eval_result=best, current_eval_result=found
                ):
                    best = found
        return best


def _check_compare_fn(compare_fn: Callable[..., Any]) -> None:
    names, wanted = set(argument_names(compare_fn)), {"best_eval_result", "current_eval_result"}
    which = described(compare_fn)
    for name in sorted(wanted - names):
        raise ValueError(f"compare_fn ({which}) must include {name} argument.")
    if names - wanted:
        raise ValueError(
            f"compare_fn ({which}) has following not expected args: {sorted(names - wanted)}"
        )
