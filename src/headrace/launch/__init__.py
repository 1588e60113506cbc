"""`headrace launch`: the processes of a cluster, started, watched and ended.

In: a `LaunchJob` (how many tasks of which kind run which script) and addresses. Out: processes with
``TF_CONFIG`` and settings of ``HEADRACE_`` in their environment. Invariant: `task_environment`
alone makes the environment of a task, so that a script sees the same wherever it is started.
"""

from headrace.launch.job import LaunchJob, Resources, TaskId, environment_of, task_environment

__all__ = ["LaunchJob", "Resources", "TaskId", "environment_of", "task_environment"]
