"""Writes tests/data/kubernetes/schemas.json: what the manifests of `headrace launch` are held to.

    pip install --target /tmp/schemas kubernetes-validate kubeflow-trainer-api kubeflow-training
    PYTHONPATH=/tmp/schemas python tools/make_kubernetes_schemas.py

The packages have what Kubernetes and Kubeflow publish of their resources, and are 100 MB together;
the definitions that are needed are 100 KB, without the texts that explain fields.
Kubeflow's definitions refer to the core's for pods and metadata.
"""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import json
import re
from pathlib import Path
from typing import Any

CORE = (
    "io.k8s.api.apps.v1.StatefulSet",
    "io.k8s.api.batch.v1.Job",
    "io.k8s.api.batch.v1.JobTemplateSpec",
    "io.k8s.api.core.v1.Service",
)
TRAINER = ("TrainerV1alpha1TrainJob", "TrainerV1alpha1TrainingRuntime")
OPERATOR = "KubeflowOrgV1TFJob"
PACKAGES = ("kubernetes-validate", "kubeflow-trainer-api", "kubeflow-training")
TARGET = Path(__file__).parents[1] / "tests/data/kubernetes/schemas.json"
PLAIN = {"int": "integer", "str": "string", "bool": "boolean", "datetime": "string"}


def main() -> None:
    """Collect the definitions and write them."""
    made: dict[str, Any] = {}
    _add_trainer(made)
    _add_operator(made, OPERATOR)
    wanted = sorted({*CORE, *re.findall(r'"#/definitions/(io[^"]+)"', json.dumps(made))})
    _add_core(made, wanted)
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"packages": versions, "definitions": made}, sort_keys=True, indent=0)
    TARGET.write_text(text + "\n")
    print(f"{len(made)} definitions, {TARGET.stat().st_size:,} bytes")


def _folder(package: str) -> Path:
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise SystemExit(__doc__)
    return Path(found.submodule_search_locations[0])


def _add_core(made: dict[str, Any], wanted: list[str]) -> None:
    """The newest strict definitions, and those they refer to."""
    folders = (_folder("kubernetes_validate") / "kubernetes-json-schema").glob("*-local-strict")
    newest = max(folders, key=lambda f: [int(n) for n in re.findall(r"\d+", f.name)])
    known = json.loads((newest / "_definitions.json").read_text())
    known = known["$defs"]
    while wanted:
        name = wanted.pop()
        if name in made:
            continue
        made[name] = _without_descriptions(known[name])
        wanted += re.findall(r'"#/definitions/([^"]+)"', json.dumps(made[name]))


def _without_descriptions(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_descriptions(v) for v in value]
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("$ref"), str):
        return {"$ref": "#/definitions/" + value["$ref"].rpartition("/")[2]}
    return {
        name: _without_descriptions(v)
        for name, v in value.items()
        if not (name == "description" and isinstance(v, str))
    }


def _add_trainer(made: dict[str, Any]) -> None:
    """Trainer's resources and JobSet's, as models of pydantic."""
    models = importlib.import_module("kubeflow_trainer_api.models")
    for root in TRAINER:
        schema = getattr(models, root).model_json_schema()
        own = {**schema.pop("$defs"), root: schema}
        made.update(
            {name: _plain(value) for name, value in own.items() if not name.startswith("Io")}
        )


def _plain(value: Any) -> Any:
    """JSON schema of a model, strict: other fields than the named ones are wrong."""
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        return {"$ref": "#/definitions/" + _core_name(value["$ref"].rpartition("/")[2])}
    kinds = [kind for kind in value.get("anyOf", ()) if kind != {"type": "null"}]
    if len(kinds) == 1:
        return _plain(kinds[0])
    found = {
        name: {field: _plain(v) for field, v in part.items()}
        if name == "properties"
        else _plain(part)
        for name, part in value.items()
        if name not in ("description", "title", "default")
    }
    if "properties" in found:
        found["additionalProperties"] = False
    return found


def _core_name(model: str) -> str:
    """The core's name of a class: IoK8sApiCoreV1PodSpec is io.k8s.api.core.v1.PodSpec."""
    patterns = (
        (r"IoK8sApimachineryPkgApisMetaV1(\w+)", r"io.k8s.apimachinery.pkg.apis.meta.v1.\1"),
        (r"IoK8sApimachineryPkgApiResource(\w+)", r"io.k8s.apimachinery.pkg.api.resource.\1"),
        (r"IoK8sApimachineryPkgUtilIntstr(\w+)", r"io.k8s.apimachinery.pkg.util.intstr.\1"),
    )
    for pattern, name in patterns:
        if re.fullmatch(pattern, model):
            return re.sub(pattern, name, model)
    found = re.fullmatch(r"IoK8sApi(Core|Batch|Autoscaling)(V\d)(\w+)", model)
    if not found:
        return model
    return f"io.k8s.api.{found[1].lower()}.{found[2].lower()}.{found[3]}"


def _add_operator(made: dict[str, Any], model: str) -> None:
    """TFJob and what it is made of, from the tables of its classes, which are read as text."""
    if model in made:
        return
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", model.replace("TFJob", "TfJob")).lower()
    path = _folder("kubeflow") / "training/models" / f"{words}.py"
    text = path.read_text()
    kinds, names = (
        ast.literal_eval(re.search(rf"    {table} = ({{.*?}})", text, re.DOTALL)[1])  # type: ignore[index]
        for table in ("openapi_types", "attribute_map")
    )
    required = re.findall(r"Invalid value for `(\w+)`, must not be `None`", text)
    made[model] = {
        "type": "object",
        "properties": {names[field]: _kind(made, kind) for field, kind in kinds.items()},
        "required": sorted({names[field] for field in required}),
        "additionalProperties": False,
    }


def _kind(made: dict[str, Any], kind: str) -> dict[str, Any]:
    if kind in PLAIN:
        return {"type": PLAIN[kind]}
    inner = re.fullmatch(r"(dict\(str, |list\[)(.+)[)\]]", kind)
    if inner:
        parts = _kind(made, inner[2])
        if inner[1] == "list[":
            return {"type": "array", "items": parts}
        return {"type": "object", "additionalProperties": parts}
    if kind.startswith("Kubeflow"):
        _add_operator(made, kind)
        return {"$ref": f"#/definitions/{kind}"}
    name = kind.removeprefix("V1")
    if name.endswith("Quantity"):
        return {"$ref": "#/definitions/io.k8s.apimachinery.pkg.api.resource.Quantity"}
    meta = name in ("ObjectMeta", "ListMeta", "LabelSelector")
    group = "apimachinery.pkg.apis.meta" if meta else "api.core"
    return {"$ref": f"#/definitions/io.k8s.{group}.v1.{name}"}


if __name__ == "__main__":
    main()
