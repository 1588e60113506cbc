"""Public functions are marked where they are, and each namespace takes what is marked for it."""

from functools import reduce

import pytest

import headrace as tf
from headrace.ops.core.public import MARKED, public


@pytest.mark.parametrize("namespace", sorted(MARKED), ids=lambda n: n or "tf")
def test_what_is_marked_is_there(namespace):
    module = reduce(getattr, filter(None, namespace.split(".")), tf)
    for name, marked in MARKED[namespace].items():
        assert getattr(module, name) is marked.value, name
        assert name in dir(module)


def test_a_name_is_marked_once():
    mark = public("test_only.here", "math.sin")
    why = r"marks tf\.math\.sin, as headrace\.ops\.math\.elementwise has done\."
    with pytest.raises(ValueError, match=f"^{__name__} {why}$"):
        mark(len)
    del MARKED["test_only"]
