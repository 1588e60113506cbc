"""Old programs' imports of estimators and `tf.contrib.learn`, in processes of their own."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.process


def _python(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=55,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="keras is not installed")
def test_keras_does_not_take_the_alias_for_tensorflow_when_it_comes_later():
    """Its classes are asked for `tf.TypeSpec` where a `tensorflow` can be imported."""
    _python("""
        import headrace

        layer = headrace.keras.layers.Dense(2)
        import headrace.compat.tensorflow

        assert layer.get_config()["units"] == 2
    """)


def test_where_estimators_were_imported_from():
    """Release 1.4 to 1.12 had them in `tensorflow.python`; later they were a package."""
    _python("""
        import headrace as hr
        import headrace.compat.tensorflow
        from tensorflow.python.estimator import estimator as estimator_lib
        from tensorflow.python.estimator import model_fn as model_fn_lib
        from tensorflow.python.estimator import run_config
        from tensorflow.python.estimator.canned import dnn, head, metric_keys, optimizers
        from tensorflow.python.estimator.canned import prediction_keys
        from tensorflow.python.estimator.export import export, export_output
        from tensorflow.python.estimator.inputs import numpy_io
        from tensorflow.python.estimator.inputs.pandas_io import pandas_input_fn
        from tensorflow.python.estimator.training import TrainSpec, train_and_evaluate
        import tensorflow_estimator as tf_estimator
        from tensorflow_estimator.estimator import DNNClassifier
        from tensorflow_estimator.python.estimator.canned.linear import LinearRegressor
        from tensorflow_estimator.python.estimator.head.base_head import Head
        from tensorflow_estimator.python.estimator.head import binary_class_head

        e = hr.estimator
        assert estimator_lib.Estimator is e.Estimator
        assert model_fn_lib.EstimatorSpec is e.EstimatorSpec
        assert model_fn_lib.ModeKeys is e.ModeKeys
        assert run_config.TaskType.PS == "ps"
        assert dnn.DNNClassifier is DNNClassifier is e.DNNClassifier
        assert prediction_keys.PredictionKeys.CLASS_IDS == "class_ids"
        assert metric_keys.MetricKeys.AUC == "auc"
        assert type(optimizers.get_optimizer_instance("Adam", 0.1)).__name__ == "AdamOptimizer"
        assert export.ServingInputReceiver is e.export.ServingInputReceiver
        assert export_output.PredictOutput is e.export.PredictOutput
        assert numpy_io.numpy_input_fn is e.inputs.numpy_input_fn
        assert train_and_evaluate is e.train_and_evaluate
        assert tf_estimator.estimator.LinearRegressor is LinearRegressor
        assert Head is e.Head and binary_class_head.BinaryClassHead is e.BinaryClassHead
        made = head._multi_class_head_with_softmax_cross_entropy_loss(n_classes=3)
        assert made.logits_dimension == 3 and made.loss_reduction == "weighted_sum"
        two = head._binary_logistic_head_with_sigmoid_cross_entropy_loss()
        assert two.logits_dimension == head._regression_head().logits_dimension == 1
        assert head._poisson_regression_head(label_dimension=2).logits_dimension == 2
    """)


def test_what_a_column_is():
    """Programs ask for classes of columns by their inner names."""
    _python("""
        import headrace.compat.tensorflow
        import tensorflow as tf
        from tensorflow.python.feature_column import feature_column as fc_old
        from tensorflow.python.feature_column import feature_column_v2 as fc
        from tensorflow.python.feature_column.feature_column import _EmbeddingColumn

        x = tf.feature_column.numeric_column("x")
        words = tf.feature_column.categorical_column_with_hash_bucket("w", 10)
        table = tf.feature_column.embedding_column(words, 2)
        assert isinstance(x, fc_old._NumericColumn) and isinstance(x, fc.NumericColumn)
        assert isinstance(x, fc_old._DenseColumn) and isinstance(words, fc_old._CategoricalColumn)
        assert isinstance(table, _EmbeddingColumn) and not isinstance(table, fc.IndicatorColumn)
        assert isinstance(words, fc.HashedCategoricalColumn)
        cache = fc_old._LazyBuilder({"x": tf.constant([[1.0]])})
        assert cache.get("x").shape.as_list() == [1, 1]
        assert fc_old.make_parse_example_spec([x]).keys() == {"x"}
    """)


def test_where_contrib_learn_was_imported_from():
    """The census programs of Google's samples, and notebooks of 2016 and 2017."""
    _python("""
        import tempfile
        import numpy as np
        import headrace.compat.tensorflow
        import tensorflow as tf
        from tensorflow.contrib import learn
        from tensorflow.contrib.learn.python.learn import learn_runner, metric_spec, monitors
        from tensorflow.contrib.learn.python.learn.estimators import constants, dnn, prediction_key
        from tensorflow.contrib.learn.python.learn.estimators import estimator, head, metric_key
        from tensorflow.contrib.learn.python.learn.estimators import model_fn as model_fn_lib
        from tensorflow.contrib.learn.python.learn.estimators import run_config
        from tensorflow.contrib.learn.python.learn.learn_io.numpy_io import numpy_input_fn
        from tensorflow.contrib.learn.python.learn.utils import (
            input_fn_utils,
            saved_model_export_utils,
        )

        assert dnn.DNNClassifier is learn.DNNClassifier
        assert estimator.SKCompat is learn.SKCompat
        assert model_fn_lib.ModelFnOps is learn.ModelFnOps
        assert constants.ProblemType is learn.ProblemType
        assert metric_key.MetricKey.LOSS == "loss"
        assert metric_spec.MetricSpec is learn.MetricSpec
        assert prediction_key.PredictionKey is learn.PredictionKey
        assert head.loss_only_head(lambda: tf.constant(1.0)).logits_dimension == 0
        x = np.array([[-1.0], [1.0], [2.0], [-2.0]], np.float32)
        y = (x[:, 0] > 0).astype(np.int64)
        column = tf.contrib.layers.real_valued_column("x")

        def experiment_fn(run_config, hparams):
            classifier = learn.LinearClassifier([column], config=run_config)
            serving = input_fn_utils.build_parsing_serving_input_fn(
                tf.contrib.layers.create_feature_spec_for_parsing([column])
            )
            return learn.Experiment(
                classifier,
                numpy_input_fn({"x": x}, y, 4, num_epochs=None),
                numpy_input_fn({"x": x}, y, 4, shuffle=False),
                train_steps=20,
                eval_steps=1,
                export_strategies=[saved_model_export_utils.make_export_strategy(serving)],
            )

        with tempfile.TemporaryDirectory() as folder:
            config = run_config.RunConfig(model_dir=folder)
            metrics, exports = learn_runner.run(experiment_fn, run_config=config)
            assert metrics["accuracy"] == 1 and len(exports) == 1
            tf.summary.FileWriterCache.clear()
    """)
