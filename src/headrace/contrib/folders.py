"""``tf.contrib.<package>.python...``: the folders and files that a package's names once stood in.

Programs reach into them (``tf.contrib.layers.python.layers.utils``). Each folder has all names of
its package, and the files and folders below it are folders too.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

from headrace.namespaces.missing import attribute_error

#: The files and folders of TensorFlow's sources that programs name.
_FILES = frozenset(
    [
        "arg_scope",
        "beam_search_decoder",
        "attention_wrapper",
        "basic_decoder",
        "core_rnn",
        "core_rnn_cell",
        "embedding_ops",
        "encoders",
        "fake_summary_writer",
        "feature_column",
        "framework",
        "helper",
        "initializers",
        "layers",
        "learn",
        "lookup_ops",
        "loss_ops",
        "normalization",
        "ops",
        "optimizers",
        "python",
        "regularizers",
        "rnn",
        "rnn_cell",
        "slim",
        "summaries",
        "tensor_util",
        "training",
        "utils",
        "variables",
        "data_flow_ops",
        "checkpoint_ops",
        "decoder",
        "target_column",
        "tensor_forest",
        "metric_loss_ops",
        "add_arg_scope",
        "gen_variable_ops",
    ]
)


class Folder(ModuleType):
    """A folder or file of the package ``headrace.contrib.<package>``."""

    def __init__(self, package: str, path: str) -> None:
        super().__init__(f"{package}.{path}")
        self._package = package
        self._path = path

    def __getattr__(self, name: str) -> Any:
        owner = import_module(self._package)
        if not name.startswith("_") and hasattr(owner, name):
            return getattr(owner, name)
        if name in _FILES:
            return Folder(self._package, f"{self._path}.{name}")
        raise attribute_error(self._package, name, dir(owner))


__all__ = ["Folder"]
