"""Write tests/golden/averaging.npz: optimisers of tf.contrib.opt whose workers have copies.

Run with TensorFlow 1.15: python tools/make_averaging_goldens.py
"""

import pathlib
import socket
import sys

import numpy as np
import tensorflow as tf

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import averaging_scenario  # noqa: E402

KINDS = [(kind, inner) for kind in ("elastic", "agn") for inner in ("sgd", "momentum", "adam")]


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("localhost", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def main():
    arrays = {}
    for kind, inner in KINDS:
        addresses = [f"localhost:{port}" for port in free_ports(3)]
        cluster = {"ps": addresses[:1], "worker": addresses[1:]}
        servers = [tf.train.Server(cluster, "ps", 0)]
        servers += [tf.train.Server(cluster, "worker", task) for task in range(2)]
        targets = [server.target for server in servers[1:]]
        for key, array in averaging_scenario.trace(tf, targets, kind, inner).items():
            arrays[f"{kind}/{inner}/{key}"] = array
    np.savez(ROOT / "tests" / "golden" / "averaging.npz", **arrays)


if __name__ == "__main__":
    main()
