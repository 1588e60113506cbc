"""Candidate samplers and the losses on them; goldens hold the numbers of TensorFlow's samplers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.ops.nn import samplers
from headrace.ops.random import philox

STATE = philox.initial_state(3, 5)


@pytest.mark.parametrize(
    "sampler",
    [
        samplers.UniformSampler(7),
        samplers.LogUniformSampler(7),
        samplers.LearnedSampler(np.int32([4, 1, 1, 9, 2, 1, 3])),
        samplers.FixedSampler([1.0, 4.0, 2.5, 0.5, 7.0, 1.0, 3.0], 0.75),
    ],
    ids=lambda s: type(s).__name__,
)
def test_classes_are_as_frequent_as_their_probability_says(sampler: Any) -> None:
    drawn = sampler.draw(STATE, 40_000)
    frequency = np.bincount(drawn, minlength=7) / drawn.size
    np.testing.assert_allclose(frequency, sampler.probability(np.arange(7)), atol=0.01)


def test_words_that_are_rejected_shift_the_rest_of_the_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sampler = samplers.FixedSampler([1.0, 2.0, 3.0])
    words = np.uint32([2**22, 0, 5, 2**21, 8, 1, 7] + [9] * 80)  # 0 is rejected: 2**32 % 3 == 1
    monkeypatch.setattr(samplers, "stream_np", lambda state, count: np.resize(words, count))
    pairs = sampler._accepted(STATE, 3)
    assert pairs.tolist() == [[2**22, 5], [2**21, 8], [1, 7]]
    assert sampler.draw(STATE, 3).tolist() == sampler.draw(STATE, 8).tolist()[:3]


def test_expected_counts_of_distinct_classes() -> None:
    """Of two distinct classes of two each is there for certain, if draws were many."""
    drawn, true, counts = samplers.sample(
        samplers.UniformSampler(2), STATE, 2, True, np.int64([[0], [1], [1]])
    )
    assert sorted(drawn.tolist()) == [0, 1]
    assert true.shape == (3, 1)
    assert (counts <= 1).all()


def test_learned_unigrams_count_the_true_classes_of_each_session() -> None:
    with tf.Graph().as_default():
        true = tf.placeholder(tf.int64, [None, 1])
        drawn = tf.nn.learned_unigram_candidate_sampler(true, 1, 4, False, 3, seed=1)
        first, second = tf.Session(), tf.Session()
        before = first.run(drawn.true_expected_count, {true: [[0]] * 7})
        after = first.run(drawn.true_expected_count, {true: [[0]]})
        other = second.run(drawn.true_expected_count, {true: [[0]]})
    np.testing.assert_allclose(before, np.full((7, 1), 4 / 3, np.float32))
    np.testing.assert_allclose(after, [[4 * 8 / 10]])
    np.testing.assert_allclose(other, [[4 / 3]])


def _fixed(**options: Any) -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        return session.run(
            tf.nn.fixed_unigram_candidate_sampler([[0]], 1, 3, False, 4, seed=1, **options)
        )


def test_unigrams_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "vocabulary.csv"
    path.write_text("the,9\nof,4.5\nand,3\nto,1\n")
    from_file = _fixed(vocab_file=str(path))
    given = _fixed(unigrams=[9.0, 4.5, 3.0, 1.0])
    for mine, want in zip(from_file, given, strict=True):
        np.testing.assert_array_equal(mine, want)


def test_bad_files(tmp_path: Path) -> None:
    with pytest.raises(tf.errors.NotFoundError, match=r"absent\.csv' does not exist"):
        _fixed(vocab_file=str(tmp_path / "absent.csv"))
    path = tmp_path / "words.csv"
    path.write_text("the,9\nof,many\n")
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"line 2 of .*'of,many'"):
        _fixed(vocab_file=str(path))
    path.write_bytes(b"\xff\xfe,1\n")
    with pytest.raises(tf.errors.InvalidArgumentError, match="no text in UTF-8"):
        _fixed(vocab_file=str(path))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"range_max is 4, but .* of 3"):
        _fixed(unigrams=[1.0, 2.0, 3.0])


def test_unigrams_come_from_one_place() -> None:
    with pytest.raises(ValueError, match="either vocab_file or unigrams"):
        _fixed()
    with pytest.raises(ValueError, match="shard 3 is not in"):
        _fixed(unigrams=[1.0], num_shards=2, shard=3)


def _uniform(true: Any, sampled: int = 2) -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        return session.run(tf.nn.uniform_candidate_sampler(true, 1, sampled, True, 5))


def test_what_samplers_refuse() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"6 distinct classes of 5"):
        _uniform([[1]], 6)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"true class 5 is not in \[0, 5\)"):
        _uniform([[1], [5]])
    with pytest.raises(ValueError, match=r"\(1, 2\) and num_true is 1"):
        _uniform([[1, 2]])


def test_accidental_hits_are_left_out_of_the_loss() -> None:
    """A sampled class that is the true one adds nothing to the softmax."""
    weights, biases = tf.constant(np.eye(4, dtype=np.float32)), tf.zeros([4])
    inputs = tf.constant([[1.0, 2.0, 3.0, 4.0]])
    ones = [tf.constant([[1.0]]), tf.constant([1.0, 1.0])]

    def loss(sampled: list[int]) -> Any:
        return tf.nn.sampled_softmax_loss(
            weights, biases, [[2]], inputs, 2, 4, sampled_values=(np.int64(sampled), *ones)
        )

    with tf.Session() as session:
        hit, missed = session.run([loss([2, 1]), loss([0, 1])])
    np.testing.assert_allclose(hit, [np.log(np.exp(3) + np.exp(2)) - 3], rtol=1e-5)
    np.testing.assert_allclose(missed, [np.log(np.exp([3, 1, 2]).sum()) - 3], rtol=1e-5)


def test_sparse_softmax_of_samples_is_that_of_one_true_class() -> None:
    from headrace.ops.nn.sampling_api import sampled_sparse_softmax_loss

    weights, biases = tf.constant(np.eye(4, dtype=np.float32)), tf.zeros([4])
    inputs, labels = tf.constant([[1.0, 2.0, 3.0, 4.0], [0.5, 0.0, 0.1, 0.3]]), [[2], [0]]
    drawn = (np.int64([0, 3]), tf.constant([[0.5], [0.9]]), tf.constant([0.4, 0.2]))
    arguments = (weights, biases, labels, inputs, 2, 4)
    with tf.Session() as session:
        sparse, dense = session.run(
            [
                sampled_sparse_softmax_loss(*arguments, sampled_values=drawn),
                tf.nn.sampled_softmax_loss(*arguments, sampled_values=drawn),
            ]
        )
    np.testing.assert_allclose(sparse, dense, rtol=1e-6)


def test_word2vec_learns_which_words_meet() -> None:
    """Skip-grams of a text in which even words follow even words, and odd words odd ones."""
    rng = np.random.default_rng(0)
    words, size, batch = 20, 8, 64
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.set_random_seed(1)
        centre = tf.placeholder(tf.int32, [batch])
        context = tf.placeholder(tf.int32, [batch, 1])
        embeddings = tf.Variable(tf.random_uniform([words, size], -1.0, 1.0))
        weights = tf.Variable(tf.truncated_normal([words, size], stddev=size**-0.5))
        biases = tf.Variable(tf.zeros([words]))
        looked_up = tf.nn.embedding_lookup(embeddings, centre)
        loss = tf.reduce_mean(
            tf.nn.nce_loss(
                weights=weights,
                biases=biases,
                labels=context,
                inputs=looked_up,
                num_sampled=8,
                num_classes=words,
            )
        )
        gradients = tf.gradients(loss, [embeddings, weights, biases])
        assert all(isinstance(g, tf.IndexedSlices) for g in gradients)
        train = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
        normal = tf.nn.l2_normalize(embeddings, 1)
        session.run(tf.global_variables_initializer())
        losses = []
        for _ in range(150):
            left = rng.integers(0, words, batch)
            right = (left + 2 * rng.integers(0, words, batch)) % words
            feed = {centre: left, context: right[:, None]}
            losses.append(session.run([loss, train], feed)[0])
        vectors = session.run(normal)
    assert np.mean(losses[-20:]) < 0.6 * np.mean(losses[:5])
    close = vectors @ vectors.T
    same = (np.arange(words)[:, None] + np.arange(words)) % 2 == 0
    assert close[same].mean() > close[~same].mean() + 0.5
    assert graph.get_operation_by_name("nce_loss/LogUniformCandidateSampler").attrs["unique"]
