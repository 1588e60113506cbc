"""The premade Estimators of tf.contrib.learn, as their programs use them."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

import headrace as tf

learn = tf.contrib.learn
layers = tf.contrib.layers
X = np.array([[-2.0, 1], [-1, 0], [1, 2], [2, 1], [-3, 3], [3, 0]], np.float64)
Y = (X[:, 0] > 0).astype(np.int64)


@pytest.fixture(autouse=True)
def _own_writers(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    yield
    tf.summary.FileWriterCache.clear()


def _config(folder, **given):
    return learn.RunConfig(model_dir=str(folder), tf_random_seed=1, **given)


def _linear(folder, **given):
    columns = learn.infer_real_valued_columns_from_input(X)
    return learn.LinearClassifier(columns, config=_config(folder), **given)


def test_arrays_as_scikit_learn_has_them(tmp_path):
    classifier = _linear(tmp_path).fit(X, Y, steps=30, batch_size=6)
    assert classifier.predict(X, as_iterable=False).tolist() == Y.tolist()
    assert [int(c) for c in classifier.predict(X)] == Y.tolist()
    proba = classifier.predict_proba(X, as_iterable=False)
    np.testing.assert_allclose(proba.sum(1), 1, rtol=1e-6)
    assert (proba.argmax(1) == Y).all()
    assert next(classifier.predict(X, outputs=["logits"])).keys() == {"logits"}
    found = classifier.partial_fit(X, Y).evaluate(X, Y)
    assert found["accuracy"] == 1
    assert found["global_step"] == 31
    assert set(found) == {
        "loss",
        "accuracy",
        "labels/prediction_mean",
        "labels/actual_label_mean",
        "accuracy/baseline_label_mean",
        "auc",
        "auc_precision_recall",
        "accuracy/threshold_0.500000_mean",
        "precision/positive_threshold_0.500000_mean",
        "recall/positive_threshold_0.500000_mean",
        "global_step",
    }
    assert classifier.get_variable_value("linear//weight").shape == (2, 1)
    model = learn.SKCompat(classifier).fit(X, Y, steps=1)
    assert model.predict(X)["classes"].tolist() == Y.tolist()


def test_more_metrics(tmp_path):
    classifier = _linear(tmp_path).fit(X, Y, steps=1)
    metrics = {
        "spec": learn.MetricSpec(
            tf.contrib.metrics.streaming_accuracy, prediction_key=learn.PredictionKey.CLASSES
        ),
        ("pair", "classes"): tf.contrib.metrics.streaming_accuracy,
    }
    found = classifier.evaluate(X, Y, metrics=metrics)
    assert found["spec"] == found["pair"] == found["accuracy"]
    wrong = {"m": learn.MetricSpec(tf.metrics.accuracy, prediction_key="clases")}
    with pytest.raises(ValueError, match=r"prediction_key 'clases'.*Did you mean 'classes'"):
        classifier.evaluate(X, Y, metrics=wrong)
    with pytest.raises(ValueError, match="without prediction_key"):
        classifier.evaluate(X, Y, metrics={"m": learn.MetricSpec(tf.metrics.accuracy)})


def test_names_of_classes(tmp_path):
    names = ["small", "middle", "large"]
    y = np.array(names)[[0, 0, 1, 2, 0, 2]]
    columns = learn.infer_real_valued_columns_from_input(X)
    classifier = learn.DNNClassifier(
        [8], columns, n_classes=3, label_keys=names, config=_config(tmp_path)
    )
    classifier.fit(X, y, steps=150, batch_size=6)
    assert [c.decode() for c in classifier.predict_classes(X)] == y.tolist()


def test_weights_of_examples_count(tmp_path):
    x = {"x": np.ones([2, 1]), "w": np.array([1.0, 3.0])}
    column = layers.real_valued_column("x")
    regressor = learn.LinearRegressor(
        [column],
        weight_column_name="w",
        optimizer=tf.train.GradientDescentOptimizer(0.1),
        config=_config(tmp_path),
    )
    y = np.array([0.0, 4.0])
    regressor.fit(x, y, steps=100, batch_size=2)
    np.testing.assert_allclose(regressor.predict_scores(x, as_iterable=False), [3, 3], rtol=1e-3)
    assert regressor.evaluate(x, y)["loss"] == pytest.approx(3.0, rel=1e-3)
    with pytest.raises(ValueError, match="Weights w missing from features"):
        regressor.evaluate({"x": x["x"]}, y)


def _examples():
    """A batch with columns of the census's kind."""
    at = [[0, 0], [1, 0], [2, 0], [3, 0]]
    jobs = tf.SparseTensor(at, tf.constant(["smith", "clerk", "smith", "nurse"]), [4, 1])
    features = {"age": tf.constant([[20.0], [30.0], [60.0], [70.0]]), "job": jobs}
    return features, tf.constant([[0], [1], [0], [1]])


@pytest.mark.slow
def test_wide_and_deep_columns(tmp_path):
    job = layers.sparse_column_with_hash_bucket("job", 20)
    age = layers.real_valued_column("age")
    ages = layers.bucketized_column(age, [25, 50, 65])
    both = layers.crossed_column([ages, job], hash_bucket_size=100)
    classifier = learn.DNNLinearCombinedClassifier(
        linear_feature_columns=[job, ages, both],
        dnn_feature_columns=[layers.embedding_column(job, 3), age],
        dnn_hidden_units=[8, 4],
        dnn_optimizer=tf.train.AdamOptimizer(0.01),
        fix_global_step_increment_bug=True,
        config=_config(tmp_path),
    )
    classifier.fit(input_fn=_examples, steps=40)
    found = classifier.evaluate(input_fn=_examples, steps=1)
    assert found["accuracy"] == 1
    assert found["global_step"] == 40
    names = classifier.get_variable_names()
    assert "dnn/input_from_feature_columns/job_embedding/weights" in names
    assert "linear/age_bucketized/weights" in names
    path = classifier.export(str(tmp_path / "out")).decode()
    predict = tf.contrib.predictor.from_saved_model(path)
    assert set(predict.fetch_tensors) == {"classes", "scores"}


def test_exports_of_an_experiment(tmp_path):
    column = layers.real_valued_column("age")
    job = layers.sparse_column_with_hash_bucket("job", 20)
    classifier = learn.LinearClassifier([column, job], config=_config(tmp_path))
    spec = layers.create_feature_spec_for_parsing([column, job])
    serving = learn.build_parsing_serving_input_fn(spec)
    strategy = learn.utils.saved_model_export_utils.make_export_strategy(serving, exports_to_keep=1)
    experiment = learn.Experiment(
        classifier,
        _examples,
        _examples,
        train_steps=4,
        eval_steps=1,
        export_strategies=[strategy],
    )
    metrics, exports = experiment.train_and_evaluate()
    assert metrics["global_step"] == 4
    [path] = exports
    assert os.path.dirname(path.decode()) == str(tmp_path / "export" / "Servo")
    assert experiment.reset_export_strategies() == [strategy]
    with tf.Graph().as_default(), tf.Session() as session:
        found = tf.saved_model.loader.load(session, ["serve"], path.decode())
    assert sorted(found.signature_def) == ["default_input_alternative:None", "serving_default"]
    with pytest.raises(ValueError, match="unique names"):
        experiment.reset_export_strategies([strategy, strategy])


def test_a_model_without_alternatives_and_raw_inputs(tmp_path):
    def model_fn(features, labels, mode):
        w = tf.get_variable("w", [], initializer=tf.ones_initializer())
        loss = tf.reduce_mean((w * features["x"] - 2.0) ** 2)
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        train = optimizer.minimize(loss, tf.train.get_global_step())
        return w * features["x"], loss, train

    estimator = learn.Estimator(model_fn, str(tmp_path))
    with pytest.raises(learn.NotFittedError, match="Couldn't find trained model"):
        estimator.evaluate({"x": X[:, 0]}, Y)
    estimator.fit({"x": np.ones([2], np.float32)}, np.ones([2]), steps=1)

    def serving():
        x = tf.placeholder(tf.float32, [None], name="x")
        return learn.InputFnOps({"x": x}, None, {"x": x})

    path = estimator.export_savedmodel(str(tmp_path / "out"), serving).decode()
    predict = tf.contrib.predictor.from_saved_model(path)
    assert predict({"x": np.array([1.0], np.float32)})["output"] == pytest.approx(1.2)
    with pytest.raises(ValueError, match="Requested default_output_alternative: a, but available"):
        estimator.export_savedmodel(str(tmp_path / "out"), serving, "a")
    with pytest.raises(ValueError, match="A default input_alternative must be provided"):
        estimator.export_savedmodel(str(tmp_path / "out"), lambda: ({"x": 1}, None))


def test_a_head_in_a_model_fn_of_tf_estimator(tmp_path):
    """`estimator_spec` is the bridge that TensorFlow's guide of migration names."""
    heads = [learn.regression_head(head_name=name, label_name=name) for name in ("a", "b")]
    head = learn.multi_head(heads, loss_weights=[1.0, 0.5])

    def model_fn(features, labels, mode):
        ops = head.create_model_fn_ops(
            features,
            mode,
            labels,
            logits_input=features["x"],
            train_op_fn=lambda loss: tf.train.GradientDescentOptimizer(0.1).minimize(
                loss, tf.train.get_global_step()
            ),
        )
        return ops.estimator_spec("a")

    def data():
        x = tf.constant([[1.0], [2.0]])
        return {"x": x}, {"a": x, "b": 2 * x}

    estimator = tf.estimator.Estimator(model_fn, str(tmp_path))
    estimator.train(data, steps=100)
    assert estimator.evaluate(data, steps=1)["loss"] < 0.2

    def receiver():
        x = tf.placeholder(tf.float32, [None, 1])
        return tf.estimator.export.ServingInputReceiver({"x": x}, {"x": x})

    estimator.export_savedmodel(str(tmp_path / "out"), receiver)


def test_a_validation_monitor_stops_a_premade_estimator(tmp_path):
    config = _config(tmp_path, save_checkpoints_steps=2)
    columns = learn.infer_real_valued_columns_from_input(X)
    monitor = learn.monitors.ValidationMonitor(
        X,
        Y,
        every_n_steps=2,
        early_stopping_metric="accuracy",
        early_stopping_metric_minimize=False,
        early_stopping_rounds=4,
    )
    classifier = learn.LinearClassifier(columns, config=config)
    classifier.fit(X, Y, steps=60, monitors=[monitor])
    assert monitor.early_stopped
    assert classifier.get_variable_value("global_step") < 60


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda c: learn.LinearClassifier([]), "feature_columns must not be empty"),
        (lambda c: learn.LinearClassifier(c, n_classes=1), "n_classes must be > 1"),
        (lambda c: learn.LinearClassifier(c, label_keys=["a", "b"]), "label_keys is not supported"),
        (lambda c: learn.DNNClassifier([2], c, n_classes=3, label_keys=["a"]), "Length of label_k"),
        (lambda c: learn.DNNClassifier([2], c, activation_fn="rel"), "should be one of .*'relu'"),
        (lambda c: learn.DNNLinearCombinedClassifier(), "Either linear_feature_columns or dnn_"),
        (lambda c: learn.multi_head([learn.regression_head()]), "must have names"),
        (lambda c: learn.multi_class_head(3, metric_class_ids=[3]), r"Class ID 3 not in \[0, 3\)"),
        (lambda c: learn.multi_class_head(3, loss_fn=lambda x: x), "Argument labels not found"),
        (lambda c: learn.regression_head(label_dimension=0), "Invalid logits_dimension 0"),
        (
            lambda c: learn.make_export_strategy(None, exports_to_keep=0),
            "must be positive number: 0",
        ),
    ],
)
def test_what_cannot_be_made(make, told):
    with pytest.raises(ValueError, match=told):
        make([layers.real_valued_column("x")])


def test_what_cannot_be_trained(tmp_path):
    columns = learn.infer_real_valued_columns_from_input(X)
    for make, told in [
        (lambda: learn.LinearClassifier(columns, optimizer="Adagra"), "Did you mean 'Adagrad'"),
        (
            lambda: learn.DNNClassifier([2], columns, embedding_lr_multipliers={columns[0]: 2.0}),
            "there is no table of",
        ),
        (
            lambda: learn.DNNLinearCombinedClassifier(dnn_feature_columns=columns),
            "dnn_hidden_units must be defined",
        ),
        (
            lambda: learn.DNNRegressor([2], columns, label_dimension=2),
            r"the predictions \[batch, 2",
        ),
    ]:
        with pytest.raises(ValueError, match=told):
            make().fit(X, Y, steps=1)
    with pytest.raises(ValueError, match="signature_fn makes signatures of session bundles"):
        _linear(tmp_path).export(str(tmp_path), signature_fn=lambda: None)
    with pytest.raises(ValueError, match="x is an iterator"):
        _linear(tmp_path).fit(iter(X), Y, steps=1)


def test_frames(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    labels = pandas.Series(Y)
    columns = learn.infer_real_valued_columns_from_input(frame)
    classifier = learn.LinearClassifier(columns, config=_config(tmp_path))
    classifier.fit(frame, labels, steps=30)
    assert classifier.predict(frame, as_iterable=False).tolist() == Y.tolist()
    assert learn.extract_pandas_data(frame).dtype == np.float32
    assert learn.extract_pandas_labels(labels).tolist() == Y.tolist()
    with pytest.raises(ValueError, match=r"must be int, float, or bool.*Columns of other types: t"):
        learn.extract_pandas_data(pandas.DataFrame({"t": ["x"]}))
    with pytest.raises(TypeError, match="has no values before a session runs it"):
        learn.extract_pandas_matrix(tf.constant(1))
    with pytest.raises(ValueError, match="Only one column for labels"):
        learn.extract_pandas_labels(frame)


def test_variables_are_cut_up_for_parameter_servers(tmp_path, monkeypatch):
    cluster = {"ps": ["a:1", "b:1"], "master": ["c:1"]}
    task = {"type": "master", "index": 0}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": task}))
    assert _config(tmp_path).num_ps_replicas == 2
    partitioner = learn.premade.partitioner_of(_config(tmp_path), 8)
    with tf.variable_scope("s", partitioner=partitioner):
        assert len(list(tf.get_variable("table", [8, 4]))) == 2
