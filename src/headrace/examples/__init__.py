"""Programs and data readers that go with the tutorials."""

from headrace.namespaces.lazy import lazy as _lazy

__getattr__, __dir__ = _lazy(__name__, modules=("tutorials",))
