"""`BackupAndRestore` of Keras in a launch, with a worker that is killed in the middle."""

import re

import pytest

pytestmark = pytest.mark.process

#: A worker kills itself as epoch 3 begins; the other one waits in epoch 4 until it has begun again.
FIT = """
import os, pathlib, signal, threading
import numpy as np
import tensorflow as tf
from headrace.ops.state import share

xs = np.random.RandomState(1).randn(60, 4).astype(np.float32)
ys = xs @ np.array([[1.0], [-2.0], [3.0], [0.5]], np.float32)
model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(1)])
model.compile(tf.keras.optimizers.SGD(0.05), "mse")
rank, killed, again = share.current().worker, pathlib.Path("killed"), pathlib.Path("again")
was_killed = rank == KILLED and killed.exists()

class Deadly(tf.keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        print("epoch", epoch, flush=True)
        if was_killed:
            again.touch()
        elif rank == KILLED and epoch == 3:
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        while epoch == 4 and not again.exists():
            threading.Event().wait(0.05)

backup = tf.keras.callbacks.BackupAndRestore("backup")
model.fit(xs, ys, epochs=40, batch_size=20, verbose=0, callbacks=[backup, Deadly()])
print("w", *np.ravel(model.get_weights()[0]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["--async", "--sync"])
@pytest.mark.parametrize("killed", [0, 1])
def test_a_killed_worker_goes_on_where_the_backup_is(launch, killed, mode):
    text = FIT.replace("KILLED", str(killed))
    run = launch(text, "--ps", "1", "--workers", "2", mode, "script.py")
    status, output, errors = run.end()
    assert status == 0, output + errors
    assert f"worker/{killed} has ended: signal SIGKILL. It is started again" in errors
    first, second = run.log(f"worker/{killed}").split("--- start 2 ---")
    epochs = [[int(n) for n in re.findall(r"^epoch (\d+)$", t, re.M)] for t in (first, second)]
    assert epochs[0] == [0, 1, 2, 3]
    # The chief has saved at the end of epoch 2. Where it lives, it may be about to, or an epoch on.
    assert epochs[1][0] in ([3] if killed == 0 else [2, 3, 4])
    assert epochs[1] == list(range(epochs[1][0], 40))
    found = re.findall(r"\[worker/\d\] w (.*)", output)
    assert len(found) == 2, output
    for line in found:
        assert [float(v) for v in line.split()] == pytest.approx([1.0, -2.0, 3.0, 0.5], abs=0.05)
    assert not list(run.folder.glob("backup/*"))


#: Epoch 3 begins when all have come to it; then a worker kills itself.
LOST = """
import os, pathlib, signal, threading
import numpy as np
import tensorflow as tf
from headrace.ops.state import share

xs = np.random.RandomState(1).randn(60, 4).astype(np.float32)
ys = xs @ np.array([[1.0], [-2.0], [3.0], [0.5]], np.float32)
model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(1)])
model.compile(tf.keras.optimizers.SGD(0.05), "mse")

class Deadly(tf.keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if share.current().worker == KILLED and epoch == 3:
            os.kill(os.getpid(), signal.SIGKILL)

saves = tf.keras.callbacks.ModelCheckpoint("{epoch}.keras")
for epochs in (20, 10):
    model.fit(xs, ys, epochs=epochs, batch_size=20, verbose=0, callbacks=[Deadly(), saves])
model.save("end.keras")
print("w", *np.ravel(model.get_weights()[0]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("killed", [0, 1])
def test_without_servers_the_others_go_on_and_one_of_them_saves(launch, killed):
    run = launch(LOST.replace("KILLED", str(killed)), "--workers", "3", "--all-reduce", "script.py")
    status, output, errors = run.end()
    assert status == 137, output + errors
    assert "started again" not in errors
    found = dict(re.findall(r"\[worker/(\d)\] w (.*)", output))
    assert set(found) == {"0", "1", "2"} - {str(killed)}, output
    (line,) = set(found.values())
    assert [float(v) for v in line.split()] == pytest.approx([1.0, -2.0, 3.0, 0.5], abs=0.05)
    assert "Not all workers have come" not in output
    assert (run.folder / "20.keras").exists()
    assert (run.folder / "end.keras").exists()
