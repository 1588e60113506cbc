"""Monitored sessions: the life of hooks, stopping, recovery; Scaffold and SessionManager."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import headrace as tf
from headrace.train.session_layers import RecoverableSession


class _Log(tf.train.SessionRunHook):
    """Notes what is called; may stop or fail at a step, and ask for something."""

    def __init__(self, stop_at: int = 0, fetch=None, feed=None) -> None:
        self.calls: list[str] = []
        self.results: list = []
        self.stop_at = stop_at
        self.fetch, self.feed = fetch, feed
        self.steps = 0

    def begin(self) -> None:
        assert not tf.get_default_graph().finalized
        self.calls.append("begin")

    def after_create_session(self, session, coord) -> None:
        assert session.graph.finalized
        assert isinstance(coord, tf.train.Coordinator)
        self.calls.append("session")

    def before_run(self, run_context):
        self.calls.append("before")
        return tf.train.SessionRunArgs(self.fetch, self.feed)

    def after_run(self, run_context, run_values) -> None:
        self.calls.append("after")
        self.results.append(run_values.results)
        self.steps += 1
        if self.steps == self.stop_at:
            run_context.request_stop()

    def end(self, session) -> None:
        session.run(tf.get_collection("counter")[0])
        self.calls.append("end")


def _counter() -> tf.Tensor:
    """A step that counts; its variable is the global step."""
    step = tf.train.get_or_create_global_step()
    tf.add_to_collection("counter", step)
    return step.assign_add(1)


def test_hooks_are_called_in_order() -> None:
    count = _counter()
    hook = _Log(stop_at=2, fetch=tf.constant(7))
    with tf.train.MonitoredSession(hooks=[hook]) as session:
        assert session.graph is tf.get_default_graph()
        while not session.should_stop():
            session.run(count)
        with pytest.raises(RuntimeError, match="Run called even after should_stop"):
            session.run(count)
    assert hook.calls == ["begin", "session", *["before", "after"] * 2, "end"]
    assert hook.results == [7, 7]
    assert not tf.get_default_graph().finalized
    assert session.graph is None
    assert session.should_stop()


def test_end_is_not_called_after_a_failure() -> None:
    _counter()
    hook = _Log()
    wrong = tf.placeholder(tf.float32, [])
    with (
        pytest.raises(tf.errors.InvalidArgumentError, match="must feed"),
        tf.train.MonitoredSession(hooks=[hook]) as session,
    ):
        session.run(wrong)
    assert "end" not in hook.calls
    with pytest.raises(RuntimeError, match="closed"):
        session.close()


@pytest.mark.parametrize("error", [tf.errors.OutOfRangeError(None, None, "x"), StopIteration()])
def test_the_end_of_the_input_ends_the_block(error: Exception) -> None:
    _counter()
    hook = _Log()
    with tf.train.MonitoredSession(hooks=[hook]):
        raise error
    assert hook.calls[-1] == "end"


def test_feeds_of_hooks_and_of_the_caller() -> None:
    _counter()
    x, y = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    total = x + y
    with tf.train.MonitoredSession(hooks=[_Log(feed={x: 2.0})]) as session:
        assert session.run(total, {y: 3.0}) == 5.0
        with pytest.raises(RuntimeError, match="fed by a SessionRunHook and user"):
            session.run(x, {x: 1.0})
    hooks = [_Log(feed={x: 1.0}), _Log(feed={x: 2.0})]
    session = tf.train.MonitoredSession(hooks=hooks)
    with pytest.raises(RuntimeError, match="fed by two hooks"):
        session.run(x)
    session.close()


def test_options_of_hooks_are_merged() -> None:
    class Tracing(_Log):
        def before_run(self, run_context):
            options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
            return tf.train.SessionRunArgs(None, options=options)

        def after_run(self, run_context, run_values) -> None:
            assert run_values.options.timeout_in_ms == 60000
            names = [
                n.node_name
                for d in run_values.run_metadata.step_stats.dev_stats
                for n in d.node_stats
            ]
            assert names == ["region of 2 ops to product"]

    _counter()
    product = tf.multiply(tf.placeholder_with_default(2.0, []), 3.0, name="product")
    with tf.train.MonitoredSession(hooks=[Tracing()]) as session:
        session.run(product, options=tf.RunOptions(timeout_in_ms=60000))


def test_queue_runners_are_started_and_stopped() -> None:
    _counter()
    n = tf.train.range_input_producer(5, num_epochs=2, shuffle=False).dequeue()
    found = []
    with tf.train.MonitoredSession() as session:
        while not session.should_stop():
            found.append(session.run(n))
    assert found == [*range(5), *range(5)]


def test_an_error_of_a_thread_comes_out() -> None:
    _counter()
    queue = tf.FIFOQueue(1, tf.float32)
    put = queue.enqueue(tf.placeholder(tf.float32, []))
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [put]))
    size = queue.size()
    session = tf.train.MonitoredSession()
    while not session.should_stop():
        session.run(size)
    with pytest.raises(tf.errors.InvalidArgumentError, match="must feed"):
        session.close()


class _Flaky(tf.train.SessionRunHook):
    """Loses its task before some steps."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.sessions = 0

    def after_create_session(self, session, coord) -> None:
        self.sessions += 1

    def before_run(self, run_context) -> None:
        if self.errors:
            raise self.errors.pop()


def test_a_lost_session_is_made_again_from_the_checkpoint(tmp_path: Path) -> None:
    count = _counter()
    hook = _Flaky()
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=str(tmp_path), hooks=[hook], save_checkpoint_steps=2
    ) as session:
        for _ in range(5):
            session.run(count)
        hook.errors = [
            tf.errors.AbortedError(None, None, "lost"),
            tf.errors.UnavailableError(None, None, "gone"),
        ]
        # Step 4 was saved last: step 5 is done again.
        assert session.run(count) == 5
        assert not session.should_stop()
    assert hook.sessions == 3


def test_a_session_that_is_made_anew_saves_when_that_is_due(tmp_path: Path) -> None:
    """All wait for its first step, and what it begins with was just restored, but for the end."""
    count = _counter()
    saved: list[int] = []

    class Listener(tf.train.CheckpointSaverListener):
        def after_save(self, session, global_step_value) -> None:
            saved.append(global_step_value)

    hook = _Flaky()
    saving = tf.train.CheckpointSaverHook(str(tmp_path), save_steps=2, listeners=[Listener()])
    creator = tf.train.ChiefSessionCreator(checkpoint_dir=str(tmp_path))
    with tf.train.MonitoredSession(creator, hooks=[hook, saving]) as session:
        for _ in range(5):
            session.run(count)
        assert saved == [0, 2, 4]
        hook.errors = [tf.errors.AbortedError(None, None, "lost")]
        assert session.run(count) == 5
        assert saved == [0, 2, 4]
        assert session.run(count) == 6
        assert saved == [0, 2, 4, 6]
        hook.errors = [tf.errors.AbortedError(None, None, "lost")]
        assert session.run(count) == 7
    assert saved == [0, 2, 4, 6, 7]


def test_a_session_without_recovery() -> None:
    count = _counter()
    hook = _Flaky(tf.errors.AbortedError(None, None, "lost"))
    session = tf.train.SingularMonitoredSession(hooks=[hook])
    assert isinstance(session.raw_session(), tf.Session)
    with pytest.raises(tf.errors.AbortedError, match="lost"):
        session.run(count)
    session.close()


def test_step_functions() -> None:
    count = _counter()
    hook = _Log()

    def step_fn(step_context):
        step_context.session.run(count)
        value = step_context.run_with_hooks(count)
        if value == 4:
            step_context.request_stop()
        return value

    with tf.train.MonitoredSession(hooks=[hook]) as session:
        assert session.run_step_fn(step_fn) == 2
        with pytest.raises(ValueError, match="step_context"):
            session.run_step_fn(lambda other: None)
        while True:
            session.run_step_fn(step_fn)
    assert hook.steps == 2


def test_a_scaffold_makes_what_is_missing() -> None:
    v = tf.get_variable("v", [2])
    local = tf.Variable(3, collections=[tf.GraphKeys.LOCAL_VARIABLES])
    tf.summary.scalar("mean", tf.reduce_mean(v))
    scaffold = tf.train.Scaffold().finalize()
    assert tf.get_default_graph().finalized
    for op, key in (
        (scaffold.init_op, tf.GraphKeys.INIT_OP),
        (scaffold.ready_op, tf.GraphKeys.READY_OP),
        (scaffold.local_init_op, tf.GraphKeys.LOCAL_INIT_OP),
        (scaffold.summary_op, tf.GraphKeys.SUMMARY_OP),
        (scaffold.saver, tf.GraphKeys.SAVERS),
    ):
        assert tf.get_collection(key) == [op]
    with tf.Session() as session:
        assert list(session.run(scaffold.ready_for_local_init_op)) == [b"v"]
        session.run(scaffold.init_op)
        assert len(session.run(scaffold.ready_for_local_init_op)) == 0
        assert list(session.run(scaffold.ready_op)) == [local.op.name.encode()]
        session.run(scaffold.local_init_op)
        assert len(session.run(scaffold.ready_op)) == 0


def test_a_scaffold_takes_what_is_given() -> None:
    v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
    fed = tf.placeholder(tf.float32, [])
    set_v = v.assign(fed)
    first = tf.train.Scaffold(
        init_op=set_v.op,
        init_feed_dict={fed: 5.0},
        init_fn=lambda scaffold, session: session.run(scaffold.init_op, {fed: 6.0}),
    )
    scaffold = tf.train.Scaffold(copy_from_scaffold=first)
    with tf.train.MonitoredSession(tf.train.ChiefSessionCreator(scaffold)) as session:
        assert session.run(v) == 6.0
    with pytest.raises(TypeError, match="not a Scaffold"):
        tf.train.Scaffold(copy_from_scaffold=3)


def test_several_items_in_a_collection() -> None:
    for _ in range(2):
        tf.add_to_collection(tf.GraphKeys.INIT_OP, tf.no_op())
    with pytest.raises(RuntimeError, match="More than one item in the collection"):
        tf.train.Scaffold().finalize()


def test_a_model_that_nothing_initialises() -> None:
    tf.get_variable("v", [])
    manager = tf.train.SessionManager(ready_op=tf.report_uninitialized_variables())
    with pytest.raises(RuntimeError, match="no init_op or init_fn or local_init_op"):
        manager.prepare_session("")
    with pytest.raises(RuntimeError, match="Variables not initialized: v"):
        manager.prepare_session("", init_op=tf.no_op())
    with pytest.raises(ValueError, match="local_init_op"):
        tf.train.SessionManager(ready_for_local_init_op=tf.no_op())


def test_sessions_are_restored_or_initialised(tmp_path: Path) -> None:
    v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
    saver = tf.train.Saver()
    manager = tf.train.SessionManager(ready_op=tf.report_uninitialized_variables())
    init = tf.global_variables_initializer()
    directory = str(tmp_path)
    session, restored = manager.recover_session("", saver, directory)
    assert not restored
    session = manager.prepare_session("", init, saver, directory)
    session.run(v.assign(4.0))
    path = saver.save(session, f"{directory}/model")
    again = manager.prepare_session("", init, saver, directory)
    assert again.run(v) == 4.0
    session, restored = manager.recover_session("", saver, checkpoint_filename_with_path=path)
    assert restored
    assert session.run(v) == 4.0
    with pytest.raises(ValueError, match="both checkpoint_dir"):
        manager.prepare_session("", init, saver, directory, path)


def test_waiting_for_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    v = tf.get_variable("v", [], initializer=tf.ones_initializer())
    saver = tf.train.Saver()
    manager = tf.train.SessionManager(
        ready_op=tf.report_uninitialized_variables(), recovery_wait_secs=3
    )
    now = [0.0]
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        now[0] += seconds
        if len(waits) == 8:
            with tf.Session() as other:
                other.run(v.initializer)
                saver.save(other, str(tmp_path / "model"))

    monkeypatch.setattr(tf.train.SessionManager, "clock", staticmethod(lambda: now[0]))
    monkeypatch.setattr(tf.train.SessionManager, "sleep", staticmethod(sleep))
    with pytest.raises(tf.errors.DeadlineExceededError, match="Variables not initialized: v"):
        manager.wait_for_session("", max_wait_secs=8)
    # What is waited for is mostly there soon; recovery_wait_secs is the longest pause.
    assert waits == [0.1, 0.2, 0.4, 0.8, 1.6, 3]
    session = manager.prepare_session("", None, saver, str(tmp_path), wait_for_checkpoint=True)
    assert session.run(v) == 1.0
    assert waits[6:] == [0.1, 0.2]


def test_waiting_is_told_once_with_what_it_waits_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    v = tf.get_variable("v", [], initializer=tf.ones_initializer())
    tf.get_variable("w", [], initializer=tf.ones_initializer())
    saver = tf.train.Saver()
    manager = tf.train.SessionManager(ready_op=tf.report_uninitialized_variables())
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds
        if now[0] >= 12:
            with tf.Session() as other:
                other.run(tf.global_variables_initializer())
                saver.save(other, str(tmp_path / "model"))

    monkeypatch.setattr(tf.train.SessionManager, "clock", staticmethod(lambda: now[0]))
    monkeypatch.setattr(tf.train.SessionManager, "sleep", staticmethod(sleep))
    with caplog.at_level("INFO"):
        manager.prepare_session("", None, saver, str(tmp_path), wait_for_checkpoint=True)
        with pytest.raises(tf.errors.DeadlineExceededError):
            manager.wait_for_session("", max_wait_secs=30)
        monkeypatch.setattr(manager, "_ready_op", tf.constant([], tf.string))
        manager.wait_for_session("")
    told = [m for m in caplog.messages if not m.startswith(("Restor", "Running", "Done"))]
    assert told == [
        f"Waiting for checkpoint to be available in {tmp_path}.",
        "A checkpoint is available after 13 s.",
        "Waiting for model to be ready: Variables not initialized: v, w",
    ]
    assert v.name == "v:0"


def test_seconds_or_steps_but_not_both(tmp_path: Path) -> None:
    _counter()
    with pytest.raises(ValueError, match="both every_secs and every_steps"):
        tf.train.MonitoredTrainingSession(
            checkpoint_dir=str(tmp_path), save_checkpoint_secs=1, save_checkpoint_steps=1
        )


def test_a_session_that_is_made_anew_keeps_what_variables_have_learned() -> None:
    v = tf.get_variable("learned", initializer=1.0)
    change = v.assign(5.0)
    server = tf.train.Server.create_local_server()
    try:
        creator = tf.train.ChiefSessionCreator(master=server.target)
        with creator.create_session() as session:
            assert session.run(v) == 1.0
            session.run(change)
        with creator.create_session() as session:  # as after a connection that broke
            assert session.run(v) == 5.0
        tf.Session.reset(server.target)
        with creator.create_session() as session:  # they are lost: the chief begins anew
            assert session.run(v) == 1.0
    finally:
        server.stop()


def test_who_cannot_make_a_session_pauses_and_says_so(caplog) -> None:
    """An error that comes at once was repeated as fast as the processor could, without a word."""

    class Creator:
        left = 8

        def create_session(self):
            self.left -= 1
            if self.left:
                raise tf.errors.UnavailableError(None, None, "port 1234 is taken")
            return tf.Session()

    pauses = []
    with caplog.at_level(logging.WARNING, "tensorflow"):
        RecoverableSession(Creator(), pauses.append).close()
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2]
    assert caplog.text.count("port 1234 is taken") == 6
