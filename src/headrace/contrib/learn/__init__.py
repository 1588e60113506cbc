"""``tf.contrib.learn``: texts as numbers, small data sets, and the names of modes.

Estimators are still to come.
"""

from headrace.contrib.folders import Folder as _Folder
from headrace.namespaces.lazy import lazy as _lazy

_MODULES = ("base", "datasets", "preprocessing")


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


__getattr__, __dir__ = _lazy(__name__, modules=_MODULES)
