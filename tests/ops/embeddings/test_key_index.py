"""The hash table against a dictionary."""

import numpy as np
import pytest

from headrace.ops.embeddings.key_index import KeyIndex, mixed

LIMITS = np.iinfo(np.int64)


class Numbers:
    """Hands out rows, and knows which key got which."""

    def __init__(self):
        self.rows = {}
        self.next = 0

    def __call__(self, keys):
        rows = np.arange(self.next, self.next + len(keys))
        assert not set(keys.tolist()) & set(self.rows)
        assert len(set(keys.tolist())) == len(keys)
        self.rows.update(zip(keys.tolist(), rows.tolist(), strict=True))
        self.next += len(keys)
        return rows


def keys_of(rng, count):
    """Keys that collide: small ones, extreme ones, and some that share their first place."""
    pools = [
        rng.integers(-20, 20, count),
        rng.integers(LIMITS.min, LIMITS.max, count, endpoint=True),
        rng.choice([0, -1, LIMITS.min, LIMITS.max, 1 << 32, -(1 << 32)], count),
    ]
    return np.array([pools[c][i] for i, c in enumerate(rng.integers(0, 3, count))], np.int64)


@pytest.mark.parametrize("seed", range(60))
def test_any_sequence_of_operations_is_as_with_a_dictionary(seed):
    rng = np.random.default_rng(seed)
    index, numbers = KeyIndex(), Numbers()
    for _ in range(12):
        keys = keys_of(rng, int(rng.integers(0, 80)))
        action = rng.integers(0, 4)
        rows = index.find_or_add(keys, numbers) if action < 2 else index.find(keys)
        assert rows.tolist() == [numbers.rows.get(k, -1) for k in keys.tolist()]
        there = np.array(sorted(numbers.rows), np.int64)
        if action == 3 and len(there):
            gone = rng.choice(there, int(rng.integers(0, len(there) + 1)), replace=False)
            index.remove(gone)
            for key in gone.tolist():
                del numbers.rows[key]
        assert len(index) == len(numbers.rows)
    found = index.items()
    assert dict(zip(*(a.tolist() for a in found), strict=True)) == numbers.rows


def test_keys_of_one_first_place_are_all_found():
    # Chains longer than a pass, across the end of the table.
    all_keys = np.arange(200_000)
    last = all_keys[(mixed(all_keys) >> np.uint64(64 - 7)) == 127][:30]
    index, numbers = KeyIndex(128), Numbers()
    index.find_or_add(last, numbers)
    assert index.find(last).tolist() == [numbers.rows[k] for k in last.tolist()]
    index.remove(last[:15])
    assert (index.find(last) >= 0).tolist() == [False] * 15 + [True] * 15


def test_a_failed_addition_leaves_the_index_as_it_was():
    index, numbers = KeyIndex(), Numbers()
    index.find_or_add(np.arange(10), numbers)

    def no_memory(keys):
        raise MemoryError

    with pytest.raises(MemoryError):
        index.find_or_add(np.arange(5, 30), no_memory)
    assert index.find(np.arange(30)).tolist() == [numbers.rows.get(k, -1) for k in range(30)]
    rows = index.find_or_add(np.arange(12), numbers)
    assert rows.tolist() == [numbers.rows[k] for k in range(12)]


def test_moved_keys_have_their_new_rows():
    index = KeyIndex()
    index.find_or_add(np.arange(5), lambda keys: keys.copy())
    index.move(np.array([1, 3]), np.array([30, 10]))
    assert index.find(np.arange(5)).tolist() == [0, 30, 2, 10, 4]


def test_removed_places_do_not_fill_the_table():
    index = KeyIndex()
    for begin in range(0, 20_000, 100):
        keys = np.arange(begin, begin + 100)
        index.find_or_add(keys, lambda k: k.copy())
        index.remove(keys)
    assert len(index) == 0
    assert index.nbytes < 1 << 14
