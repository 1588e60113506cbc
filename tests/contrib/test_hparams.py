"""tf.contrib.training.HParams: types, text, JSON."""

from __future__ import annotations

from typing import Any

import pytest

import headrace as tf

HParams = tf.contrib.training.HParams


def _hparams() -> Any:
    return HParams(rate=0.1, layers=[3, 4], name="a", deep=True, steps=10, none=None)


def test_text_sets_values_of_the_right_type() -> None:
    hparams = _hparams().parse("rate=2,layers=[5, 6,7],name=b c,deep=false,steps=11")
    assert hparams.values() == {
        "rate": 2.0,
        "layers": [5, 6, 7],
        "name": "b c",
        "deep": False,
        "steps": 11,
        "none": None,
    }
    assert isinstance(hparams.rate, float)
    assert hparams.parse("layers[1]=9,deep=1").layers == [5, 9, 7]
    assert hparams.deep is True


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("steps=1.5", "Could not parse hparam 'steps'"),
        ("deep=maybe", "Could not parse hparam 'deep'"),
        ("other=1", "Unknown hyperparameter type for other"),
        ("rate=1,rate=2", "Multiple assignments to variable 'rate'"),
        ("=1", "Malformed hyperparameter value"),
        ("rate=[1]", "Must not pass a list for single-valued parameter: rate"),
        ("layers=1", "Must pass a list for multi-valued parameter: layers"),
        ("layers[7]=1", "layers has 2 elements"),
        ("layers[0]=[1]", "Assignment of a list to a list index"),
    ],
)
def test_bad_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _hparams().parse(text)


@pytest.mark.parametrize(
    ("name", "value"), [("steps", 1.5), ("deep", 1), ("rate", True), ("name", 3), ("steps", "4")]
)
def test_values_of_another_type_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"Could not cast hparam '{name}'"):
        _hparams().set_hparam(name, value)


def test_whole_numbers_become_floats() -> None:
    hparams = _hparams()
    hparams.set_hparam("rate", 3)
    assert repr(hparams.rate) == "3.0"


def test_json_goes_both_ways() -> None:
    hparams = _hparams()
    text = hparams.to_json(sort_keys=True)
    assert text.startswith('{"deep": true, "layers": [3, 4]')
    assert HParams(**hparams.values()).parse_json(text).values() == hparams.values()


def test_names_are_added_and_removed() -> None:
    hparams = _hparams()
    with pytest.raises(ValueError, match="reserved: rate"):
        hparams.add_hparam("rate", 1)
    with pytest.raises(ValueError, match="reserved: parse"):
        hparams.add_hparam("parse", 1)
    with pytest.raises(ValueError, match="cannot be empty: x"):
        hparams.add_hparam("x", [])
    hparams.add_hparam("x", (1, 2))
    assert "x" in hparams
    hparams.del_hparam("x")
    assert "x" not in hparams
    assert not hasattr(hparams, "x")


def test_get_checks_the_type_of_the_default() -> None:
    hparams = _hparams()
    assert hparams.get("rate", 5.0) == 0.1
    assert hparams.get("absent", "x") == "x"
    with pytest.raises(ValueError, match="incompatible with default"):
        hparams.get("steps", 1.5)
    assert str(HParams(b=1, a=2)) == "[('a', 2), ('b', 1)]"


def test_parse_values_may_ignore_names() -> None:
    parse = tf.contrib.training.parse_values
    assert parse("a=1,b=[2,3],c[4]=5,z=1", {"a": int, "b": int, "c": float}, True) == {
        "a": 1,
        "b": [2, 3],
        "c": {4: 5.0},
    }
