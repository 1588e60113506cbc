"""TF_CONFIG: the variable that tells a process its cluster and which of its tasks it is.

{"cluster": {"ps": ["ps0:2222"], "worker": ["w0:2222", "w1:2222"]},
 "task": {"type": "worker", "index": 1}}

With `"replicas": 1` beside these, servers keep copies of each other's variables.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from headrace.distributed.cluster.cluster_spec import ClusterSpec
from headrace.errors import InvalidArgumentError

__all__ = ["VARIABLE", "TaskConfig", "read_tf_config", "tf_config_or_empty"]

VARIABLE = "TF_CONFIG"


class TaskConfig(NamedTuple):
    """What TF_CONFIG says.

    Attributes:
        cluster: all tasks.
        job, task: the job and the number in it of this process.
    """

    cluster: ClusterSpec
    job: str
    task: int


def read_tf_config(environ: Mapping[str, str] = os.environ) -> TaskConfig:
    """The cluster of this process, and its task.

    Raises:
        InvalidArgumentError: the variable is not set, is no JSON, or describes no cluster; the
            message says where.

    >>> text = '{"cluster": {"ps": ["a:1"]}, "task": {"type": "ps", "index": 0}}'
    >>> read_tf_config({"TF_CONFIG": text}).cluster.as_dict()
    {'ps': ['a:1']}
    """
    text = environ.get(VARIABLE, "")
    if not text:
        raise _wrong("it is not set: each process of a cluster needs its own")
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _wrong(f"it is no JSON: {error}") from None
    task = _entry(config, "task", "the configuration")
    job = _entry(task, "type", "'task'", str)
    index = _entry(task, "index", "'task'", int)
    try:
        replicas = (
            _entry(config, "replicas", "the configuration", int) if "replicas" in config else 0
        )
        cluster = ClusterSpec(_entry(config, "cluster", "the configuration"), replicas)
        cluster.task_address(job, index)
    except (TypeError, ValueError) as error:
        raise _wrong(f"'cluster': {error}") from None
    return TaskConfig(cluster, job, index)


def tf_config_or_empty(environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """TF_CONFIG as it stands; {} where it is not set or no JSON object."""
    try:
        found = json.loads(environ.get(VARIABLE) or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _entry(holder: Any, name: str, where: str, kind: type = dict) -> Any:
    words = {dict: "a JSON object", str: "a string", int: "an integer"}
    if not isinstance(holder, dict) or name not in holder:
        raise _wrong(f"{where} lacks {name!r}")
    found = holder[name]
    if not isinstance(found, kind) or isinstance(found, bool):
        raise _wrong(f"{name!r} in {where} must be {words[kind]}, not {found!r:.100}")
    return found


def _wrong(what: str) -> InvalidArgumentError:
    example = '{"cluster": {"ps": ["host:port"]}, "task": {"type": "ps", "index": 0}}'
    return InvalidArgumentError(None, None, f"{VARIABLE}: {what}. It has the form {example}.")
