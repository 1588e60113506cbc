"""Loading SavedModels, ours and TensorFlow's. Nothing that a file holds is run as Python code."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from google.protobuf import text_format

from headrace.errors import DataLossError
from headrace.files import system
from headrace.files.paths import as_path, inside
from headrace.graph.graph_def import from_file, parse_message
from headrace.graph.proto import AssetFileDef, MetaGraphDef, SavedModel
from headrace.graph.text_messages import parse_text
from headrace.ops.state.save_slices import prepend_name_scope
from headrace.saved_model import constants
from headrace.saved_model.builder import INIT_OP_SIGNATURE_KEY
from headrace.train.meta_graph import import_meta_graph

__all__ = ["contains_saved_model", "load", "maybe_saved_model_directory", "parse_saved_model"]


def maybe_saved_model_directory(export_dir: str | os.PathLike[str]) -> bool:
    """Whether a folder has the main file of a SavedModel.

    Raises:
        TypeError: if ``export_dir`` is no path.
    """
    folder = as_path(export_dir)
    return any(
        system.exists(os.path.join(folder, name))
        for name in (constants.SAVED_MODEL_FILENAME_PB, constants.SAVED_MODEL_FILENAME_PBTXT)
    )


contains_saved_model = maybe_saved_model_directory


def parse_saved_model(export_dir: str | os.PathLike[str]) -> Any:
    """The SavedModel message of a folder.

    Raises:
        OSError: if the folder has none.
        DataLossError: if the file is damaged.
    """
    folder = as_path(export_dir)
    binary = os.path.join(folder, constants.SAVED_MODEL_FILENAME_PB)
    text = os.path.join(folder, constants.SAVED_MODEL_FILENAME_PBTXT)
    if system.exists(binary):
        return parse_message(SavedModel, system.read_regular(binary), f"The file '{binary}'")
    if system.exists(text):
        try:
            return parse_text(system.read_regular(text), SavedModel())
        except (text_format.ParseError, UnicodeDecodeError) as error:
            raise DataLossError(None, None, f"Cannot parse the file '{text}': {error}") from None
    raise OSError(
        f"SavedModel file does not exist at: {folder}{os.sep}"
        f"{{{constants.SAVED_MODEL_FILENAME_PBTXT}|{constants.SAVED_MODEL_FILENAME_PB}}}"
    )


def load(
    sess: Any,
    tags: Iterable[str],
    export_dir: str | os.PathLike[str],
    import_scope: str | None = None,
    **saver_kwargs: Any,
) -> MetaGraphDef:
    """Add a graph of a SavedModel to the session's graph and restore its variables.

    Args:
        tags: the graph with exactly these tags.
        export_dir: the folder of the model, a path or URL.
        import_scope: the prefix of all names.
        saver_kwargs: further arguments of `import_meta_graph`, such as ``clear_devices``.

    Returns:
        The MetaGraphDef; its ``signature_def`` says which tensors to feed and fetch.

    Raises:
        RuntimeError: if no graph has these tags.
        OSError: if there is no SavedModel.
        DataLossError: if a file is damaged.
    """
    folder = as_path(export_dir)
    message = _tagged(parse_saved_model(folder), tags, folder)
    with sess.graph.as_default():
        with from_file(folder):
            saver = import_meta_graph(message, import_scope=import_scope, **saver_kwargs)
            assets = _assets(message, folder, import_scope)
            init_op = _init_op(message, folder, import_scope)
            names = [*assets, *([init_op] if init_op else [])]
            if saver is not None:
                names += [saver.saver_def.filename_tensor_name, saver.saver_def.restore_op_name]
            _check_is_there(sess.graph, names)
        variables = os.path.join(
            folder, constants.VARIABLES_DIRECTORY, constants.VARIABLES_FILENAME
        )
        if saver is not None and system.exists(f"{variables}.index"):
            saver.restore(sess, variables)
        if init_op is not None:
            sess.run(init_op, feed_dict=assets)
    return message


def _check_is_there(graph: Any, names: Iterable[str]) -> None:
    """Raise KeyError or ValueError unless the graph has operations and tensors of these names."""
    for name in names:
        graph.as_graph_element(name)


def _tagged(saved_model: SavedModel, tags: Iterable[str], folder: str) -> MetaGraphDef:
    wanted = {tags} if isinstance(tags, str) else set(tags)
    for message in saved_model.meta_graphs:
        if set(message.meta_info_def.tags) == wanted:
            return message
    there = ", ".join(str(sorted(m.meta_info_def.tags)) for m in saved_model.meta_graphs)
    raise RuntimeError(
        f"MetaGraphDef associated with tags {sorted(wanted)} could not be found in SavedModel "
        f"{folder}, with available tags [{there}]."
    )


def _assets(message: Any, folder: str, scope: str | None) -> dict[str, str]:
    """The path of each asset, by the name of the tensor that holds it."""
    found = list(message.asset_file_def)
    if not found and constants.ASSETS_KEY in message.collection_def:
        for packed in message.collection_def[constants.ASSETS_KEY].any_list.value:
            found.append(parse_message(AssetFileDef, packed.value, "An asset of the SavedModel"))
    paths = {}
    for asset in found:
        tensor = prepend_name_scope(asset.tensor_info.name, scope)
        paths[tensor] = inside(
            os.path.join(folder, constants.ASSETS_DIRECTORY), asset.filename, "The asset"
        )
    return paths


def _init_op(message: Any, folder: str, scope: str | None) -> str | None:
    """The name of the operation to run after loading."""
    if INIT_OP_SIGNATURE_KEY in message.signature_def:
        signature = message.signature_def[INIT_OP_SIGNATURE_KEY]
        return prepend_name_scope(signature.outputs[INIT_OP_SIGNATURE_KEY].name, scope)
    for key in (constants.MAIN_OP_KEY, constants.LEGACY_INIT_OP_KEY):
        if key in message.collection_def:
            names = message.collection_def[key].node_list.value
            if len(names) != 1:
                raise RuntimeError(
                    f"Expected exactly one SavedModel init op under '{key}' in {folder}."
                )
            return prepend_name_scope(names[0], scope)
    return None
