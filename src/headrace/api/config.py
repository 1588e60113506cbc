"""``tf.config``: the devices of this process."""

import sys as _sys

from headrace.session.local_devices import *  # noqa: F403
from headrace.session.local_devices import __all__ as __all__

#: Where TensorFlow 1.15 has most of them.
experimental = _sys.modules[__name__]
