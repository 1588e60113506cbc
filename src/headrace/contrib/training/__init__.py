"""``tf.contrib.training``: hyperparameters, training and evaluation loops, device strategies."""

from headrace.contrib.folders import Folder as _Folder
from headrace.contrib.training.hparam import *  # noqa: F403
from headrace.contrib.training.strategies import *  # noqa: F403
from headrace.namespaces.lazy import lazy as _lazy

#: Where the files are in TensorFlow's sources.
python = _Folder(__name__, "python")


#: What brings sessions and `tf.summary` is imported when first asked for.
__getattr__, __dir__ = _lazy(
    __name__,
    {
        "headrace.contrib.training.training": (
            "add_gradients_summaries",
            "clip_gradient_norms",
            "clip_gradient_norms_fn",
            "create_train_op",
            "multiply_gradients",
            "train",
        ),
        "headrace.contrib.training.evaluation": (
            "StopAfterNEvalsHook",
            "SummaryAtEndHook",
            "checkpoints_iterator",
            "evaluate_once",
            "evaluate_repeatedly",
            "get_or_create_eval_step",
            "wait_for_new_checkpoint",
        ),
    },
    modules=("training", "evaluation"),
)
