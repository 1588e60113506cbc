"""Writing SavedModels: graphs with signatures, one set of variable values, and asset files.

export_dir/
    saved_model.pb          the graphs (MetaGraphDefs), told apart by tags
    variables/variables.*   a checkpoint
    assets/                 files that the graphs read, such as vocabularies
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headrace import logging
from headrace.files import system
from headrace.files.paths import as_path
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.proto import AssetFileDef, SavedModel
from headrace.graph.tensor import Operation, Tensor
from headrace.graph_files.graph_util import write_message
from headrace.ops.core.static import static_value
from headrace.ops.state import share
from headrace.saved_model import constants
from headrace.saved_model.own_operations import leave_out_own_operations
from headrace.train.saver import Saver

__all__ = ["Builder", "SavedModelBuilder", "simple_save"]

#: The key of the signature that names the operation to run after loading, as releases from 1.14
#: on write it.
INIT_OP_SIGNATURE_KEY = "__saved_model_init_op"


class SavedModelBuilder:
    """Builds a SavedModel.

    Args:
        export_dir: the folder, a path or URL; it must be new or empty.

    Raises:
        AssertionError: if the folder has something in it.
    """

    def __init__(self, export_dir: str | os.PathLike[str]) -> None:
        self._export_dir = as_path(export_dir)
        self._saved_model = SavedModel(
            saved_model_schema_version=constants.SAVED_MODEL_SCHEMA_VERSION
        )
        self._has_variables = False
        self._is_silent = not share.writes()
        if self._is_silent:
            logging.info("The model in %s is written by the chief alone.", self._export_dir)
            return
        if system.exists(self._export_dir) and system.list_directory(self._export_dir):
            raise AssertionError(
                "Export directory already exists, and isn't empty. Please choose a different "
                "export directory, or delete all the contents of the specified directory: "
                f"{self._export_dir}"
            )
        system.make_directories(self._export_dir)

    def add_meta_graph_and_variables(
        self,
        sess: Any,
        tags: Iterable[str],
        signature_def_map: Mapping[str, Any] | None = None,
        assets_collection: Sequence[Any] | None = None,
        legacy_init_op: Any = None,
        clear_devices: bool = False,
        main_op: Any = None,
        strip_default_attrs: bool = False,
        saver: Any = None,
        init_op: Any = None,
        assets_list: Sequence[Any] | None = None,
        train_op: Any = None,
    ) -> None:
        """Add the default graph and write the values that its variables have in ``sess``.

        Args:
            tags: what tells this graph from others of the model, such as ``["serve"]``.
            signature_def_map: SignatureDefs by key.
            assets_collection: constant string tensors that hold paths of files; the files are
                copied, and after loading the tensors hold the paths of the copies.
            legacy_init_op, main_op, init_op: the operation to run after loading (one of them).
            clear_devices: leave devices out.
            strip_default_attrs: leave out attributes with their default values.
            saver: the Saver to use; by default one of all variables.
            train_op: an operation that trains, kept in the collection ``train_op``.

        Raises:
            AssertionError: if values have been written already.
            ValueError: if an asset is no constant, or several init operations are given.
            TypeError: if the init operation is none.
        """
        if self._has_variables:
            raise AssertionError(
                "Graph state including variables and assets has already been saved. Please invoke "
                "`add_meta_graph()` instead."
            )
        init = _one_op(legacy_init_op, main_op, init_op)
        saver = saver or Saver(sharded=True, allow_empty=True)
        self._has_variables = True
        if self._is_silent:
            return
        variables = os.path.join(self._export_dir, constants.VARIABLES_DIRECTORY)
        system.make_directories(variables)
        prefix = os.path.join(variables, constants.VARIABLES_FILENAME)
        saver.save(sess, prefix, write_meta_graph=False, write_state=False)
        self._add(
            tags,
            signature_def_map,
            assets_collection or assets_list,
            init,
            train_op,
            saver,
            clear_devices=clear_devices,
            strip_default_attrs=strip_default_attrs,
        )

    def add_meta_graph(
        self,
        tags: Iterable[str],
        signature_def_map: Mapping[str, Any] | None = None,
        assets_collection: Sequence[Any] | None = None,
        legacy_init_op: Any = None,
        clear_devices: bool = False,
        main_op: Any = None,
        strip_default_attrs: bool = False,
        saver: Any = None,
        init_op: Any = None,
        assets_list: Sequence[Any] | None = None,
        train_op: Any = None,
    ) -> None:
        """Add the default graph as another one with the same variables.

        Raises:
            AssertionError: if no graph was added with its variables before.
        """
        if not self._has_variables:
            raise AssertionError(
                "Graph state including variables and assets has not been saved yet. Please invoke "
                "`add_meta_graph_and_variables()` first."
            )
        self._add(
            tags,
            signature_def_map,
            assets_collection or assets_list,
            _one_op(legacy_init_op, main_op, init_op),
            train_op,
            saver or Saver(sharded=True, allow_empty=True),
            clear_devices=clear_devices,
            strip_default_attrs=strip_default_attrs,
        )

    def save(self, as_text: bool = False) -> str:
        """Write the graphs; returns the path of the file.

        Args:
            as_text: write ``saved_model.pbtxt``, else ``saved_model.pb``.
        """
        name = constants.SAVED_MODEL_FILENAME_PBTXT if as_text else None
        path = os.path.join(self._export_dir, name or constants.SAVED_MODEL_FILENAME_PB)
        if self._is_silent:
            return path
        return write_message(self._saved_model, path, as_text)

    def _add(
        self,
        tags: Iterable[str],
        signatures: Mapping[str, Any] | None,
        assets: Sequence[Any] | None,
        init_op: Any,
        train_op: Any,
        saver: Any,
        *,
        clear_devices: bool,
        strip_default_attrs: bool,
    ) -> None:
        from headrace.train.meta_graph import export_scoped_meta_graph

        _check_signatures(signatures)
        graph = get_default_graph()
        if train_op is not None:
            graph.add_to_collection(GraphKeys.TRAIN_OP, train_op)
        message, _ = export_scoped_meta_graph(
            saver_def=None if saver.is_empty else saver.to_proto(),
            clear_devices=clear_devices,
            strip_default_attrs=strip_default_attrs,
        )
        message.meta_info_def.tags.extend(tags)
        if init_op is not None:
            key = constants.MAIN_OP_KEY
            message.collection_def[key].node_list.value.append(init_op.name)
        for asset in assets or ():
            self._add_asset(message, asset)
        for key, signature in (signatures or {}).items():
            message.signature_def[key].CopyFrom(signature)
        leave_out_own_operations(message, init_op, train_op)
        self._saved_model.meta_graphs.add().CopyFrom(message)

    def _add_asset(self, message: Any, tensor: Any) -> None:
        """Copy the file that a constant names, and say in ``message`` which tensor names it."""
        value = static_value(tensor) if isinstance(tensor, Tensor) else None
        if value is None or value.shape != () or not isinstance(value[()], bytes):
            raise ValueError(
                f"Invalid asset {tensor!r}: an asset is a constant string tensor with the path of "
                "a file."
            )
        path = value[()].decode()
        folder = os.path.join(self._export_dir, constants.ASSETS_DIRECTORY)
        taken = {a.filename for a in message.asset_file_def}
        name = _free_name(os.path.basename(path), taken)
        system.make_directories(folder)
        system.copy(path, os.path.join(folder, name), overwrite=True)
        asset = AssetFileDef(filename=name)
        asset.tensor_info.name = tensor.name
        message.asset_file_def.append(asset)
        message.collection_def[constants.ASSETS_KEY].any_list.value.add().Pack(
            asset, "type.googleapis.com/"
        )


def _free_name(name: str, taken: set[str]) -> str:
    chosen, count = name, 0
    while chosen in taken:
        count += 1
        chosen = f"{name}_{count}"
    return chosen


def _one_op(*given: Any) -> Any:
    found = [op for op in given if op is not None]
    if len(found) > 1:
        raise ValueError("Only one of legacy_init_op, main_op and init_op can be given.")
    if found and not isinstance(found[0], (Operation, Tensor)):
        raise TypeError(f"The operation to run after loading must be an Operation: {found[0]!r}")
    return found[0] if found else None


def _check_signatures(signatures: Mapping[str, Any] | None) -> None:
    for key, signature in (signatures or {}).items():
        for name, info in (*signature.inputs.items(), *signature.outputs.items()):
            if info.WhichOneof("encoding") is None:
                raise AssertionError(
                    f"Invalid TensorInfo '{name}' of signature '{key}': it names no tensor."
                )
            if not info.dtype:
                raise AssertionError(
                    f"Invalid TensorInfo '{name}' of signature '{key}': it has no dtype."
                )


def simple_save(
    session: Any,
    export_dir: str | os.PathLike[str],
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    legacy_init_op: Any = None,
) -> None:
    """Write the default graph as a SavedModel for serving.

    Args:
        inputs, outputs: tensors of any shape by the names that clients will use.
        legacy_init_op: an operation to run after loading.

    Raises:
        AssertionError: if ``export_dir`` is there and not empty.
        TypeError: if ``inputs`` or ``outputs`` is no dictionary of tensors.
        ValueError: if one of them is empty.
        FailedPreconditionError: if a variable has no value.
    """
    from headrace.saved_model import signature_constants, tag_constants
    from headrace.saved_model.signature_def_utils import predict_signature_def

    builder = SavedModelBuilder(export_dir)
    key = signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
    builder.add_meta_graph_and_variables(
        session,
        [tag_constants.SERVING],
        signature_def_map={key: predict_signature_def(inputs, outputs)},
        assets_collection=get_default_graph().get_collection(GraphKeys.ASSET_FILEPATHS),
        main_op=legacy_init_op,
        clear_devices=True,
    )
    builder.save()


Builder = SavedModelBuilder
