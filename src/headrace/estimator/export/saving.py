"""Writing a model as a SavedModel in a folder named after the time."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from headrace import logging
from headrace.errors import NotFoundError
from headrace.estimator.export.outputs import (
    EvalOutput,
    TrainOutput,
    checked_export_outputs,
)
from headrace.estimator.mode_keys import ModeKeys
from headrace.estimator.spec import EstimatorSpec
from headrace.files import system
from headrace.files.paths import as_path
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.ops.state import share
from headrace.saved_model import signature_constants, tag_constants
from headrace.saved_model.builder import SavedModelBuilder
from headrace.saved_model.signature_def_utils import is_valid_signature
from headrace.session.session import Session
from headrace.train.saver import Saver
from headrace.train.scaffold import Scaffold

__all__ = ["ModelBuilder", "add_meta_graph", "export", "signatures_of"]

#: Builds the graph of a mode: receiver and spec.
ModelBuilder = Callable[[str, Callable[[], Any]], tuple[Any, EstimatorSpec]]

#: Tag and signature of each mode, in the order in which they are written.
_MODES = {
    ModeKeys.TRAIN: (tag_constants.TRAINING, "train"),
    ModeKeys.EVAL: ("eval", "eval"),
    ModeKeys.PREDICT: (
        tag_constants.SERVING,
        signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY,
    ),
}
_ATTEMPTS = 10
#: So long a worker waits for what the chief writes, seconds.
_LONGEST = 60.0
#: Of the exports of this program.
_numbers = itertools.count(1)


def export(
    base: Any,
    receiver_fns: Mapping[str, Callable[[], Any]],
    write_graph: Callable[[SavedModelBuilder, str, Callable[[], Any], bool], None],
    assets_extra: Mapping[str, Any] | None,
    as_text: bool,
    *,
    clock: Callable[[], float] = time.time,
    pause: Callable[[float], None] = time.sleep,
) -> str:
    """Write a SavedModel with a graph for each mode; the path of its folder.

    Of workers that run one script the chief writes; others wait until it has, a minute at most.

    The folder gets its name when all is written: whoever watches ``base`` sees whole models only.

    Args:
        base: the folder around it.
        receiver_fns: a function that makes a receiver, by mode.
        write_graph: ``write_graph(builder, mode, receiver_fn, with_variables)``.
        assets_extra: files to copy to ``assets.extra``, by their path there.
        clock, pause: stand in for time in tests.
    """
    unknown = sorted(set(receiver_fns) - set(_MODES), key=str)
    chosen = [mode for mode in _MODES if receiver_fns.get(mode)]
    if unknown or not chosen:
        raise ValueError(
            f"No valid modes for exporting found. Got {list(receiver_fns)}; modes are "
            f"{list(_MODES)} (tf.estimator.ModeKeys)."
        )
    number = next(_numbers)
    if not share.writes():
        logging.info("The model in %s is written by the chief alone.", base)
        return _told(number) or _latest(as_path(base))
    folder = _new_folder(as_path(base), clock, pause)
    parent, name = os.path.split(folder)
    unfinished = os.path.join(parent, f"temp-{name}")
    builder = SavedModelBuilder(unfinished)
    with share.suspended():
        for mode in chosen:
            write_graph(builder, mode, receiver_fns[mode], mode == chosen[0])
    builder.save(as_text)
    for place, source in (assets_extra or {}).items():
        target = os.path.join(unfinished, "assets.extra", as_path(place))
        system.make_directories(os.path.dirname(target))
        system.copy(as_path(source), target, overwrite=False)
    system.rename(unfinished, folder, overwrite=False)
    own = share.current()
    if own is not None:
        own.tell(f"export_{number}", folder)
    return folder


def _told(number: int) -> str | None:
    """Where the chief has written the model, if it says so within a minute."""
    own = share.current()
    return None if own is None else own.hear(f"export_{number}", _LONGEST)


def _latest(base: str) -> str:
    """The latest export that there is; else the folder around it."""
    found = system.list_directory(base) if system.exists(base) else []
    versions = sorted(int(name) for name in found if name.isdigit())
    return os.path.join(base, str(versions[-1])) if versions else base


def _new_folder(base: str, clock: Callable[[], float], pause: Callable[[float], None]) -> str:
    for attempt in range(_ATTEMPTS):
        folder = os.path.join(base, str(int(clock())))
        if not system.exists(folder):
            return folder
        logging.warning(
            "Directory %s already exists; retrying (attempt %d/%d)", folder, attempt + 1, _ATTEMPTS
        )
        pause(1)
    raise RuntimeError(
        f"Failed to obtain a unique export directory name after {_ATTEMPTS} attempts."
    )


def add_meta_graph(
    builder: SavedModelBuilder,
    mode: str,
    receiver: Any,
    spec: EstimatorSpec,
    checkpoint_path: str,
    session_config: Any,
    *,
    with_variables: bool,
    strip_default_attrs: bool,
) -> None:
    """Add the default graph, with the values of a checkpoint.

    Raises:
        ValueError: if the model has variables that the checkpoint lacks.
    """
    tag, _ = _MODES[mode]
    signatures = signatures_of(mode, receiver, spec)
    local_init = spec.scaffold.local_init_op
    if local_init is None:
        local_init = Scaffold.default_local_init_op()
    saver = spec.scaffold.saver or Saver(sharded=True, allow_empty=True)
    with Session(config=session_config) as session:
        try:
            saver.restore(session, checkpoint_path)
        except NotFoundError as error:
            raise ValueError(
                "Could not load all requested variables from checkpoint. Please make sure your "
                "model_fn does not expect variables that were not saved in the checkpoint.\n\n"
                f"Encountered error with mode `{mode}` while restoring checkpoint from: "
                f"`{checkpoint_path}`. Full Traceback:\n\n{error}"
            ) from error
        add = builder.add_meta_graph
        if with_variables:
            add = _with_session(builder, session)
        add(
            [tag],
            signature_def_map=signatures,
            assets_collection=get_default_graph().get_collection(GraphKeys.ASSET_FILEPATHS),
            main_op=local_init,
            saver=saver,
            strip_default_attrs=strip_default_attrs,
            train_op=spec.train_op,
        )


def _with_session(builder: SavedModelBuilder, session: Session) -> Callable[..., None]:
    def add(tags: Any, **kwargs: Any) -> None:
        builder.add_meta_graph_and_variables(session, tags, **kwargs)

    return add


def signatures_of(mode: str, receiver: Any, spec: EstimatorSpec) -> dict[str, Any]:
    """The signatures of a graph by name; what no server can answer is left out, and logged."""
    _, key = _MODES[mode]
    if mode == ModeKeys.PREDICT:
        outputs: Mapping[str, Any] = checked_export_outputs(spec.export_outputs, spec.predictions)
    else:
        kind = TrainOutput if mode == ModeKeys.TRAIN else EvalOutput
        predictions = spec.predictions if spec.predictions != {} else None
        outputs = {key: kind(spec.loss, predictions, spec.eval_metric_ops)}
    groups = {"": receiver.receiver_tensors}
    for name, tensors in (getattr(receiver, "receiver_tensors_alternatives", None) or {}).items():
        groups[f"{name or 'None'}:"] = tensors
    found: dict[str, Any] = {}
    excluded: dict[str, str] = {}
    for prefix, tensors in groups.items():
        for name, output in outputs.items():
            full = f"{prefix}{name or 'None'}"
            try:
                found[full] = output.as_signature_def(tensors)
            except ValueError as error:
                excluded[full] = str(error)
    _log_report(found, excluded)
    if mode == ModeKeys.PREDICT:
        found = {name: s for name, s in found.items() if is_valid_signature(s)}
    return found


def _log_report(found: Mapping[str, Any], excluded: Mapping[str, str]) -> None:
    for method in ("classify", "regress", "predict", "supervised/training", "supervised/eval"):
        names = [n for n, s in found.items() if s.method_name.endswith(method)]
        logging.info("Signatures INCLUDED in export for %s: %s", method, names or "None")
    if excluded:
        logging.info(
            "Signatures EXCLUDED from export because they cannot be be served via TensorFlow "
            "Serving APIs:"
        )
    for name, why in excluded.items():
        logging.info("'%s' : %s", name, why)
    if not found:
        logging.warning("Export includes no signatures!")
    elif signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY not in found:
        logging.info("Export includes no default signature!")
