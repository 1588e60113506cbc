"""Random schedules of everything that a table does, against dictionaries."""

import itertools

import numpy as np
import pytest

from headrace.errors import (
    DataLossError,
    FailedPreconditionError,
    NotFoundError,
    UnknownError,
)
from headrace.files.progress import progress
from headrace.graph import dtypes
from headrace.ops.embeddings import table_files
from headrace.ops.embeddings.first_rows import RowStart
from headrace.ops.embeddings.rules import on_rows
from headrace.ops.embeddings.store import EmbeddingSpec, EmbeddingStore, Eviction, SlotSpec

LIMITS = np.iinfo(np.int64)
ACCUMULATOR = SlotSpec("Adagrad/accumulator", 0.5)
WIDTH = 2


def new_store(admit_after=1, memory_limit=0, name="t"):
    start = RowStart("uniform", (-1.0, 1.0), 3)
    spec = EmbeddingSpec(WIDTH, dtypes.float64, start, admit_after, 0, memory_limit)
    return EmbeddingStore(spec, name)


class Model:
    """A table as dictionaries of key to [row, accumulator, lookups, clock of the last]."""

    def __init__(self, admit_after=1):
        self.admit_after = admit_after
        self.rows, self.waiting, self.clock = {}, {}, 0
        self.first = new_store().first

    def start(self, key):
        return self.first.of(np.array([key], np.int64))[0]

    def find(self, keys, grows):
        if grows:
            for key in set(keys):
                if key not in self.rows:
                    self.waiting[key] = self.waiting.get(key, 0) + 1
                    if self.waiting[key] < self.admit_after:
                        continue
                    count = self.waiting.pop(key) - 1
                    self.rows[key] = [self.start(key), np.full(WIDTH, 0.5), count, self.clock]
                self.rows[key][2] += 1
                self.rows[key][3] = self.clock
        return [self.rows[k][0] if k in self.rows else self.start(k) for k in keys]

    def apply(self, keys, grads):
        sums = {}
        for key, grad in zip(keys, grads, strict=True):
            sums[key] = sums.get(key, 0) + grad
        for key, grad in sums.items():
            if key in self.rows:
                row = self.rows[key]
                row[1] = row[1] + grad * grad
                row[0] = row[0] - grad * 0.25 / np.sqrt(row[1])
        self.clock += 1

    def assign(self, keys, values):
        for key, value in zip(keys, values, strict=True):
            if key not in self.rows:
                self.rows[key] = [None, np.full(WIDTH, 0.5), 0, self.clock]
            self.rows[key][0] = value

    def evict(self, which):
        tests = []
        if which.unseen_for >= 0:
            tests.append(lambda r: self.clock - r[3] >= which.unseen_for)
        if which.fewer_than >= 0:
            tests.append(lambda r: r[2] < which.fewer_than)
        if which.norm_below >= 0:
            tests.append(lambda r: np.linalg.norm(r[0]) < which.norm_below)
        gone = [k for k, r in self.rows.items() if tests and all(t(r) for t in tests)]
        for key in gone:
            del self.rows[key]
        if which.keep >= 0:
            order = sorted(self.rows, key=lambda k: (self.rows[k][3], k))
            for key in order[: max(0, len(order) - which.keep)]:
                gone.append(key)
                del self.rows[key]
        return len(gone)


def check_same(store, model):
    keys, rows = store.items()
    assert keys.tolist() == sorted(model.rows)
    np.testing.assert_allclose(rows, [model.rows[k][0] for k in keys.tolist()] or rows)
    if ACCUMULATOR in store.slots:
        wanted = [model.rows[k][1] for k in keys.tolist()]
        sums = store.items(ACCUMULATOR)[1]
        np.testing.assert_allclose(sums, wanted or sums)


def check_same_times(store, model):
    keys = np.array(sorted(model.rows), np.int64)
    rows = store.index.find(keys)
    wanted = [[model.rows[k][i] for k in keys.tolist()] for i in (2, 3)]
    assert [store.sightings.array[rows].tolist(), store.seen.array[rows].tolist()] == wanted


def random_keys(rng):
    count = int(rng.integers(0, 12))
    small = rng.integers(-8, 8, count)
    wide = rng.choice([LIMITS.min, LIMITS.max, 1 << 40, -(1 << 40)], count)
    return np.where(rng.random(count) < 0.8, small, wide)


ADAGRAD = on_rows("Adagrad", [np.float64(0.25)], {"update_slots": True})


def random_eviction(rng):
    fields = {
        "unseen_for": int(rng.integers(0, 6)),
        "fewer_than": int(rng.integers(0, 4)),
        "norm_below": float(rng.random()),
        "keep": int(rng.integers(0, 20)),
    }
    return Eviction(**{k: v for k, v in fields.items() if rng.random() < 0.5})


def act(rng, store, model):
    """One action on both."""
    action, keys = rng.integers(0, 8), random_keys(rng)
    values = rng.standard_normal((len(keys), WIDTH))
    if action < 3:
        grows = bool(rng.random() < 0.8)
        found = store.find(keys, grows)
        np.testing.assert_allclose(found, np.reshape(model.find(keys.tolist(), grows), found.shape))
    elif action < 6:
        store.apply(ADAGRAD, [ACCUMULATOR], keys, values)
        model.apply(keys.tolist(), values)
    elif action == 6:
        store.assign(keys, values)
        model.assign(keys.tolist(), values)
    else:
        which = random_eviction(rng)
        assert store.evict(which) == model.evict(which)


@pytest.mark.parametrize("seeds", [range(i, i + 5) for i in range(0, 200, 5)], ids=str)
def test_any_schedule_is_as_with_dictionaries(seeds):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        admit_after = int(rng.integers(1, 4))
        # A limit of a page or two: rows move to files in the middle.
        store = new_store(admit_after, memory_limit=int(rng.choice([0, 8192])))
        model = Model(admit_after)
        for _ in range(25):
            act(rng, store, model)
            check_same(store, model)
        check_same_times(store, model)


@pytest.mark.parametrize("seeds", [range(i, i + 2) for i in range(0, 120, 2)], ids=str)
def test_any_schedule_of_saves_restores_what_was_there(seeds, tmp_path):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        prefix, store, model = str(tmp_path / f"{seed}"), new_store(), Model()
        path = table_files.file_name(prefix, "t", 0, 1)
        for _ in range(4):
            for _ in range(int(rng.integers(0, 6))):
                act(rng, store, model)
            if store.base is None or rng.random() < 0.3:
                assert table_files.save(store, path) == len(model.rows)
            else:
                assert table_files.save_changes(store, path) <= len(model.rows)
            for again in (new_store(), store if rng.random() < 0.3 else new_store()):
                table_files.check(again, prefix, "t", None)
                assert table_files.load(again, prefix, "t", (0, 1), True) == len(model.rows)
                check_same(again, model)
                assert again.clock == model.clock
            if rng.random() < 0.5:
                store = again
            # When a key was seen is saved with its row: the model forgets what was not saved.
            for key, row in model.rows.items():
                at = again.index.find(np.array([key]))
                row[2], row[3] = int(again.sightings.array[at[0]]), int(again.seen.array[at[0]])
            if store is not again:
                store.adopt(again)


def parts(count):
    return [new_store(name=f"t/part_{i}") for i in range(count)]


@pytest.mark.parametrize(("before", "after"), list(itertools.product([1, 2, 3], [1, 2, 5])))
def test_a_save_is_restored_into_another_number_of_parts(before, after, tmp_path):
    rng = np.random.default_rng(before * 10 + after)
    keys = rng.integers(LIMITS.min, LIMITS.max, 500)
    values = rng.standard_normal((500, WIDTH))
    prefix = str(tmp_path / "model")
    for i, store in enumerate(parts(before)):
        mine = table_files.part_of(keys, before) == i
        path = table_files.file_name(prefix, "t", i, before)
        store.assign(keys[mine], values[mine])
        begun = progress()
        table_files.save(store, path)
        assert progress() >= begun + values[mine].nbytes // 2  # as float32
        store.evict(Eviction(norm_below=0.5))
        table_files.save_changes(store, path)
    wanted = {
        k: v for k, v in zip(keys.tolist(), values.tolist(), strict=True) if np.hypot(*v) >= 0.5
    }
    found = {}
    for i, store in enumerate(parts(after)):
        table_files.load(store, prefix, "t", (i, after), True)
        own, rows = store.items()
        assert (table_files.part_of(own, after) == i).all()
        found.update(zip(own.tolist(), rows.tolist(), strict=True))
    assert found == wanted


@pytest.fixture
def saved(tmp_path):
    """A store with rows, the prefix, and the files of a save with changes."""
    store, prefix = new_store(), str(tmp_path / "model")
    store.assign(np.arange(50), np.ones((50, WIDTH)))
    path = table_files.file_name(prefix, "t", 0, 1)
    table_files.save(store, path)
    for value in (2.0, 3.0):
        store.assign(np.arange(int(value)), np.full((int(value), WIDTH), value))
        table_files.save_changes(store, path)
    return store, prefix, tmp_path


def restore(store, prefix):
    return table_files.load(store, prefix, "t", (0, 1), True)


def test_changes_hold_only_what_changed(saved):
    _, prefix, directory = saved
    sizes = sorted((p.name, p.stat().st_size) for p in directory.iterdir())
    whole, first, second = (size for _, size in sizes)
    assert first < second < first + 100 < whole / 4
    again = new_store()
    assert restore(again, prefix) == 50
    assert again.items()[1][:, 0].tolist() == [3.0] * 3 + [1.0] * 47


def test_a_flipped_bit_anywhere_is_told_and_nothing_changes(saved):
    _, prefix, directory = saved
    rng = np.random.default_rng(0)
    target = new_store()
    target.assign(np.array([77]), np.array([[7.0, 7.0]]))
    for path in directory.iterdir():
        good = path.read_bytes()
        for place in [0, 9, 20, *rng.integers(0, len(good), 25)]:
            bad = bytearray(good)
            bad[place] ^= 1 << int(rng.integers(0, 8))
            path.write_bytes(bad)
            with pytest.raises(DataLossError, match=r"is damaged|is no file of a table|is cut off"):
                restore(target, prefix)
        path.write_bytes(good[: int(rng.integers(0, len(good)))])
        with pytest.raises(DataLossError, match=r"is cut off"):
            restore(target, prefix)
        path.write_bytes(good)
    assert target.items()[0].tolist() == [77]


@pytest.mark.slow
def test_every_flipped_byte_and_every_cut_is_told(saved):
    """Of the save and of the changes after it; the table has what it had."""
    _, prefix, directory = saved
    target = new_store()
    target.assign(np.array([77]), np.array([[7.0, 7.0]]))
    for path in sorted(directory.iterdir()):
        good = path.read_bytes()
        for place in range(len(good)):
            for bad in (
                good[:place],
                good[:place] + bytes([good[place] ^ 0x5A]) + good[place + 1 :],
            ):
                path.write_bytes(bad)
                with pytest.raises(DataLossError):
                    restore(target, prefix)
        path.write_bytes(good)
    assert target.items()[0].tolist() == [77]
    restore(target, prefix)


def test_missing_files_are_told(saved):
    _, prefix, directory = saved
    with pytest.raises(NotFoundError, match=r"has no table other"):
        table_files.load(new_store(), prefix, "other", (0, 1), True)
    (directory / "model.table-t-00000-of-00001.changes-00001").unlink()
    with pytest.raises(DataLossError, match=r"changes-00001 is missing, which .*changes-00002"):
        restore(new_store(), prefix)
    two = new_store()
    table_files.save(two, table_files.file_name(prefix, "u", 1, 2))
    with pytest.raises(NotFoundError, match=r"Parts of table u are missing: .*u-00000-of-00002"):
        table_files.load(new_store(), prefix, "u", (0, 1), True)


def test_changes_of_an_older_save_do_not_count(saved):
    store, prefix, directory = saved
    old = {p: p.read_bytes() for p in directory.iterdir() if "changes" in p.name}
    table_files.save(store, table_files.file_name(prefix, "t", 0, 1))
    assert not [p for p in directory.iterdir() if "changes" in p.name]
    for path, content in old.items():  # as if the process had ended before it removed them
        path.write_bytes(content)
    again = new_store()
    restore(again, prefix)
    assert again.items()[1].tolist() == store.items()[1].tolist()


def test_changes_need_a_save_to_follow(tmp_path):
    store = new_store()
    path = str(tmp_path / "model")
    with pytest.raises(FailedPreconditionError, match=r"Save all of it first"):
        table_files.save_changes(store, path)
    table_files.save(store, path)
    table_files.save(store, str(tmp_path / "other"))
    with pytest.raises(FailedPreconditionError, match=r"has not been saved to .*model before"):
        table_files.save_changes(store, path)


def test_a_failed_save_loses_no_change(tmp_path, monkeypatch):
    store, path = new_store(), str(tmp_path / "m.table-t-00000-of-00001")
    store.assign(np.arange(5), np.ones((5, WIDTH)))
    table_files.save(store, path)
    store.assign(np.arange(2), np.zeros((2, WIDTH)))
    store.remove_rows(store.index.find(np.array([4])))
    with monkeypatch.context() as patch:
        patch.setattr(table_files.system, "rename", _fail)
        with pytest.raises(UnknownError, match="disk is full"):
            table_files.save_changes(store, path)
    assert [p.name for p in tmp_path.iterdir()] == ["m.table-t-00000-of-00001"]
    table_files.save_changes(store, path)
    again = new_store()
    table_files.load(again, str(tmp_path / "m"), "t", (0, 1), True)
    keys, rows = again.items()
    assert keys.tolist() == [0, 1, 2, 3]
    assert rows[:, 0].tolist() == [0.0, 0.0, 1.0, 1.0]


def _fail(*args, **kwargs):
    raise OSError("the disk is full")


def test_a_filter_lets_no_key_in_late():
    start = RowStart("constant", (0.0,), 0)
    store = EmbeddingStore(EmbeddingSpec(1, dtypes.float32, start, 3, 1 << 14), "t")
    keys = np.arange(1000)
    for _ in range(2):
        store.find(keys, True)
    assert len(store) < 20  # by chance, where all counters of a key are shared
    store.find(keys, True)
    assert len(store) == 1000


def test_rows_beyond_the_limit_are_in_files():
    store = new_store(memory_limit=1 << 16)
    keys = np.arange(20_000)
    store.find(keys, True)
    store.apply(ADAGRAD, [ACCUMULATOR], keys, np.ones((20_000, WIDTH)))
    assert store.values.in_file
    assert store.column(ACCUMULATOR).in_file
    assert sum(c.memory_bytes for c in store._large()) == 0
    wanted = store.first.of(keys) - 0.25 / np.sqrt(1.5)
    np.testing.assert_allclose(store.find(keys, False), wanted)
