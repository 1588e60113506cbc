"""One process of the cluster that `headrace chaos` trains on: a server or a worker.

It imports all it needs, says so, and waits to be told which task it is. Later lines of its standard
input are faults that only a process itself can have, or the word to stop. It ends when its standard
input does, so that it never outlives the process that started it.
"""

from __future__ import annotations

import json
import os
import threading
from typing import Any

import headrace as tf
from headrace.chaos.task_faults import DelayedServer, Delays, SkewedClock, SlowDisk
from headrace.chaos.training import Training, say, train


def main() -> None:
    """Be the task that the first line names."""
    tf.logging.set_verbosity(tf.logging.INFO)
    say(event="imported")
    told = json.loads(_line())
    cluster, index = tf.train.ClusterSpec(told["cluster"], told["replicas"]), int(told["index"])
    stop = threading.Event()
    delays = Delays()
    server = DelayedServer(cluster, told["job"], index, delays)
    listen = threading.Thread(target=_listen, args=(server, delays, stop), daemon=True)
    listen.start()
    say(event="ready")
    if told["job"] == "worker":
        train(server, cluster, index, Training(**told["work"]), stop)
        say(event="ended")
        server.stop()
    else:
        try:
            server.join()
        except tf.errors.AbortedError:
            say(event="taken over")
            raise


def _line() -> bytes:
    """The next line of the standard input.

    Not by way of sys.stdin: a thread that waits in there disturbs the interpreter's end.
    """
    found = b""
    while not found.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            os._exit(1)
        found += byte
    return found


def _listen(server: Any, delays: Delays, stop: threading.Event) -> None:
    """Do what later lines say."""
    disk: SlowDisk | None = None
    wall: SkewedClock | None = None
    while True:
        what = json.loads(_line())
        if what["do"] == "end":
            stop.set()
        elif what["do"] == "cut":
            for link in server.task.peers.all():
                link.fail("cut on purpose")
        elif what["do"] == "delay":
            delays.begin(what["seconds"], what["by"])
        elif what["do"] == "clock":
            wall = wall or SkewedClock()
            wall.begin(what["seconds"], what["by"])
        elif what["do"] == "slow disk":
            disk = disk or SlowDisk()
            disk.begin(what["seconds"], what["by"])


if __name__ == "__main__":
    main()
