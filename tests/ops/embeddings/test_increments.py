"""Series of checkpoints that write of tables only what has changed."""

import os
from pathlib import Path

import numpy as np
import pytest

import headrace as tf
from headrace.graph import dtypes
from headrace.ops.embeddings import increments, table_files, unpublished
from headrace.ops.embeddings.first_rows import RowStart
from headrace.ops.embeddings.store import EmbeddingSpec, EmbeddingStore, Eviction

END = ".table-t-00000-of-00001"


class Training:
    """A table of 100 rows with a variable, trained by Adagrad, and a saver that keeps two."""

    def __init__(self, directory, parts=0, rows=100, name="model", **options):
        self.prefix = os.path.join(str(directory), name)
        self.graph = tf.Graph()
        with self.graph.as_default():
            make = tf.PartitionedEmbeddingTable if parts else tf.EmbeddingTable
            more = {"num_parts": parts} if parts else {}
            self.table = make(2, initializer=tf.ones_initializer(), name="t", **more)
            self.bias = tf.Variable(1.0, name="bias")
            self.keys = tf.placeholder(tf.int64, [None])
            loss = tf.reduce_sum(tf.nn.embedding_lookup(self.table, self.keys)) * self.bias
            self.step = tf.train.AdagradOptimizer(0.5).minimize(loss)
            self.contents = self.table.export()
            self.size = self.table.size()
            self.evicted = self.table.evict(norm_below=1e9, keep=0)
            options = {"max_to_keep": 2, "incremental_tables": True, **options}
            self.saver = tf.train.Saver(**options)
            self.session = tf.Session()
            self.session.run(tf.global_variables_initializer())
        if rows:
            self.train(np.arange(rows))

    def train(self, keys):
        self.session.run(self.step, {self.keys: np.asarray(keys, np.int64)})

    def save(self, step):
        return self.saver.save(self.session, self.prefix, global_step=step)

    def restore(self, path):
        self.saver.restore(self.session, path)

    def state(self):
        keys, rows = self.session.run(self.contents)
        order = np.argsort(keys)
        return keys[order].tolist(), rows[order].tolist()


def tables(directory):
    return sorted(p.name for p in directory.iterdir() if ".table-" in p.name)


def header(directory, step):
    return table_files.read_header(f"{directory}/model-{step}{END}")


@pytest.mark.parametrize(("before", "after"), [(0, 0), (2, 3), (3, 0)])
def test_an_increment_has_what_changed_and_is_restored_with_what_it_follows(
    before, after, tmp_path
):
    one = Training(tmp_path, before)
    one.save(1)
    one.train([3, 5, 200])
    one.save(2)
    with one.graph.as_default():
        one.session.run(one.table.evict(norm_below=0.1))
    one.train([7])
    path = one.save(3)
    wanted = one.state()
    one.train([3, 4])
    later = one.state()
    if not before:
        assert [header(tmp_path, n).rows for n in (1, 2, 3)] == [100, 3, 1]
        assert [link.file for link in header(tmp_path, 3).after] == [
            f"model-1{END}",
            f"model-2{END}",
        ]
    assert tf.train.load_variable(path, "t/rows") == len(wanted[0])
    two = Training(tmp_path, after, rows=0)
    two.restore(path)
    assert two.state() == wanted
    two.train([3, 4])  # the slots are there, too
    assert two.state() == later


def test_rows_that_go_and_come_back_are_right(tmp_path):
    one = Training(tmp_path)
    one.save(1)
    with one.graph.as_default():
        assign = one.table.assign([1, 2], [[9.0, 9.0], [0.01, 0.01]])
        evict = one.table.evict(norm_below=0.1)
    one.session.run(assign)
    assert one.session.run(evict) == 1  # key 2 is gone
    one.save(2)
    one.train([2])  # and comes back, in the place of another
    path = one.save(3)
    assert header(tmp_path, 2).removed == 1
    wanted = one.state()
    two = Training(tmp_path, rows=0)
    two.restore(path)
    assert two.state() == wanted


def test_what_an_increment_follows_outlives_its_checkpoint_and_goes_with_the_last_that_needs_it(
    tmp_path,
):
    one = Training(tmp_path, max_to_keep=2)
    for step in range(1, 6):
        one.save(step)
        one.train([step])
    assert tables(tmp_path) == [f"model-{n}{END}" for n in range(1, 6)]
    assert one.saver.last_checkpoints == [f"{tmp_path}/model-{n}" for n in (4, 5)]
    assert not (tmp_path / "model-3.index").exists()
    one.train(np.arange(60))  # more than half: all rows are written
    for step in (6, 7):
        one.save(step)
    assert not header(tmp_path, 6).after
    assert tables(tmp_path) == [f"model-{n}{END}" for n in (6, 7)]
    two = Training(tmp_path, rows=0)
    two.restore(f"{tmp_path}/model-7")
    assert two.state() == one.state()


def test_a_save_follows_none_that_did_not_become_a_checkpoint(tmp_path, monkeypatch):
    one = Training(tmp_path)
    one.save(1)
    one.train([1])
    with monkeypatch.context() as broken:
        broken.setattr("headrace.train.checkpoint.storage.move", failing("no space left"))
        with pytest.raises(tf.errors.ResourceExhaustedError):
            one.save(2)
    assert tables(tmp_path) == [f"model-1{END}"]
    one.train([2])
    path = one.save(3)
    assert header(tmp_path, 3).rows == 2
    wanted = one.state()
    one.restore(f"{tmp_path}/model-1")
    one.restore(path)
    assert one.state() == wanted


def failing(text):
    def fail(*args):
        raise tf.errors.ResourceExhaustedError(None, None, text)

    return fail


def test_a_table_file_that_fails_leaves_the_series_as_it_was(tmp_path, monkeypatch):
    """A full disk costs the save: the next one has what that would have had."""
    one = Training(tmp_path)
    one.save(1)
    one.train([1])
    with monkeypatch.context() as full:
        full.setattr(table_files, "_arrays", failing("no space left"))
        with pytest.raises(tf.errors.ResourceExhaustedError):
            one.save(2)
    one.train([2])
    one.save(3)
    assert [(h.rows, len(h.after)) for h in [header(tmp_path, 3)]] == [(2, 1)]
    assert tables(tmp_path) == [f"model-1{END}", f"model-3{END}"]


def test_training_goes_on_from_a_checkpoint_with_increments(tmp_path):
    one = Training(tmp_path)
    one.save(1)
    one.train([1])
    path = one.save(2)
    two = Training(tmp_path, rows=0)
    two.saver.recover_last_checkpoints([f"{tmp_path}/model-1", path])
    two.restore(path)
    two.train([2])
    two.save(3)
    assert [link.file[:7] for link in header(tmp_path, 3).after] == ["model-1", "model-2"]


def test_a_save_over_a_file_that_a_newer_checkpoint_needs_keeps_it(tmp_path):
    """Training went back to an older checkpoint, and comes to the same step again."""
    one = Training(tmp_path, max_to_keep=9)
    for step in (1, 2, 3):
        one.save(step)
        one.train([step])
    wanted = restored_state(tmp_path, 3)
    one.restore(f"{tmp_path}/model-1")
    one.train([50])
    one.save(2)
    assert restored_state(tmp_path, 3) == wanted
    assert restored_state(tmp_path, 2) == one.state()
    assert sum(".older-" in name for name in tables(tmp_path)) == 1
    tf.train.remove_checkpoint(f"{tmp_path}/model-3")
    assert tables(tmp_path) == [f"model-1{END}", f"model-2{END}"]
    assert restored_state(tmp_path, 2) == one.state()


def test_a_save_in_other_parts_keeps_what_a_newer_checkpoint_needs(tmp_path):
    """Training went back to an older checkpoint, with more servers, and comes to the same step."""
    one = Training(tmp_path, 2, max_to_keep=9)
    for step in (1, 2, 3):
        one.save(step)
        one.train([step, 60 + step])
    wanted = restored_state(tmp_path, 3, 2)
    two = Training(tmp_path, 3, rows=0, max_to_keep=9)
    two.restore(f"{tmp_path}/model-1")
    two.train([50, 51, 52])
    for _ in range(2):  # also where the files have their other names
        two.save(2)
        assert restored_state(tmp_path, 3, 2) == wanted
        assert restored_state(tmp_path, 2, 3) == two.state()
    assert sum(".older-" in name for name in tables(tmp_path)) == 2
    tf.train.remove_checkpoint(f"{tmp_path}/model-3")
    assert not any(".older-" in name for name in tables(tmp_path))
    two.restore(f"{tmp_path}/model-2")


def restored_state(directory, step, parts=0):
    other = Training(directory, parts, rows=0)
    other.restore(f"{directory}/model-{step}")
    return other.state()


def test_savers_without_increments_write_all_rows(tmp_path):
    one = Training(tmp_path, incremental_tables=False)
    for step in (1, 2):
        one.save(step)
    assert header(tmp_path, 2).rows == 100
    assert not header(tmp_path, 2).after
    two = Training(tmp_path, rows=0)
    two.restore(f"{tmp_path}/model-2")
    two.save(3)  # nothing keeps files of that saver
    assert not header(tmp_path, 3).after


# -- tables alone ---------------------------------------------------------------------------------


def new_store():
    start = RowStart("constant", (0.0,), 3)
    return EmbeddingStore(EmbeddingSpec(2, dtypes.float32, start), "t")


class Series:
    """Saves of a table, without the rest of their checkpoints but an empty index.

    Rows are those of a dictionary beside the table.
    """

    def __init__(self, directory):
        self.directory, self.store, self.model = directory, new_store(), {}

    def prefix(self, step):
        return f"{self.directory}/m-{step}"

    def path(self, step):
        return table_files.file_name(self.prefix(step), "t", 0, 1)

    def assign(self, keys, value):
        self.store.assign(np.asarray(keys), np.full((len(keys), 2), value))
        self.model.update(dict.fromkeys(keys, value))

    def evict(self, below):
        self.store.evict(Eviction(norm_below=below))
        self.model = {k: v for k, v in self.model.items() if np.hypot(v, v) >= below}

    def save(self, step, visible=True):
        increments.keep_for_others(self.path(step))
        assert increments.save(self.store, self.prefix(step), self.path(step)) == len(self.model)
        if visible:
            Path(f"{self.prefix(step)}.index").touch()

    def remove(self, step):
        Path(f"{self.prefix(step)}.index").unlink(missing_ok=True)
        increments.remove(table_files.files_beside(self.prefix(step)))

    def header(self, step):
        return table_files.read_header(self.path(step))

    def restore(self, step, store=None):
        store = new_store() if store is None else store
        table_files.load(store, self.prefix(step), "t", (0, 1), True, f"{self.directory}/m")
        keys, rows = store.items()
        return dict(zip(keys.tolist(), rows[:, 0].tolist(), strict=True))


def test_all_rows_are_written_after_ten_increments(tmp_path):
    series = Series(tmp_path)
    series.assign(range(1000), 1.0)
    for step in range(13):
        series.save(step)
        series.assign([step], 2.0)
    assert [len(series.header(n).after) for n in range(13)] == [*range(11), 0, 1]


def test_a_row_that_goes_while_an_increment_is_written_does_not_come_back(tmp_path, monkeypatch):
    series, write = Series(tmp_path), table_files._write
    series.assign(range(100), 2.0)
    series.save(1)
    series.assign([7], 1.0)

    def evicting(*args):
        series.store.evict(Eviction(norm_below=2.0))
        write(*args)

    with monkeypatch.context() as during:
        during.setattr(table_files, "_write", evicting)
        series.save(2)
    del series.model[7]
    assert series.header(2).rows == 1
    assert series.restore(2) == series.model
    series.save(3)
    assert series.restore(3) == series.model


def churned(series, rounds, size=40):
    """Rows that come and go, ever new ones."""
    for number in range(rounds):
        series.assign(range(1000 + size * number, 1000 + size * (number + 1)), 1.0)
        series.evict(2.0)


def test_removed_keys_are_remembered_while_that_is_less_than_the_table(tmp_path, monkeypatch):
    monkeypatch.setattr("headrace.ops.embeddings.store.REMEMBERED", 100)
    series = Series(tmp_path)
    series.assign(range(400), 2.0)
    store = series.store
    increments.save(store, f"{tmp_path}/once-1", f"{tmp_path}/once-1{END}")
    Path(f"{tmp_path}/once-1.index").touch()
    for step in range(20):
        series.save(step)
        churned(series, 3, 10)
        assert store.removed_keys == sum(len(keys) for _, keys in store.removed) <= 400
    # What is saved often has increments; what was saved once is no reason to remember all.
    assert [len(series.header(n).after) for n in range(12)] == [*range(11), 0]
    assert len(series.header(19).after) == 8
    assert list(store.saved) == [f"{tmp_path}/m"]
    churned(series, 9, 60)
    assert not store.saved
    series.save(20)
    assert not series.header(20).after
    path = f"{tmp_path}/once-2{END}"
    increments.save(store, f"{tmp_path}/once-2", path)
    assert not table_files.read_header(path).after
    assert series.restore(20) == series.model


def test_a_save_that_fails_takes_nothing_from_one_that_began_meanwhile(tmp_path, monkeypatch):
    series, write = Series(tmp_path), table_files._write
    series.assign(range(100), 2.0)
    series.assign([7], 1.0)

    def fails_late(*args):
        during.setattr(table_files, "_write", write)
        series.save(1)  # of another saver
        raise tf.errors.ResourceExhaustedError(None, None, "no space left")

    with monkeypatch.context() as during:
        during.setattr(table_files, "_write", fails_late)
        with pytest.raises(tf.errors.ResourceExhaustedError):
            table_files.save(series.store, f"{tmp_path}/x{END}")
    series.evict(2.0)
    series.save(2)
    assert series.header(2).after
    assert series.restore(2) == series.model
    assert 7 not in series.model


def test_a_table_knows_its_latest_series_only(tmp_path):
    series = Series(tmp_path)
    series.assign(range(100), 1.0)
    for number in range(20):
        name = f"{tmp_path}/best{number}x"
        increments.save(series.store, name, f"{name}{END}")
    assert [name[-3:] for name in series.store.saved] == [f"{n}x" for n in range(12, 20)]


def test_changes_are_all_rows_where_removed_keys_were_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr("headrace.ops.embeddings.store.REMEMBERED", 100)
    series = Series(tmp_path)
    series.assign(range(50), 2.0)
    table_files.save(series.store, series.path(1))
    series.assign([3], 1.0)
    churned(series, 9)
    assert table_files.save_changes(series.store, series.path(1)) == 49
    assert series.restore(1) == series.model
    series.assign([4], 3.0)
    assert table_files.save_changes(series.store, series.path(1)) == 1
    assert series.restore(1) == series.model


@pytest.mark.parametrize("damage", ["cut off", "changed", "missing", "another"])
@pytest.mark.parametrize("step", [1, 2])
def test_damage_is_told_and_costs_the_checkpoints_that_need_the_file(damage, step, tmp_path):
    series = Series(tmp_path)
    series.assign(range(100), 1.0)
    for number in (1, 2, 3):
        series.save(number)
        series.assign([number], number + 1.0)
    file = Path(series.path(step))
    content = file.read_bytes()
    if damage == "cut off":
        file.write_bytes(content[:-10])
    elif damage == "changed":
        file.write_bytes(content[:-10] + b"0123456789")
    elif damage == "missing":
        file.unlink()
    else:
        table_files.save(new_store(), str(file))
    message = {"missing": "is missing", "another": "is of another save"}
    with pytest.raises(tf.errors.DataLossError, match=message.get(damage, "damaged|cut off")):
        series.restore(3)
    if step == 2:
        assert series.restore(1) == dict.fromkeys(range(100), 1.0)


@pytest.mark.parametrize(
    "seed", [*range(12), *(pytest.param(n, marks=pytest.mark.slow) for n in range(12, 300))]
)
def test_any_schedule_of_saves_failures_and_removals_restores_what_was_there(seed, tmp_path):
    rng = np.random.default_rng(seed)
    series, kept, step = Series(tmp_path), {}, 0
    for _ in range(25):
        what = rng.random()
        if what < 0.4:
            size = int(rng.integers(1, 40 if rng.random() < 0.2 else 4))
            series.assign(rng.integers(0, 60, size).tolist(), float(rng.integers(1, 9)))
        elif what < 0.5:
            series.evict(float(rng.integers(1, 5)))
        elif what < 0.75:
            step = step + 1 if rng.random() < 0.8 or not kept else int(rng.choice(list(kept)))
            series.save(step)
            kept[step] = dict(series.model)
        elif what < 0.85:  # a save that fails after the table was written
            step += 1
            if step not in kept:
                series.save(step, visible=False)
                if rng.random() < 0.5:  # else it was killed, and its files are still there
                    unpublished.remove_beside(series.prefix(step))
        elif what < 0.95 and len(kept) > 1:
            gone = int(rng.choice(list(kept)))
            del kept[gone]
            series.remove(gone)
        elif kept:  # training goes back
            step = int(rng.choice(list(kept)))
            series.model = dict(kept[step])
            assert series.restore(step, series.store) == series.model
        for number, model in kept.items():
            assert series.restore(number) == model
    for number in list(kept):
        series.remove(number)
    # What killed saves left, and what that follows, is there until it is an hour old.
    for path in tmp_path.iterdir():
        os.utime(path, (1, 1))
    series.save(1000)
    unpublished.remove_forgotten(series.prefix(1000))
    unpublished.remove_forgotten(series.prefix(1000))
    after = {link.file for link in series.header(1000).after}
    assert set(tables(tmp_path)) == {f"m-1000{END}", *after}


def monitored(directory, batches, in_background=False):
    """Train in a monitored session on batches of keys, with a checkpoint every second step; how
    many rows there were at the begin."""
    with tf.Graph().as_default():
        table = tf.EmbeddingTable(2, initializer=tf.ones_initializer(), name="t")
        keys = tf.placeholder_with_default(np.array([1], np.int64), [None])
        step = tf.train.get_or_create_global_step()
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        train = optimizer.minimize(tf.reduce_sum(table.lookup(keys)), global_step=step)
        size = table.size()
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=str(directory),
            save_checkpoint_steps=2,
            save_checkpoint_secs=None,
            incremental_tables=True,
            asynchronous_checkpoints=in_background,
            log_step_count_steps=None,
        ) as session:
            begun = int(session.run(size))
            for batch in batches:
                session.run(train, {keys: batch})
    return begun


def test_monitored_sessions_write_increments_and_skip_a_damaged_one_with_a_word(tmp_path, caplog):
    assert monitored(tmp_path, [np.arange(100), [1], [2], [3], [4]]) == 0
    file = tmp_path / f"model.ckpt-5{END}"
    last = table_files.read_header(str(file))
    assert [link.file[:12] for link in last.after] == ["model.ckpt-2", "model.ckpt-4"]
    assert last.rows == 1
    file.write_bytes(file.read_bytes()[:-1])
    assert monitored(tmp_path, [[5]]) == 100
    assert "is cut off" in caplog.text
    assert f"goes on from the older checkpoint {tmp_path}/model.ckpt-4" in caplog.text


def test_increments_in_the_background(tmp_path):
    assert monitored(tmp_path, [np.arange(100), [1], [2], [3], [4]], in_background=True) == 0
    last = table_files.read_header(str(tmp_path / f"model.ckpt-5{END}"))
    # The one of step 4 is left out if that of step 2 is still being written when it is due.
    names = [link.file[:12] for link in last.after]
    assert (names, last.rows) in (
        (["model.ckpt-2", "model.ckpt-4"], 1),
        (["model.ckpt-2"], 3),
    )
    assert monitored(tmp_path, [[5]], in_background=True) == 100


def test_names_of_series():
    assert increments.series_of("a/model.ckpt-100") == increments.series_of("a/model.ckpt-00000200")
    assert increments.series_of("a/model") == "a/model"
