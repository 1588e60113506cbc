"""``tf.contrib.learn``: Estimators with an earlier interface, texts as numbers, small data sets.

The premade Estimators are in `tf.estimator`.
"""

from headrace.contrib.folders import Folder as _Folder
from headrace.namespaces.lazy import lazy as _lazy

_MODULES = ("base", "datasets", "graph_actions", "learn_runner", "monitors", "preprocessing")


class ModeKeys:
    """What a model is used for.

    >>> tf.contrib.learn.ModeKeys.TRAIN, tf.contrib.learn.ModeKeys.EVAL
    ('train', 'eval')
    """

    TRAIN = "train"
    EVAL = "eval"
    INFER = "infer"


#: Where the files are in TensorFlow's sources.
python = _Folder(__name__, "python")


__getattr__, __dir__ = _lazy(
    __name__,
    {
        "headrace.contrib.learn.estimators": (
            "Estimator",
            "MetricSpec",
            "ModelFnOps",
            "RunConfig",
            "SKCompat",
        ),
        "headrace.contrib.learn.experiment": ("Experiment",),
        "headrace.contrib.learn.graph_actions": ("run_feeds", "run_n"),
        "headrace.estimator.placement": ("TaskType",),
        "headrace.train.basic_session_run_hooks": ("NanLossDuringTrainingError",),
    },
    modules=_MODULES,
)
