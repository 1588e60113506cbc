"""Programs and data readers that go with the tutorials."""

from headrace.namespaces.lazy import lazy

__getattr__, __dir__ = lazy(__name__, modules=("tutorials",))
