"""What a model is built for."""

from __future__ import annotations

__all__ = ["ModeKeys"]


class ModeKeys:
    """What a ``model_fn`` is called for: training, evaluation or prediction.

    >>> tf.estimator.ModeKeys.TRAIN, tf.estimator.ModeKeys.EVAL, tf.estimator.ModeKeys.PREDICT
    ('train', 'eval', 'infer')
    """

    TRAIN = "train"
    EVAL = "eval"
    PREDICT = "infer"


#: All of them.
MODES = (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT)
