"""Plain scripts on many workers: what happens in each worker of ``headrace launch``.

A script that knows nothing of clusters is run by each worker as it is. `start.begin` makes this
process a task of the cluster in ``TF_CONFIG`` and registers a `worker.ScriptWorker` where stages
ask for it (`headrace.ops.state.share`). From then on

- variables are made on parameter servers (`placement`), or in each worker for all-reduce;
- an optimiser's updates are those of all workers (`updates`), with the loss weighted so that the
  average over workers is the step of the script (`losses`);
- datasets that feed a step that trains are read in shards (`inputs`);
- monitored sessions take part in updates and end together (`hooks`);
- sessions run on the cluster (`engine`): a step that trains gets this worker's rows of each fed
  batch, a step that changes variables otherwise is run once for all (`turns`), what else there is
  runs as it stands.

What cannot be split is said before the first step, with the line of the program.
docs/plain-scripts.md has the rules as users see them.

>>> from headrace.data_parallel.mode import ParallelMode
>>> ParallelMode.parse("sync:1")
ParallelMode(kind='sync', backups=1)
"""
