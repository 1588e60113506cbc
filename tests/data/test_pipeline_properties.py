"""Chains of random transforms of nested elements against plain Python, saved at any point.

Elements are dicts of a number, a vector whose size differs (also none, with NaN in it) and a text.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headrace as tf
from headrace.ops.data.shuffling import Words

#: The first seed of an operation in a graph without a seed.
GRAPH_SEED = 87654321


class Chain(NamedTuple):
    """A dataset, and what gives the elements of an iteration; asked again it gives the next one."""

    dataset: Any
    run: Callable[[], list[Any]]


def element(n: int) -> dict[str, Any]:
    x = np.arange(n % 4, dtype=np.float32)
    if n % 5 == 3:
        x[:1] = np.nan
    return {"n": np.int64(n), "x": x, "s": b"\0" * (n % 3) + b"%d" % n}


def elements_of(count: int, kind: str) -> Chain:
    values = [element(n) for n in range(count)]
    if kind == "generator":
        types = {"n": tf.int64, "x": tf.float32, "s": tf.string}
        shapes = {"n": [], "x": [None], "s": []}
        dataset = tf.data.Dataset.from_generator(lambda: iter(values), types, shapes)
    else:
        longest = np.full((count, 3), -1, np.float32)
        for row, value in zip(longest, values, strict=True):
            row[: len(value["x"])] = value["x"]
        slices = {
            "n": np.arange(count),
            "x": longest,
            "s": np.array([v["s"] for v in values], object).reshape(count),
        }
        dataset = tf.data.Dataset.from_tensor_slices(slices)
        dataset = dataset.map(lambda e: {**e, "x": e["x"][: e["n"] % 4]})
        if kind == "unknown":
            dataset = dataset.map(lambda e: {**e, "x": tf.placeholder_with_default(e["x"], [None])})
    return Chain(dataset, lambda: list(values))


def shuffled(chain: Chain, how: tuple[int, int, bool]) -> Chain:
    size, seed, again = how
    seeds = Words(GRAPH_SEED, seed)

    def run() -> list[Any]:
        words = Words(seeds.next(), seeds.next()) if again else Words(GRAPH_SEED, seed)
        values, window, found = chain.run(), [], []
        while values or window:
            while values and len(window) < size:
                window.append(values.pop(0))
            chosen = words.next() % len(window)
            found.append(window[chosen])
            window[chosen] = window[0]
            del window[0]
        return found

    return Chain(chain.dataset.shuffle(size, seed, again), run)


def repeated(chain: Chain, count: int) -> Chain:
    return Chain(
        chain.dataset.repeat(count), lambda: [v for _ in range(count) for v in chain.run()]
    )


def interleaved(chain: Chain, how: tuple[int, int, int, int | None]) -> Chain:
    each, cycle, block, calls = how

    def run() -> list[Any]:
        waiting = [[v] * each for v in chain.run()]
        slots: list[Any] = [None] * cycle
        found, at = [], 0
        while waiting or any(slot is not None for slot in slots):
            if slots[at] is None and waiting:
                slots[at] = waiting.pop(0)
            if slots[at] is not None:
                part, slots[at] = slots[at][:block], slots[at][block:]
                found += part
                slots[at] = slots[at] if len(part) == block else None
            at = (at + 1) % cycle
        return found

    def several(e: Any) -> Any:
        return tf.data.Dataset.from_tensors(e).repeat(each)

    return Chain(chain.dataset.interleave(several, cycle, block, calls), run)


def zipped(chain: Chain, count: int) -> Chain:
    """With numbers, in a nest, and back."""

    def joined(a: Any, rest: Any) -> Any:
        (number,) = rest
        return {**a, "n": a["n"] + number}

    numbers = tf.data.Dataset.range(count)
    dataset = tf.data.Dataset.zip((chain.dataset, (numbers,))).map(joined)
    return Chain(
        dataset,
        lambda: [{**v, "n": v["n"] + i} for i, v in zip(range(count), chain.run(), strict=False)],
    )


def concatenated(chain: Chain, count: int) -> Chain:
    more = elements_of(count, "slices")
    return Chain(chain.dataset.concatenate(more.dataset), lambda: chain.run() + more.run())


def windows(chain: Chain, how: tuple[int, int, int, bool]) -> Chain:
    size, shift, stride, drops = how
    span = (size - 1) * stride + 1

    def run() -> list[Any]:
        values = chain.run()
        begins = range(0, len(values), shift)
        found = [
            values[b : b + span : stride] for b in begins if not drops or b + span <= len(values)
        ]
        return [v for window in found for v in window]

    def flat(window: Any) -> Any:
        return tf.data.Dataset.zip(window)

    return Chain(chain.dataset.window(size, shift, stride, drops).flat_map(flat), run)


def grouped(chain: Chain, how: tuple[int, int]) -> Chain:
    keys, size = how

    def run() -> list[Any]:
        groups: dict[int, list[Any]] = {}
        found = []
        for value in chain.run():
            key = int(value["n"]) % keys
            group = groups.setdefault(key, [])
            group.append(value)
            if len(group) == size:
                found += groups.pop(key)
        return found + [v for key in sorted(groups) for v in groups[key]]

    def reduced(key: Any, window: Any) -> Any:
        return window

    by = tf.data.experimental.group_by_window(lambda e: e["n"] % keys, reduced, size)
    return Chain(chain.dataset.apply(by), run)


STEPS: dict[str, tuple[Any, Callable[[Chain, Any], Chain]]] = {
    "shuffle": (st.tuples(st.integers(1, 12), st.integers(1, 99), st.booleans()), shuffled),
    "repeat": (st.integers(0, 3), repeated),
    "interleave": (
        st.tuples(
            st.integers(0, 3),
            st.integers(1, 4),
            st.integers(1, 3),
            st.sampled_from([None, 1, 3, -1]),
        ),
        interleaved,
    ),
    "zip": (st.integers(0, 30), zipped),
    "concatenate": (st.integers(0, 4), concatenated),
    "window": (
        st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.booleans()),
        windows,
    ),
    "group_by_window": (st.tuples(st.integers(1, 3), st.integers(1, 4)), grouped),
    "take": (
        st.integers(0, 9),
        lambda c, n: Chain(c.dataset.take(n), lambda: c.run()[:n]),
    ),
    "skip": (st.integers(0, 9), lambda c, n: Chain(c.dataset.skip(n), lambda: c.run()[n:])),
    "prefetch": (st.sampled_from([1, 3, -1]), lambda c, n: Chain(c.dataset.prefetch(n), c.run)),
    "filter": (
        st.integers(1, 3),
        lambda c, n: Chain(
            c.dataset.filter(lambda e: tf.equal(e["n"] % n, 0)),
            lambda: [v for v in c.run() if v["n"] % n == 0],
        ),
    ),
    "parallel map": (
        st.sampled_from([1, 3, -1]),
        lambda c, n: Chain(
            c.dataset.map(lambda e: {**e, "x": e["x"] * 2}, n),
            lambda: [{**v, "x": v["x"] * 2} for v in c.run()],
        ),
    ),
}


def batches(values: list[Any], size: int, drops: bool) -> list[list[Any]]:
    found = [values[i : i + size] for i in range(0, len(values), size)]
    return [b for b in found if len(b) == size] if drops else found


def of_pairs(chain: Chain, how: tuple[int, bool]) -> Chain:
    dataset = chain.dataset.map(lambda e: (e["n"], e["s"])).batch(*how)
    return Chain(
        dataset,
        lambda: [
            (np.array([v["n"] for v in b]), np.array([v["s"] for v in b], object))
            for b in batches(chain.run(), *how)
        ],
    )


def padded(chain: Chain, how: tuple[int, bool]) -> Chain:
    size, drops = how
    shapes = {"n": [], "x": [None], "s": []}
    fill = {"n": np.int64(0), "x": np.float32(-1), "s": ""}
    dataset = chain.dataset.padded_batch(size, shapes, fill, drops)

    def together(batch: list[Any]) -> dict[str, Any]:
        x = np.full((len(batch), max(len(v["x"]) for v in batch)), -1, np.float32)
        for row, value in zip(x, batch, strict=True):
            row[: len(value["x"])] = value["x"]
        texts = np.array([v["s"] for v in batch], object)
        return {"n": np.array([v["n"] for v in batch]), "x": x, "s": texts}

    return Chain(dataset, lambda: [together(b) for b in batches(chain.run(), size, drops)])


def ragged(chain: Chain, how: tuple[int, bool]) -> Chain:
    dense_to_ragged = tf.data.experimental.dense_to_ragged_batch
    dataset = chain.dataset.map(lambda e: e["x"]).apply(dense_to_ragged(*how))
    return Chain(
        dataset, lambda: [[v["x"].tolist() for v in b] for b in batches(chain.run(), *how)]
    )


ENDS: dict[str, Callable[[Chain, Any], Chain]] = {
    "none": lambda chain, how: chain,
    "batch": of_pairs,
    "padded_batch": padded,
    "ragged": ragged,
}
SOURCES = st.tuples(st.integers(0, 16), st.sampled_from(["slices", "generator", "unknown"]))
CHAINS = st.lists(
    st.sampled_from(sorted(STEPS)).flatmap(lambda name: st.tuples(st.just(name), STEPS[name][0])),
    max_size=4,
)
LAST = st.tuples(st.sampled_from(sorted(ENDS)), st.tuples(st.integers(1, 5), st.booleans()))


def made(source: tuple[int, str], steps: list[tuple[str, Any]], last: tuple[str, Any]) -> Chain:
    chain = elements_of(*source)
    for name, how in steps:
        chain = STEPS[name][1](chain, how)
    return ENDS[last[0]](chain, last[1])


def text(value: Any) -> str:
    """What two equal elements have in common; NaN is like NaN."""
    if isinstance(value, dict):
        return str({key: text(value[key]) for key in sorted(value)})
    if isinstance(value, tuple):
        return str([text(item) for item in value])
    if hasattr(value, "to_list"):
        value = value.to_list()
    return str(value if isinstance(value, list) else np.asarray(value).tolist())


def rest(session: tf.Session, following: Any, most: int = 10**6) -> list[str]:
    found: list[str] = []
    try:
        while len(found) < most:
            found.append(text(session.run(following)))
    except tf.errors.OutOfRangeError:
        pass
    return found


def threads() -> set[threading.Thread]:
    names = ("headrace-prefetch", "headrace-map")
    return {t for t in threading.enumerate() if t.name.startswith(names)}


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(SOURCES, CHAINS, LAST)
def test_any_chain_equals_plain_python_and_leaves_no_thread(source, steps, last):
    with tf.Graph().as_default():
        before = threads()
        chain = made(source, steps, last)
        iterator = tf.data.make_initializable_iterator(chain.dataset)
        following = iterator.get_next()
        expected = [text(v) for v in chain.run()]
        with tf.Session() as session:
            session.run(iterator.initializer)
            assert rest(session, following) == expected
            assert threads() <= before  # the end is the end of all threads


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(SOURCES, CHAINS, LAST, st.integers(0, 20), st.integers(0, 3))
def test_a_chain_saved_at_any_point_goes_on_with_the_same_elements(
    source, steps, last, taken, elsewhere
):
    with tf.Graph().as_default():
        before = threads()
        chain = made(source, steps, last)
        iterator = tf.data.make_initializable_iterator(chain.dataset)
        following = iterator.get_next()
        state = tf.raw_ops.IteratorState(iterator._iterator_resource)
        given_state = tf.placeholder(tf.string, [])
        restore = tf.raw_ops.RestoreIteratorState(iterator._iterator_resource, given_state)
        expected = [text(v) for v in chain.run()]
        with tf.Session() as session:
            session.run(iterator.initializer)
            assert rest(session, following, taken) == expected[:taken]
            saved = session.run(state)
            assert rest(session, following, elsewhere) == expected[taken:][:elsewhere]
        assert threads() <= before  # a session that ends in the middle, too
        with tf.Session() as session:
            session.run(iterator.initializer)
            rest(session, following, elsewhere)
            session.run(restore, {given_state: saved})
            assert rest(session, following) == expected[taken:]
        assert threads() <= before


#: Of every run of the tests: one chain with each step, saved in the middle.
EXAMPLES = {
    "shuffle": (5, 3, True),
    "repeat": 2,
    "interleave": (2, 3, 1, 2),
    "zip": 7,
    "concatenate": 3,
    "window": (3, 2, 1, False),
    "group_by_window": (2, 3),
    "take": 6,
    "skip": 2,
    "prefetch": 2,
    "filter": 2,
    "parallel map": 2,
}


@pytest.mark.parametrize("name", sorted(STEPS))
def test_each_step_behind_a_shuffle(name):
    ends = sorted(ENDS)
    last = ends[sorted(STEPS).index(name) % len(ends)]
    steps = [("shuffle", (4, 9, False)), (name, EXAMPLES[name])]
    check = test_a_chain_saved_at_any_point_goes_on_with_the_same_elements.hypothesis.inner_test
    check((9, "slices"), steps, (last, (2, False)), 3, 1)
