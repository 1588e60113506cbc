"""What programs of the time begin with, and how they look at what they have saved, by workers."""

import re

import pytest

pytestmark = [pytest.mark.process, pytest.mark.slow]

SCRIPT = """
import os
import numpy as np
import tensorflow as tf

logs = os.path.join("logs", "train")
if tf.gfile.Exists(logs):
    tf.gfile.DeleteRecursively(logs)
tf.gfile.MakeDirs(logs)
x, y = tf.placeholder(tf.float32, [None, 1]), tf.placeholder(tf.float32, [None, 1])
w = tf.Variable([[0.0]])
loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
summary = tf.summary.scalar("loss", loss)
step = tf.train.get_or_create_global_step()
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
saver = tf.train.Saver()
xs = np.ones((8, 1), np.float32)
with tf.Session() as sess:
    writer = tf.summary.FileWriter(logs, sess.graph)
    sess.run(tf.global_variables_initializer())
    for i in range(6):
        text, _ = sess.run([summary, train], {x: xs, y: 3 * xs})
        writer.add_summary(text, i)
        saver.save(sess, os.path.join(logs, "m"), step)
        saver.restore(sess, tf.train.latest_checkpoint(logs))
        saver.restore(sess, saver.save(sess, os.path.join(logs, "now")))
    writer.close()
    print("w", *sess.run(w).ravel())
"""


@pytest.mark.parametrize(
    "own",
    [("--ps", "1", "--sync"), ("--ps", "1"), ("--all-reduce",)],
    ids=["sync", "async", "all-reduce"],
)
def test_workers_begin_with_an_empty_folder_and_restore_what_they_have_saved(launch, tmp_path, own):
    old = tmp_path / "logs" / "train" / "old"
    old.mkdir(parents=True)
    for i in range(300):
        (old / str(i)).touch()
    status, output, errors = launch(SCRIPT, *own, "--workers", "3", "script.py").end()
    assert status == 0, output + errors
    found = [float(w) for w in re.findall(r"\] w (.*)", output)]
    assert len(found) == 3
    if own != ("--ps", "1"):
        assert found == [pytest.approx(3 * (1 - 0.8**6), rel=1e-4)] * 3
    assert not old.exists()
    assert len(list((tmp_path / "logs" / "train").glob("events*"))) == 1


DIES = """
import os
import tensorflow as tf

logs = "logs"
if tf.gfile.Exists(logs):
    tf.gfile.DeleteRecursively(logs)
tf.gfile.MakeDirs(logs)
v = tf.Variable(1.0)
saver = tf.train.Saver()
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    if os.environ["HEADRACE_STARTS"] == "1":
        saver.save(sess, os.path.join(logs, "m"))
        os.kill(os.getpid(), 9)
    print("found", tf.train.latest_checkpoint(logs))
"""


@pytest.mark.parametrize("own", [("--ps", "1"), ("--all-reduce",)], ids=["async", "all-reduce"])
def test_a_chief_that_comes_back_finds_its_checkpoints(launch, own):
    status, output, errors = launch(DIES, *own, "--workers", "1", "script.py").end()
    assert status == 0, output + errors
    assert re.findall(r"found (\S+)", output) == ["logs/m"]
