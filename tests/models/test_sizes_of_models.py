"""Numbers of parameters are those that the papers, or who released the networks, have published."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf


def _pictures(size: int, channels: int = 3):
    return tf.placeholder(tf.float32, [2, size, size, channels])


def _words(steps: int):
    return tf.placeholder(tf.int32, [2, steps])


def _capsules():
    poses = tf.models.capsule_network(_pictures(28, 1))
    return tf.models.capsule_reconstruction(poses, tf.placeholder(tf.int32, [2]))


def _transformer(**sizes):
    return tf.models.transformer(_words(5), _words(4), **sizes)


def _wide_and_deep():
    return tf.models.wide_and_deep(
        tf.placeholder(tf.int64, [2, 2]),
        tf.placeholder(tf.int64, [2, 2]),
        tf.placeholder(tf.float32, [2, 5]),
        buckets=1000,
        sizes=[50, 7],
    )


#: How it is built, its shape, and its trained parameters.
MODELS = {
    "lenet": (lambda: tf.models.lenet(_pictures(32, 1)), [2, 10], 60_000),
    "alexnet": (lambda: tf.models.alexnet(_pictures(224)), [2, 1000], 61_100_840),
    "overfeat": (lambda: tf.models.overfeat(_pictures(231)), [2, 1000], 145_920_872),
    "vgg_a": (lambda: tf.models.vgg_a(_pictures(224)), [2, 1000], 132_863_336),
    "vgg_16": (lambda: tf.models.vgg_16(_pictures(224)), [2, 1000], 138_357_544),
    "googlenet": (lambda: tf.models.googlenet(_pictures(224)), [2, 1000], 6_998_552),
    "inception_v3": (lambda: tf.models.inception_v3(_pictures(299)), [2, 1000], 23_817_352),
    "resnet_50": (lambda: tf.models.resnet_50(_pictures(224)), [2, 1000], 25_557_032),
    "nasnet_a": (lambda: tf.models.nasnet_a(_pictures(224)), [2, 1000], 5_289_978),
    "mobilenet_v1": (lambda: tf.models.mobilenet_v1(_pictures(224)), [2, 1000], 4_231_976),
    "dcgan_generator": (
        lambda: tf.models.dcgan_generator(tf.placeholder(tf.float32, [2, 100])),
        [2, 64, 64, 3],
        18_855_043,
    ),
    "dcgan_discriminator": (
        lambda: tf.models.dcgan_discriminator(_pictures(64)),
        [2],
        17_232_897,
    ),
    "capsules": (_capsules, [2, 784], 8_215_568),
    "word_lstm_medium": (
        lambda: tf.models.word_lstm(_words(5))[0],
        [2, 5, 10_000],
        19_775_200,
    ),
    "word_lstm_large": (
        lambda: tf.models.word_lstm(_words(5), units=1500)[0],
        [2, 5, 10_000],
        66_022_000,
    ),
    "transformer_base": (_transformer, [2, 4, 37_000], 63_045_632),
    "transformer_big": (
        lambda: _transformer(units=1024, heads=16, inner=4096),
        [2, 4, 37_000],
        214_171_648,
    ),
    "wide_and_deep": (
        _wide_and_deep,
        [2],
        (2 * 1000 + 1) + 32 * (50 + 7) + (69 + 1) * 1024 + 1025 * 512 + 513 * 256 + 256,
    ),
}

#: In millions, as rounded in the papers: see the docstring of each file for the table.
IN_PAPERS = {
    "overfeat": (145, 1.0),
    "vgg_a": (133, 0.5),
    "vgg_16": (138, 0.5),
    "mobilenet_v1": (4.2, 0.05),
    "nasnet_a": (5.3, 0.05),
    "capsules": (8.2, 0.05),
    "word_lstm_medium": (20, 0.5),
    "word_lstm_large": (66, 0.5),
    # "About 37000" pieces of words.
    "transformer_base": (65, 2.0),
    "transformer_big": (213, 2.0),
}


def parameters(scope: str | None = None, trained: bool = True) -> int:
    key = tf.GraphKeys.TRAINABLE_VARIABLES if trained else tf.GraphKeys.GLOBAL_VARIABLES
    return sum(int(np.prod(v.shape.as_list())) for v in tf.get_collection(key, scope))


@pytest.mark.parametrize("name", MODELS)
def test_parameters_and_shape(name):
    build, shape, count = MODELS[name]
    with tf.Graph().as_default():
        assert build().shape.as_list() == shape
        assert parameters() == count
    if name in IN_PAPERS:
        millions, apart = IN_PAPERS[name]
        assert abs(count / 1e6 - millions) <= apart


def test_moments_of_batches_are_kept_beside_the_parameters():
    # keras.applications counts 23,851,784, 5,326,716 and 4,253,864 numbers in all.
    for name, moments in (("inception_v3", 34_432), ("nasnet_a", 36_738), ("mobilenet_v1", 21_888)):
        with tf.Graph().as_default():
            MODELS[name][0]()
            assert parameters(trained=False) - parameters() == moments


def test_layers_of_lenet_are_those_of_the_paper():
    tf.models.lenet(_pictures(32, 1))
    layers = {name: parameters(f"lenet/{name}") for name in ("c1", "s2", "c3", "s4", "c5", "f6")}
    assert layers == {"c1": 156, "s2": 12, "c3": 1516, "s4": 32, "c5": 48_120, "f6": 10_164}


#: Table 1 of the paper in units of 1,024 (of 1,000 the last), weights without biases.
GOOGLENET = {
    "conv2": 112,
    "3a": 159,
    "3b": 380,
    "4a": 364,
    "4b": 437,
    "4c": 463,
    "4d": 580,
    "4e": 840,
    "5a": 1072,
    "5b": 1388,
}


def test_layers_of_googlenet_are_those_of_the_table():
    tf.models.googlenet(_pictures(224))
    for name, thousands in GOOGLENET.items():
        weights = sum(
            int(np.prod(v.shape.as_list()))
            for v in tf.trainable_variables(f"googlenet/{name}")
            if v.op.name.endswith("kernel")
        )
        # What the columns of the table multiply to is not quite what its last column says.
        apart = {"4c": 0.08, "5a": 0.06, "4d": 0.02, "5b": 0.02}.get(name, 0.01)
        assert weights / 1024 == pytest.approx(thousands, rel=apart), name


def test_two_calls_of_the_judge_share_variables():
    tf.models.dcgan_discriminator(_pictures(64))
    before = parameters()
    tf.models.dcgan_discriminator(_pictures(64))
    assert parameters() == before


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tf.models.lenet(_pictures(28, 1)), "reads pictures of 32 x 32 pixels, not"),
        (lambda: tf.models.nasnet_a(_pictures(64), filters=100), "no multiple of 24"),
        (lambda: _transformer(heads=7), "512 units cannot be shared by 7 heads"),
        (
            lambda: tf.models.crossed(tf.placeholder(tf.int64, [2, 3]), [5, 6], 100),
            "3 columns of categories, and 2 sizes",
        ),
        (lambda: tf.models.alexnet(tf.placeholder(tf.float32, [2, 224, 224, None])), "channel"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
