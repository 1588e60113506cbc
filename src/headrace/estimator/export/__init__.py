"""``tf.estimator.export``: what an exported model takes and gives."""

from headrace.namespaces.lazy import lazy as _lazy

__getattr__, __dir__ = _lazy(
    __name__,
    {
        "headrace.estimator.export.outputs": (
            "ClassificationOutput",
            "ExportOutput",
            "PredictOutput",
            "RegressionOutput",
        ),
        "headrace.estimator.export.receivers": (
            "ServingInputReceiver",
            "TensorServingInputReceiver",
            "build_parsing_serving_input_receiver_fn",
            "build_raw_serving_input_receiver_fn",
        ),
    },
)
