"""Where the variables of an Estimator begin that has no checkpoint of its own."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from headrace import logging
from headrace.files import system
from headrace.files.paths import as_path
from headrace.saved_model import constants
from headrace.train.warm_starting_util import VocabInfo

__all__ = ["VocabInfo", "WarmStartSettings", "warm_start_settings"]


class _Fields(NamedTuple):
    ckpt_to_initialize_from: Any
    vars_to_warm_start: Any
    var_name_to_vocab_info: dict[str, VocabInfo]
    var_name_to_prev_var_name: dict[str, str]


class WarmStartSettings(_Fields):
    """Which variables begin with values of an earlier model; see `tf.train.warm_start`.

    Args:
        ckpt_to_initialize_from: a checkpoint, or a directory with some.
        vars_to_warm_start: a regular expression that names of trainable variables begin with; a
            list of such, for all variables; a list of variables; or None for those with a
            vocabulary only.
        var_name_to_vocab_info: `tf.estimator.VocabInfo` by the name of the variable.
        var_name_to_prev_var_name: names in the checkpoint of variables that were renamed.

    Raises:
        ValueError: without a checkpoint.

    >>> tf.estimator.WarmStartSettings("earlier").vars_to_warm_start
    '.*'
    """

    __slots__ = ()

    def __new__(
        cls,
        ckpt_to_initialize_from: Any,
        vars_to_warm_start: Any = ".*",
        var_name_to_vocab_info: dict[str, VocabInfo] | None = None,
        var_name_to_prev_var_name: dict[str, str] | None = None,
    ) -> WarmStartSettings:
        if not ckpt_to_initialize_from:
            raise ValueError("`ckpt_to_initialize_from` MUST be set in WarmStartSettings")
        return super().__new__(
            cls,
            ckpt_to_initialize_from,
            vars_to_warm_start,
            var_name_to_vocab_info or {},
            var_name_to_prev_var_name or {},
        )


def warm_start_settings(given: Any) -> WarmStartSettings | None:
    """The settings that ``warm_start_from`` stands for: a checkpoint, directory, or SavedModel.

    Raises:
        ValueError: if it is something else.
    """
    if given is None or isinstance(given, WarmStartSettings):
        return given
    if not isinstance(given, (str, bytes, os.PathLike)):
        raise ValueError(
            f"warm_start_from must be a string or a WarmStartSettings, instead got {type(given)}"
        )
    path = as_path(given)
    variables = os.path.join(path, constants.VARIABLES_DIRECTORY, constants.VARIABLES_FILENAME)
    if system.exists(f"{variables}.index"):
        logging.info("Warm-starting from a SavedModel")
        return WarmStartSettings(variables)
    return WarmStartSettings(path)
