"""Ops of optimisers, savers and strings: all are stateful or run on the host."""

_RULES = (
    *("Momentum", "Adagrad", "AdagradV2", "AdagradDA", "Adadelta", "Adam", "RMSProp"),
    *("CenteredRMSProp", "Ftrl", "FtrlV2", "ProximalGradientDescent", "ProximalAdagrad"),
)
_OPTIMIZERS = "tests/train/test_optimizers.py"
_SAVER = "tests/train/test_saver.py"

COVERED = {
    "ResourceApplyGradientDescent": _OPTIMIZERS,
    **{
        f"Resource{kind}{rule}": _OPTIMIZERS for rule in _RULES for kind in ("Apply", "SparseApply")
    },
    **{op: _SAVER for op in ("SaveV2", "RestoreV2", "MergeV2Checkpoints", "DisableCopyOnRead")},
    **{op: _SAVER for op in ("ShardedFilename", "ShardedFilespec")},
}
