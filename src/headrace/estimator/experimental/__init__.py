"""``tf.estimator.experimental``: early stopping, evaluation while training, receivers."""

from headrace.namespaces.lazy import lazy as _lazy

__getattr__, __dir__ = _lazy(
    __name__,
    {
        "headrace.estimator.early_stopping": (
            "make_early_stopping_hook",
            "make_stop_at_checkpoint_step_hook",
            "stop_if_higher_hook",
            "stop_if_lower_hook",
            "stop_if_no_decrease_hook",
            "stop_if_no_increase_hook",
        ),
        "headrace.estimator.canned.dnn": ("dnn_logit_fn_builder",),
        "headrace.estimator.experimental.kmeans": ("KMeans",),
        "headrace.estimator.canned.linear": ("linear_logit_fn_builder",),
        "headrace.estimator.canned.linear_sdca": ("LinearSDCA",),
        "headrace.estimator.callables": ("call_logit_fn",),
        "headrace.estimator.export.receivers": ("build_raw_supervised_input_receiver_fn",),
        "headrace.estimator.in_memory_evaluator": ("InMemoryEvaluatorHook",),
    },
)
