"""More dies than one server of a pair: a witness with it, both servers; and there are three."""

import sys

import pytest
from test_standby_kills import _WORKER, Servers, Worker, _whole_again

pytestmark = [
    pytest.mark.process,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="kills processes"),
    pytest.mark.timeout(240),
]


@pytest.fixture
def cluster():
    """``cluster(servers, workers, program)``: the servers, and workers that train."""
    made = []

    def begin(servers, workers, program=_WORKER):
        tasks = Servers({"ps": servers, "worker": workers}, replicas=1)
        made.append((tasks, [Worker(tasks, i, program) for i in range(workers)]))
        for worker in made[-1][1]:
            worker.goes_on()
        return made[-1]

    yield begin
    for tasks, workers in made:
        for worker in workers:
            worker.end()
        tasks.kill_all()


def _counts(worker):
    return [seen[0] for seen in worker.seen]


def test_the_witness_dies_with_the_server(cluster):
    tasks, (witness, worker) = cluster(2, 2)
    _whole_again(tasks, 0)
    before = len(worker.seen)
    # Workers are witnesses in the order of their names, as there is no third server.
    witness.kill()
    tasks.kill("ps", 0)
    worker.goes_on()
    after = _counts(worker)
    assert after == sorted(set(after))  # no update of the other worker is lost, or counted twice
    assert after[-1] - after[before - 1] >= 20


def test_a_copy_of_each_of_three_servers(cluster):
    tasks, (worker,) = cluster(3, 1)
    for index in (2, 0):
        _whole_again(tasks, index)
        tasks.kill("ps", index)
        worker.goes_on()
        tasks.start(("ps", index))
    _whole_again(tasks, 0)
    worker.goes_on()
    counts = _counts(worker)
    assert counts == sorted(set(counts))


def test_both_servers_die_and_the_last_checkpoint_is_restored(cluster, tmp_path):
    options = f"'checkpoint_dir': {str(tmp_path)!r}, 'save_checkpoint_steps': 4, "
    options += "'save_checkpoint_secs': None, 'save_summaries_steps': None, "
    program = _WORKER.replace("options = {", f"options = {{{options}", 1)
    tasks, (worker,) = cluster(2, 1, program)
    for index in (0, 1):
        tasks.kill("ps", index)
    before = worker.seen[-1]
    known = len(worker.seen)
    tasks.start(("ps", 0), ("ps", 1))
    worker.goes_on()
    # Neither anew from nothing, nor from what nobody has any more.
    first = worker.seen[known]
    assert 5 < first[2] <= before[2] + 2
