"""``tf.contrib.training``: hyperparameters, training and evaluation loops, device strategies."""

from typing import Any as _Any

from headrace.contrib.folders import Folder as _Folder
from headrace.contrib.training.hparam import *  # noqa: F403
from headrace.contrib.training.strategies import *  # noqa: F403
from headrace.namespaces.missing import attribute_error as _attribute_error

#: Names that bring sessions and `tf.summary` with them.
_LATE = {
    **dict.fromkeys(
        (
            "add_gradients_summaries",
            "clip_gradient_norms",
            "clip_gradient_norms_fn",
            "create_train_op",
            "multiply_gradients",
            "train",
        ),
        "training",
    ),
    **dict.fromkeys(
        (
            "StopAfterNEvalsHook",
            "SummaryAtEndHook",
            "checkpoints_iterator",
            "evaluate_once",
            "evaluate_repeatedly",
            "get_or_create_eval_step",
            "wait_for_new_checkpoint",
        ),
        "evaluation",
    ),
}


#: Where the files are in TensorFlow's sources.
python = _Folder(__name__, "python")


def __getattr__(name: str) -> _Any:
    from importlib import import_module

    if name in _LATE:
        return getattr(import_module(f"{__name__}.{_LATE[name]}"), name)
    if name in ("training", "evaluation"):
        return import_module(f"{__name__}.{name}")
    raise _attribute_error(__name__, name, __dir__())


def __dir__() -> list[str]:
    return sorted([*globals(), *_LATE])
