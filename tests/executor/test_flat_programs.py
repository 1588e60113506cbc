"""Programs of elementwise operations run on arrays of one dimension, and give the same."""

import numpy as np
import pytest

import headrace as tf
from headrace.executor import program
from headrace.settings import flags

SHAPE = (30_000, 12)
ODD = [np.nan, -np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-45, 3.4e38]


@pytest.fixture
def flattened(monkeypatch):
    """How often a program was made flat."""
    made = []
    monkeypatch.setattr(flags, "interpret", "never")
    monkeypatch.setattr(program, "flat", lambda f, of=program.flat: made.append(f) or of(f))
    return made


def some(dtype=np.float32):
    values = np.random.RandomState(0).randn(*SHAPE)
    if np.dtype(dtype).kind != "f":
        return (values * 100).astype(dtype)
    values[0, : len(ODD)] = ODD
    with np.errstate(all="ignore"):
        return values.astype(dtype)


def ran(build, *values):
    """What a step gives for large values, and for a few rows of them, which are not made flat."""
    with tf.Graph().as_default(), tf.Session() as session:
        fed = [tf.placeholder(v.dtype, [None, SHAPE[1]]) for v in values]
        fetched = build(*fed)
        few = [session.run(fetched, dict(zip(fed, [v[:40] for v in values], strict=True)))]
        whole = [session.run(fetched, dict(zip(fed, values, strict=True))) for _ in range(2)]
    return few[0], *whole


CASES = {
    "abs": tf.abs,
    "reciprocal": tf.reciprocal,
    "logarithm": tf.log,
    "two operations": lambda x: tf.exp(-x) * 2.0,
    "nested functions": lambda x: tf.nn.softplus(tf.clip_by_value(x, -1.0, 1.0)),
    "comparison": lambda x: x > 0.0,
    "integers": lambda x: tf.cast(x, tf.int32),
    "halves": lambda x: tf.cast(x, tf.float16),
    "doubles": lambda x: tf.cast(x, tf.float64) * 0.1,
    "where": lambda x: tf.where(tf.is_nan(x), tf.zeros_like(x), x),
    "gradient": lambda x: tf.gradients(tf.sin(x), x)[0],
    "several results": lambda x: [tf.floor(x), x, x < 0.0, tf.square(x)],
    "complex numbers": lambda x: tf.complex(x, x),
}


@pytest.mark.parametrize("build", CASES.values(), ids=CASES.keys())
def test_flat_programs_give_the_same(build, flattened):
    few, first, again = ran(build, some())
    if not isinstance(first, list):
        few, first, again = [few], [first], [again]
    for part, one, other in zip(few, first, again, strict=True):
        assert one.dtype == part.dtype
        assert one.shape == SHAPE
        np.testing.assert_array_equal(one, other)
        if one.dtype.kind == "f":
            np.testing.assert_allclose(one[:40], part, rtol=3e-7)  # in vectors of another length
            numbers = ~np.isnan(part)
            signs = np.signbit(one[:40])[numbers], np.signbit(part)[numbers]
            np.testing.assert_array_equal(*signs)
        else:
            np.testing.assert_array_equal(one[:40], part)
    assert len(flattened) == (build is not CASES["complex numbers"])


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.float16, np.float64])
def test_types(dtype, flattened):
    few, first, _ = ran(lambda x, y: x + y, some(dtype), some(dtype)[::-1])
    np.testing.assert_array_equal(first, some(dtype) + some(dtype)[::-1])
    assert few.dtype == dtype


@pytest.mark.parametrize(
    "build",
    [
        lambda x: tf.reduce_sum(x),
        lambda x: x + x[0],
        lambda x: tf.transpose(x),
        lambda x: tf.reshape(x, [-1]) * 2.0,
        lambda x: x * tf.random_uniform(tf.shape(x)),
        lambda x: tf.nn.softmax(x),
    ],
)
def test_other_programs_stay_as_they_are(build, flattened):
    ran(build, some())
    assert not flattened


def test_a_variable_is_read_flat_and_changed_as_it_is(flattened):
    value = some()[1:]
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.Variable(value)
        session.run(variable.initializer)
        doubled, changed = variable * 2.0, tf.assign_add(variable, variable)
        result = session.run(doubled)
        assert len(flattened) == 1
        np.testing.assert_array_equal(result, value * 2)
        session.run(changed.op)
        np.testing.assert_array_equal(session.run(variable), result)
        assert len(flattened) == 1
