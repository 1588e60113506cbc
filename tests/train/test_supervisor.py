"""tf.train.Supervisor, and whole programs of its time."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

import headrace as tf


def _model():
    step = tf.Variable(0, name="global_step", trainable=False)
    w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    loss = tf.square(w - 2.0)
    train = tf.train.GradientDescentOptimizer(0.25).minimize(loss, global_step=step)
    return step, w, loss, train


def test_a_managed_session_trains_and_restores(tmp_path: Path) -> None:
    for begin in (0, 5):
        with tf.Graph().as_default() as graph:
            step, w, _, train = _model()
            sv = tf.train.Supervisor(logdir=str(tmp_path), save_summaries_secs=0)
            assert graph.finalized
            assert sv.global_step is not None
            with sv.managed_session() as session:
                assert session.run(step) == begin
                for _ in range(5):
                    session.run(train)
                sv.saver.save(session, sv.save_path, global_step=sv.global_step)
                value = session.run(w)
            assert sv.should_stop()
    assert value == pytest.approx(2.0, abs=0.01)
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("model.ckpt-10")
    assert (tmp_path / "graph.pbtxt").exists()


def test_services_write_checkpoints_and_summaries(tmp_path: Path) -> None:
    _, _, loss, train = _model()
    tf.summary.scalar("loss", loss)
    sv = tf.train.Supervisor(logdir=str(tmp_path), save_model_secs=1000, save_summaries_secs=1000)
    written = threading.Semaphore(0)
    writer = sv.summary_writer

    add_summary = writer.add_summary

    def noted(*args) -> None:
        add_summary(*args)
        written.release()

    writer.add_summary = noted
    with sv.managed_session(start_standard_services=False) as session:
        session.run(train)
        threads = sv.start_standard_services(session)
        assert len(threads) == 3
        for _ in range(2):  # the speed and the summaries; each thread begins with one
            assert written.acquire(timeout=20)
        sv.summary_computed(
            session, tf.Summary(value=[tf.Summary.Value(tag="own", simple_value=3)])
        )
    assert not any(t.is_alive() for t in threads)
    (path,) = tmp_path.glob("events.*")
    events = list(tf.train.summary_iterator(str(path)))
    found = {v.tag: (e.step, v.simple_value) for e in events for v in e.summary.value}
    assert found["loss"] == (1, 1.0)
    assert found["own"] == (1, 3.0)
    assert "global_step/sec" in found
    kinds = [e.session_log.status for e in events if e.HasField("session_log")]
    assert kinds[0] == tf.SessionLog.START
    assert kinds[-1] == tf.SessionLog.STOP
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("model.ckpt-1")


def test_errors_come_out_and_the_end_of_the_input_does_not() -> None:
    _, _, _, train = _model()
    number = tf.train.range_input_producer(3, num_epochs=1, shuffle=False).dequeue()
    sv = tf.train.Supervisor()
    found = []
    with sv.managed_session() as session:
        while not sv.should_stop():
            found.append(session.run([number, train])[0])
    assert found == [0, 1, 2]
    with pytest.raises(ValueError, match="mine"), sv.managed_session():
        raise ValueError("mine")


def test_loops_and_the_train_loop() -> None:
    step, _, _, train = _model()
    sv = tf.train.Supervisor()
    called = threading.Event()

    def train_step(session, limit: int, *, also) -> None:
        session.run(train)
        assert also == 7
        if session.run(step) >= limit:
            assert called.wait(20)
            sv.request_stop()

    sv.loop(None, called.set)
    tf.train.basic_train_loop(sv, train_step, args=(4,), kwargs={"also": 7})
    assert sv.should_stop()


def test_what_is_given_is_taken(tmp_path: Path) -> None:
    w = tf.get_variable("w", [])
    fed = tf.placeholder(tf.float32, [])
    sv = tf.train.Supervisor(
        init_op=w.assign(fed).op,
        init_feed_dict={fed: 5.0},
        summary_op=None,
        saver=None,
        logdir=str(tmp_path),
        summary_writer=None,
    )
    assert sv.saver is None
    assert sv.summary_writer is None
    with sv.managed_session() as session:
        assert session.run(w) == 5.0
    with pytest.raises(RuntimeError, match="summary writer"):
        sv.summary_computed(None, b"")


def test_only_the_chief_has_services(tmp_path: Path) -> None:
    _model()
    sv = tf.train.Supervisor(is_chief=False, logdir=str(tmp_path))
    assert not sv.is_chief
    with pytest.raises(RuntimeError, match="Only chief"):
        sv.start_standard_services(None)
    assert list(tmp_path.iterdir()) == []


# -- whole programs ---------------------------------------------------------------------------


def test_a_cifar_style_input_pipeline(tmp_path: Path) -> None:
    """Fixed-length binary records, decoded and distorted, in shuffled batches."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (60, 3, 4, 4), dtype=np.uint8)
    labels = rng.integers(0, 10, 60, dtype=np.uint8)
    for i in range(2):
        rows = slice(30 * i, 30 * i + 30)
        data = b"".join(
            bytes([lab]) + im.tobytes() for lab, im in zip(labels[rows], images[rows], strict=True)
        )
        (tmp_path / f"data_batch_{i}.bin").write_bytes(data)
    files = [str(tmp_path / f"data_batch_{i}.bin") for i in range(2)]
    queue = tf.train.string_input_producer(files, num_epochs=1)
    reader = tf.FixedLengthRecordReader(record_bytes=49)
    key, value = reader.read(queue)
    record = tf.decode_raw(value, tf.uint8)
    label = tf.cast(tf.strided_slice(record, [0], [1]), tf.int32)
    depth_major = tf.reshape(tf.strided_slice(record, [1], [49]), [3, 4, 4])
    image = tf.cast(tf.transpose(depth_major, [1, 2, 0]), tf.float32)
    image.set_shape([4, 4, 3])
    label.set_shape([1])
    batch = tf.train.shuffle_batch(
        [image, label, key], batch_size=20, num_threads=4, capacity=40, min_after_dequeue=10
    )
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess=session, coord=coord)
        seen = {}
        try:
            while not coord.should_stop():
                for im, lab, k in zip(*session.run(batch), strict=True):
                    seen[k] = im, lab
        except tf.errors.OutOfRangeError:
            coord.request_stop()
        coord.join(threads)
    assert len(seen) == 60
    for k, (im, lab) in seen.items():
        name, _, number = k.decode().rpartition(":")
        index = 30 * files.index(name) + int(number)
        np.testing.assert_array_equal(im, images[index].transpose(1, 2, 0))
        assert lab == labels[index]


def test_training_from_record_files(tmp_path: Path) -> None:
    """TFRecords of Examples, shuffled batches and a linear model that learns."""
    rng = np.random.default_rng(1)
    true = np.float32([1.0, -2.0, 0.5])
    path = str(tmp_path / "train.tfrecords")
    with tf.python_io.TFRecordWriter(path) as writer:
        for _ in range(200):
            x = rng.normal(size=3).astype(np.float32)
            feature = {
                "x": tf.train.Feature(float_list=tf.train.FloatList(value=x)),
                "y": tf.train.Feature(float_list=tf.train.FloatList(value=[x @ true])),
            }
            example = tf.train.Example(features=tf.train.Features(feature=feature))
            writer.write(example.SerializeToString())
    queue = tf.train.string_input_producer([path], num_epochs=30)
    _, serialized = tf.TFRecordReader().read(queue)
    features = {"x": tf.FixedLenFeature([3], tf.float32), "y": tf.FixedLenFeature([], tf.float32)}
    one = tf.parse_single_example(serialized, features)
    x, y = tf.train.shuffle_batch([one["x"], one["y"]], 20, 200, 100)
    w = tf.get_variable("w", [3, 1], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.squeeze(tf.matmul(x, w), 1) - y))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    steps = 0
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess=session, coord=coord)
        try:
            while not coord.should_stop():
                session.run(train)
                steps += 1
        except tf.errors.OutOfRangeError:
            pass
        finally:
            coord.request_stop()
        coord.join(threads)
        np.testing.assert_allclose(session.run(w)[:, 0], true, atol=1e-3)
    assert steps == 30 * 200 // 20


def test_csv_lines_in_batches(tmp_path: Path) -> None:
    for i in range(2):
        rows = [f"{10 * i + j},{j / 4},word{j}" for j in range(5)]
        (tmp_path / f"{i}.csv").write_text("\n".join(["id,value,text", *rows]) + "\n")
    names = tf.train.match_filenames_once(str(tmp_path / "*.csv"))
    queue = tf.train.string_input_producer(names, num_epochs=1, shuffle=False)
    _, line = tf.TextLineReader(skip_header_lines=1).read(queue)
    number, value, text = tf.decode_csv(line, record_defaults=[[0], [0.0], [""]])
    batch = tf.train.batch([number, value, text], 4, allow_smaller_final_batch=True)
    found: list = []
    with tf.train.MonitoredSession() as session:
        while not session.should_stop():
            found.append(session.run(batch))
    assert np.concatenate([b[0] for b in found]).tolist() == [*range(5), *range(10, 15)]
    assert [len(b[0]) for b in found] == [4, 4, 2]
    assert found[2][2].tolist() == [b"word3", b"word4"]
    np.testing.assert_array_equal(found[0][1], np.float32([0, 0.25, 0.5, 0.75]))
