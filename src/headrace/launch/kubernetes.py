"""Manifests of a job for Kubernetes: plain resources, or those of Kubeflow's operators.

In: a `LaunchJob` and what the cluster has to know beside it. Out: resources as dictionaries, which
`as_yaml` writes. Invariant: a task that is killed comes back under the name that the others
know it by; `TF_CONFIG` names tasks by their DNS names, never by addresses.

| kind | servers | workers | who writes ``TF_CONFIG`` |
|---|---|---|---|
| plain | a StatefulSet | an indexed Job | the pod's description: its index comes from a label |
| trainjob | an indexed Job of a JobSet | another one | the same |
| tfjob | pods of the operator | pods of the operator | the operator |
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Literal

from headrace.distributed.security import credentials
from headrace.launch.job import (
    CHIEF,
    EVALUATOR,
    SERVER,
    WORKER,
    LaunchJob,
    Resources,
    TaskId,
    environment_of,
    task_environment,
)

__all__ = ["KINDS", "KubernetesOptions", "Volume", "as_yaml", "default_name", "manifests"]

Kind = Literal["plain", "tfjob", "trainjob"]
KINDS: tuple[Kind, ...] = ("plain", "tfjob", "trainjob")
#: A pod's name has up to 63 characters: this one, its job, two numbers and a random end.
MOST_NAME = 40
_PART = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
#: What a name may be: a job's becomes that of a Service, which others' need not be.
_NAMES = {
    "--name": (
        re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?"),
        "small letters, digits and '-' between them, a letter first",
        MOST_NAME,
    ),
    "--namespace": (re.compile(_PART), "small letters, digits and '-' between them", 63),
    "--secret": (
        re.compile(rf"{_PART}(\.{_PART})*"),
        "small letters, digits, and '-' and '.' between them",
        253,
    ),
}
_NAMES["--volume"] = _NAMES["--secret"]
_IMAGE = re.compile(r"[A-Za-z0-9][\w.\-/:@]*")
_INDEX = "HEADRACE_TASK_INDEX"
_SECRETS = "/etc/headrace"
_SECRET_FILES = {
    credentials.CA_VARIABLE: "ca.pem",
    credentials.CERT_VARIABLE: "tls.pem",
    credentials.KEY_VARIABLE: "tls.key",
    credentials.TOKEN_FILE_VARIABLE: "cluster.token",
}
_INSTANCE = "app.kubernetes.io/instance"
_ROLES = {SERVER: "PS", CHIEF: "Chief", WORKER: "Worker", EVALUATOR: "Evaluator"}


@dataclass(frozen=True)
class Volume:
    """A PersistentVolumeClaim and where all tasks find it.

    Raises:
        ValueError: if the claim has no valid name, or the path is not absolute.

    >>> Volume.parse("data:/mnt/data")
    Volume(claim='data', path='/mnt/data')
    """

    claim: str
    path: str

    def __post_init__(self) -> None:
        _check_name("--volume", self.claim)
        folders = self.folders
        if not self.path.startswith("/") or ":" in self.path or ".." in folders or not folders:
            raise ValueError(
                f"--volume: {self.path!r} must be an absolute path in the container, such as /data."
            )

    @property
    def folders(self) -> tuple[str, ...]:
        """The parts of the path, however it is written."""
        return tuple(part for part in self.path.split("/") if part not in ("", "."))

    @classmethod
    def parse(cls, text: str) -> Volume:
        """``CLAIM:/PATH`` as the command line takes it."""
        claim, found, path = text.partition(":")
        if not found:
            raise ValueError(
                f"--volume {text!r} must be CLAIM:/PATH: a PersistentVolumeClaim and where it is "
                "mounted."
            )
        return cls(claim, path)


@dataclass(frozen=True)
class KubernetesOptions:
    """What a job needs on Kubernetes beside itself.

    Args:
        image: of the container of each task; has Headrace and the script.
        name: of the job; names of pods and services begin with it.
        namespace: where all resources are made; part of the tasks' DNS names.
        kind: which resources: see `KINDS`.
        volumes: claims that each task mounts.
        secret: a Secret with ``ca.pem``, ``tls.pem``, ``tls.key`` and ``cluster.token``, which
            each task mounts and uses.
        insecure: talk without TLS and token; whoever reaches the pods may read and train.
        port: at which each task listens.
        gpu: the resource that `Resources.gpus` counts.
        servers_run_script: whether tasks of the job ``ps`` run the script; otherwise they serve.

    Raises:
        ValueError: for names that Kubernetes does not take, and for what is missing.
    """

    image: str
    name: str
    namespace: str = "default"
    kind: Kind = "plain"
    volumes: tuple[Volume, ...] = ()
    secret: str = ""
    insecure: bool = False
    port: int = 2222
    gpu: str = "nvidia.com/gpu"
    servers_run_script: bool = True

    def __post_init__(self) -> None:
        if not self.image:
            raise ValueError(
                "--on kubernetes needs --image IMAGE: the container image that has Headrace and "
                "the script. docker/Dockerfile of the project builds one."
            )
        if not _IMAGE.fullmatch(self.image):
            raise ValueError(f"--image {self.image!r} is no name of an image: REGISTRY/NAME:TAG.")
        if self.kind not in KINDS:
            raise ValueError(f"--kind can be {', '.join(KINDS)}, not {self.kind!r}.")
        _check_name("--name", self.name)
        _check_name("--namespace", self.namespace)
        if self.secret:
            _check_name("--secret", self.secret)
        if self.secret and self.insecure:
            raise ValueError("--secret and --insecure contradict each other: leave one out.")
        if not self.secret and not self.insecure:
            raise ValueError(
                "The tasks talk over a network, and need TLS and a token: --secret NAME names a "
                f"Secret with the keys {', '.join(_SECRET_FILES.values())} (docs/kubernetes.md "
                "says how to make it), or --insecure lets everybody in."
            )
        paths = [volume.folders for volume in self.volumes]
        own = PurePosixPath(_SECRETS).parts[1:]
        for volume in self.volumes:
            if paths.count(volume.folders) > 1:
                raise ValueError(f"--volume: two volumes cannot both be at {volume.path}.")
            if self.secret and volume.folders[: len(own)] == own:
                raise ValueError(
                    f"--volume: {volume.path} is taken: {_SECRETS} is where --secret is mounted."
                )


def _check_name(option: str, name: str) -> None:
    pattern, words, most = _NAMES[option]
    if not pattern.fullmatch(name) or len(name) > most:
        raise ValueError(
            f"{option} {name!r} is no name for Kubernetes: {words}, {most} characters at most."
        )


def _check_job(job: LaunchJob, options: KubernetesOptions) -> None:
    """Refuse what a manifest cannot say, or a pod cannot do."""
    if job.elastic and options.kind != "plain":
        raise ValueError(
            f"--elastic needs --kind plain: the number of workers of a {options.kind} is fixed "
            "while it runs."
        )
    if job.metrics_port == options.port:
        raise ValueError(
            f"--metrics-port {job.metrics_port}: each task listens there itself; choose another."
        )
    for text in (job.script, *job.arguments):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError(
                f"{text!r} is not UTF-8, and manifests can hold no other text: rename the file, "
                "or give the script the value in another way."
            ) from None


def default_name(script: str) -> str:
    """A name for a job, from that of its script.

    >>> default_name("jobs/Train_2.py")
    'train-2'
    """
    stem = PurePosixPath(script).name.removesuffix(".py")
    name = re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")
    return (name if name[:1].isalpha() else f"job-{name}")[:MOST_NAME].strip("-")


def manifests(job: LaunchJob, options: KubernetesOptions) -> list[dict[str, Any]]:
    """The resources that run a job, in the order in which they are made.

    Raises:
        ValueError: if the kind cannot do what the job asks for.

    >>> options = KubernetesOptions("an/image:1", "digits", insecure=True)
    >>> [m["kind"] for m in manifests(LaunchJob("train.py", ps=1, workers=2), options)]
    ['Service', 'StatefulSet', 'Job']
    """
    _check_job(job, options)
    return {"plain": _plain, "tfjob": _tfjob, "trainjob": _trainjob}[options.kind](job, options)


def as_yaml(resources: Iterable[Mapping[str, Any]]) -> str:
    """Resources as a stream of YAML documents.

    Raises:
        ModuleNotFoundError: if PyYAML is not installed.
    """
    import yaml

    return str(yaml.safe_dump_all(resources, sort_keys=False, explicit_start=True, width=10_000))


def _plain(job: LaunchJob, options: KubernetesOptions) -> list[dict[str, Any]]:
    port = {"name": "headrace", "port": options.port}
    service = _resource(
        "v1",
        "Service",
        options.name,
        options,
        {
            "clusterIP": "None",
            # A server that is starting is dialled by the others, and looks up itself.
            "publishNotReadyAddresses": True,
            "selector": {_INSTANCE: options.name},
            "ports": [port],
        },
    )
    own = [_plain_job(job, options, *found) for found in _counts(job)]
    return [service, *own]


def _counts(job: LaunchJob) -> list[tuple[str, int]]:
    """Jobs of the cluster and their sizes at the beginning, and the evaluator."""
    return [*job.counts.items(), *([(EVALUATOR, 1)] if job.evaluator else [])]


def _plain_job(job: LaunchJob, options: KubernetesOptions, role: str, count: int) -> dict[str, Any]:
    """A StatefulSet, which stays until it is deleted, or a Job, which ends with its tasks."""
    name = f"{options.name}-{role}"
    addresses = _addresses(job, options, f"{options.name}-{{job}}-{{index}}")
    if role == SERVER:
        labels = {_INSTANCE: options.name, "app.kubernetes.io/component": role}
        index = "metadata.labels['apps.kubernetes.io/pod-index']"
        spec = {
            "serviceName": options.name,
            "replicas": count,
            # Servers need each other (copies) and nobody's turn.
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": labels},
            "template": _pod(job, options, role, _task_variables(job, role, addresses, index)),
        }
        return _resource("apps/v1", "StatefulSet", name, options, spec, role)
    pod = _pod(job, options, role, _job_variables(job, role, addresses))
    pod["spec"] = {"subdomain": options.name, "restartPolicy": "Never", **pod["spec"]}
    spec = {**_indexed(count, job.restarts), "template": pod}
    return _resource("batch/v1", "Job", name, options, spec, role)


def _indexed(count: int, restarts: int) -> dict[str, Any]:
    """A Job whose pods have numbers, and names by them: one that fails comes back as the same."""
    return {
        "completionMode": "Indexed",
        "completions": count,
        "parallelism": count,
        "backoffLimitPerIndex": restarts,
        # A pod that makes room for others, or whose node is drained, has not failed.
        "podFailurePolicy": {
            "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]
        },
    }


def _trainjob(job: LaunchJob, options: KubernetesOptions) -> list[dict[str, Any]]:
    # All members of a group of all-reduce go on from a checkpoint together.
    together = job.ps == 0
    addresses = _addresses(job, options, f"{options.name}-{{job}}-0-{{index}}")
    replicated = [
        _replicated(job, options, role, count, addresses, 0 if together else job.restarts)
        for role, count in _counts(job)
    ]
    jobs = {
        "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
        "successPolicy": {
            "operator": "All",
            "targetReplicatedJobs": [role for role, _ in _counts(job) if role != SERVER],
        },
        "failurePolicy": {"maxRestarts": job.restarts if together else 0},
        "replicatedJobs": replicated,
    }
    group, runtime = "trainer.kubeflow.org", f"{options.name}-runtime"
    nodes = job.counts[_nodes(job)]
    return [
        _resource(
            f"{group}/v1alpha1",
            "TrainingRuntime",
            runtime,
            options,
            {"mlPolicy": {"numNodes": nodes}, "template": {"spec": jobs}},
        ),
        _resource(
            f"{group}/v1alpha1",
            "TrainJob",
            options.name,
            options,
            {
                "runtimeRef": {"apiGroup": group, "kind": "TrainingRuntime", "name": runtime},
                "trainer": {"numNodes": nodes},
            },
        ),
    ]


def _replicated(
    job: LaunchJob,
    options: KubernetesOptions,
    role: str,
    count: int,
    addresses: Mapping[str, Sequence[str]],
    restarts: int,
) -> dict[str, Any]:
    pod = _pod(job, options, role, _job_variables(job, role, addresses))
    # The trainer counts the nodes of what is marked so, and knows their container by its name.
    nodes = role == _nodes(job)
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"} if nodes else {}
    if nodes:
        pod["spec"]["containers"][0]["name"] = "node"
    pod["spec"]["restartPolicy"] = "Never"
    return {
        "name": role,
        "replicas": 1,
        "template": {
            "metadata": {"labels": labels},
            "spec": {**_indexed(count, restarts), "template": pod},
        },
    }


def _nodes(job: LaunchJob) -> str:
    """The job that a trainer counts: the chief where there are no other workers."""
    return WORKER if WORKER in job.counts else CHIEF


def _tfjob(job: LaunchJob, options: KubernetesOptions) -> list[dict[str, Any]]:
    replicas = {}
    for role, count in _counts(job):
        pod = _pod(job, options, role, environment_of(job, TaskId(role, 0)))
        container = pod["spec"]["containers"][0]
        # What the operator knows the container and the port of TF_CONFIG by.
        container["name"], container["ports"][0]["name"] = "tensorflow", "tfjob-port"
        replicas[_ROLES[role]] = {
            "replicas": count,
            "restartPolicy": "OnFailure",
            "template": pod,
        }
    policy = {
        # Of all tasks together; servers go when the workers have ended.
        "backoffLimit": job.restarts * len(job.tasks),
        "cleanPodPolicy": "Running",
    }
    spec = {"runPolicy": policy, "successPolicy": "AllWorkers", "tfReplicaSpecs": replicas}
    if job.chief:
        del spec["successPolicy"]  # a chief ends the job
    return [_resource("kubeflow.org/v1", "TFJob", options.name, options, spec)]


def _resource(
    version: str,
    kind: str,
    name: str,
    options: KubernetesOptions,
    spec: Mapping[str, Any],
    role: str = "",
) -> dict[str, Any]:
    labels = {"app.kubernetes.io/name": "headrace", _INSTANCE: options.name}
    if role:
        labels["app.kubernetes.io/component"] = role
    metadata = {"name": name, "namespace": options.namespace, "labels": labels}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": dict(spec)}


def _addresses(job: LaunchJob, options: KubernetesOptions, host: str) -> dict[str, tuple[str, ...]]:
    """Of all tasks that there may ever be, by their DNS names."""
    sizes = dict(job.counts)
    if job.elastic:
        sizes[WORKER] = job.elastic[1] - int(job.chief)
    domain = f"{options.name}.{options.namespace}.svc:{options.port}"
    return {
        role: tuple(f"{host.format(job=role, index=i)}.{domain}" for i in range(count))
        for role, count in sizes.items()
    }


def _job_variables(
    job: LaunchJob, role: str, addresses: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    index = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
    return _task_variables(job, role, addresses, index)


def _task_variables(
    job: LaunchJob, role: str, addresses: Mapping[str, Sequence[str]], index: str
) -> dict[str, Any]:
    """The environment of all tasks of a job, whose number Kubernetes fills in."""
    if role != WORKER:
        addresses = {name: a[: job.counts[name]] for name, a in addresses.items()}
    found = task_environment(job, addresses, TaskId(role, 0))
    config = json.loads(found["TF_CONFIG"])
    config["task"]["index"] = _INDEX
    text = json.dumps(config).replace(f'"{_INDEX}"', f"$({_INDEX})")
    return {
        _INDEX: {"valueFrom": {"fieldRef": {"fieldPath": index}}},
        **found,
        "TF_CONFIG": {"value": text},
    }


def _pod(
    job: LaunchJob, options: KubernetesOptions, role: str, variables: Mapping[str, Any]
) -> dict[str, Any]:
    """The template of the pods of a job."""
    variables = {**variables, **_security_variables(options)}
    env = [
        {"name": name, **(value if isinstance(value, dict) else {"value": _literal(value)})}
        for name, value in variables.items()
    ]
    container: dict[str, Any] = {
        "name": role,
        "image": options.image,
        "command": _entry(job, options, role),
        "args": _task_command(job, options, role),
        "env": env,
        "ports": [{"name": "headrace", "containerPort": options.port}],
        "resources": _resources(job.asks(TaskId(role, 0)), options.gpu),
    }
    mounts, volumes = _volumes(options)
    spec: dict[str, Any] = {
        # The script is not process 1 then, which signals without a handler do not end.
        "shareProcessNamespace": True,
        "containers": [container],
    }
    if mounts:
        container["volumeMounts"], spec["volumes"] = mounts, volumes
    labels = {_INSTANCE: options.name, "app.kubernetes.io/component": role}
    metadata: dict[str, Any] = {"labels": labels}
    if job.metrics_port and role != EVALUATOR:
        # A PodMonitor knows the port by its name, older set-ups of Prometheus read the annotations.
        container["ports"].append({"name": "metrics", "containerPort": job.metrics_port})
        scrape = {"scrape": "true", "port": str(job.metrics_port)}
        metadata["annotations"] = {f"prometheus.io/{name}": v for name, v in scrape.items()}
    return {"metadata": metadata, "spec": spec}


def _entry(job: LaunchJob, options: KubernetesOptions, role: str) -> list[str]:
    found = ["python", "-m", "headrace.launch.pod"]
    if options.kind == "tfjob" and job.replicas:
        found += ["--replicas", str(job.replicas)]
    if job.elastic and role == WORKER:
        contact = _addresses(job, options, f"{options.name}-{{job}}-{{index}}")[SERVER][0]
        found += ["--first-workers", str(job.counts.get(WORKER, 0)), "--contact", contact]
    return found


def _task_command(job: LaunchJob, options: KubernetesOptions, role: str) -> list[str]:
    if role == SERVER and not options.servers_run_script:
        return ["--serve"]
    module = ["-m"] if job.as_module else []
    if job.script.startswith("-"):
        module.append("--")  # what follows is no option
    command = ["python", "-m", "headrace", "run", *module, job.script, *job.arguments]
    return ["--", *map(_literal, command)]


def _literal(text: str) -> str:
    """Text that Kubernetes leaves as it is: $(NAME) would be a variable, and $$ a dollar."""
    return text.replace("$", "$$")


def _security_variables(options: KubernetesOptions) -> dict[str, str]:
    if options.insecure:
        return {credentials.INSECURE_VARIABLE: "1"}
    return {variable: f"{_SECRETS}/{file}" for variable, file in _SECRET_FILES.items()}


def _volumes(options: KubernetesOptions) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    mounts: list[dict[str, Any]] = []
    volumes: list[dict[str, Any]] = []
    for number, volume in enumerate(options.volumes):
        name = f"volume-{number}"
        mounts.append({"name": name, "mountPath": volume.path})
        volumes.append({"name": name, "persistentVolumeClaim": {"claimName": volume.claim}})
    if options.secret:
        mounts.append({"name": "security", "mountPath": _SECRETS, "readOnly": True})
        items = [{"key": file, "path": file} for file in _SECRET_FILES.values()]
        source = {"secretName": options.secret, "items": items, "defaultMode": 0o440}
        volumes.append({"name": "security", "secret": source})
    return mounts, volumes


def _resources(asked: Resources, gpu: str) -> dict[str, Any]:
    """Processors are shared when there are more; memory and accelerators are what was asked for."""
    requests: dict[str, str] = {"cpu": _milli(asked.cpus)}
    limits: dict[str, str] = {}
    if asked.memory is not None:
        requests["memory"] = limits["memory"] = str(asked.memory)
    if asked.gpus:
        limits[gpu] = str(asked.gpus)
    return {"requests": requests, **({"limits": limits} if limits else {})}


def _milli(cpus: float) -> str:
    """A number of cores as Kubernetes writes it.

    >>> _milli(0.5), _milli(2.0)
    ('500m', '2')
    """
    return str(int(cpus)) if float(cpus).is_integer() else f"{round(cpus * 1000)}m"
