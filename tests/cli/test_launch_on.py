"""`headrace launch --on kubernetes` and `--on ray`: what is written, and what is refused."""

import os
import subprocess
import sys

import pytest
import yaml
from click.testing import CliRunner

from headrace.cli import main
from headrace.cli.launch_on import resources_of
from headrace.launch import Resources
from headrace.test.cluster import free_ports

COMMON = ["--image", "an/image:1", "--insecure", "--ps", "1", "--workers", "2"]


def launch(*arguments, on="kubernetes"):
    return CliRunner().invoke(main, ["launch", "--on", on, *arguments])


def test_manifests_go_to_standard_output_or_a_folder(tmp_path):
    done = launch(*COMMON, "train.py", "--rate", "1")
    assert done.exit_code == 0, done.output
    found = list(yaml.safe_load_all(done.output))
    assert [one["kind"] for one in found] == ["Service", "StatefulSet", "Job"]
    assert [one["metadata"]["name"] for one in found] == ["train", "train-ps", "train-worker"]
    done = launch(*COMMON, "--kind", "trainjob", "--output", str(tmp_path / "k"), "train.py")
    assert (done.exit_code, done.output) == (0, "")
    files = sorted(path.name for path in (tmp_path / "k").iterdir())
    assert files == ["0-trainingruntime-train-runtime.yaml", "1-trainjob-train.yaml"]
    assert yaml.safe_load((tmp_path / "k" / files[1]).read_text())["kind"] == "TrainJob"


def test_manifests_of_an_earlier_launch_in_the_folder_are_told_of(tmp_path):
    folder = ["--output", str(tmp_path), "train.py"]
    assert launch(*COMMON, *folder).output == ""
    assert launch(*COMMON, *folder).output == ""
    done = launch(*COMMON, "--kind", "tfjob", *folder)
    assert done.exit_code == 0
    assert "also holds 0-service-train.yaml, 1-statefulset-train-ps.yaml, 2-job" in done.output


@pytest.mark.process
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs the device of Linux")
def test_a_full_disk_behind_standard_output(tmp_path):
    command = [sys.executable, "-m", "headrace", "launch", "--on", "kubernetes", *COMMON, "a.py"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == "Error: cannot write: No space left on device\n"


def test_servers_of_a_script_without_clusters_serve(tmp_path):
    script = tmp_path / "plain.py"
    script.write_text("import headrace as tf\n")
    _, servers, _ = yaml.safe_load_all(launch(*COMMON, str(script)).output)
    (container,) = servers["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["--serve"]


@pytest.mark.process
@pytest.mark.parametrize("status", [0, 3])
def test_kubectl_applies_what_was_written(tmp_path, monkeypatch, status):
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(
        f'#!/bin/sh\necho "$@" > {tmp_path}/call\ncat >> {tmp_path}/call\nexit {status}'
    )
    kubectl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    done = launch(*COMMON, "--apply", "train.py")
    assert done.exit_code == (1 if status else 0)
    assert ("kubectl has ended with status 3." in done.output) == bool(status)
    call, text = (tmp_path / "call").read_text().split("\n", 1)
    assert call == "apply --filename=-"
    assert len(list(yaml.safe_load_all(text))) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train.py"], "--on kubernetes needs --image IMAGE"),
        (["--image", "a", "train.py"], "The tasks talk over a network, and need TLS and a token"),
        ([*COMMON, "--name", "A", "train.py"], "--name 'A' is no name for Kubernetes"),
        ([*COMMON, "--volume", "x", "train.py"], "--volume 'x' must be CLAIM:/PATH"),
        ([*COMMON, "--cpus", "p=1", "train.py"], "--cpus p=1: there is no job 'p'"),
        ([*COMMON, "--memory", "4X", "train.py"], "--memory 4X: '4X' is no such number"),
        ([*COMMON, "--gpus", "-1", "train.py"], "A task cannot ask for -1 gpus"),
        ([*COMMON, "--address", "a:1", "train.py"], "--address: not for --on kubernetes"),
        ([*COMMON, "--kind", "tfjob", "--elastic", "1:3", "x.py"], "--elastic needs --kind plain"),
    ],
)
def test_what_cannot_be_written(arguments, message):
    done = launch(*arguments)
    assert done.exit_code == 2
    assert message in done.output


def test_without_kubectl_or_pyyaml(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    done = launch(*COMMON, "--apply", "train.py")
    assert done.exit_code == 1
    assert "There is no kubectl on the path to apply the manifests with." in done.output
    monkeypatch.setitem(sys.modules, "yaml", None)
    done = launch(*COMMON, "train.py")
    assert done.exit_code == 1
    assert "pip install 'headrace[kubernetes]'" in done.output


def test_without_ray(monkeypatch, tmp_path):
    script = tmp_path / "train.py"
    script.write_text("")
    monkeypatch.setitem(sys.modules, "ray", None)
    done = launch(str(script), on="ray")
    assert (done.exit_code, "pip install 'headrace[ray]'" in done.output) == (1, True)
    done = launch("absent.py", on="ray")
    assert (done.exit_code, "There is no file 'absent.py'" in done.output) == (1, True)
    done = launch("--volume", "a:/a", str(script), on="here")
    assert (done.exit_code, "--volume: not for --on here" in done.output) == (2, True)
    done = launch("--kind", "plain", str(script), on="ray")
    assert (done.exit_code, "--kind: not for --on ray" in done.output) == (2, True)


@pytest.mark.slow  # Ray is imported
@pytest.mark.filterwarnings("ignore")
def test_an_address_without_ray(tmp_path):
    pytest.importorskip("ray", reason="Ray is not installed: the extra ray")
    script = tmp_path / "train.py"
    script.write_text("")
    (port,) = free_ports(1)
    done = launch("--address", f"127.0.0.1:{port}", str(script), on="ray")
    assert done.exit_code == 1
    assert f"No Ray cluster answers at '127.0.0.1:{port}': Connection refused" in done.output


def test_resources_for_all_jobs_and_for_one():
    given = {"cpus": ("ps=0.5", "2"), "gpus": ("worker=1",), "memory": ("1G",)}
    found = resources_of(given)
    assert found["ps"] == Resources(0.5, 0, 1 << 30)
    assert found["worker"] == Resources(2.0, 1, 1 << 30)
