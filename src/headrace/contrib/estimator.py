"""``tf.contrib.estimator``: heads, recurrent estimators, towers, and what extends an Estimator.

>>> tf.contrib.estimator.multi_label_head(n_classes=3).logits_dimension
3
"""

from headrace.namespaces.lazy import lazy as _lazy

__getattr__, __dir__ = _lazy(
    __name__,
    {
        "headrace.estimator.canned.boosted_trees": (
            "boosted_trees_classifier_train_in_memory",
            "boosted_trees_regressor_train_in_memory",
        ),
        "headrace.estimator.canned.dnn": ("dnn_logit_fn_builder",),
        "headrace.estimator.canned.linear": ("linear_logit_fn_builder",),
        "headrace.estimator.canned.rnn": ("RNNClassifier", "RNNEstimator"),
        "headrace.estimator.callables": ("call_logit_fn",),
        "headrace.estimator.early_stopping": (
            "make_early_stopping_hook",
            "make_stop_at_checkpoint_step_hook",
            "stop_if_higher_hook",
            "stop_if_lower_hook",
            "stop_if_no_decrease_hook",
            "stop_if_no_increase_hook",
        ),
        "headrace.estimator.export.by_mode": (
            "export_all_saved_models",
            "export_saved_model_for_mode",
        ),
        "headrace.estimator.export.receivers": (
            "build_raw_supervised_input_receiver_fn",
            "build_supervised_input_receiver_fn_from_input_fn",
        ),
        "headrace.estimator.extenders": (
            "add_metrics",
            "clip_gradients_by_norm",
            "forward_features",
        ),
        "headrace.estimator.heads.first_generation": (
            "binary_classification_head",
            "logistic_regression_head",
            "multi_class_head",
            "multi_head",
            "multi_label_head",
            "poisson_regression_head",
            "regression_head",
        ),
        "headrace.estimator.in_memory_evaluator": ("InMemoryEvaluatorHook",),
        "headrace.estimator.replicate": ("TowerOptimizer", "replicate_model_fn"),
    },
)
