"""Random kernels: TensorFlow's numbers, the two forms against each other, and statistics."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from headrace.ops.core import parallel
from headrace.ops.random import box_muller, fixed, philox, truncated
from headrace.ops.random.fixed import (
    full_int_jax,
    full_int_np,
    normal_jax,
    normal_np,
    uniform_int_jax,
    uniform_int_np,
    uniform_jax,
    uniform_np,
)
from headrace.ops.random.host import (
    gamma_np,
    multinomial_jax,
    multinomial_np,
    parameterized_truncated_normal_np,
    poisson_np,
    shuffle_permutation_np,
)
from headrace.ops.random.philox import (
    Blocks,
    advance,
    block_at_jax,
    blocks_np,
    blocks_of_multinomial,
    blocks_of_shuffle,
    blocks_of_truncated,
    blocks_per_output,
    initial_state,
    stateless_state,
    stateless_state_jax,
    stream_np,
)
from headrace.ops.random.truncated import truncated_normal_jax, truncated_normal_np

Array = np.ndarray[Any, Any]

GOLDEN = np.load(Path(__file__).parents[2] / "golden" / "philox.npz")
FLOATS = {
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
}
PAIRS = [
    (uniform_np, uniform_jax),
    (normal_np, normal_jax),
    (truncated_normal_np, truncated_normal_jax),
]
ALPHA = np.array([0.3, 1.0, 2.5, 30.0])
RATE = np.array([0.5, 4.0, 12.0, 100.0])
LOGITS = np.array(
    [[0.0, 0.6931472, 1.0986123, 1.3862944], [1.3862944, 1.0986123, 0.6931472, 0.0],
     [-0.6931472, 0.0, -np.inf, 0.0]], np.float32
)  # fmt: skip
STATELESS_SEED = [-4, 2**40 + 9]


def ulps(actual: Array, expected: Array) -> Array:
    """Distance in units in the last place, for numbers of one sign."""
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    bits = np.dtype(f"i{actual.itemsize}")
    return np.abs(actual.view(bits).astype(np.int64) - expected.view(bits).astype(np.int64))


def seeded(run: int, blocks: int) -> Array:
    """The state of execution `run` of an op that reserves so much, with the golden file's seeds."""
    return advance(initial_state(7, 11), run * blocks)


# State ------------------------------------------------------------------------------------------


def test_blocks_of_the_published_known_answers() -> None:
    ones = 0xFFFFFFFF
    zeros = np.zeros(6, np.uint32)
    full = np.full(6, ones, np.uint32)
    pi = np.array(
        [0xA4093822, 0x299F31D0, 0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], np.uint32
    )
    first = np.zeros(1, np.uint64)
    expected = {
        "zeros": (zeros, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        "ones": (full, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        "pi": (pi, [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]),
    }
    for name, (state, words) in expected.items():
        assert blocks_np(state, first)[0].tolist() == words, name
        traced = jax.jit(block_at_jax)(jnp.asarray(state), jnp.zeros(1, jnp.uint32))
        assert [int(word[0]) for word in traced] == words, name


def test_initial_state_holds_both_seeds_and_wraps_negative_ones() -> None:
    assert initial_state(5 + (6 << 32), -1).tolist() == [5, 6, 0, 0, 0xFFFFFFFF, 0xFFFFFFFF]


def test_zero_seeds_mean_fresh_entropy() -> None:
    assert initial_state(0, 0).tolist() != initial_state(0, 0).tolist()


def test_advance_carries_through_the_counter_and_wraps() -> None:
    ones = 0xFFFFFFFF
    state = np.array([1, 2, ones, ones, 5, 0], np.uint32)
    assert advance(state, 1).tolist() == [1, 2, 0, 0, 6, 0]
    assert advance(np.array([1, 2, *[ones] * 4], np.uint32), 3).tolist() == [1, 2, 2, 0, 0, 0]


@pytest.mark.parametrize("low", [[0, 0], [0xFFFFFFFE, 0], [0xFFFFFFFE, 0xFFFFFFFF]])
def test_both_forms_carry_as_advance_does(low: list[int]) -> None:
    state = np.array([1, 2, *low, 0xFFFFFFFF, 3], np.uint32)
    expected = np.concatenate([stream_np(advance(state, k), 4) for k in range(6)])
    np.testing.assert_array_equal(stream_np(state, 24), expected)
    traced = jax.jit(block_at_jax)(jnp.asarray(state), jnp.arange(6, dtype=jnp.uint32))
    np.testing.assert_array_equal(np.stack(traced, -1).reshape(-1), expected)


def test_offsets_beyond_32_bits_agree_with_advance() -> None:
    state = np.array([1, 2, 0xFFFFFFF0, 0xFFFFFFF0, 9, 3], np.uint32)
    offset = (0x20 << 32) + 0x30
    traced = jax.jit(block_at_jax)(jnp.asarray(state), jnp.full(1, 0x30, jnp.uint32), 0x20)
    assert [int(word[0]) for word in traced] == stream_np(advance(state, offset), 4).tolist()
    assert (
        blocks_np(state, np.array([offset], np.uint64))[0].tolist()
        == stream_np(advance(state, offset), 4).tolist()
    )


def test_blocks_that_ops_reserve() -> None:
    assert blocks_per_output(10) == 2560
    assert [blocks_of_shuffle(n) for n in (0, 1, 2, 5, 6)] == [0, 0, 1, 1, 2]
    assert blocks_of_multinomial(3, 21) == 3 * 24 * 2 * 256
    assert blocks_of_multinomial(0, 0) == 0
    assert blocks_of_truncated(210, None) == 3 * 2 * 1000 * 103 // 4
    assert blocks_of_truncated(210, 3) == 3 * 2000 * 73 // 4


# Pieces and threads -----------------------------------------------------------------------------


@pytest.mark.parametrize("draw", [uniform_np, normal_np, truncated_normal_np])
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_numbers_do_not_depend_on_pieces_and_threads(
    draw: Callable[..., Array], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = initial_state(3, 7)
    whole = draw(state, (4003,), FLOATS[name])
    for module in (philox, fixed, truncated):
        monkeypatch.setattr(module, "PIECE", 64)
    for cores in (1, 3):
        monkeypatch.setattr(parallel, "available_cores", lambda cores=cores: cores)
        np.testing.assert_array_equal(draw(state, (4003,), FLOATS[name]), whole)


def test_many_pieces_run_in_threads_and_raise_what_one_raises(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parallel, "available_cores", lambda: 2)
    both = threading.Barrier(2)

    def meet(begin: int, end: int) -> None:
        if begin < 2:
            both.wait(30)  # a single thread would wait

    parallel.in_pieces(8, 1, lambda size: meet)

    def refuse(begin: int, end: int) -> None:
        if begin == 5:
            raise ValueError(f"piece {begin}")

    with pytest.raises(ValueError, match="piece 5"):
        parallel.in_pieces(8, 1, lambda size: refuse)


def test_a_thread_makes_its_memory_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fresh memory for each piece costs more than the arithmetic."""
    monkeypatch.setattr(parallel, "available_cores", lambda: 3)
    made, seen = [], []

    def worker(size: int) -> Callable[[int, int], None]:
        made.append(size)
        return lambda begin, end: seen.append((begin, end))

    parallel.in_pieces(95, 10, worker)
    assert 1 <= len(made) <= 3
    assert set(made) == {10}
    assert sorted(seen) == [(begin, min(begin + 10, 95)) for begin in range(0, 95, 10)]


@pytest.mark.parametrize("start", [0, 2**32 - 3, 2**64 - 3, 2**96 - 1, 2**128 - 4])
def test_blocks_across_the_words_of_the_counter(start: int) -> None:
    state = advance(initial_state(3, 0), start)
    offsets = np.array([5, 0, 2**32 - 1, 2**32, 3, 2**64 - 1], np.uint64)
    blocks = Blocks(8)
    for some in (offsets, offsets[:2], offsets[:0]):
        words = np.empty((len(some), 4), np.uint32)
        blocks.draw(state, some)
        blocks.copy_to(words)
        for row, offset in zip(words, some.tolist(), strict=True):
            traced = block_at_jax(advance(state, offset), np.zeros(1, np.uint32))
            assert row.tolist() == [int(word[0]) for word in traced]


@pytest.mark.slow
def test_sines_of_all_angles_are_the_librarys() -> None:
    words = np.arange(1 << 23, dtype=np.uint64)
    angles = (words * (2 * np.pi * 2.0**-23)).astype(np.float32)
    wide = angles.astype(np.float64)
    sine, cosine = box_muller.sine_and_cosine(wide.copy(), np.empty((5, *wide.shape)))
    np.testing.assert_array_equal(sine.astype(np.float32), np.sin(wide).astype(np.float32))
    np.testing.assert_array_equal(cosine.astype(np.float32), np.cos(wide).astype(np.float32))


# TensorFlow's numbers ---------------------------------------------------------------------------


@pytest.mark.parametrize("run", [0, 1])
@pytest.mark.parametrize("name", FLOATS)
def test_uniform_is_tensorflows(name: str, run: int) -> None:
    actual = uniform_np(seeded(run, blocks_per_output(13)), (13,), FLOATS[name])
    expected = GOLDEN[f"uniform_{name}/{run}"].view(FLOATS[name])
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("run", [0, 1])
@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize(
    ("case", "count", "kernel"),
    [
        ("normal", 101, normal_np),
        ("truncated", 301, truncated_normal_np),
    ],
)
def test_normal_is_tensorflows(
    case: str, count: int, kernel: Callable[..., Array], name: str, run: int
) -> None:
    actual = kernel(seeded(run, blocks_per_output(count)), (count,), FLOATS[name])
    distance = ulps(actual, GOLDEN[f"{case}_{name}/{run}"].view(FLOATS[name]))
    assert distance.max() <= 3
    assert (distance == 0).mean() > 0.9


def test_uniform_with_wide_and_negative_seeds_is_tensorflows() -> None:
    state = initial_state(-3, 2**40 + 5)
    for run in (0, 1):
        actual = uniform_np(state, (3, 5), np.float32)
        np.testing.assert_array_equal(actual, GOLDEN[f"uniform_wide_seeds/{run}"])
        state = advance(state, blocks_per_output(15))


@pytest.mark.parametrize("run", [0, 1])
@pytest.mark.parametrize(
    ("case", "low", "high"),
    [
        ("int32", -5, 12),
        ("int64", -5, 12),
        ("int32_whole", -(2**31), 2**31 - 1),
        ("int64_whole", -(2**63), 2**63 - 1),
    ],
)
def test_integers_are_tensorflows(case: str, low: int, high: int, run: int) -> None:
    dtype = np.dtype(case.removesuffix("_whole"))
    state = seeded(run, blocks_per_output(13))
    actual = uniform_int_np(state, (13,), low, high, dtype)
    expected = GOLDEN[f"uniform_{case}/{run}"]
    np.testing.assert_array_equal(actual, expected)
    assert actual.dtype == expected.dtype
    with jax.enable_x64(True):
        bounds = [np.asarray(bound, dtype) for bound in (low, high)]
        traced = jax.jit(uniform_int_jax, static_argnums=(1, 4))(state, (13,), *bounds, dtype)
        np.testing.assert_array_equal(traced, expected)


@pytest.mark.parametrize("run", [0, 1])
def test_shuffle_is_tensorflows(run: int) -> None:
    order = shuffle_permutation_np(seeded(run, blocks_of_shuffle(101)), 101)
    np.testing.assert_array_equal(order, GOLDEN[f"shuffle/{run}"])
    order = shuffle_permutation_np(seeded(run, blocks_of_shuffle(11)), 11)
    rows = np.arange(22).reshape(11, 2)
    np.testing.assert_array_equal(rows[order], GOLDEN[f"shuffle_rows/{run}"])


@pytest.mark.parametrize("run", [0, 1])
def test_multinomial_is_tensorflows(run: int) -> None:
    state = seeded(run, blocks_of_multinomial(3, 21))
    expected = GOLDEN[f"multinomial/{run}"]
    np.testing.assert_array_equal(multinomial_np(state, LOGITS, 21, np.int64), expected)
    with jax.enable_x64(True):
        traced = jax.jit(multinomial_jax, static_argnums=(2, 3))(state, LOGITS, 21, "int64")
        np.testing.assert_array_equal(traced, expected)


@pytest.mark.parametrize("run", [0, 1])
@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_gamma_is_tensorflows(name: str, run: int) -> None:
    actual = gamma_np(seeded(run, blocks_per_output(100)), (25,), ALPHA.astype(name))
    assert ulps(actual, GOLDEN[f"gamma_{name}/{run}"]).max() <= (4 if name == "float64" else 1)


@pytest.mark.parametrize("run", [0, 1])
@pytest.mark.parametrize("name", ["float32", "int64"])
def test_poisson_is_tensorflows(name: str, run: int) -> None:
    state = seeded(run, blocks_per_output(100))
    rate = RATE.astype(np.float32) if name == "float32" else RATE
    actual = poisson_np(state, (25,), rate, name)
    expected = GOLDEN[f"poisson_{name}/{run}"]
    np.testing.assert_array_equal(actual, expected)
    assert actual.dtype == expected.dtype


@pytest.mark.parametrize("run", [0, 1])
@pytest.mark.parametrize(
    ("case", "low", "high"), [("normal", -1.5, 3.0), ("uniform", -0.5, 0.7), ("tail", 2.0, 9.0)]
)
def test_bounded_normal_is_tensorflows(case: str, low: float, high: float, run: int) -> None:
    state = seeded(run, blocks_of_truncated(210, None))
    actual = parameterized_truncated_normal_np(state, (3, 70), [0], [1], low, high, np.float32)
    np.testing.assert_allclose(actual, GOLDEN[f"bounded_{case}/{run}"], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("run", [0, 1])
def test_bounded_normal_by_rows_is_tensorflows(run: int) -> None:
    state = seeded(run, blocks_of_truncated(120, 3))
    parameters = ([0, 1, 2], [1, 2, 3], [-1, -2, 1.9], [9, 1.1, 2])
    actual = parameterized_truncated_normal_np(state, (3, 40), *parameters, np.float32)
    np.testing.assert_allclose(actual, GOLDEN[f"bounded_rows/{run}"], rtol=1e-6, atol=1e-7)


def test_stateless_is_tensorflows() -> None:
    state = stateless_state(STATELESS_SEED)
    exact = {
        "uniform": uniform_np(state, (13,), np.float32),
        "uniform_int32_seed": uniform_np(stateless_state([-4, 9]), (13,), np.float32),
        "int": uniform_int_np(state, (13,), -5, 12, np.int32),
        "full_uint64": full_int_np(state, (13,), np.uint64),
    }
    for case, actual in exact.items():
        np.testing.assert_array_equal(actual, GOLDEN[f"stateless_{case}/0"], err_msg=case)
    close = {
        "normal": normal_np(state, (13,), np.float32),
        "truncated": truncated_normal_np(state, (13,), np.float32),
    }
    for case, actual in close.items():
        assert ulps(actual, GOLDEN[f"stateless_{case}/0"]).max() <= 3, case


# The two forms ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize(("host", "traced"), PAIRS)
def test_numpy_and_jax_give_the_same_numbers(
    host: Callable[..., Array], traced: Callable[..., jax.Array], name: str
) -> None:
    state = initial_state(99, 3)
    with jax.enable_x64(True):
        actual = np.asarray(jax.jit(traced, static_argnums=(1, 2))(state, (33, 7), FLOATS[name]))
    distance = ulps(actual, host(state, (33, 7), FLOATS[name]))
    exact = name != "float64" or host is uniform_np
    assert distance.max() <= (0 if exact else 4)


@pytest.mark.parametrize(("host", "traced"), PAIRS)
def test_jax_without_64_bit_types(
    host: Callable[..., Array], traced: Callable[..., jax.Array]
) -> None:
    state = initial_state(99, 3)
    with jax.enable_x64(False):
        actual = jax.jit(traced, static_argnums=(1, 2))(state, (33, 7), "f4")
        with pytest.raises(RuntimeError, match=r"float64 random numbers .* need 64-bit types"):
            uniform_jax(jnp.asarray(state), (2,), np.float64)
    np.testing.assert_allclose(actual, host(state, (33, 7), np.float32), rtol=0, atol=5e-6)


def test_one_program_serves_every_step() -> None:
    draw = jax.jit(lambda state: uniform_jax(state, (5,), np.float32))
    state = initial_state(1, 2)
    for _ in range(3):
        np.testing.assert_array_equal(draw(state), uniform_np(state, (5,), np.float32))
        state = advance(state, blocks_per_output(5))
    assert draw._cache_size() == 1


@pytest.mark.parametrize("seed", [[-4, 9], [2**31 - 1, -(2**31)]])
def test_stateless_seeds_traced(seed: list[int]) -> None:
    expected = stateless_state(seed)
    narrow = jax.jit(stateless_state_jax)(jnp.array(seed, jnp.int32))
    np.testing.assert_array_equal(narrow, expected)
    with jax.enable_x64(True):
        wide = jax.jit(stateless_state_jax)(jnp.array(STATELESS_SEED, jnp.int64))
        np.testing.assert_array_equal(wide, stateless_state(STATELESS_SEED))


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64])
def test_whole_range_integers(dtype: type[np.integer[Any]]) -> None:
    state = initial_state(5, 6)
    with jax.enable_x64(True):
        traced = jax.jit(full_int_jax, static_argnums=(1, 2))(state, (3, 3), dtype)
    actual = full_int_np(state, (3, 3), dtype)
    np.testing.assert_array_equal(traced, actual)
    assert traced.dtype == actual.dtype == dtype


# Edges and statistics ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (2, 3, 5)])
def test_shapes(shape: tuple[int, ...], dtype: type[np.floating[Any]]) -> None:
    state = initial_state(1, 2)
    for host, traced in PAIRS:
        assert host(state, shape, dtype).shape == shape
        with jax.enable_x64(True):
            result = jax.eval_shape(lambda s, f=traced: f(s, shape, dtype), state)
        assert result.shape == shape
        assert result.dtype == dtype


def test_nothing_to_draw_in_a_program() -> None:
    for _, traced in PAIRS:
        assert jax.jit(traced, static_argnums=(1, 2))(initial_state(1, 2), (0, 3), "f4").size == 0


def test_a_longer_draw_starts_with_the_shorter_one() -> None:
    state = initial_state(1, 2)
    for host, _ in PAIRS:
        long = host(state, (70_001,), np.float32)  # beyond every internal chunk
        np.testing.assert_array_equal(host(state, (37,), np.float32), long[:37])


def test_errors() -> None:
    state = initial_state(1, 2)
    with pytest.raises(TypeError, match="random numbers have a floating dtype here, got int32"):
        normal_np(state, (2,), np.int32)
    with pytest.raises(TypeError, match="uniform integers are int32 or int64, got int16"):
        uniform_int_np(state, (2,), 0, 1, np.int16)
    with pytest.raises(ValueError, match="Need minval < maxval, got 3 >= 3"):
        uniform_int_np(state, (2,), 3, 3, np.int32)
    with pytest.raises(ValueError, match="need stddev > 0 and minval < maxval"):
        parameterized_truncated_normal_np(state, (2,), 0, 1, 2, 1, np.float32)
    with pytest.raises(MemoryError, match="at most"):
        jax.eval_shape(lambda s: uniform_jax(s, (2**32,), np.float32), jnp.asarray(state))


def test_poisson_of_an_invalid_rate_is_nan() -> None:
    rate = np.array([-1.0, np.inf, np.nan, 0.0], np.float32)
    actual = poisson_np(initial_state(1, 2), (2,), rate, np.float32)
    np.testing.assert_array_equal(actual, [[np.nan, np.nan, np.nan, 0.0]] * 2)


@pytest.mark.parametrize(
    ("draw", "mean", "variance"),
    [
        (lambda s: uniform_np(s, (50_000,), np.float32), 0.5, 1 / 12),
        (lambda s: normal_np(s, (50_000,), np.float64), 0.0, 1.0),
        (lambda s: truncated_normal_np(s, (50_000,), np.float32), 0.0, 0.7737413),
        (lambda s: gamma_np(s, (50_000,), np.array(0.5, np.float32)), 0.5, 0.5),
        (lambda s: poisson_np(s, (50_000,), np.array(25.0), np.int32), 25.0, 25.0),
        (lambda s: uniform_int_np(s, (50_000,), 0, 10, np.int64), 4.5, 8.25),
    ],
    ids=["uniform", "normal", "truncated", "gamma", "poisson", "integers"],
)
def test_moments(draw: Callable[[Array], Array], mean: float, variance: float) -> None:
    numbers = draw(initial_state(2024, 17)).astype(np.float64)
    error = (variance / numbers.size) ** 0.5
    assert abs(numbers.mean() - mean) < 4 * error
    assert abs(numbers.var() / variance - 1) < 0.05
    # Neighbours are independent: the first autocorrelation is within 4 standard errors of zero.
    centred = numbers - numbers.mean()
    correlation = (centred[1:] * centred[:-1]).mean() / numbers.var()
    assert abs(correlation) < 4 / numbers.size**0.5


def test_shuffle_is_fair() -> None:
    states = (initial_state(seed, 1) for seed in range(1, 2401))
    counts = np.zeros((4, 4), int)
    for state in states:
        counts[np.arange(4), shuffle_permutation_np(state, 4)] += 1
    assert abs(counts - 600).max() < 4 * (2400 * 0.25 * 0.75) ** 0.5
