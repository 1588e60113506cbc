"""``tf.contrib.gan``: models in which a generator learns from a discriminator."""

from headrace.contrib.folders import Folder as _Folder
from headrace.contrib.gan.models import *  # noqa: F403
from headrace.contrib.gan.namedtuples import *  # noqa: F403
from headrace.contrib.gan.objectives import *  # noqa: F403
from headrace.contrib.gan.training import *  # noqa: F403
from headrace.namespaces.lazy import lazy as _lazy

#: Where the files are in TensorFlow's sources.
python = _Folder(__name__, "python")

__getattr__, __dir__ = _lazy(
    __name__,
    modules={
        "eval": "headrace.contrib.gan.evaluation",
        "features": "headrace.contrib.gan.features",
        "losses": "headrace.contrib.gan.losses",
        "namedtuples": "headrace.contrib.gan.namedtuples",
    },
)
