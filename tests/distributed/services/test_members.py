"""Tasks that join a running cluster by an address, leave it, and are asked to: real servers."""

import json
import threading

import pytest
from click.testing import CliRunner
from server_clusters import eventually

import headrace as tf
from headrace.cli import main
from headrace.distributed.membership.changes import without
from headrace.distributed.membership.record import ClusterRecord, changed
from headrace.distributed.protocol import control_pb2 as pb
from headrace.distributed.services import admin, cluster_calls
from headrace.distributed.services.server import Server
from headrace.settings import flags
from headrace.test.cluster import free_ports


@pytest.fixture
def joined():
    """Joins a cluster; stops what has joined."""
    made = []

    def join(cluster, job="worker", index=None, contact=("ps", 0), **options):
        server = Server(cluster[contact].address, job_name=job, task_index=index, **options)
        made.append(server)
        return server

    yield join
    for server in made:
        server.stop()


def tasks_of(server):
    return sorted(t.task.replace("/replica:0", "") for t in admin.status(server.address))


def test_a_worker_joins_by_an_address_and_trains(cluster, joined):
    servers = cluster(ps=1, worker=1)
    worker = joined(servers)
    assert worker.server_def.job_name == "worker"
    assert worker.server_def.task_index == 1
    assert worker.cluster.num_tasks("worker") == 2
    with tf.device(tf.train.replica_device_setter(cluster=worker.cluster)):
        v = tf.get_variable("v", initializer=0.0, use_resource=True)
    with tf.device("/job:worker/task:1"):
        added = v.assign_add(tf.constant(1.0) + 1.0)
    with tf.Session(servers.target("worker")) as first:
        first.run(v.initializer)
    with tf.Session(worker.target) as session:
        assert session.run(added) == 2.0
    # Those who were there find the new one, too.
    assert eventually(lambda: "/job:worker/task:1" in tasks_of(servers["worker", 0]))
    with tf.Session(servers.target("worker")) as first:
        assert first.run(added) == 4.0


def test_whoever_was_not_told_hears_of_it_from_others(cluster, joined, monkeypatch):
    servers = cluster(ps=2, worker=1)
    monkeypatch.setattr("headrace.distributed.services.members.Members._tell", lambda *_: None)
    worker = joined(servers)
    late = servers["ps", 1]
    assert late.members.epoch == 0
    with tf.device("/job:ps/task:1"):
        v = tf.get_variable("v", initializer=2.0, use_resource=True)
    with tf.Session(worker.target) as session:
        session.run(v.initializer)
    assert eventually(lambda: late.members.epoch == 1)
    assert late.members.addresses["/job:worker/replica:0/task:1"] == worker.address


def test_many_join_at_once_with_numbers_of_their_own(cluster, joined):
    servers = cluster(ps=1, worker=2)
    found = []
    contacts = [("ps", 0), ("worker", 0), ("worker", 1), ("ps", 0), ("worker", 1)]

    def join(contact):
        found.append(joined(servers, contact=contact).server_def.task_index)

    threads = [threading.Thread(target=join, args=(c,)) for c in contacts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [2, 3, 4, 5, 6]
    assert eventually(lambda: servers["ps", 0].members.epoch == 5)


def test_who_leaves_is_forgotten_and_its_number_is_free(cluster, joined):
    servers = cluster(ps=1, worker=1)
    worker = joined(servers)
    worker.stop()
    assert eventually(
        lambda: tasks_of(servers["ps", 0]) == ["/job:ps/task:0", "/job:worker/task:0"]
    )
    assert joined(servers).server_def.task_index == 1


def test_a_dead_one_is_replaced(cluster, joined):
    servers = cluster(ps=1, worker=1)
    worker = joined(servers)
    worker._leave = lambda: None  # it is killed
    worker.stop()
    other = joined(servers)
    assert other.server_def.task_index == 1
    name = "/job:worker/replica:0/task:1"
    assert servers["ps", 0].members.addresses[name] == other.address


def test_a_task_of_the_description_may_come_back_elsewhere(cluster, joined):
    servers = cluster(ps=1, worker=2)
    with pytest.raises(tf.errors.AlreadyExistsError, match=r"worker.*task:1 at .* answers"):
        joined(servers, index=1)
    servers["worker", 1].stop()
    other = joined(servers, index=1)
    with tf.device("/job:worker/task:1"):
        v = tf.get_variable("v", initializer=2.0, use_resource=True)
    with tf.Session(servers.target("ps")) as session:
        session.run(v.initializer)
    assert other.task.worker.steps_run == 1


def test_who_was_replaced_stops_and_leaves_the_name_to_the_other(cluster, joined):
    servers = cluster(ps=1, worker=2)
    servers["ps", 0].members.change(lambda record: record)
    name = "/job:worker/replica:0/task:1"
    other = "127.0.0.1:1"  # it was cut off, and somebody has its name now
    servers["ps", 0].members.change(lambda record: changed(record, tasks={name: other}))
    replaced = servers["worker", 1]
    assert eventually(lambda: replaced.task.master.is_leaving)
    replaced.stop()
    assert servers["ps", 0].members.addresses[name] == other


def test_who_has_left_comes_back_by_the_first_description_when_it_is_wanted(cluster, joined):
    servers = cluster(ps=1, worker=2)
    address = servers["ps", 0].address
    admin.resize(address, {"worker": 1})
    assert eventually(lambda: servers["worker", 1].task.master.is_leaving)
    servers["worker", 1].stop()
    name = "/job:worker/replica:0/task:1"
    known = servers["ps", 0].members.addresses
    assert eventually(lambda: name not in known)
    again = servers.start("worker", 1)
    again.members.read_from(address)
    assert again.task.master.is_leaving  # one worker is wanted
    admin.resize(address, {"worker": 2})
    assert eventually(lambda: known.get(name) == again.address)
    assert eventually(lambda: not again.task.master.is_leaving)


def test_who_comes_before_the_cluster_waits_for_it(cluster, joined):
    servers = cluster(start=False, ps=1)
    found = []
    contact = servers.spec.task_address("ps", 0)
    joining = threading.Thread(target=lambda: found.append(Server(contact, job_name="worker")))
    joining.start()
    servers.start("ps")
    joining.join(20)
    assert found[0].server_def.task_index == 0
    found[0].stop()


def test_a_worker_that_knows_the_cluster_joins_it_where_the_others_do_not_know_it(
    cluster, monkeypatch
):
    """As the launcher starts one more worker: its program reads all addresses from TF_CONFIG."""
    servers = cluster(ps=1, worker=1)
    described = {**servers.spec.as_dict()}
    (port,) = free_ports(1)
    described["worker"] = [*described["worker"], f"localhost:{port}"]
    monkeypatch.setattr(flags, "join", servers["ps", 0].address)
    server = Server(described, job_name="worker", task_index=1)
    try:
        assert server.address == f"localhost:{port}"
        assert tasks_of(servers["worker", 0]) == [
            "/job:ps/task:0",
            "/job:worker/task:0",
            "/job:worker/task:1",
        ]
    finally:
        server.stop()
    # Another cluster of the same process is none of it.
    alone = tf.train.Server.create_local_server()
    assert tasks_of(alone) == ["/job:localhost/task:0"]
    alone.stop()


def test_an_address_to_join_by_that_no_task_has_is_refused(monkeypatch):
    described = {"ps": ["localhost:1"], "worker": ["localhost:2", "localhost:3"]}
    monkeypatch.setattr(flags, "join", "localhost:4")
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(
        ValueError, match=r"HEADRACE_JOIN=localhost:4: .* there are localhost:1, localhost:2\."
    ):
        Server(described, job_name="worker", task_index=1, start=False)
    # It is meant for the cluster of TF_CONFIG: others of the process are none of its business.
    other = {"cluster": {"ps": ["localhost:4"]}, "task": {"type": "worker", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(other))
    Server(described, job_name="worker", task_index=1, start=False)


def test_who_is_of_another_release_is_refused(cluster, joined, monkeypatch):
    servers = cluster(ps=1)
    monkeypatch.setattr(cluster_calls.ClusterCalls, "_check", cluster_calls.ClusterCalls._check)
    real = cluster_calls.ask_to_join

    def of_another_release(control, *args):
        class Old:
            def call(self, name, request, timeout):
                request.package_version = "0.0.1"
                return control.call(name, request, timeout)

        return real(Old(), *args)

    monkeypatch.setattr("headrace.distributed.services.server.ask_to_join", of_another_release)
    with pytest.raises(tf.errors.FailedPreconditionError, match=r"that wants to join it 0\.0\.1"):
        joined(servers)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"job": "wroker"}, tf.errors.InvalidArgumentError, "Did you mean 'worker'"),
        ({"job": "a/b"}, tf.errors.InvalidArgumentError, "Invalid job name"),
        ({"job": None}, ValueError, "explicit `job_name`"),
    ],
)
def test_wishes_that_make_no_sense(cluster, joined, options, error, words):
    servers = cluster(ps=1)
    with pytest.raises(error, match=words):
        joined(servers, **options)
    assert servers["ps", 0].members.epoch == 0


def test_addresses_that_make_no_sense():
    with pytest.raises(ValueError, match="no address of the form"):
        Server("ps0", job_name="worker")
    with pytest.raises(ValueError, match="for a server that joins"):
        Server({"ps": ["127.0.0.1:0"]}, start=False, address="127.0.0.1:0")


def test_a_vote_without_enough_voters_says_who_is_missing(cluster, monkeypatch):
    servers = cluster(ps=2, worker=1)
    servers["ps", 0].stop()
    with pytest.raises(tf.errors.UnavailableError, match=r"ps/replica:0/task:0: .*not answer"):
        servers["ps", 1].members.change(lambda record: record, timeout=0.3)


def test_resize_asks_the_last_ones_to_leave(cluster, joined):
    servers = cluster(ps=1, worker=2)
    worker = joined(servers)
    result = CliRunner().invoke(main, ["resize", "--workers", "1", servers["ps", 0].address])
    assert result.exit_code == 0, result.output
    assert "epoch 2, wanted: worker 1" in result.output
    assert "asked to leave: /job:worker/task:1" in result.output
    assert "asked to leave: /job:worker/task:2" in result.output
    assert eventually(lambda: worker.task.master.is_leaving)
    assert eventually(lambda: servers["worker", 1].task.master.is_leaving)
    assert not servers["worker", 0].task.master.is_leaving
    shown = CliRunner().invoke(main, ["status", servers["ps", 0].address])
    assert shown.output.count("leaving") == 2
    servers["worker", 1].stop()
    assert eventually(lambda: "/job:worker/task:1" not in tasks_of(servers["ps", 0]))
    result = CliRunner().invoke(main, ["resize", "--workers", "4", worker.address])
    assert "start 2 more of worker: tf.train.Server(" in result.output
    assert eventually(lambda: not worker.task.master.is_leaving)


def test_resize_forgets_the_dead(cluster):
    servers = cluster(ps=1, worker=3)
    servers["ps", 0].members.change(lambda record: record)  # worker 1 votes from now on
    for index in (1, 2):
        servers["worker", index].stop()
    answer = admin.resize(servers["ps", 0].address, {"worker": 1})
    assert not answer.leaving
    assert tasks_of(servers["ps", 0]) == ["/job:ps/task:0", "/job:worker/task:0"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--workers", "0"], "needs at least one task of the job 'worker'"),
        (["--ps", "20000"], "A job has 10000 tasks at most: 20000 of 'ps' are not possible."),
        ([], "Say how many"),
    ],
)
def test_sizes_that_no_training_can_have(cluster, arguments, words):
    servers = cluster(ps=2, worker=1)
    result = CliRunner().invoke(main, ["resize", *arguments, servers["ps", 0].address])
    assert result.exit_code
    assert words in result.output
    assert servers["ps", 0].members.epoch == 0


def test_a_job_that_is_not_there(cluster):
    servers = cluster(ps=1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="has no job 'worker'"):
        admin.resize(servers["ps", 0].address, {"worker": 2})


def test_a_training_loop_ends_when_its_worker_is_to_leave(cluster, joined):
    servers = cluster(ps=1, worker=1)
    worker = joined(servers)
    with tf.device(tf.train.replica_device_setter(cluster=worker.cluster)):
        step = tf.train.get_or_create_global_step()
        train = step.assign_add(1)
    with (
        tf.train.MonitoredTrainingSession(servers.target("worker"), is_chief=True) as chief,
        tf.train.MonitoredTrainingSession(worker.target, is_chief=False) as session,
    ):
        session.run(train)
        admin.resize(servers["ps", 0].address, {"worker": 1})
        assert eventually(session.should_stop)
        assert not chief.should_stop()
        chief.run(train)


def _record(**fields):
    return pb.MembersRequest(
        kind=pb.MembersRequest.LEARN,
        proposed=pb.AcceptedDef(
            ballot=pb.BallotDef(number=1, task="a", incarnation=1),
            record=pb.RecordDef(epoch=1, **fields),
        ),
    )


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (_record(tasks={"worker 1": "127.0.0.1:1"}), "'worker 1', which is no task"),
        (_record(tasks={"/job:worker/replica:0/task:1": "nowhere"}), "the address 'nowhere'"),
        (_record(wanted={"worker": -1}), "numbers below 0"),
        (_record(moved={"w": "/job:ps"}), "'/job:ps', which is no task"),
        (
            pb.MembersRequest(
                kind=pb.MembersRequest.PREPARE,
                proposed=pb.AcceptedDef(ballot=pb.BallotDef(number=2**63 - 1)),
            ),
            "A ballot with the number",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(cluster, request_, words):
    servers = cluster(ps=1)
    server = servers["ps", 0]
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        server.controls.at(server.address).call("Members", request_, 5.0)
    assert server.members.epoch == 0
    assert server.members.change(lambda record: record).epoch == 0
    assert admin.status(server.address)


def test_variables_are_where_the_record_says_also_for_who_was_not_told(cluster, monkeypatch):
    servers = cluster(ps=2, worker=2)
    monkeypatch.setattr("headrace.distributed.services.members.Members._tell", lambda *_: None)
    there = "/job:ps/replica:0/task:1"
    servers["ps", 0].members.change(lambda record: changed(record, moved={"v": there}))
    late = servers["worker", 1]
    assert late.members.epoch == 0
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("v", initializer=2.0, use_resource=True)
    with tf.Session(late.target) as session:
        session.run(v.initializer)
        assert session.run(v) == 2.0
    has_v = [any(key.name == "v" for key, _ in servers["ps", i].task.store.items()) for i in (0, 1)]
    assert has_v == [False, True]
    assert late.members.epoch == 1


def test_a_server_that_joins_takes_variables_that_are_moved_there(cluster, joined):
    servers = cluster(ps=1, worker=1)
    home = servers["ps", 0].address
    server = joined(servers, job="ps")
    assert server.server_def.task_index == 1
    # Programs place nothing there by themselves, whoever asks for the cluster later.
    assert joined(servers).cluster.num_tasks("ps") == 1
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("v", initializer=2.0, use_resource=True)
    add = v.assign_add(1.0)
    with tf.Session(servers.target("worker")) as session:
        session.run(v.initializer)
        session.run(add)
        done = admin.move(home, ["v"], server.task.me.task)
        assert list(done.moved) == ["v"]
        assert session.run(add) == 4.0
    assert [key.name for key, _ in server.task.store.items()] == ["v"]


def test_the_record_says_who_stands_for_a_server_that_has_left():
    known = {f"/job:ps/replica:0/task:{i}": f"ps{i}:2222" for i in range(3)}
    first, second, third = known
    record = changed(ClusterRecord(), moved={"v": third, "w": first})
    record = without(record, [third], known)
    assert record.moved == {"v": first, "w": first, third: first}
    record = without(record, [first], known)
    assert record.moved == {"v": second, "w": second, third: second, first: second}
    worker = "/job:worker/replica:0/task:0"
    assert without(ClusterRecord(), [worker], {**known, worker: "w:1"}).moved == {}


def test_a_task_that_only_serves_leaves_when_no_session_needs_it(cluster, joined, caplog):
    servers = cluster(ps=1, worker=1)
    server = joined(servers)
    with tf.device(server.task.me.task):
        x = tf.constant(1.0) + tf.placeholder_with_default(1.0, [])
    waits = threading.Thread(target=server.join)
    assert eventually(lambda: server.task.me.task in servers["worker", 0].members.addresses)
    with tf.Session(servers.target("worker")) as session:
        assert session.run(x) == 2.0
        waits.start()
        answer = admin.resize(servers["ps", 0].address, {"worker": 1})
        assert list(answer.leaving) == [server.task.me.task]
        assert eventually(lambda: "is to leave, and still has 1 plans of sessions" in caplog.text)
        assert session.run(x) == 2.0
    assert eventually(lambda: not waits.is_alive())
    assert server.task.me.task not in servers["ps", 0].members.addresses


@pytest.mark.slow  # it waits for a while before it asks why it has to
def test_a_worker_of_another_program_is_told_what_differs(cluster, joined):
    servers = cluster(ps=1, worker=1)
    worker = joined(servers)
    with tf.Graph().as_default(), tf.device("/job:ps/task:0"):
        tf.get_variable("w", [3], initializer=tf.zeros_initializer())
        with tf.train.MonitoredTrainingSession(servers.target("worker"), is_chief=True):
            pass
    with tf.Graph().as_default(), tf.device("/job:ps/task:0"):
        tf.get_variable("other", [2], initializer=tf.zeros_initializer())
        with pytest.raises(ValueError, match=r"the chief has no other \(float32 \(2,\)\)"):
            tf.train.MonitoredTrainingSession(worker.target, is_chief=False)
