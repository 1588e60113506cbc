"""Conditional random fields of `tf.contrib.crf`. Python 3.7: TensorFlow 1.15 runs this."""

import numpy as np

from . import golden

TAGS = 4


def _scores(tf, steps):
    rng = np.random.RandomState(steps)
    scores = tf.constant(rng.randn(3, steps, TAGS).astype(np.float32))
    return scores, tf.constant(rng.randn(TAGS, TAGS).astype(np.float32)), rng


def _all(tf, steps, lengths):
    crf = tf.contrib.crf
    scores, transitions, rng = _scores(tf, steps)
    tags = tf.constant(rng.randint(0, TAGS, (3, steps)), tf.int32)
    admitted = tf.constant(rng.rand(3, steps, TAGS) < 0.7) | tf.one_hot(tags, TAGS, True, False)
    likelihood, _ = crf.crf_log_likelihood(scores, tags, lengths, transitions)
    decoded, best = crf.crf_decode(scores, transitions, lengths)
    grads = tf.gradients(likelihood, [scores, transitions])
    results = {
        "likelihood": likelihood,
        "norm": crf.crf_log_norm(scores, lengths, transitions),
        "score": crf.crf_sequence_score(scores, tags, lengths, transitions),
        "several": crf.crf_multitag_sequence_score(scores, admitted, lengths, transitions),
        "decoded": decoded,
        "best": best,
        "grad_scores": grads[0],
    }
    if steps > 1:
        results["grad_transitions"] = tf.convert_to_tensor(grads[1])
    return results


@golden(rtol=1e-4, atol=1e-5)
def sequences(tf):
    return _all(tf, 6, tf.constant([6, 3, 1]))


@golden(rtol=1e-4, atol=1e-5)
def single_steps(tf):
    return _all(tf, 1, tf.constant([1, 1, 1]))


@golden
def viterbi(tf):
    rng = np.random.RandomState(1)
    tags, score = tf.contrib.crf.viterbi_decode(rng.randn(7, TAGS), rng.randn(TAGS, TAGS))
    return {"tags": tf.constant(tags), "score": tf.constant(score)}
