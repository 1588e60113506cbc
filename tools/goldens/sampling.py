"""Candidate sampling: the classes and counts of TensorFlow's samplers, and the losses on them."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import golden

TRUE = np.int64([[0, 7], [3, 3], [12, 1]])


def _steps(session: Any, fetches: dict[str, Any], count: int = 2) -> dict[str, Any]:
    """Each sampler's three outputs in several steps: streams go on, and counts are learnt."""
    results: dict[str, Any] = {}
    for step in range(count):
        for name, values in session.run(fetches).items():
            for part, value in zip(("sampled", "true", "expected"), values, strict=True):
                results[f"{name}_{part}_{step}"] = value
    return results


@golden(with_session=True)
def uniform_and_log_uniform(tf: Any, session: Any) -> dict[str, Any]:
    def both(kind: str, **options: Any) -> Any:
        return getattr(tf.nn, f"{kind}_candidate_sampler")(TRUE, 2, seed=11, **options)

    fetches = {
        f"{kind}_{name}": both(kind, num_sampled=n, unique=unique, range_max=limit)
        for kind in ("uniform", "log_uniform")
        for name, n, unique, limit in (
            ("distinct", 9, True, 20),
            ("repeated", 9, False, 20),
            ("all", 13, True, 13),
            ("power_of_two", 6, False, 64),
            ("large", 50, True, 1_000_003),
        )
    }
    return _steps(session, fetches)


@golden(with_session=True)
def seeds_of_the_graph(tf: Any, session: Any) -> dict[str, Any]:
    tf.set_random_seed(87)
    fetches = {"first": tf.nn.log_uniform_candidate_sampler(TRUE, 2, 5, True, 100)}
    fetches["second"] = tf.nn.uniform_candidate_sampler(TRUE, 2, 5, True, 100)
    return _steps(session, fetches)


@golden(with_session=True)
def unigrams(tf: Any, session: Any) -> dict[str, Any]:
    weights = [float(1 + (7 * i) % 13) for i in range(15)]
    fixed = tf.nn.fixed_unigram_candidate_sampler
    shard = {"unigrams": weights, "num_shards": 3, "shard": 1}
    fetches = {
        "learned": tf.nn.learned_unigram_candidate_sampler(TRUE, 2, 6, True, 15, seed=5),
        "learned_repeated": tf.nn.learned_unigram_candidate_sampler(TRUE, 2, 6, False, 15, seed=6),
        "fixed": fixed(TRUE, 2, 6, True, 15, unigrams=weights, seed=7),
        "fixed_repeated": fixed(TRUE, 2, 8, False, 15, unigrams=weights, seed=7),
        "distorted": fixed(TRUE, 2, 8, False, 15, unigrams=weights, distortion=0.75, seed=7),
        "reserved": fixed(TRUE, 2, 6, False, 15, unigrams=weights[2:], num_reserved_ids=2, seed=7),
        "shard": fixed([[0, 1]], 2, 3, False, 5, **shard, seed=8),
        "shard_reserved": fixed([[0, 1]], 2, 3, True, 6, **shard, num_reserved_ids=4, seed=2),
        "all": tf.nn.all_candidate_sampler(TRUE, 2, 13, True),
    }
    return _steps(session, fetches, 3)


@golden()
def accidental_hits(tf: Any) -> dict[str, Any]:
    names = ("indices", "ids", "weights")
    some = tf.nn.compute_accidental_hits(TRUE, np.int64([5, 3, 0, 9, 12]), 2)
    twice = tf.nn.compute_accidental_hits(TRUE, np.int64([3, 1, 3, 1]), 2)
    none = tf.nn.compute_accidental_hits(TRUE, np.int64([8, 9]), 2)
    return {
        f"{kind}_{name}": value
        for kind, hits in (("some", some), ("twice", twice), ("none", none))
        for name, value in zip(names, hits, strict=True)
    }


def _losses(tf: Any, name: str, **options: Any) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    weights = tf.constant(rng.standard_normal((13, 4)).astype(np.float32))
    biases = tf.constant(rng.standard_normal(13).astype(np.float32))
    inputs = tf.constant(rng.standard_normal((3, 4)).astype(np.float32))
    loss = getattr(tf.nn, name)(weights, biases, TRUE, inputs, 5, 13, num_true=2, **options)
    grads = tf.gradients(loss, [weights, biases, inputs])
    dense = [tf.convert_to_tensor(g) for g in grads]
    return dict(zip(("loss", "weights", "biases", "inputs"), [loss, *dense], strict=True))


@golden()
def nce_loss(tf: Any) -> dict[str, Any]:
    tf.set_random_seed(4)
    return _losses(tf, "nce_loss")


@golden()
def sampled_softmax_loss(tf: Any) -> dict[str, Any]:
    tf.set_random_seed(4)
    return _losses(tf, "sampled_softmax_loss", seed=9)


@golden()
def loss_with_given_samples(tf: Any) -> dict[str, Any]:
    drawn = (
        tf.constant(np.int64([3, 12, 5])),
        tf.constant(np.float32([[0.5, 0.25], [0.1, 0.1], [0.2, 0.9]])),
        tf.constant(np.float32([0.1, 0.2, 0.3])),
    )
    rng = np.random.default_rng(8)
    weights = [tf.constant(rng.standard_normal((n, 4)).astype(np.float32)) for n in (7, 6)]
    biases = tf.constant(rng.standard_normal(13).astype(np.float32))
    inputs = tf.constant(rng.standard_normal((3, 4)).astype(np.float32))

    def loss(strategy: str) -> Any:
        return tf.nn.sampled_softmax_loss(
            weights, biases, TRUE, inputs, 3, 13, 2, drawn, partition_strategy=strategy
        )

    return {"mod": loss("mod"), "div": loss("div")}
