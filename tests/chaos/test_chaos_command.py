"""A cluster of processes under faults: the command, shortened, and for minutes."""

import json
import sys

import pytest
from click.testing import CliRunner

from headrace.chaos.command import Chaos, run_chaos
from headrace.chaos.schedule import Cluster, make_schedule
from headrace.cli import main

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="kills processes"),
]


def test_a_short_run_accounts_for_every_step(tmp_path):
    """Seed 3: one server is killed, then the other."""
    cluster = Cluster(2, 2)
    chaos = Chaos(
        4.5, 3, tmp_path, ["asynchronous"], cluster, ["kill"], every=2, save_seconds=0.5, spares=1
    )
    assert run_chaos(chaos)
    (found,) = json.loads((tmp_path / "chaos.json").read_text())
    hit = [f.task for f in make_schedule(3, 4.5, cluster, ["kill"], 2)]
    assert [r["fault"]["task"] for r in found["recoveries"]] == hit == ["ps/1", "ps/0"]
    assert found["violations"] == []
    # How many depends on how busy the machine is.
    assert found["steps"] > 0
    assert found["saves"] > 0
    assert len(found["accounts"]) == 4


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("mode", ["asynchronous", "synchronous"])
def test_no_update_is_lost_with_copies(tmp_path, mode):
    options = ["--minutes", "1", "--mode", mode, "--replicas", "1", "--fault", "kill"]
    options += ["--every", "12", "--output-dir", str(tmp_path)]
    result = CliRunner().invoke(main, ["chaos", *options])
    assert result.exit_code == 0, result.output
    (found,) = json.loads((tmp_path / "chaos.json").read_text())
    assert any(r["fault"]["task"].startswith("ps/") for r in found["recoveries"])
    assert [a["lost"] for a in found["accounts"]] == [0] * len(found["accounts"])


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [7, 8])
def test_two_minutes_of_chaos(tmp_path, seed):
    options = ["--minutes", "2", "--seed", str(seed), "--output-dir", str(tmp_path)]
    result = CliRunner().invoke(main, ["chaos", *options])
    assert result.exit_code == 0, result.output
    for found in json.loads((tmp_path / "chaos.json").read_text()):
        assert found["accuracy"] > found["undisturbed"] - 0.03
