"""Hyperparameters by name, with types, from text or JSON."""

from __future__ import annotations

import json
import numbers
import re
from collections.abc import Mapping
from typing import Any

_ITEM = re.compile(
    r"""
    (?P<name>[a-zA-Z][\w.]*)
    (?:\[\s*(?P<index>\d+)\s*\])?
    \s*=\s*
    (?:\[(?P<values>[^\]]*)\] | (?P<value>[^,\[]*))
    (?:$|,\s*)
    """,
    re.VERBOSE,
)


class HParams:
    """Hyperparameters as attributes; a value keeps the type with which it was added.

    Args:
        model_structure: kept for the user.
        kwargs: names and values; a list has elements of one type.

    Raises:
        ValueError: if a name is taken, or a list empty.

    >>> hparams = HParams(rate=0.1, layers=[3, 4])
    >>> hparams.parse("rate=1,layers=[5,6]").values() == {"rate": 1.0, "layers": [5, 6]}
    True
    """

    _HAS_DYNAMIC_ATTRIBUTES = True

    def __init__(self, hparam_def: Any = None, model_structure: Any = None, **kwargs: Any) -> None:
        if hparam_def is not None:
            raise ValueError("Headrace has no HParamDef messages: use HParams(**values).")
        #: Type, and whether it is a list, by name.
        self._hparam_types: dict[str, tuple[type, bool]] = {}
        self._model_structure = model_structure
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    def add_hparam(self, name: str, value: Any) -> None:
        """Add a hyperparameter. Raises ValueError if the name is taken or a list is empty."""
        if getattr(self, name, None) is not None:
            raise ValueError(f"Hyperparameter name is reserved: {name}")
        if isinstance(value, (list, tuple)):
            if not value:
                raise ValueError(f"Multi-valued hyperparameters cannot be empty: {name}")
            self._hparam_types[name] = (type(value[0]), True)
        else:
            self._hparam_types[name] = (type(value), False)
        setattr(self, name, value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Set a hyperparameter, in the type that it has.

        Raises:
            KeyError: if there is none of that name.
            ValueError: if the value does not fit the type.
        """
        kind, is_list = self._hparam_types[name]
        if isinstance(value, list) and not is_list:
            raise ValueError(f"Must not pass a list for single-valued parameter: {name}")
        if not isinstance(value, list) and is_list:
            raise ValueError(f"Must pass a list for multi-valued parameter: {name}.")
        setattr(
            self,
            name,
            [_cast(name, kind, v) for v in value] if is_list else _cast(name, kind, value),
        )

    def del_hparam(self, name: str) -> None:
        """Remove a hyperparameter, if it is there."""
        if name in self._hparam_types:
            delattr(self, name)
            del self._hparam_types[name]

    def parse(self, values: str) -> HParams:
        """Set from text such as ``"rate=0.1,layers=[3,4],sizes[1]=7"``; returns itself.

        Raises:
            ValueError: if the text cannot be read, or a value or name does not fit.
        """
        types = {name: kind for name, (kind, _) in self._hparam_types.items()}
        return self.override_from_dict(parse_values(values, types))

    def override_from_dict(self, values_dict: Mapping[str, Any]) -> HParams:
        """Set several; a dictionary as a value sets elements of a list. Returns itself."""
        for name, value in values_dict.items():
            if isinstance(value, Mapping):
                items = list(getattr(self, name))
                for index, item in value.items():
                    if index >= len(items):
                        raise ValueError(f"{name}[{index}]: {name} has {len(items)} elements.")
                    items[index] = item
                value = items
            self.set_hparam(name, value)
        return self

    def parse_json(self, values_json: str) -> HParams:
        """Set from a JSON object; returns itself."""
        return self.override_from_dict(json.loads(values_json))

    def to_json(self, indent: Any = None, separators: Any = None, sort_keys: bool = False) -> str:
        """All as a JSON object; functions are left out."""
        values = {k: v for k, v in self.values().items() if not callable(v)}
        return json.dumps(values, indent=indent, separators=separators, sort_keys=sort_keys)

    def values(self) -> dict[str, Any]:
        """All, by name."""
        return {name: getattr(self, name) for name in self._hparam_types}

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a name, or ``default``, which must be of the value's type.

        Raises:
            ValueError: if ``default`` is of another type.
        """
        if key not in self._hparam_types:
            return default
        kind, is_list = self._hparam_types[key]
        if default is not None:
            fits = isinstance(default, list) == is_list
            for item in default if isinstance(default, list) else [default]:
                try:
                    _cast(key, kind, item)
                except ValueError:
                    fits = False
            if not fits:
                text = f"list of {kind.__name__}" if is_list else kind.__name__
                raise ValueError(
                    f"Hparam '{key}' of type '{text}' is incompatible with default={default}."
                )
        return getattr(self, key)

    def set_model_structure(self, model_structure: Any) -> None:
        self._model_structure = model_structure

    def get_model_structure(self) -> Any:
        return self._model_structure

    def __contains__(self, key: object) -> bool:
        return key in self._hparam_types

    def __str__(self) -> str:
        return str(sorted(self.values().items()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"


def _cast(name: str, kind: type, value: Any) -> Any:
    """``value`` as a ``kind``, where nothing is lost.

    Raises:
        ValueError: if it does not fit.
    """
    if issubclass(kind, type(None)):
        return value
    text = issubclass(kind, (str, bytes)) and not isinstance(value, (str, bytes))
    truth = issubclass(kind, bool) != isinstance(value, bool)
    whole = issubclass(kind, numbers.Integral) and not isinstance(value, numbers.Integral)
    number = issubclass(kind, numbers.Number) and not isinstance(value, numbers.Number)
    if text or truth or whole or number:
        raise ValueError(f"Could not cast hparam '{name}' of type '{kind}' from value {value!r}")
    return kind(value)  # type: ignore[call-arg]


def _parsed(name: str, kind: type, text: str, values: str) -> Any:
    """One value from text. Raises ValueError if it cannot be read."""
    try:
        if kind is bool:
            truths = {"true": True, "True": True, "false": False, "False": False}
            return truths[text] if text in truths else bool(int(text))
        return kind(text)
    except ValueError:
        raise ValueError(
            f"Could not parse hparam '{name}' of type '{kind.__name__}' with value '{text}' in "
            f"{values}"
        ) from None


def parse_values(
    values: str, type_map: Mapping[str, type], ignore_unknown: bool = False
) -> dict[str, Any]:
    """Names and values from text such as ``"a=1,b=[2,3],c[1]=4"``.

    Args:
        type_map: type of each name.
        ignore_unknown: leave out names that are not in ``type_map``.

    Returns:
        A dictionary; elements of lists (``c[1]``) are dictionaries by index.

    Raises:
        ValueError: if the text cannot be read, a name is not known or set twice.
    """
    found: dict[str, Any] = {}
    position = 0
    while position < len(values):
        match = _ITEM.match(values, position)
        if not match:
            raise ValueError(f"Malformed hyperparameter value: {values[position:]}")
        position = match.end()
        name = match["name"]
        if name not in type_map:
            if ignore_unknown:
                continue
            raise ValueError(f"Unknown hyperparameter type for {name}")
        kind = type_map[name]
        if match["index"] is not None:
            if match["values"] is not None:
                raise ValueError(f"Assignment of a list to a list index: {match[0]}")
            elements = found.setdefault(name, {})
            index = int(match["index"])
            if not isinstance(elements, dict) or index in elements:
                raise ValueError(f"Multiple assignments to variable '{name}' in {values}")
            elements[index] = _parsed(name, kind, match["value"], values)
            continue
        if name in found:
            raise ValueError(f"Multiple assignments to variable '{name}' in {values}")
        if match["values"] is None:
            found[name] = _parsed(name, kind, match["value"], values)
        else:
            items = [v.strip() for v in match["values"].split(",") if v.strip()]
            found[name] = [_parsed(name, kind, v, values) for v in items]
    return found


__all__ = ["HParams", "parse_values"]
