"""What Kubernetes does with manifests: their schemas, variables and names, for tests."""

import json
import re
from pathlib import Path

import jsonschema

from headrace.launch.job import TaskId

SCHEMAS = Path(__file__).parents[1] / "data/kubernetes/schemas.json"
_DEFINITIONS = {
    ("v1", "Service"): "io.k8s.api.core.v1.Service",
    ("apps/v1", "StatefulSet"): "io.k8s.api.apps.v1.StatefulSet",
    ("batch/v1", "Job"): "io.k8s.api.batch.v1.Job",
    ("kubeflow.org/v1", "TFJob"): "KubeflowOrgV1TFJob",
    ("trainer.kubeflow.org/v1alpha1", "TrainJob"): "TrainerV1alpha1TrainJob",
    ("trainer.kubeflow.org/v1alpha1", "TrainingRuntime"): "TrainerV1alpha1TrainingRuntime",
}
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def check(resource):
    """Hold a resource to the published schema of its kind."""
    name = _DEFINITIONS[resource["apiVersion"], resource["kind"]]
    schemas = json.loads(SCHEMAS.read_text())
    schema = {"$ref": f"#/definitions/{name}", "definitions": schemas["definitions"]}
    jsonschema.Draft7Validator(schema).validate(resource)


def expand(text, variables):
    """Variables in an argument or a value, as the kubelet puts them in (``$$`` is a dollar)."""

    def replaced(match):
        name = match.group("name")
        return "$" if name is None else variables.get(name, match.group())

    return re.sub(r"\$\$|\$\((?P<name>[A-Za-z_][A-Za-z0-9_]*)\)", replaced, text)


def pod_templates(resource):
    """Each pod template of a resource as (job, name of a pod by its number, template, size)."""
    name, spec = resource["metadata"]["name"], resource["spec"]
    component = resource["metadata"]["labels"].get("app.kubernetes.io/component")
    if resource["kind"] == "StatefulSet":
        assert spec["selector"]["matchLabels"].items() <= _labels(spec["template"]).items()
        yield component, name + "-{}." + spec["serviceName"], spec["template"], spec["replicas"]
    elif resource["kind"] == "Job":
        inner = spec["template"]["spec"]["subdomain"]
        yield component, name + "-{}." + inner, spec["template"], spec["completions"]
    elif resource["kind"] == "TrainingRuntime":
        owner = name.removesuffix("-runtime")
        for job in spec["template"]["spec"]["replicatedJobs"]:
            host = f"{owner}-{job['name']}-0-{{}}.{owner}"
            inner = job["template"]["spec"]
            yield job["name"], host, inner["template"], inner["completions"]
    elif resource["kind"] == "TFJob":
        for role, replica in spec["tfReplicaSpecs"].items():
            job = role.lower()
            yield job, f"{name}-{job}-{{}}", replica["template"], replica["replicas"]


def _labels(template):
    return template["metadata"]["labels"]


def tasks(resources):
    """The environment and the command of each task, as its container gets them."""
    for resource in resources:
        for job, host, template, size in pod_templates(resource):
            for index in range(size):
                assert all(map(_LABEL.fullmatch, host.format(index).split(".")))
                (container,) = template["spec"]["containers"]
                variables = _environment(container, index)
                command = [*container["command"], *container["args"]]
                words = [expand(word, variables) for word in command]
                yield TaskId(job, index), host.format(index), variables, words


def _environment(container, index):
    found = {}
    for entry in container["env"]:
        if "valueFrom" in entry:
            assert re.fullmatch(
                r"metadata\.(labels|annotations)\['[a-z./-]+index'\]",
                entry["valueFrom"]["fieldRef"]["fieldPath"],
            )
            found[entry["name"]] = str(index)
        else:
            found[entry["name"]] = expand(entry["value"], found)
    return found
