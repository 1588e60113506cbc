"""Any random placement of random graphs over 2 to 5 tasks gives the fetches of one device."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from random_graphs import RandomGraph

import headrace as tf
from headrace.harness.cluster import with_cluster


def _examples(count):
    # No shrinking: each example compiles programs, and one is found again by its seed.
    return settings(
        max_examples=count,
        derandomize=True,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


@_examples(10)
@given(st.randoms(use_true_random=True))
def test_any_placement_equals_one_device(rng):
    _equals_one_device(rng)


@pytest.mark.slow
@_examples(50)
@given(st.randoms(use_true_random=True))
def test_many_placements_equal_one_device(rng):
    _equals_one_device(rng)


def _equals_one_device(rng):
    jobs = {"ps": rng.randint(1, 2), "worker": rng.randint(1, 3)}
    tasks = [(job, i) for job, count in jobs.items() for i in range(count)]
    devices = ["", *[f"/job:{job}/task:{i}" for job, i in tasks]]
    with tf.Graph().as_default():
        graph = RandomGraph(rng, devices)
        expected = graph.run()
        with with_cluster(**jobs) as cluster:
            found = graph.run(cluster.target(*rng.choice(tasks)))
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(other, one)
