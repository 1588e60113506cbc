"""Assertions, Print and CheckNumerics: when they fail, and what they say."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.ops.control.checking import summary_text


@pytest.fixture
def session() -> Any:
    with tf.Graph().as_default(), tf.Session() as opened:
        yield opened


@pytest.mark.parametrize(
    ("value", "limit", "text"),
    [
        (5, 3, "5"),
        ([1, 2, 3, 4], 3, "1 2 3..."),
        ([1, 2, 3, 4], -1, "1 2 3 4"),
        ([[1, 2], [3, 4]], 4, "[1 2][3 4]"),
        ([[1, 2], [3, 4]], 3, "[1 2][3...]"),
        ([True, False], 3, "1 0"),
        ([0.5, 1e-9], 3, "0.5 1e-09"),
        (np.array([b"a", b"b"], object), 3, "a b"),
        ([], 3, ""),
    ],
)
def test_summary(value: Any, limit: int, text: str) -> None:
    assert summary_text(np.asarray(value), limit) == text


def test_assert_shows_its_data(session: Any) -> None:
    x = tf.placeholder(tf.int32, [None])
    check = tf.Assert(tf.reduce_all(x > 0), ["x must be positive:", x], summarize=2)
    session.run(check, {x: [1, 2]})
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        session.run(check, {x: [1, -2, 3]})
    assert "assertion failed: [x must be positive:] [1 -2...]" in str(caught.value)


def test_assert_guards_what_waits_for_it(session: Any) -> None:
    x, v = tf.placeholder(tf.float32, []), tf.Variable(1.0)
    with tf.control_dependencies([tf.assert_less(x, 10.0, message="too big")]):
        update = tf.assign(v, x)
    session.run(tf.global_variables_initializer())
    with pytest.raises(tf.errors.InvalidArgumentError, match="too big"):
        session.run(update, {x: 11.0})
    assert session.run(v) == 1.0
    assert session.run(update, {x: 2.0}) == 2.0


BINARY: list[tuple[str, Any, Any]] = [
    ("assert_equal", [1, 2], [1, 3]),
    ("assert_none_equal", [1, 2], [3, 2]),
    ("assert_less", [1, 2], [2, 2]),
    ("assert_less_equal", [1, 3], [1, 2]),
    ("assert_greater", [3, 2], [2, 2]),
    ("assert_greater_equal", [3, 1], [3, 2]),
    ("assert_near", [1.0, 2.0], [1.0, 2.1]),
]


@pytest.mark.parametrize(("name", "x", "y"), BINARY, ids=[b[0] for b in BINARY])
def test_binary_assertions(name: str, x: Any, y: Any, session: Any) -> None:
    check = getattr(tf, name)
    assert check is getattr(tf.debugging, name)
    with pytest.raises(tf.errors.InvalidArgumentError):
        check(x, y)  # known while the graph is built
    fed = tf.placeholder(tf.as_dtype(np.asarray(x).dtype.name.replace("64", "32")), [2])
    op = check(fed, y, message="note")
    good = y if "equal" in name and "none" not in name else x
    if name in ("assert_none_equal", "assert_less", "assert_greater"):
        good = [0, 1] if name != "assert_greater" else [9, 9]
    if name == "assert_near":
        good = y
    session.run(op, {fed: good})
    with pytest.raises(tf.errors.InvalidArgumentError, match="note"):
        session.run(op, {fed: x})


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("assert_positive", [1, 2], [1, 0]),
        ("assert_negative", [-1, -2], [-1, 0]),
        ("assert_non_negative", [0, 1], [-1, 0]),
        ("assert_non_positive", [0, -1], [1, 0]),
    ],
)
def test_signs(name: str, good: Any, bad: Any, session: Any) -> None:
    x = tf.placeholder(tf.int32, [2])
    op = getattr(tf, name)(x)
    session.run(op, {x: good})
    with pytest.raises(tf.errors.InvalidArgumentError, match="did not hold element-wise"):
        session.run(op, {x: bad})
    with pytest.raises(tf.errors.InvalidArgumentError):
        getattr(tf, name)(bad)


def test_ranks(session: Any) -> None:
    x, free = tf.zeros([2, 3]), tf.placeholder(tf.float32)
    tf.assert_rank(x, 2)
    with pytest.raises(ValueError, match="must have rank  3"):
        tf.assert_rank(x, 3)
    with pytest.raises(ValueError, match="must have rank at least 3"):
        tf.assert_rank_at_least(x, 3)
    with pytest.raises(ValueError, match=r"must have rank in \(0, 1\)"):
        tf.assert_rank_in(x, [0, 1])
    for op in (
        tf.assert_rank(free, 1),
        tf.assert_rank_at_least(free, 1),
        tf.assert_rank_in(free, [1, 2]),
    ):
        session.run(op, {free: [1.0]})
        with pytest.raises(tf.errors.InvalidArgumentError, match="must have rank"):
            session.run(op, {free: 1.0})


def test_types() -> None:
    with tf.Graph().as_default():
        tf.assert_type(tf.zeros([1]), tf.float32)
        tf.assert_integer(tf.constant(1))
        with pytest.raises(TypeError, match="must be of type"):
            tf.assert_type(tf.zeros([1]), tf.int32)
        with pytest.raises(TypeError, match="to be integer type"):
            tf.assert_integer(1.0)
        with pytest.raises(ValueError, match="Expected scalar shape"):
            tf.assert_scalar(tf.zeros([1]))
        with pytest.raises(TypeError, match="proper"):
            tf.assert_proper_iterable(tf.zeros([1]))
        with pytest.raises(ValueError, match="must have type"):
            tf.assert_same_float_dtype([tf.zeros([1]), tf.zeros([1], tf.float64)])
        assert tf.is_numeric_tensor(tf.zeros([1]))
        assert not tf.is_numeric_tensor(tf.constant("a"))


def test_shapes_by_letter(session: Any) -> None:
    x, y = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None])
    op = tf.debugging.assert_shapes({x: ("N", 3), y: ("N",)})
    session.run(op, {x: np.ones([2, 3]), y: np.ones(2)})
    with pytest.raises(tf.errors.InvalidArgumentError, match="must have size"):
        session.run(op, {x: np.ones([2, 3]), y: np.ones(4)})
    with pytest.raises(ValueError, match="must have size 4"):
        tf.debugging.assert_shapes([(x, ("N", 4))])


def test_order(session: Any) -> None:
    x = tf.placeholder(tf.int32, [None])
    checks = [tf.is_non_decreasing(x), tf.is_strictly_increasing(x)]
    assert session.run(checks, {x: [1, 1, 2]}) == [True, False]
    assert session.run(checks, {x: []}) == [True, True]


@pytest.mark.parametrize(
    ("values", "kinds"),
    [([np.nan, 1], "NaN"), ([np.inf, 1], "Inf"), ([np.nan, -np.inf], "Inf and NaN")],
)
def test_check_numerics(values: Any, kinds: str, session: Any) -> None:
    x = tf.placeholder(tf.float32, [2])
    checked = tf.check_numerics(x, "loss {0}")
    np.testing.assert_array_equal(session.run(checked, {x: [1, 2]}), [1, 2])
    for _ in range(3):  # interpreted, then compiled
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(checked, {x: values})
        assert f"loss {{0}} : Tensor had {kinds} values" in str(caught.value)


def test_check_numerics_of_everything(session: Any) -> None:
    x = tf.placeholder(tf.float32, [])
    y = tf.sqrt(x, name="root")
    check = tf.add_check_numerics_ops()
    session.run(check, {x: 4.0})
    with pytest.raises(tf.errors.InvalidArgumentError, match="root:0 : Tensor had NaN"):
        session.run(check, {x: -1.0})
    with pytest.raises(tf.errors.InvalidArgumentError, match="bad y"):
        session.run(tf.verify_tensor_all_finite(y, "bad y"), {x: -1.0})


def test_print(session: Any, capfd: Any) -> None:
    x = tf.placeholder(tf.float32, [None])
    shown = tf.Print(x, [x, tf.shape(x)], "x: ", first_n=2, summarize=2)
    gradient = tf.gradients(shown * 3.0, x)[0]
    for _ in range(3):
        np.testing.assert_array_equal(session.run(shown, {x: [1, 2, 3]}), [1, 2, 3])
    assert capfd.readouterr().err == "x: [1 2...][3]\n" * 2
    assert session.run(gradient, {x: [1.0]}) == 3.0


def test_print_v2(session: Any, capfd: Any, tmp_path: Any) -> None:
    x = tf.placeholder(tf.int32, [None])
    rows = tf.constant([[1, 2], [3, 4]])
    session.run(tf.print("x:", x, {"rows": rows}, [1, "a"], summarize=2), {x: range(9)})
    assert capfd.readouterr().err == "x: [0 1 ... 7 8] {'rows': [[1 2]\n [3 4]]} [1, 'a']\n"
    session.run(tf.print(tf.constant("{}"), "{}", output_stream=sys.stdout, end="!"))
    assert capfd.readouterr().out == '"{}" {}!'
    session.run(tf.print(tf.constant("x"), output_stream=sys.stdout))
    assert capfd.readouterr().out == "x\n"
    session.run(tf.print([tf.constant("x"), "y", (1, tf.constant("z"))], output_stream=sys.stdout))
    assert capfd.readouterr().out == '["x", \'y\', (1, "z")]\n'
    path = tmp_path / "log"
    session.run(tf.print(tf.constant(["s"]), output_stream=f"file://{path}"))
    assert path.read_text() == '["s"]\n'
    with pytest.raises(ValueError, match="Unsupported output stream"):
        tf.print(x, output_stream="nowhere")
