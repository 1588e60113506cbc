"""Tables at their limits: full disks, odd batches, many threads, first and later steps."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import headrace as tf
from headrace.executor import region
from headrace.ops.embeddings import row_memory
from headrace.ops.embeddings.first_rows import RowStart
from headrace.ops.embeddings.store import EmbeddingSpec, EmbeddingStore, Eviction, SlotSpec

WIDTH = 16


def store(**more):
    return EmbeddingStore(
        EmbeddingSpec(WIDTH, tf.float32, RowStart("normal", (0.0, 1.0)), **more), "t"
    )


def adagrad(values, sums, grads):
    sums = sums + grads * grads
    return values - grads / np.sqrt(sums), sums


SLOT = [SlotSpec("sum", 0.1)]


@pytest.fixture
def small_disk(monkeypatch):
    """A disk that has place for so many bytes in all."""
    left = [1 << 18]
    take = row_memory._take_place

    def limited(file, begin, end):
        if end - begin > left[0]:
            raise OSError(28, os.strerror(28))
        left[0] -= end - begin
        take(file, begin, end)

    monkeypatch.setattr(row_memory, "_take_place", limited)
    return left


def test_a_full_disk_is_told_and_the_table_has_what_it_had(small_disk, tmp_path):
    """Also of what was made before; and it goes on when there is place again."""
    table = store(memory_limit=1 << 14, directory=str(tmp_path))

    def grow():
        while True:
            keys = len(table) + np.arange(100)
            table.find(keys, True)
            table.apply(adagrad, SLOT, keys, np.ones((100, WIDTH), np.float32))

    with pytest.raises(tf.errors.ResourceExhaustedError) as error:
        grow()
    made = len(table)
    assert made > 100
    assert table.values.in_file
    assert f"cannot have {made + 100}" in str(error.value)
    assert f"{tmp_path} for their values" in str(error.value)
    before = table.find(np.arange(made), False)
    table.apply(adagrad, SLOT, np.arange(made), np.ones((made, WIDTH), np.float32))
    assert (table.find(np.arange(made), False) < before).all()
    assert len(table.items()[0]) == made
    small_disk[0] = 1 << 24
    table.find(np.arange(made, made + 100), True)
    assert len(table) == made + 100


def test_a_disk_without_place_for_what_was_in_memory(small_disk, tmp_path):
    small_disk[0] = 100
    table = store(memory_limit=1 << 14, directory=str(tmp_path))
    table.find(np.arange(100), True)
    with pytest.raises(
        tf.errors.ResourceExhaustedError, match=r"has 100 rows, and cannot have 500"
    ):
        table.find(np.arange(500), True)
    assert len(table) == 100
    assert not table.values.in_file
    table.find(np.arange(150), True)


def test_a_limit_of_file_sizes_is_told(tmp_path):
    """The system's own limit: the process gets an error, and no signal."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    table = store(memory_limit=1 << 12, directory=str(tmp_path))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))
    try:
        with pytest.raises(tf.errors.ResourceExhaustedError, match="cannot have 5000"):
            table.find(np.arange(5000), True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert len(table) == 0
    table.find(np.arange(5000), True)
    assert len(table) == 5000


@pytest.mark.parametrize("admit_after", [1, 2])
def test_no_keys_at_all(admit_after):
    table = store(admit_after=admit_after)
    none = np.zeros((0, 3), np.int64)
    assert table.find(none, True).shape == (0, 3, WIDTH)
    table.apply(adagrad, SLOT, none, np.zeros((0, WIDTH), np.float32))
    table.assign(none, np.zeros((0, 3, WIDTH), np.float32))
    assert table.evict(Eviction(unseen_for=0)) == 0
    assert len(table) == 0
    assert table.items()[1].shape == (0, WIDTH)


def test_rows_that_are_no_numbers_stay_when_short_ones_go():
    """A norm that is no number is not below anything."""
    table = store()
    rows = np.full((4, WIDTH), 0.01, np.float32)
    rows[1, 3], rows[2, 5] = np.nan, np.inf
    table.assign(np.array([-1, -2, 0, 2**62]), rows)
    assert table.evict(Eviction(norm_below=1.0)) == 2
    assert table.items()[0].tolist() == [-2, 0]


def test_batches_of_other_sizes_compile_nothing_again(monkeypatch):
    """Neither for their number of keys, nor for that of distinct ones."""
    compiled = []
    call = region.Program.call

    def counted(self, args, *token):
        if not self.proven:
            compiled.append(self.region.label)
        return call(self, args, *token)

    monkeypatch.setattr(region.Program, "call", counted)
    keys = tf.placeholder(tf.int64, [None])
    table = tf.PartitionedEmbeddingTable(WIDTH, 2)
    weights = tf.get_variable("w", [WIDTH, 4])
    # The batch is padded; the numbers of distinct keys and of those of each part change.
    rows = tf.nn.embedding_lookup(table, tf.reshape(keys, [64]))
    loss = tf.reduce_sum(tf.matmul(rows, weights) ** 2)
    train = tf.train.AdagradOptimizer(0.1).minimize(loss)
    rng = np.random.default_rng(0)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(12):
            value, _ = sess.run([loss, train], {keys: rng.integers(0, 5 + 9 * step, 64)})
            assert np.isfinite(value)
    assert len(compiled) == len(set(compiled))


def test_rows_are_evicted_while_others_look_up_and_update():
    """Who looks a key up has its row or a first one, never that of another key."""
    table = store()
    start = table.first.of(np.arange(400))
    stop, wrong = threading.Event(), []

    def evict():
        while not stop.is_set():
            table.evict(Eviction(keep=100))

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(150):
            keys = rng.integers(0, 400, 64)
            found = table.find(keys, True)
            # Gradients move a row by whole numbers, so what is left tells whose it is.
            moved = found - start[keys]
            if not np.allclose(moved, np.round(moved), atol=1e-3):
                wrong.append(keys)
            table.apply(lambda v, g: [v - g], [], keys, np.ones((64, WIDTH), np.float32))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    evicting = threading.Thread(target=evict)
    for one in (*threads, evicting):
        one.start()
    for one in threads:
        one.join()
    stop.set()
    evicting.join()
    assert not wrong
    keys, rows = table.items()
    assert len(keys) == len(table) == len(np.unique(keys))
    moved = rows - start[keys]
    np.testing.assert_allclose(moved, np.round(moved), atol=1e-3)


LARGE = """
import sys
import numpy as np
import headrace as tf

BATCH, WIDTH, KEYS = 50_000, 64, 2_000_000

def memory(kind):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(kind)) / 1024

fed = tf.placeholder(tf.int64, [BATCH])
table = tf.EmbeddingTable(
    WIDTH, tf.zeros_initializer(), memory_limit=64 << 20, directory=sys.argv[1]
)
rows = table.lookup(fed)
train = tf.train.AdagradOptimizer(1.0, 1e-10).minimize(-tf.reduce_sum(rows))
rng = np.random.default_rng(0)
counts = np.ones(KEYS)
with tf.Session() as sess:
    sess.run(train, {fed: np.arange(BATCH) - 10**9})
    before = memory("VmRSS")
    for begin in range(0, KEYS, BATCH):
        sess.run(train, {fed: np.arange(begin, begin + BATCH)})
    for _ in range(10):
        sess.run(train, {fed: rng.integers(0, KEYS, BATCH)})
    found = sess.run(rows, {fed: np.arange(0, KEYS, KEYS // BATCH)})
    assert found.min() > 0.99, found.min()
print(memory("VmHWM") - before)
"""


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for the memory of a process")
def test_a_table_much_larger_than_its_limit_trains(tmp_path):
    """1 GiB of rows and sums in 64 MiB, beside the index and what a step needs."""
    command = [sys.executable, "-c", LARGE, str(tmp_path)]
    done = subprocess.run(command, check=True, timeout=100, capture_output=True, text=True)
    assert float(done.stdout) < 700
