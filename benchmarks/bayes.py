"""Hamiltonian Monte Carlo on a regression with 50 coefficients: effective samples a second.

Headrace beside NumPyro, a maintained sampler on JAX: the same density, data, starts, number of
chains, warm-up, length of paths and wanted acceptance, both with variances learnt in windows. Each
side is a process that compiles once; then they draw in turn, each time with another seed. A run is
timed whole, warm-up included. Effective sample sizes of both are those of
`tf.bayes.effective_sample_size`, and of a run the smallest of the coefficients' counts.

    python benchmarks/bayes.py --peer PYTHON    # of an environment with numpyro
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

CHAINS, WARMUP, DRAWS, LENGTH, WANTED = 4, 500, 1000, np.pi / 2, 0.8
ROWS, COEFFICIENTS = 1000, 50
#: NumPyro draws its chains as one batch, or one after another: the better of both counts.
SIDES = ("headrace", "numpyro vectorized", "numpyro sequential")


def data(kind):
    """Correlated features and labels of a logistic model, or numbers of a linear one."""
    rng = np.random.default_rng(0)
    mix = np.eye(COEFFICIENTS) + 0.3 * rng.normal(size=[COEFFICIENTS, COEFFICIENTS]) / 7
    x = (rng.normal(size=[ROWS, COEFFICIENTS]) @ mix).astype(np.float32)
    logits = x @ rng.normal(size=COEFFICIENTS).astype(np.float32) / 3
    if kind == "linear":
        return x, (logits + rng.normal(size=ROWS)).astype(np.float32)
    return x, (rng.uniform(size=ROWS) < 1 / (1 + np.exp(-logits))).astype(np.float32)


def headrace_side(kind):
    import headrace as tf

    x, y = (tf.constant(v) for v in data(kind))

    def log_density(w):
        eta = tf.linalg.matvec(x, w)
        prior = -0.5 * tf.reduce_sum(tf.square(w))
        if kind == "linear":
            return prior - 0.5 * tf.reduce_sum(tf.square(y - eta))
        return prior + tf.reduce_sum(y * eta - tf.nn.softplus(eta))

    starts = tf.placeholder(tf.float32, [CHAINS, COEFFICIENTS])
    chains = tf.bayes.hmc.sample(
        log_density,
        starts,
        DRAWS,
        WARMUP,
        num_chains=None,
        trajectory_length=LENGTH,
        target_acceptance=WANTED,
        jitter=0.0,
        seed=1,
    )
    session = tf.Session()

    def run(start, _):
        found = session.run([chains.samples, chains.num_leapfrog_steps], {starts: start})
        return found[0], {"steps of a path": int(found[1])}

    return run


def numpyro_side(kind, method):
    import jax
    from jax import numpy as jnp
    from numpyro.infer import HMC, MCMC

    x, y = (jnp.asarray(v) for v in data(kind))

    def potential(w):
        eta = x @ w
        prior = 0.5 * jnp.sum(w * w)
        if kind == "linear":
            return prior + 0.5 * jnp.sum((y - eta) ** 2)
        return prior - jnp.sum(y * eta - jax.nn.softplus(eta))

    kernel = HMC(potential_fn=potential, trajectory_length=LENGTH, target_accept_prob=WANTED)
    sampler = MCMC(
        kernel,
        num_warmup=WARMUP,
        num_samples=DRAWS,
        num_chains=CHAINS,
        chain_method=method,
        progress_bar=False,
    )

    def run(start, seed):
        key = jax.random.PRNGKey(seed)
        sampler.run(key, init_params=jnp.asarray(start), extra_fields=("num_steps",))
        found = np.asarray(sampler.get_samples(group_by_chain=True))
        steps = np.asarray(sampler.get_extra_fields()["num_steps"]).mean()
        return found, {"steps of a path": float(steps)}

    return run


def serve(side, kind):
    """Runs as often as asked: a seed comes in as a line, the time and a file of draws go out."""
    method = side.partition(" ")[2]
    run = numpyro_side(kind, method) if method else headrace_side(kind)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "draws.npy"
        for line in sys.stdin:
            seed = int(line)
            rng = np.random.default_rng(seed)
            start = rng.uniform(-1, 1, [CHAINS, COEFFICIENTS]).astype(np.float32)
            began = time.perf_counter()
            draws, extra = run(start, seed)
            seconds = time.perf_counter() - began
            np.save(path, draws)
            print(json.dumps({"seconds": seconds, "path": str(path), **extra}), flush=True)


class Side:
    """One side in its own process."""

    def __init__(self, python, side, kind):
        command = [python, __file__, "--side", side, "--kind", kind]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, seed):
        self.process.stdin.write(f"{seed}\n")
        self.process.stdin.flush()
        found = json.loads(self.process.stdout.readline())
        found["draws"] = np.load(found["path"])
        return found

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def measure(kind, peer, repetitions):
    import headrace as tf

    draws = tf.placeholder(tf.float64, [CHAINS, DRAWS, COEFFICIENTS])
    size = tf.reduce_min(tf.bayes.effective_sample_size(draws))
    found = {name: [] for name in SIDES}
    sides = {
        name: Side(sys.executable if name == "headrace" else peer, name, kind) for name in SIDES
    }
    with tf.Session() as session:
        for name, side in sides.items():  # compile
            first = side.run(1)["seconds"]
            side.run(2)
            print(f"{kind}, {name}: first run {first:.1f} s", flush=True)
        for seed in range(3, 3 + repetitions):
            for name, side in sides.items():
                result = side.run(seed)
                result["ess"] = float(session.run(size, {draws: result.pop("draws")}))
                found[name].append(result)
    for side in sides.values():
        side.close()
    return found


def report(kind, found):
    rates = {n: statistics.median(r["ess"] / r["seconds"] for r in f) for n, f in found.items()}
    for name, results in found.items():
        middle = {
            k: statistics.median(r[k] for r in results)
            for k in ("seconds", "ess", "steps of a path")
        }
        print(
            f"{kind:9} {name:18} {middle['seconds'] * 1e3:8.0f} ms {middle['ess']:8.0f} effective "
            f"{middle['steps of a path']:5.1f} steps a path {rates[name]:9.0f} effective a second"
        )
    best = max(rates[name] for name in SIDES[1:])
    print(f"{kind:9} headrace / numpyro: {rates['headrace'] / best:.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", default=sys.executable, help="a Python that has numpyro")
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--side", choices=SIDES)
    parser.add_argument("--kind", default="")
    given = parser.parse_args()
    if given.side:
        serve(given.side, given.kind)
        return
    for kind in [given.kind] if given.kind else ["logistic", "linear"]:
        report(kind, measure(kind, given.peer, given.repetitions))


if __name__ == "__main__":
    main()
