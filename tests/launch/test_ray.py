"""Jobs on real Ray clusters of several nodes on this machine, and what is refused without one."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from headrace.distributed.services import admin
from headrace.distributed.services.dialling import release
from headrace.launch import LaunchJob, Resources
from headrace.launch.ray import RayError, RayOptions, launch, run
from headrace.launch.ray_cluster import check_fit, connected
from headrace.test.cluster import free_ports

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed: the extra ray"
)
SMALL = {job: Resources(cpus=1) for job in ("ps", "worker")}
STORE = 100 << 20
SCRIPT = Path(__file__).parent / "ray_script.py"


# Before the cluster of the others: whoever is connected asks for no address.
@needs_ray
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_addresses_where_no_cluster_is():
    (port,) = free_ports(1)
    with (
        pytest.raises(RayError, match=f"No Ray cluster answers at '127.0.0.1:{port}': Connection"),
        connected(RayOptions(address=f"127.0.0.1:{port}"), False),
    ):
        pass
    with (
        pytest.raises(RayError, match="--address 'nowhere' is no address of a Ray cluster"),
        connected(RayOptions(address="nowhere"), False),
    ):
        pass


@needs_ray
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_that_ray_has_noted_and_that_is_gone(tmp_path, monkeypatch):
    (port,) = free_ports(1)
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "ray_current_cluster").write_text(f"127.0.0.1:{port}")
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with (
        pytest.raises(RayError, match=f"answers at '127.0.0.1:{port}'.*ray_current_cluster"),
        connected(RayOptions(address="auto"), False),
    ):
        pass


@needs_ray
@pytest.mark.parametrize("address", ["a:1,b:2", "ray://a:1,b:2"])
def test_several_addresses(address):
    with (
        pytest.raises(RayError, match=f"'{address}' names several; a Ray cluster has one address"),
        connected(RayOptions(address=address), False),
    ):
        pass


@pytest.fixture(scope="module")
def cluster():
    """Three nodes of two processors each, as Ray counts them."""
    import ray
    from ray.cluster_utils import Cluster

    options = {"num_cpus": 2, "object_store_memory": STORE}
    found = Cluster(initialize_head=True, head_node_args={**options, "include_dashboard": False})
    for _ in range(2):
        found.add_node(**options)
    ray.init(found.address, log_to_driver=False, logging_level="error")
    yield found
    ray.shutdown()
    found.shutdown()


def job(*arguments, **more):
    return LaunchJob(str(SCRIPT), arguments, **{"resources": SMALL, **more})


slow = [
    pytest.mark.slow,
    pytest.mark.process,
    needs_ray,
    pytest.mark.timeout(300),
    # Of Ray's own modules.
    pytest.mark.filterwarnings("ignore"),
]


def marked(test):
    for mark in slow:
        test = mark(test)
    return test


@marked
def test_a_script_trains_on_a_cluster(cluster, tmp_path, capfd):
    options = RayOptions(log_folder=tmp_path / "logs", strategy="SPREAD")
    assert launch(job("20", str(tmp_path / "model"), ps=2, workers=2), options) == 0
    logs = {path.stem: path.read_text() for path in (tmp_path / "logs").iterdir()}
    assert set(logs) - {"launcher"} == {"ps-0", "ps-1", "worker-0", "worker-1"}
    assert all("20 steps" in logs[f"worker-{i}"] for i in (0, 1))
    shown = capfd.readouterr()
    assert "[worker/1] 20 steps" in shown.out
    assert re.search(r"ps/0 is at 127\.0\.0\.1:\d+, for `headrace status`", shown.err)
    assert_nothing_is_left(cluster)


@marked
def test_the_task_of_a_killed_node_comes_back_on_another(cluster, tmp_path, capfd):
    """It joins the cluster from there, and the others train on meanwhile."""
    victim = cluster.add_node(num_cpus=1, object_store_memory=STORE)
    options = RayOptions(log_folder=tmp_path / "logs", strategy="STRICT_SPREAD")
    go_on, done = tmp_path / "go-on", {}

    def work():
        many = job("wait", str(tmp_path / "model"), str(go_on), ps=1, workers=3)
        done["status"] = launch(many, options)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        wait_for(lambda: all(lines(tmp_path, f"worker-{i}", "step ") > 2 for i in range(3)), thread)
        cluster.remove_node(victim, allow_graceful=False)
        cluster.add_node(num_cpus=1, object_store_memory=STORE)
        tasks = ("ps-0", "worker-0", "worker-1", "worker-2")
        wait_for(lambda: any(lines(tmp_path, t, "serving at") == 2 for t in tasks), thread)
        (moved,) = [t for t in tasks if lines(tmp_path, t, "serving at") == 2]
        first = lines(tmp_path, moved, "step ")
        wait_for(lambda: moved == "ps-0" or lines(tmp_path, moved, "step ") > first, thread)
    finally:
        go_on.touch()
        thread.join(120)
    assert done["status"] == 0
    assert f"headrace: {moved.replace('-', '/')} is at 127.0.0.1:" in capfd.readouterr().err
    assert_nothing_is_left(cluster)


@marked
def test_workers_come_and_go_with_the_nodes_that_have_room_for_them(cluster, tmp_path, capfd):
    """A worker more is wanted than there is room for; nodes for it come, and are killed."""
    two = {job: Resources(cpus=2) for job in ("ps", "worker")}
    options = RayOptions(log_folder=tmp_path / "logs")
    go_on, done, said = tmp_path / "go-on", {}, []

    def work():
        arguments = ("wait", str(tmp_path / "model"), str(go_on))
        done["status"] = launch(
            job(*arguments, ps=1, workers=2, elastic=(2, 4), resources=two), options
        )

    def told(pattern):
        said.append(capfd.readouterr().err)
        return re.findall(pattern, "".join(said))

    def starts():
        return lines(tmp_path, "worker-2", "serving at")

    thread = threading.Thread(target=work)
    thread.start()
    try:
        wait_for(lambda: all(lines(tmp_path, f"worker-{i}", "step ") > 2 for i in (0, 1)), thread)
        wait_for(lambda: told(r"ps/0 is at (\S+),"), thread)
        admin.resize(told(r"ps/0 is at (\S+),")[0], {"worker": 3})
        wait_for(lambda: told("worker/2 is wanted and is started"), thread)
        assert starts() == 0
        for round_ in (1, 2):
            node = cluster.add_node(num_cpus=2, object_store_memory=STORE)
            before = lines(tmp_path, "worker-2", "step ")
            wait_for(lambda n=before: lines(tmp_path, "worker-2", "step ") > n + 2, thread)
            assert starts() == round_
            cluster.remove_node(node, allow_graceful=False)
            wait_for(lambda n=round_: len(told("worker/2 has ended")) == n, thread)
    finally:
        go_on.touch()
        thread.join(120)
    assert done["status"] == 0
    assert told("there is no room for worker/2, and the others have ended")
    assert_nothing_is_left(cluster)


@marked
def test_a_node_with_another_release_is_refused(cluster, tmp_path, capfd, monkeypatch):
    """The launching machine has another one than the nodes, of which there are two kinds then."""
    monkeypatch.setattr("headrace.launch.ray.release", lambda: "0.0.1")
    options = RayOptions(log_folder=tmp_path / "logs")
    assert launch(job("20", str(tmp_path / "model"), ps=1, workers=2), options) == 1
    text = capfd.readouterr().err
    assert f"has Headrace {release()} on its node, and this machine 0.0.1: tasks of one" in text
    assert "Install it on all nodes of the Ray cluster." in text
    assert_nothing_is_left(cluster)


@marked
def test_a_script_that_fails_is_the_exit_status(cluster, tmp_path):
    script = tmp_path / "fails.py"
    script.write_text("import sys\nprint('about to fail')\nsys.exit(3)\n")
    failing = LaunchJob(str(script), workers=2, resources=SMALL, restarts=0)
    assert launch(failing, RayOptions(log_folder=tmp_path / "logs")) == 3
    text = (tmp_path / "logs" / "worker-0.log").read_text()
    assert text.startswith("about to fail\n--- ")
    assert_nothing_is_left(cluster)


@marked
def test_a_function_runs_in_each_worker(cluster):
    def shared_count():
        """Adds 2 to a variable on the server, and waits for what the other one adds."""
        import headrace as tf
        from headrace.distributed.cluster.tf_config import read_tf_config

        config = read_tf_config()
        server = tf.train.Server(config.cluster, job_name=config.job, task_index=config.task)
        with tf.device("/job:ps/task:0"):
            count = tf.get_variable("count", [], initializer=tf.zeros_initializer())
        add = tf.assign_add(count, 2.0)
        with tf.train.MonitoredTrainingSession(server.target, config.task == 0) as session:
            session.run(add)
            while (value := session.run(count)) < 4.0:
                pass
        return config.task, float(value)

    assert run(shared_count, ps=1, workers=2, resources=SMALL) == [(0, 4.0), (1, 4.0)]

    def fails():
        raise ValueError("never mind")

    with pytest.raises(RayError, match="fails has failed with exit status 1") as raised:
        run(fails, workers=1, resources=SMALL)
    assert isinstance(raised.value.__cause__, ValueError)
    assert "never mind" in str(raised.value.__cause__)

    def leaves(status):
        return lambda: sys.exit(status)

    assert run(leaves(0), workers=1, resources=SMALL) == [None]
    with pytest.raises(RayError, match="has failed with exit status 1") as raised:
        run(leaves(3), workers=1, resources=SMALL)
    assert "It has called sys.exit(3)." in str(raised.value.__cause__)
    assert_nothing_is_left(cluster)


@marked
def test_a_function_that_cannot_be_carried_is_refused_before_anything_is_placed(cluster, capfd):
    lock = threading.Lock()

    def locked():
        return lock

    said = r"locked cannot be carried to the tasks: cannot pickle .* \(lock\)\. Let it make"
    with pytest.raises(RayError, match=said):
        run(locked, ps=1, workers=2, resources=SMALL)
    assert "headrace" not in capfd.readouterr().err
    assert_nothing_is_left(cluster)


@marked
def test_servers_of_a_plain_script_serve(cluster, tmp_path):
    """As with the command: the script would only repeat the workers' work in them."""
    script = tmp_path / "plain.py"
    script.write_text(
        "import headrace as tf\n"
        "total = tf.Variable(0.0)\n"
        "add = total.assign_add(1.0)\n"
        "with tf.Session() as session:\n"
        "    session.run(tf.global_variables_initializer())\n"
        "    print('total', session.run(add))\n"
    )
    options = RayOptions(log_folder=tmp_path / "logs")
    assert run(str(script), ps=1, workers=2, resources=SMALL, options=options) == []
    assert all("total" in (tmp_path / f"logs/worker-{i}.log").read_text() for i in (0, 1))
    assert "total" not in (tmp_path / "logs/ps-0.log").read_text()
    assert_nothing_is_left(cluster)


def test_what_is_no_function_and_no_script():
    with pytest.raises(TypeError, match="Give a function, or the name of a script, not 3"):
        run(3)
    with pytest.raises(FileNotFoundError, match=r"There is no file 'nowhere\.py'"):
        run("nowhere.py")
    with pytest.raises(ValueError, match="arguments= are those of a script"):
        run(free_ports, arguments=["1"])


@marked
def test_what_the_cluster_does_not_have_is_refused(cluster):
    with pytest.raises(RayError) as raised:
        launch(job("1", workers=1, resources={"worker": Resources(gpus=4)}), RayOptions())
    text = str(raised.value)
    assert text.startswith("No node of the Ray cluster has 1 CPU, 4 GPU for worker/0. Its ")
    assert "2 CPU" in text
    assert "--wait SECONDS" in text


@marked
def test_nodes_with_addresses_of_their_own_need_security(cluster, monkeypatch):
    import ray

    nodes = [
        {"Alive": True, "NodeManagerAddress": f"192.0.2.{i}", "Resources": {"CPU": 2.0}}
        for i in (1, 2)
    ]
    monkeypatch.setattr(ray, "nodes", lambda: nodes)
    with pytest.raises(RayError, match=r"The tasks will be on several machines: .*192\.0\.2\.1"):
        launch(job("1", workers=1), RayOptions())


@marked
def test_a_terminal_that_closes_leaves_ray_the_time_to_end_the_tasks(tmp_path):
    """It signals the whole process group, and so would have ended Ray before them."""
    command = [sys.executable, "-m", "headrace", "launch", "--on", "ray", "--workers", "1"]
    process = subprocess.Popen(
        [*command, "--cpus", "0.1", str(SCRIPT), "wait", "model", "never"],
        cwd=tmp_path,
        env={**os.environ, "RAY_ADDRESS": "local", "PYTHONPATH": os.pathsep.join(sys.path)},
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    shown = []
    for line in process.stdout:
        shown.append(line)
        if "step 3" in line:
            break
    os.killpg(process.pid, signal.SIGHUP)
    _, errors = process.communicate(timeout=50)  # Ray's client waits for a minute
    assert process.returncode == 129, (shown, errors)
    assert "headrace: SIGHUP: all tasks are asked to end" in errors


def lines(folder, task, text):
    """How many lines of a task's log have a text."""
    path = folder / "logs" / f"{task}.log"
    return path.read_text().count(text) if path.exists() else 0


def wait_for(condition, thread=None):
    """Look for two minutes whether something has happened."""
    pause = threading.Event()
    for _ in range(1200):
        if condition():
            return
        assert thread is None or thread.is_alive(), "the launch has ended"
        pause.wait(0.1)
    raise AssertionError("it did not happen in two minutes")


def assert_nothing_is_left(cluster):
    """No actor holds anything any more."""
    import ray

    wait_for(lambda: ray.available_resources().get("CPU") == ray.cluster_resources().get("CPU"))


def test_resources_that_nodes_do_not_have():
    nodes = [{"CPU": 4.0, "memory": 8.0 * 2**30}, {"CPU": 2.0, "GPU": 1.0}]
    few = LaunchJob("a.py", ps=1, workers=5)
    check_fit(few, nodes, 0)
    with pytest.raises(RayError) as raised:
        check_fit(LaunchJob("a.py", ps=1, workers=6), nodes, 0)
    assert str(raised.value) == (
        "The 7 tasks ask for 7 CPU, more than the Ray cluster has. Its 2 nodes have: 4 CPU, "
        "8.0 GiB memory; 2 CPU, 1 GPU. Ask for less with --cpus, --gpus or --memory, or, where an "
        "autoscaler brings more nodes, give it time with --wait SECONDS."
    )
    with pytest.raises(RayError, match=r"has\. Its one node has: 4 CPU, 8\.0 GiB memory\. Ask"):
        check_fit(few, nodes[:1], 0)
    big = LaunchJob("a.py", resources={"worker": Resources(cpus=4, gpus=1)})
    with pytest.raises(RayError, match="No node of the Ray cluster has 4 CPU, 1 GPU for worker/0"):
        check_fit(big, nodes, 0)
    check_fit(big, nodes, 60)


def test_a_python_without_ray(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(RayError, match=r"need the package ray: pip install 'headrace\[ray\]'"):
        launch(LaunchJob("a.py"), RayOptions())
