"""`headrace launch`: real processes on this machine, to their end whatever that is."""

import os
import pty
import re
import signal

import pytest
from launches import CLUSTER, PATIENCE, eventually

pytestmark = pytest.mark.process
TWO = ("--ps", "1", "--workers", "2", "script.py")


def test_a_cluster_trains_and_ends(launch):
    run = launch(CLUSTER, *TWO, "30")
    status, output, errors = run.end()
    assert status == 0, errors
    assert output.count("] end\n") == 2
    assert "[worker/0] step 10 loss:" in output or "[worker/1] step 10 loss:" in output
    for task in ("worker/0", "worker/1"):
        assert f"headrace: {task} is done" in errors
        assert run.log(task).endswith("end\n--- exit status 0 ---\n")
    assert "--- exit status 0 ---" in run.log("ps/0")
    told = re.search("headrace: ps/0 is at (127.0.0.1:[0-9]+), for `headrace status`", errors)
    assert told
    assert told[1] in output


@pytest.mark.slow
def test_who_is_killed_is_started_again(launch):
    run = launch(f"import os\nprint('process', os.getpid())\n{CLUSTER}", *TWO, "4000")
    for task in ("worker/1", "ps/0"):
        eventually(lambda: "loss:" in run.log("worker/0") + run.log("worker/1"))
        process = run.log(task).split("process ")[1].split()[0]
        os.kill(int(process), signal.SIGKILL)
        eventually(lambda task=task: "--- start 2 ---" in run.log(task))
        assert "--- signal SIGKILL ---" in run.log(task)
    status, _, errors = run.end()
    assert status == 0, errors
    assert "headrace: worker/1 has ended: signal SIGKILL. It is started again in" in errors
    assert "headrace: ps/0 has ended: signal SIGKILL. It is started again in" in errors


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_ends_all(launch, number, status):
    run = launch(CLUSTER, *TWO, "1000000")
    eventually(lambda: "loss:" in run.log("worker/0"))
    run.process.send_signal(number)
    found, _, errors = run.end()
    assert found == status
    assert f"{signal.Signals(number).name}: all tasks are asked to end" in errors
    assert run.ours() == {}


@pytest.mark.slow
def test_nobody_need_read_what_tasks_write(launch):
    """As with `| less`: training goes on, and signals are heard."""
    run = launch("while True: print('x' * 1000)", "script.py")
    eventually(lambda: len(run.log("worker/0")) > 20_000_000)
    run.process.send_signal(signal.SIGTERM)
    assert run.process.wait(PATIENCE) == 143
    assert run.ours() == {}


@pytest.mark.slow
def test_the_second_ctrl_c_kills_who_does_not_listen(launch):
    text = "import signal, time\nsignal.signal(signal.SIGTERM, lambda *_: print('no'))\n"
    run = launch(f"{text}print('deaf')\nwhile True: time.sleep(1)", "script.py")
    eventually(lambda: "deaf" in run.log("worker/0"))
    run.process.send_signal(signal.SIGINT)
    eventually(lambda: "no" in run.log("worker/0"))
    run.process.send_signal(signal.SIGINT)
    assert run.end()[0] == 130
    assert "--- signal SIGKILL ---" in run.log("worker/0")


@pytest.mark.slow
def test_more_ctrl_c_while_a_launch_ends_do_not_change_its_status(launch):
    run = launch("import time\nprint('here')\ntime.sleep(1000)", "script.py")
    eventually(lambda: "here" in run.log("worker/0"))
    while run.process.poll() is None:
        run.process.send_signal(signal.SIGINT)
    status, _, errors = run.end()
    assert status == 130
    assert "Aborted" not in errors
    assert "Traceback" not in errors


@pytest.mark.slow
def test_nothing_outlives_a_launcher_that_is_killed(launch):
    run = launch(CLUSTER, *TWO, "1000000")
    eventually(lambda: "loss:" in run.log("worker/0"))
    run.process.kill()
    run.end()
    eventually(lambda: run.ours() == {})


@pytest.mark.slow
def test_a_closed_terminal_ends_all(launch):
    ours, theirs = pty.openpty()
    run = launch(
        CLUSTER,
        *TWO,
        "1000000",
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)),
    )
    os.close(theirs)
    shown = b""
    while b"worker/1" not in shown or b"loss:" not in shown:
        shown += os.read(ours, 4096)
    os.close(ours)
    assert run.end()[0] == 129
    assert run.ours() == {}


@pytest.mark.slow
@pytest.mark.parametrize("stream", range(3))
def test_closed_standard_streams(launch, stream):
    """As with ``>&-``: what is still open is used, and tasks have all three."""
    text = "import os, sys\nprint('here', [os.fstat(n).st_ino for n in range(3)] and 'open')"
    run = launch(text, "script.py", preexec_fn=lambda: os.close(stream))
    status, output, errors = run.end()
    assert status == 0, output + errors
    assert "here open" in run.log("worker/0")
    assert output == ("" if stream == 1 else "[worker/0] here open\n")
    assert errors == ("" if stream == 2 else "headrace: worker/0 is done\n")


@pytest.mark.slow
def test_a_terminal_shows_a_panel(launch):
    ours, theirs = pty.openpty()
    run = launch(CLUSTER, *TWO, "200", stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 4096)
        except OSError:
            break
    os.close(ours)
    assert run.end()[0] == 0
    text = shown.decode()
    for word in ("script.py: 1 ps, 2 worker", "a second", "restarts", "running", "done"):
        assert word in text


@pytest.mark.slow
def test_what_a_task_leaves_behind_ends_with_it(launch):
    text = """
import os, time
if os.fork() == 0:          # in the group of its task
    print("one", os.getpid(), flush=True)
    time.sleep(1000)
if os.fork() == 0:          # a daemon
    os.setsid()
    if os.fork() == 0:
        print("two", os.getpid(), flush=True)
        time.sleep(1000)
    os._exit(0)
print("done")
"""
    run = launch(text, "script.py")
    assert run.end()[0] == 0
    assert run.ours() == {}


@pytest.mark.parametrize(
    ("text", "status", "words"),
    [
        ("raise ValueError('no')", 1, ["ValueError: no", "It would end so again: all are ended"]),
        ("import sys; sys.exit(5)", 5, ["worker/0 has ended: exit status 5"]),
        ("input('name? ')", 1, ["EOFError: A task that `headrace launch` starts has no standard"]),
        ("", 0, ["worker/0 is done"]),
    ],
    ids=["raises", "exits", "reads", "does nothing"],
)
@pytest.mark.slow
def test_scripts_that_end_at_once(launch, text, status, words):
    run = launch(text, "script.py")
    found, output, errors = run.end()
    assert found == status
    for word in words:
        assert word in output + errors


def test_a_plain_script_is_spread_over_the_workers(launch):
    """Its variable is at a server of the launcher's own, and an update has the rows of both."""
    text = """
import json, os
import tensorflow as tf
x = tf.placeholder(tf.float32, [None], name="x")
w = tf.get_variable("w", initializer=0.0)
train = tf.train.GradientDescentOptimizer(1.0).minimize(tf.reduce_mean(x * w))
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(train, {x: [1.0, 2.0, 3.0, 6.0]})
    print(w.device, session.run(w))
config = os.environ["TF_" + "CONFIG"]
with tf.Session("grpc://" + json.loads(config)["cluster"]["ps"][0]) as session:
    print("parts", [d.name for d in session.list_devices() if "CPU" in d.name])
"""
    run = launch(text, "--ps", "1", "--workers", "2", "--sync", "script.py")
    status, output, errors = run.end()
    assert status == 0, output + errors
    for index in range(2):
        assert f"[worker/{index}] /job:ps/task:0 -3.0" in output
    assert "/job:ps/replica:0/task:0/device:CPU:0" in output
    assert "[ps/0] /job" not in output
