"""``tf.config``: the devices of this process."""

from headrace.session import local_devices as _devices
from headrace.session.local_devices import *  # noqa: F403
from headrace.session.local_devices import __all__ as __all__

experimental = _devices.experimental
