"""One task of one side's cluster in a process of its own, for `distributed.py`.

Started as `python distributed_side.py headrace|tensorflow TASK`, where TASK is JSON: the job, the
index, the cluster, and for workers what they build. A parameter server starts its server and
serves. A worker answers requests, a line of JSON each, over its pipes:

    {"do": "build"}                      builds the program and warms up        {}
    {"do": "time", "seconds": s, "least": n}   runs steps for s seconds         {"seconds": [...]}
    {"do": "check"}                      checks what the steps did              {}

A failure is answered by {"error": text}. When the pipe in ends, as it does when the starter is
killed, the process ends at once, whatever it is doing.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
import traceback
from typing import Any

from side import load, take_stdout

WARM_UP_STEPS = 8  # Headrace interprets up to five
WARM_UP_SECONDS = 1.0


def read_requests() -> queue.Queue[dict]:
    """Requests as they come in; the end of the pipe is the end of the process."""
    requests: queue.Queue[dict] = queue.Queue()

    def read() -> None:
        for line in sys.stdin:
            requests.put(json.loads(line))
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    return requests


class Worker:
    """The program of one worker."""

    def __init__(self, module: Any, server: Any, spec: dict) -> None:
        from distributed_workloads import Task

        cluster = spec["cluster"]
        self._spec = spec
        self._task = Task(
            tf=module,
            cluster=module.train.ClusterSpec(cluster),
            target=server.target,
            index=spec["index"],
            workers=len(cluster["worker"]),
            servers=len(cluster["ps"]),
        )
        self._program: Any = None

    def answer(self, request: dict) -> dict:
        if request["do"] == "build":
            from distributed_workloads import BUILDERS

            self._program = BUILDERS[self._spec["build"]](self._task, **self._spec["arguments"])
            if not self._spec["lockstep"]:
                self._run(WARM_UP_SECONDS, WARM_UP_STEPS)
            return {}
        if request["do"] == "time":
            return {"seconds": self._run(request["seconds"], request["least"])}
        self._program.check()
        return {}

    def _run(self, seconds: float, least: int) -> list[float]:
        """Run steps for so long, but at least so many; the seconds of each."""
        run, now = self._program.run, time.perf_counter
        taken: list[float] = []
        start = now()
        end = start + seconds
        while start < end or len(taken) < least:
            run()
            done = now()
            taken.append(done - start)
            start = done
        return taken


def main() -> None:
    side, spec = sys.argv[1], json.loads(sys.argv[2])
    answers = os.fdopen(take_stdout(), "w", buffering=1)
    requests = read_requests()
    try:
        module = load(side)
        cluster = module.train.ClusterSpec(spec["cluster"])
        server = module.train.Server(cluster, job_name=spec["job"], task_index=spec["index"])
    except Exception as error:
        traceback.print_exc()
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), file=answers)
        os._exit(1)
    print(json.dumps({"version": module.__version__}), file=answers)
    if spec["job"] == "ps":
        server.join()
        return
    worker = Worker(module, server, spec)
    while True:
        request = requests.get()
        try:
            answer = worker.answer(request)
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers)


if __name__ == "__main__":
    main()
