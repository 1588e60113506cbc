"""Real TensorBoard in a real browser shows what a program wrote.

The screenshots are kept in `build/artifacts`.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pytest

import headrace as tf

ARTIFACTS = Path(__file__).resolve().parents[2] / "build" / "artifacts"
PATIENCE = 60.0

pytest.importorskip("tensorboard", reason="TensorBoard is not installed")
webdriver = pytest.importorskip("selenium.webdriver", reason="Selenium is not installed")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")

pytestmark = [
    pytest.mark.skipif(
        CHROMIUM is None or DRIVER is None, reason="there is no Chromium with its driver"
    ),
    pytest.mark.timeout(240),
]

#: Waits until a page shows something: looks after each frame that the browser draws. Shadow roots,
#: where TensorBoard's pages keep their parts, are entered.
_SHOWN = """
const [selector, done] = arguments;
function collect(node) {
  let found = Array.from(node.querySelectorAll(selector));
  for (const inner of node.querySelectorAll("*")) {
    if (inner.shadowRoot) { found = found.concat(collect(inner.shadowRoot)); }
  }
  return found;
}
function look() {
  const found = collect(document).map(ASK);
  if (ENOUGH) { done(found.length); } else { requestAnimationFrame(look); }
}
look();
"""
#: Of each page: which elements to look for, what to ask of them, and when that is enough.
_PAGES = {
    "scalars": ("path", "e => e.getAttribute('d') || ''", "found.some(d => d.length > 100)"),
    "histograms": ("path", "e => e.getAttribute('d') || ''", "found.filter(d => d).length >= 20"),
    "images": ("img", "e => e.naturalWidth", "found.some(width => width > 0)"),
    "graphs": (
        "text",
        "e => e.firstChild ? e.firstChild.textContent : ''",
        "['input', 'linear'].every(name => found.includes(name))",
    ),
}


def _train(logdir: Path) -> list[float]:
    """A small program of the era; returns its losses."""
    rng = np.random.RandomState(0)
    features = rng.rand(64, 3).astype(np.float32)
    with tf.Graph().as_default():
        with tf.name_scope("input"):
            x = tf.placeholder(tf.float32, [None, 3], name="features")
        with tf.name_scope("linear"):
            weights = tf.Variable(tf.zeros([3, 1]), name="weights")
            y = tf.matmul(x, weights)
        loss = tf.reduce_mean(tf.square(y - features @ np.float32([[1.0], [-2.0], [0.5]])))
        train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
        tf.summary.scalar("loss", loss)
        tf.summary.histogram("weights", weights)
        tf.summary.image("squares", tf.tile(tf.reshape(y[:4], [4, 1, 1, 1]), [1, 8, 8, 3]))
        merged = tf.summary.merge_all()
        losses = []
        with tf.Session() as sess, tf.summary.FileWriter(str(logdir), sess.graph) as writer:
            sess.run(tf.global_variables_initializer())
            for step in range(20):
                summary, value, _ = sess.run([merged, loss, train], {x: features})
                losses.append(float(value))
                writer.add_summary(summary, step)
    return losses


@contextlib.contextmanager
def _tensorboard(logdir: Path):
    """The address of a TensorBoard that shows ``logdir``, which it has read by then."""
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(logdir)]
    command += ["--host", "127.0.0.1", "--port", "0", "--load_fast", "false"]
    command += ["--reload_task", "blocking", "--reload_interval", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        said = []
        for line in process.stderr:
            said.append(line)
            if found := re.search(r"http://[^ ]+", line):
                yield found.group().rstrip("/")
                return
        pytest.fail("TensorBoard did not start: " + "".join(said))
    finally:
        process.terminate()
        process.wait(PATIENCE)
        process.stderr.close()


@contextlib.contextmanager
def _browser(profile: Path):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (
        *("headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run"),
        *("disable-background-networking", "disable-component-update", "disable-sync"),
        *("disable-dev-shm-usage", "window-size=1400,1000", f"user-data-dir={profile}"),
    ):
        options.add_argument(f"--{flag}")
    service = webdriver.ChromeService(executable_path=DRIVER)
    driver = webdriver.Chrome(options=options, service=service)
    driver.set_script_timeout(PATIENCE)
    try:
        yield driver
    finally:
        driver.quit()


def _data(address: str, path: str):
    with urllib.request.urlopen(f"{address}/data/plugin/{path}", timeout=PATIENCE) as answer:
        return json.load(answer)


def test_tensorboard_shows_scalars_histograms_images_and_the_graph(tmp_path):
    losses = _train(tmp_path / "run")
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    with _tensorboard(tmp_path) as address, _browser(tmp_path / "profile") as browser:
        rows = _data(address, "scalars/scalars?run=run&tag=loss")
        assert [step for _, step, _ in rows] == list(range(20))
        np.testing.assert_allclose([value for *_, value in rows], losses, rtol=1e-6)
        histograms = _data(address, "histograms/histograms?run=run&tag=weights")
        assert len(histograms) == 20
        for page, (selector, ask, enough) in _PAGES.items():
            browser.get(f"{address}/#{page}")
            shown = _SHOWN.replace("ASK", ask).replace("ENOUGH", enough)
            assert browser.execute_async_script(shown, selector)  # else its time runs out
            browser.save_screenshot(str(ARTIFACTS / f"tensorboard-{page}.png"))
