"""``tf.flags`` (and ``tf.app.flags``): absl's flags, as TensorFlow has them since 1.5.

Differences from ``absl.flags``, all of them those of TensorFlow:

- reading a flag parses ``sys.argv`` if nothing has done so yet;
- the ``DEFINE_`` functions take their arguments under the old names too (``flag_name``,
  ``default_value``, ``docstring``);
- ``FLAGS._parse_flags()`` and ``FLAGS.__flags`` of releases before 1.5 are there;
- a default may be of another type than the flag, which those releases did not look at.

A program's flag replaces one of absl's own (``verbosity``, ``pdb`` ...) of the same name.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

from absl import app as _app  # noqa: F401  (its flags are there before the program's)
from absl import flags as _absl
from absl.flags import *  # noqa: F403

_absl.disclaim_key_flags()

_OLD_NAMES = {"flag_name": "name", "default_value": "default", "docstring": "help"}


def _wrap(define: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(define)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        renamed = {_OLD_NAMES.get(key, key): value for key, value in kwargs.items()}
        if renamed.keys() != kwargs.keys():
            from headrace import logging

            logging.warning(
                "The arguments flag_name, default_value and docstring of tf.flags.%s are "
                "deprecated: say name, default and help.",
                define.__name__,
            )
        name = args[0] if args else renamed.get("name")
        if "flag_values" not in renamed and defined_by_absl(name):
            renamed.setdefault("allow_override", True)
        try:
            return define(*args, **renamed)
        except _absl.IllegalFlagValueError as error:
            if not isinstance(error.__context__, TypeError):
                raise
            return _define_unchecked(define, args, renamed)

    return wrapper


def _define_unchecked(
    define: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]
) -> Any:
    """A flag whose default is a number of NumPy, or of another type than its values."""
    given = inspect.signature(define).bind(*args, **named)
    default = given.arguments["default"]
    default = default.item() if hasattr(default, "item") else default
    if isinstance(default, float) and define is _absl.DEFINE_integer and default.is_integer():
        default = int(default)
    given.arguments["default"] = None
    holder = define(*given.args, **given.kwargs)
    flag = given.arguments.get("flag_values", _absl.FLAGS)[given.arguments["name"]]
    flag.default = flag.default_unparsed = flag.value = default
    flag.default_as_str = repr(str(default))
    flag.using_default_value = True
    return holder


def defined_by_absl(name: Any) -> bool:
    """Whether absl itself defined the flag, which is no reason to refuse a program's."""
    if name not in _absl.FLAGS:
        return False
    return (_absl.FLAGS.find_module_defining_flag(name) or "").startswith("absl.")


class _FlagValues:
    """The values of all flags; reading one parses the command line if that is still to do.

    Calling it parses: ``FLAGS(argv)`` returns what is left of ``argv``.
    """

    def __init__(self, values: Any) -> None:
        self.__dict__["__wrapped"] = values

    def __getattribute__(self, name: str) -> Any:
        if name in ("__dict__", "__class__", "_parse_flags"):
            return super().__getattribute__(name)
        return self.__dict__["__wrapped"].__getattribute__(name)

    def __getattr__(self, name: str) -> Any:
        values = self.__dict__["__wrapped"]
        if name == "__flags":
            return values._flags()
        if not name.startswith("__") and not values.is_parsed():
            values(sys.argv)
        return values.__getattr__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__dict__["__wrapped"], name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self.__dict__["__wrapped"], name)

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["__wrapped"])

    def __getitem__(self, name: str) -> Any:
        return self.__dict__["__wrapped"][name]

    def __setitem__(self, name: str, flag: Any) -> None:
        self.__dict__["__wrapped"][name] = flag

    def __contains__(self, name: str) -> bool:
        return name in self.__dict__["__wrapped"]

    def __len__(self) -> int:
        return len(self.__dict__["__wrapped"])

    def __iter__(self) -> Iterator[str]:
        return iter(self.__dict__["__wrapped"])

    def __str__(self) -> str:
        return str(self.__dict__["__wrapped"])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__dict__["__wrapped"](*args, **kwargs)

    def _parse_flags(self, args: Any = None) -> Any:
        """Parse ``args`` (``sys.argv`` by default) and return what is no flag of the program."""
        argv = sys.argv if args is None else [sys.argv[0], *args]
        return self.__dict__["__wrapped"](argv, known_only=True)[1:]


DEFINE_string = _wrap(_absl.DEFINE_string)
DEFINE_boolean = _wrap(_absl.DEFINE_boolean)
DEFINE_bool = DEFINE_boolean
DEFINE_float = _wrap(_absl.DEFINE_float)
DEFINE_integer = _wrap(_absl.DEFINE_integer)
DEFINE_enum = _wrap(_absl.DEFINE_enum)
DEFINE_list = _wrap(_absl.DEFINE_list)

FLAGS: Any = _FlagValues(_absl.FLAGS)  # type: ignore[no-redef]
_FlagValuesWrapper = _FlagValues
