"""Manifests: what the published schemas say, and what each task is told in the end."""

import json
import re
from dataclasses import replace

import pytest
import yaml
from tests.launch.kubernetes_rules import check, pod_templates, tasks

from headrace.distributed.cluster.tf_config import read_tf_config
from headrace.launch import LaunchJob, Resources, TaskId, task_environment
from headrace.launch.kubernetes import (
    KINDS,
    KubernetesOptions,
    Volume,
    as_yaml,
    default_name,
    manifests,
)

IMAGE = "registry.example/headrace:1"
JOBS = {
    "2+4": LaunchJob("train.py", ("--rate", "0.1"), ps=2, workers=4),
    "chief": LaunchJob("train.py", ps=1, workers=3, chief=True, evaluator=True),
    "chief-alone": LaunchJob("train.py", ps=1, workers=1, chief=True),
    "standby": LaunchJob("train.py", ps=2, workers=2, replicas=1),
    "all-reduce": LaunchJob("pkg.train", workers=3, as_module=True),
    "watched": LaunchJob("train.py", ps=2, workers=2, metrics_port=9100, log_format="json"),
    "sync": LaunchJob("train.py", ps=1, workers=3, mode="sync", backups=1),
}


def options(**more):
    return KubernetesOptions(**{"image": IMAGE, "name": "digits", "insecure": True, **more})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_manifests_are_what_the_schemas_of_their_resources_say(kind, job):
    full = options(
        kind=kind, namespace="ml", insecure=False, secret="keys", volumes=(Volume("a", "/a"),)
    )
    found = manifests(job, full)
    for resource in found:
        check(resource)
        assert resource["metadata"]["namespace"] == "ml"
    assert list(yaml.safe_load_all(as_yaml(found))) == found


@pytest.mark.parametrize("kind", ["plain", "trainjob"])
@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_each_task_is_told_what_a_launcher_here_would_tell_it(kind, job):
    started = list(tasks(manifests(job, options(kind=kind))))
    assert sorted(task for task, *_ in started) == sorted(job.tasks)
    addresses = {
        name: [f"{host}.default.svc:2222" for task, host, *_ in started if task.job == name]
        for name in job.counts
    }
    for task, _, variables, _ in started:
        expected = task_environment(job, addresses, task)
        found = {name: variables.get(name) for name in expected}
        assert json.loads(found.pop("TF_CONFIG")) == json.loads(expected.pop("TF_CONFIG"))
        assert found == expected
        assert variables["HEADRACE_INSECURE"] == "1"


def test_the_operator_of_tfjobs_writes_tf_config_and_we_what_that_lacks():
    (found,) = manifests(JOBS["standby"], options(kind="tfjob"))
    replicas = found["spec"]["tfReplicaSpecs"]
    assert {role: spec["replicas"] for role, spec in replicas.items()} == {"PS": 2, "Worker": 2}
    for role in replicas.values():
        (container,) = role["template"]["spec"]["containers"]
        # The operator looks for these names.
        assert container["name"] == "tensorflow"
        assert container["ports"] == [{"name": "tfjob-port", "containerPort": 2222}]
        assert "TF_CONFIG" not in {entry["name"] for entry in container["env"]}
        assert container["command"][-2:] == ["--replicas", "1"]
    (worker,) = replicas["Worker"]["template"]["spec"]["containers"]
    assert {"name": "HEADRACE_DATA_PARALLEL", "value": "async"} in worker["env"]
    assert {"name": "HEADRACE_FIRST_WORKER_IS_CHIEF", "value": "1"} in worker["env"]
    assert found["spec"]["runPolicy"] == {"backoffLimit": 12, "cleanPodPolicy": "Running"}
    (found,) = manifests(JOBS["chief"], options(kind="tfjob"))
    assert set(found["spec"]["tfReplicaSpecs"]) == {"PS", "Chief", "Worker", "Evaluator"}
    assert "successPolicy" not in found["spec"]


@pytest.mark.parametrize("kind", KINDS)
def test_servers_of_a_plain_script_serve(kind):
    commands = {
        task.job: command
        for task, _, _, command in tasks(
            manifests(JOBS["2+4"], options(kind=kind, servers_run_script=False))
        )
    }
    assert commands["ps"] == ["python", "-m", "headrace.launch.pod", "--serve"]
    assert commands["worker"][-3:] == ["train.py", "--rate", "0.1"]


@pytest.mark.parametrize("kind", KINDS)
def test_arguments_reach_the_script_as_they_were(kind):
    arguments = ("--out=$(HOME)/x", "a b", "$$5", "it's", '"', "-m", "--", "é")
    job = LaunchJob("my train.py", arguments, ps=1)
    text = as_yaml(manifests(job, options(kind=kind)))
    for _, _, _, command in tasks(yaml.safe_load_all(text)):
        program = command[command.index("--") + 1 :]
        assert program == ["python", "-m", "headrace", "run", "my train.py", *arguments]


@pytest.mark.parametrize("kind", KINDS)
def test_prometheus_finds_the_metrics_of_each_pod(kind):
    found = manifests(JOBS["watched"], options(kind=kind))
    templates = [template for one in found for _, _, template, _ in pod_templates(one)]
    assert len(templates) == 2
    for template in templates:
        (container,) = template["spec"]["containers"]
        assert container["ports"][1] == {"name": "metrics", "containerPort": 9100}
        assert {"name": "HEADRACE_METRICS_PORT", "value": "9100"} in container["env"]
        assert {"name": "HEADRACE_LOG_FORMAT", "value": "json"} in container["env"]
        assert template["metadata"]["annotations"] == {
            "prometheus.io/scrape": "true",
            "prometheus.io/port": "9100",
        }


def test_a_killed_task_comes_back_under_its_name():
    service, servers, workers = manifests(JOBS["2+4"], options())
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"]
    assert (servers["kind"], servers["spec"]["serviceName"]) == ("StatefulSet", "digits")
    spec = workers["spec"]
    assert (spec["completionMode"], spec["backoffLimitPerIndex"]) == ("Indexed", 3)
    # Kubernetes takes a limit for each index with this policy only.
    assert spec["template"]["spec"]["restartPolicy"] == "Never"
    runtime, job = manifests(JOBS["2+4"], options(kind="trainjob"))
    jobs = runtime["spec"]["template"]["spec"]
    assert jobs["successPolicy"] == {"operator": "All", "targetReplicatedJobs": ["worker"]}
    assert jobs["failurePolicy"] == {"maxRestarts": 0}
    assert job["spec"]["runtimeRef"]["name"] == runtime["metadata"]["name"]
    assert job["spec"]["trainer"] == {"numNodes": 4}
    # Those of all-reduce begin again together.
    runtime, _ = manifests(JOBS["all-reduce"], options(kind="trainjob"))
    jobs = runtime["spec"]["template"]["spec"]
    assert jobs["failurePolicy"] == {"maxRestarts": 3}
    assert jobs["replicatedJobs"][0]["template"]["spec"]["backoffLimitPerIndex"] == 0


def test_workers_that_come_later_are_in_the_description_of_workers_only():
    job = LaunchJob("train.py", ps=1, workers=2, elastic=(1, 4))
    started = {task: (env, cmd) for task, _, env, cmd in tasks(manifests(job, options()))}
    assert len(started) == 3
    assert len(read_tf_config(started[TaskId("ps", 0)][0]).cluster.as_dict()["worker"]) == 2
    environment, command = started[TaskId("worker", 1)]
    assert len(read_tf_config(environment).cluster.as_dict()["worker"]) == 4
    contact = "digits-ps-0.digits.default.svc:2222"
    assert command[3:8] == ["--first-workers", "2", "--contact", contact, "--"]
    for kind in ("tfjob", "trainjob"):
        with pytest.raises(ValueError, match=f"--elastic needs --kind plain: .* of a {kind}"):
            manifests(job, options(kind=kind))


def test_the_secret_is_mounted_and_named_in_the_settings():
    secret = options(insecure=False, secret="keys", volumes=(Volume.parse("data:/mnt/data"),))
    pods = [r["spec"]["template"]["spec"] for r in manifests(JOBS["2+4"], secret)[1:]]
    for pod in pods:
        (container,) = pod["containers"]
        env = {e["name"]: e.get("value", "") for e in container["env"]}
        mounted = {m["mountPath"]: m["name"] for m in container["volumeMounts"]}
        volumes = {v["name"]: v for v in pod["volumes"]}
        source = volumes[mounted["/etc/headrace"]]["secret"]
        assert source["secretName"] == "keys"
        files = {f"/etc/headrace/{item['path']}" for item in source["items"]}
        assert {v for n, v in env.items() if "TLS" in n or "TOKEN" in n} == files
        assert "HEADRACE_INSECURE" not in env
        assert volumes[mounted["/mnt/data"]]["persistentVolumeClaim"] == {"claimName": "data"}


def test_resources_are_requests_and_limits():
    asked = {"worker": Resources(cpus=1.5, gpus=2, memory=8 << 30)}
    job = LaunchJob("train.py", ps=1, resources=asked)
    pods = [r["spec"]["template"]["spec"] for r in manifests(job, options())[1:]]
    server, worker = (pod["containers"][0]["resources"] for pod in pods)
    assert server == {"requests": {"cpu": "1"}}
    memory = str(8 << 30)
    assert worker == {
        "requests": {"cpu": "1500m", "memory": memory},
        "limits": {"memory": memory, "nvidia.com/gpu": "2"},
    }


def test_names_of_scripts_make_names_of_jobs():
    names = ["train.py", "a/B_c.d.py", "7.py", "x" * 60 + ".py", "pkg.train", "-.py"]
    made = [default_name(name) for name in names]
    assert made == ["train", "b-c-d", "job-7", "x" * 40, "pkg-train", "job"]
    for name in made:
        options(name=name)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"image": ""},
            "needs --image IMAGE: the container image that has Headrace and the script",
        ),
        ({"image": "an image"}, "--image 'an image' is no name of an image"),
        ({"name": "Digits"}, "--name 'Digits' is no name for Kubernetes: small letters, digits"),
        ({"name": "d" * 41}, "a letter first, 40 characters at most"),
        ({"name": "7"}, "a letter first"),
        ({"namespace": "a.b"}, "--namespace 'a.b' is no name"),
        ({"namespace": "-a"}, "letters, digits and '-' between them, 63 characters at most"),
        ({"insecure": False, "secret": "a..b"}, "--secret 'a..b' is no name for Kubernetes"),
        ({"insecure": False, "secret": "a_b"}, "digits, and '-' and '.' between them, 253"),
        ({"insecure": False}, "TLS and a token: --secret NAME names a Secret with the keys ca.pem"),
        ({"secret": "keys"}, "--secret and --insecure contradict each other"),
        ({"kind": "pod"}, "--kind can be plain, tfjob, trainjob, not 'pod'"),
        ({"volumes": (Volume("a", "/x"), Volume("b", "/x"))}, "two volumes cannot both be at /x"),
        ({"volumes": (Volume("a", "/x"), Volume("b", "//x/./"))}, "cannot both be at /x"),
        (
            {"insecure": False, "secret": "keys", "volumes": (Volume("a", "/etc/headrace/"),)},
            "--volume: /etc/headrace/ is taken: /etc/headrace is where --secret is mounted.",
        ),
        (
            {"insecure": False, "secret": "keys", "volumes": (Volume("a", "/etc/headrace/x"),)},
            "--volume: /etc/headrace/x is taken",
        ),
    ],
)
def test_what_kubernetes_would_not_take_is_said_before(wrong, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        options(**wrong)


def test_names_of_others_may_begin_with_a_digit_and_have_dots():
    found = options(
        namespace="2nd-team", insecure=False, secret="keys.2", volumes=(Volume("1.data", "/x"),)
    )
    for kind in KINDS:
        for resource in manifests(JOBS["2+4"], replace(found, kind=kind)):
            check(resource)


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_manifest_cannot_say_is_said_before(kind):
    """YAML is Unicode: bytes of a command line that are none would reach no script."""
    for job in (LaunchJob("train.py", ("\udcff",)), LaunchJob("tr\udcff.py")):
        with pytest.raises(ValueError, match=r"udcff.* is not UTF-8, and manifests can hold no"):
            manifests(job, options(kind=kind))
    with pytest.raises(ValueError, match="--metrics-port 2222: each task listens there itself"):
        manifests(LaunchJob("train.py", metrics_port=2222), options(kind=kind))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("data", "--volume 'data' must be CLAIM:/PATH"),
        ("data:relative", "--volume: 'relative' must be an absolute path in the container"),
        ("data:/x/../y", "--volume: '/x/../y' must be an absolute path in the container"),
        ("data://", "--volume: '//' must be an absolute path in the container"),
        ("My_data:/x", "--volume 'My_data' is no name for Kubernetes"),
    ],
)
def test_volumes_that_cannot_be(text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Volume.parse(text)


@pytest.mark.parametrize(("script", "as_module"), [("-x.py", False), ("-x", True)])
def test_a_script_whose_name_begins_as_an_option(script, as_module):
    job = LaunchJob(script, ("-v",), as_module=as_module)
    pod = manifests(job, options())[-1]["spec"]["template"]["spec"]
    arguments = pod["containers"][0]["args"]
    assert arguments[arguments.index("run") + 1 :] == [*["-m"] * as_module, "--", script, "-v"]
