"""One model, many ways to train it: what `language_model.py` and `ranking.py` have in common.

    python examples/ranking.py --mode=sync --workers=4 --servers=2

starts six processes on this machine, and ends them when the training has ended. A process that
finds TF_CONFIG, as cluster managers set it, is that task and starts nothing: on many machines run
the same command on each of them.
"""

import contextlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading

import headrace as tf
from headrace.test.cluster import free_ports

#: Mode -> what it does.
MODES = {
    "local": "one process",
    "async": "parameters on servers; each worker updates them when it is ready",
    "sync": "parameters on servers; an update has one gradient of each worker",
    "sync-backup": "the same, but the last worker of each update is not waited for",
    "all-reduce": "each worker has all parameters; gradients are summed between the workers",
    "mirrored": "the same, over devices of one process, by tf.distribute",
    "sharded": "as all-reduce, but each worker updates only its part of the parameters",
}
ON_SERVERS = ("async", "sync", "sync-backup", "growing")
COPIES = ("all-reduce", "sharded")
#: One client, in worker 0, uses the devices of all workers.
DEVICES = ("split", "pipeline")


def add_arguments(parser, **more_modes):
    """``--mode`` and what belongs to it. ``more_modes``: those of one model alone."""
    modes = {**MODES, **more_modes}
    described = "; ".join(f"{name}: {what}" for name, what in modes.items())
    parser.add_argument("--mode", choices=list(modes), default="local", help=described)
    parser.add_argument("--workers", type=int, default=2, help="processes that compute")
    parser.add_argument(
        "--servers", type=int, default=2, help="processes that have parameters, if the mode has any"
    )


def uniform(seed):
    """An initialiser: numbers in [-0.1, 0.1), the same in each mode, for equal parts."""

    def initializer(shape, dtype=tf.float32, partition_info=None):
        part = partition_info.var_offset[0] if partition_info else 0
        return tf.random_uniform(shape, -0.1, 0.1, dtype, seed=1000 * seed + part)

    return initializer


def start(args):
    """This process's task, or None in the process that only starts the others."""
    if args.mode in ("local", "mirrored"):
        return Task(args, {}, "worker", 0)
    if "TF_CONFIG" not in os.environ:
        launch(args)
        return None
    config = json.loads(os.environ["TF_CONFIG"])
    return Task(args, config["cluster"], config["task"]["type"], config["task"]["index"])


def launch(args):
    """Run this program once for each task, until the workers have ended."""
    jobs = {"worker": args.workers}
    if args.mode in ON_SERVERS:
        jobs["ps"] = args.servers
    ports = iter(free_ports(sum(jobs.values())))
    cluster = {job: [f"127.0.0.1:{next(ports)}" for _ in range(n)] for job, n in jobs.items()}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    processes = []
    try:
        for job, addresses in cluster.items():
            for index in range(len(addresses)):
                task = {"cluster": cluster, "task": {"type": job, "index": index}}
                environment = {**os.environ, "TF_CONFIG": json.dumps(task)}
                processes.append(subprocess.Popen([sys.executable, *sys.argv], env=environment))
        wait_for(processes, args.workers, needed=1 if args.mode in DEVICES else args.workers)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


def wait_for(processes, workers, needed):
    """Wait until the first ``needed`` workers have ended; the others serve until they are ended.

    Workers do without one that fails, where the mode can. None does without what serves: they would
    wait for another, which nobody starts.
    """
    ended = queue.SimpleQueue()
    for index, process in enumerate(processes):
        watch = threading.Thread(target=lambda i=index, p=process: ended.put((i, p.wait())))
        watch.daemon = True
        watch.start()
    failed = {}
    running = set(range(needed))
    while running:
        index, status = ended.get()
        if index >= workers:
            sys.exit(f"Server {index - workers} ended with status {status}.")
        if index >= needed:
            sys.exit(f"Worker {index} ended with status {status}.")
        running.discard(index)
        if status:
            failed[index] = status
            if index == 0:
                break  # the chief, which saves, evaluates and prints
    for index, status in sorted(failed.items()):
        sys.exit(f"Worker {index} ended with status {status}.")


def part_of(op):
    """The number of a part of a variable, by its name: ``weights/part_1/Adagrad``."""
    found = re.search(r"part_(\d+)", op.name)
    return int(found[1]) if found else 0


class AtTheEnd(tf.train.SessionRunHook):
    """Calls a function when the training has ended."""

    def __init__(self, function):
        self.end = function


class Task:
    """What one process does in its mode.

    Attributes:
        chief: whether this is worker 0, which sets the parameters, evaluates and prints.
        devices: those of all workers, in the modes that spread one model over them.
    """

    def __init__(self, args, cluster, job, index):
        self.mode, self.index, self.workers = args.mode, index, len(cluster.get("worker", [0]))
        self.chief = index == 0
        self.cluster = tf.train.ClusterSpec(cluster)
        self.devices = [f"/job:worker/task:{i}" for i in range(self.workers)]
        self.target, self._hook, self.strategy, self._config = "", None, None, None
        if self.mode == "mirrored":
            self.workers = args.workers
            self.strategy = tf.distribute.MirroredStrategy(
                [f"/cpu:{i}" for i in range(self.workers)]
            )
            self._config = self.strategy.update_config_proto(tf.ConfigProto())
        if cluster:
            server = tf.train.Server(self.cluster, job_name=job, task_index=index)
            if job == "ps" or (self.mode in DEVICES and not self.chief):
                server.join()
                sys.exit()
            self.target = server.target

    def placed(self):
        """A context: variables are where the mode has them, operations on this worker."""
        if self.mode in ON_SERVERS:
            return tf.device(
                tf.train.replica_device_setter(
                    cluster=self.cluster, worker_device=self.devices[self.index]
                )
            )
        if self.strategy:
            return self.strategy.scope()
        return tf.device(self.devices[self.index] if self.target else "")

    def layer_placed(self, layer, layers):
        """A context: the device of a layer, where layers have devices of their own."""
        if self.mode != "split":
            return contextlib.nullcontext()
        return tf.device(self.devices[layer * len(self.devices) // layers])

    def parts_placed(self):
        """A context: the parts of a variable on the devices in turn, where layers have devices."""
        if self.mode != "split":
            return contextlib.nullcontext()
        return tf.device(lambda op: self.devices[part_of(op) % len(self.devices)])

    def share(self, batch):
        """This worker's examples of a batch: every so many-th one."""
        if self.mode in DEVICES or self.strategy:
            return batch
        return [values[self.index :: self.workers] for values in batch]

    def wrapped(self, optimizer):
        """The optimiser that trains as the mode does."""
        if self.mode in ("sync", "sync-backup"):
            waited_for = self.workers - (self.mode == "sync-backup")
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, waited_for, self.workers)
            self._hook = lambda: optimizer.make_session_run_hook(self.chief, num_tokens=0)
        elif self.mode in COPIES:
            optimizer = tf.train.AllReduceOptimizer(
                optimizer, self.workers, sharded=self.mode == "sharded"
            )
            self._hook = lambda: optimizer.make_session_run_hook(self.chief)
        return optimizer

    def trained(self, pairs):
        """Gradients as the optimiser of the mode can take them."""
        if self.mode == "sharded":  # a worker's part of a table may begin within a row
            return [(tf.convert_to_tensor(gradient), v) for gradient, v in pairs]
        if self.strategy:  # it sums what is to be averaged
            return [(tf.scalar_mul(1 / self.workers, gradient), v) for gradient, v in pairs]
        return pairs

    def train_step(self, function, *batch):
        """``function(*batch)``, which gives a loss and a train op; once for each replica."""
        if not self.strategy:
            return function(*batch)

        def replica():
            number = tf.distribute.get_replica_context().replica_id_in_sync_group
            loss, train = function(*[values[number :: self.workers] for values in batch])
            with tf.control_dependencies([train]):
                return tf.identity(loss)

        loss = self.strategy.reduce("mean", self.strategy.experimental_run_v2(replica))
        return loss, loss.op

    def session(self, steps, at_the_end):
        """A session that should stop after so many batches, seen by all workers together.

        The chief then calls ``at_the_end(session)`` with a session that still runs.
        """
        updates = steps * self.workers if self.mode in ("async", "growing") else steps
        hooks = [tf.train.StopAtStepHook(last_step=updates)]
        if self.chief:
            hooks.append(AtTheEnd(at_the_end))
        if self._hook:
            hooks.append(self._hook())
        return tf.train.MonitoredTrainingSession(
            self.target,
            is_chief=self.chief or self.mode in COPIES,  # who has all parameters sets them
            hooks=hooks,
            config=self._config,
            log_step_count_steps=None,
        )

    def print(self, text):
        """Print, in the chief."""
        if self.chief:
            print(text, flush=True)
