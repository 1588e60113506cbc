"""Wrong shapes: the same words of ours when the graph is built and when they come with a feed."""

import re

import numpy as np
import pytest

import headrace as tf
from headrace.ops.core.build import raw


def adjusted(name):
    return lambda images, by: getattr(raw, name)(images, by)


CASES = {
    "hue": (adjusted("AdjustHue"), [(2, 3, 4, 3), (2,)], "delta must be a scalar, got shape (2,)"),
    "contrast": (adjusted("AdjustContrastv2"), [(2, 3, 4, 3), (2,)], "must be a scalar"),
    "softmax": (raw.SoftmaxGrad, [(2, 3), (2, 4)], "the same shape, got (2, 3) and (2, 4)"),
    "tanh": (
        raw.TanhGrad,
        [(3,), (2, 3)],
        "y and dy must have the same shape",
    ),
    "band": (
        lambda x, n: raw.MatrixBandPart(x, tf.cast(n, tf.int64), np.int64(1)),
        [(2, 3), (2,)],
        "num_lower must be a scalar",
    ),
    "one_hot": (
        lambda on, off: raw.OneHot([1, 2], 3, on, off),
        [(2,), ()],
        "on_value must be a scalar, got shape (2,)",
    ),
    "pad": (
        lambda x, value: raw.PadV2(x, [[1, 1]], value),
        [(3,), (2,)],
        "constant_values must be a scalar",
    ),
    "part": (
        lambda x: raw.MatrixDiagPartV3(x, 0, 0.0),
        [()],
        "input must be at least 2-dimensional, got shape ()",
    ),
    "histogram": (
        lambda x, limits: raw.HistogramFixedWidth(x, limits, 5),
        [(6,), (3,)],
        "value_range must have the shape (2,), got (3,)",
    ),
    "bincount": (
        lambda x, w: raw.DenseBincount(tf.cast(x, tf.int32), 4, w),
        [(4,), (3,)],
        "input and weights must have the same shape, got (4,) and (3,)",
    ),
    "beams": (
        lambda ids, n: raw.GatherTree(
            tf.cast(ids, tf.int32), tf.cast(ids, tf.int32), tf.cast(n, tf.int32), 0
        ),
        [(4, 2, 3), (3,)],
        "max_sequence_lengths must have the shape (2,), got (3,)",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_shapes_that_do_not_fit(name, interpret):
    function, shapes, message = CASES[name]
    with pytest.raises(ValueError, match=re.escape(message)):
        function(*[tf.placeholder(tf.float32, s) for s in shapes])
    fed = [tf.placeholder(tf.float32) for _ in shapes]
    fetch = function(*fed)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError) as caught:
        session.run(fetch, {t: np.zeros(s) for t, s in zip(fed, shapes, strict=True)})
    assert message in caught.value.message
    assert caught.value.op is not None
    assert __file__ in str(caught.value)
