"""Heads and premade estimators of `tf.contrib.learn`. Python 3.7: TensorFlow 1.15 runs this."""

import itertools
import shutil
import tempfile

import numpy as np

from . import golden
from .estimators import (
    AGE,
    BINARY,
    CLASSES,
    COLOR,
    INDICATORS,
    LOGITS,
    NAMES,
    NUMBERS,
    PAIRS,
    SIZE,
    WEIGHT,
    N,
    _start,
)


def _of_head(tf, head, logits, labels, features=None):
    """Loss, metrics of two batches, predictions and alternatives of a head."""
    results = {}
    for mode in ("eval", "infer", "train"):
        with tf.Graph().as_default(), tf.Session() as session:
            step = tf.train.get_or_create_global_step()
            placed = {key: tf.constant(value) for key, value in (features or {}).items()}
            ops = head.create_model_fn_ops(
                features=placed,
                mode=mode,
                labels=None if mode == "infer" else labels(tf),
                train_op_fn=lambda loss, step=step: tf.assign_add(step, 1).op,
                logits=tf.constant(logits),
            )
            results["variables_" + mode] = sorted(v.op.name for v in tf.global_variables())
            session.run(
                [
                    tf.global_variables_initializer(),
                    tf.local_variables_initializer(),
                    tf.tables_initializer(),
                ]
            )
            if mode == "train":
                results["loss"] = session.run(ops.loss)
                session.run(ops.train_op)
                for variable in tf.trainable_variables():
                    results["trained/" + variable.op.name] = session.run(variable)
            if mode == "eval":
                updates = {k: v[1] for k, v in ops.eval_metric_ops.items()}
                for _ in range(2):
                    session.run(updates)
                values = session.run({k: v[0] for k, v in ops.eval_metric_ops.items()})
                results.update({"metrics/" + k: v for k, v in values.items()})
            if mode == "infer":
                for key, value in session.run(ops.predictions).items():
                    name = "/".join(key) if isinstance(key, tuple) else key
                    results["predictions/" + name] = value
                for key, (problem, tensors) in ops.output_alternatives.items():
                    results["problem/" + str(key)] = np.array(problem)
                    for name, value in session.run(tensors).items():
                        results["alternative/" + str(key) + "/" + name] = value
    return results


def _labels(values):
    return lambda tf: tf.constant(values)


@golden(with_session=True)
def regression_head(tf, session):
    head = tf.contrib.learn.regression_head(
        weight_column_name="weight", label_dimension=2, head_name="own", enable_centered_bias=True
    )
    return _of_head(tf, head, LOGITS[:, :2], _labels(PAIRS), {"weight": WEIGHT})


@golden(with_session=True)
def regression_head_with_link(tf, session):
    head = tf.contrib.learn.regression_head(link_fn=tf.square)
    return _of_head(tf, head, LOGITS[:, :1], _labels(NUMBERS))


@golden(with_session=True)
def poisson_regression_head(tf, session):
    head = tf.contrib.learn.poisson_regression_head(weight_column_name="weight")
    return _of_head(tf, head, LOGITS[:, :1], _labels(NUMBERS[:, None]), {"weight": WEIGHT})


@golden(with_session=True)
def binary_head(tf, session):
    head = tf.contrib.learn.multi_class_head(2, thresholds=[0.3, 0.6], enable_centered_bias=True)
    return _of_head(tf, head, LOGITS[:, :1], _labels(BINARY[:, None]))


@golden(with_session=True)
def binary_head_with_weights(tf, session):
    head = tf.contrib.learn.multi_class_head(2, weight_column_name="weight", head_name="own")
    return _of_head(tf, head, LOGITS[:, :1], _labels(BINARY[:, None]), {"weight": WEIGHT})


@golden(with_session=True)
def multi_class_head(tf, session):
    head = tf.contrib.learn.multi_class_head(
        3, weight_column_name="weight", metric_class_ids=[0, 2], enable_centered_bias=True
    )
    return _of_head(tf, head, LOGITS, _labels(CLASSES[:, None]), {"weight": WEIGHT})


@golden(with_session=True)
def multi_class_head_of_names(tf, session):
    head = tf.contrib.learn.multi_class_head(3, label_keys=NAMES, head_name="animal")
    return _of_head(tf, head, LOGITS, _labels(np.array(NAMES)[CLASSES].astype("S")))


@golden(with_session=True)
def multi_class_head_with_loss_fn(tf, session):
    def loss_fn(labels, logits, weights=None):
        return tf.reduce_mean(tf.cast(labels, tf.float32) - logits[:, :1])

    head = tf.contrib.learn.multi_class_head(3, loss_fn=loss_fn)
    return _of_head(tf, head, LOGITS, _labels(CLASSES[:, None]))


@golden(with_session=True)
def multi_label_head(tf, session):
    head = tf.contrib.learn.multi_label_head(
        3, weight_column_name="weight", metric_class_ids=[1], head_name="own"
    )
    weights = WEIGHT[:, None] + SIZE[:, :1]
    return _of_head(tf, head, LOGITS, _labels(INDICATORS), {"weight": weights})


@golden(with_session=True)
def binary_svm_head(tf, session):
    head = tf.contrib.learn.binary_svm_head()
    return _of_head(tf, head, LOGITS[:, :1], _labels(BINARY))


@golden(with_session=True)
def multi_head(tf, session):
    heads = [
        tf.contrib.learn.regression_head(
            label_name="number", head_name="a", weight_column_name="weight"
        ),
        tf.contrib.learn.multi_class_head(2, label_name="class", head_name="b"),
    ]
    head = tf.contrib.learn.multi_head(heads, [1.0, 2.5])
    return _of_head(
        tf,
        head,
        LOGITS[:, :2],
        lambda tf: {"number": tf.constant(NUMBERS), "class": tf.constant(BINARY[:, None])},
        {"weight": WEIGHT},
    )


# Premade estimators: three steps from values that are the same everywhere.


def _old_columns(tf):
    c = tf.contrib.layers
    color = c.sparse_column_with_keys("color", ["red", "green", "blue"])
    age = c.real_valued_column("age")
    return {
        "age": age,
        "ages": c.bucketized_column(age, [0.0, 1.0]),
        "size": c.real_valued_column("size", dimension=2),
        "color": color,
        "shown": c.one_hot_column(color),
        "embedded": c.embedding_column(color, 2),
    }


def _new_columns(tf):
    c = tf.feature_column
    color = c.categorical_column_with_vocabulary_list("color", ["red", "green", "blue"])
    return {
        "age": c.numeric_column("age"),
        "size": c.numeric_column("size", shape=[2]),
        "color": color,
        "embedded": c.embedding_column(color, 2),
    }


def _input(tf, labels):
    def input_fn():
        at = np.stack([np.arange(N), np.zeros(N, np.int64)], 1)
        features = {"age": AGE[:, None], "size": SIZE, "weight": WEIGHT}
        features = {key: tf.constant(value) for key, value in features.items()}
        features["color"] = tf.SparseTensor(at, COLOR, [N, 1])
        return features, tf.constant(labels)

    return input_fn


def _of_estimator(tf, make, labels, columns):
    """Variables after three steps, metrics and predictions then, and the signatures."""
    folder = tempfile.mkdtemp()
    try:
        config = tf.contrib.learn.RunConfig(model_dir=folder, tf_random_seed=1)
        estimator = make(config)
        input_fn = _input(tf, labels)
        monitors = [_start(tf, tf.train.SessionRunHook)]
        estimator.fit(input_fn=input_fn, monitors=monitors, steps=3)
        results = {"names": sorted(estimator.get_variable_names())}
        for name in estimator.get_variable_names():
            results["variables/" + name] = estimator.get_variable_value(name)
        metrics = estimator.evaluate(input_fn=input_fn, steps=1)
        results.update({"metrics/" + key: value for key, value in metrics.items()})
        outputs = ["logits", "probabilities", "classes", "scores"]
        found = estimator.predict(input_fn=input_fn, outputs=outputs)
        predicted = list(itertools.islice(found, N))
        for key in predicted[0]:
            results["predictions/" + key] = np.stack([p[key] for p in predicted])
        results["by_default"] = np.stack(
            list(itertools.islice(estimator.predict(input_fn=input_fn), N))
        )
        results.update(_exported(tf, estimator, folder, columns))
        return results
    finally:
        tf.summary.FileWriterCache.clear()
        shutil.rmtree(folder)


def _exported(tf, estimator, folder, columns):
    if columns is _old_columns:
        spec = tf.contrib.layers.create_feature_spec_for_parsing(list(columns(tf).values()))
    else:
        spec = tf.feature_column.make_parse_example_spec(
            [column for name, column in columns(tf).items() if name != "color"]
        )
    serving = tf.contrib.learn.build_parsing_serving_input_fn(spec)
    path = estimator.export_savedmodel(folder + "/export", serving)
    with tf.Graph().as_default(), tf.Session() as session:
        found = tf.saved_model.loader.load(session, ["serve"], path.decode())
    lines = []
    for key, signature in found.signature_def.items():
        for kind, tensors in (("in", signature.inputs), ("out", signature.outputs)):
            for name, info in tensors.items():
                words = [key, signature.method_name, kind, name, str(info.dtype)]
                lines.append(" ".join(words))
    return {"signatures": sorted(lines)}


def _some(columns, *names):
    return lambda tf: [columns(tf)[name] for name in names]


@golden(with_session=True, slow=True)
def linear_classifier(tf, session):
    columns = _some(_old_columns, "age", "ages", "size", "color")(tf)
    return _of_estimator(
        tf,
        lambda config: tf.contrib.learn.LinearClassifier(
            columns, n_classes=3, weight_column_name="weight", config=config
        ),
        CLASSES[:, None],
        _old_columns,
    )


@golden(with_session=True, slow=True)
def linear_classifier_of_two(tf, session):
    columns = _some(_old_columns, "age", "color")(tf)
    return _of_estimator(
        tf,
        lambda config: tf.contrib.learn.LinearClassifier(
            columns,
            optimizer="Adam",
            gradient_clip_norm=0.3,
            config=config,
        ),
        BINARY[:, None],
        _old_columns,
    )


@golden(with_session=True, slow=True)
def linear_regressor_of_new_columns(tf, session):
    columns = _some(_new_columns, "age", "size", "color")(tf)
    return _of_estimator(
        tf,
        lambda config: tf.contrib.learn.LinearRegressor(
            columns, label_dimension=2, optimizer=tf.train.AdagradOptimizer(0.1), config=config
        ),
        PAIRS,
        _new_columns,
    )


@golden(with_session=True, slow=True)
def dnn_classifier(tf, session):
    columns = _some(_old_columns, "age", "size", "shown", "embedded")(tf)
    multipliers = {columns[3]: 0.5}
    return _of_estimator(
        tf,
        lambda config: tf.contrib.learn.DNNClassifier(
            [4, 3],
            columns,
            n_classes=3,
            gradient_clip_norm=2.0,
            embedding_lr_multipliers=multipliers,
            config=config,
        ),
        CLASSES[:, None],
        _old_columns,
    )


@golden(with_session=True, slow=True)
def dnn_regressor(tf, session):
    columns = _some(_new_columns, "age", "size", "embedded")(tf)
    return _of_estimator(
        tf,
        lambda config: tf.contrib.learn.DNNRegressor(
            [4],
            columns,
            activation_fn=tf.nn.tanh,
            optimizer=lambda: tf.train.AdamOptimizer(0.1),
            config=config,
        ),
        NUMBERS[:, None],
        _new_columns,
    )


@golden(with_session=True, slow=True)
def dnn_linear_combined_classifier(tf, session):
    wide = _some(_old_columns, "ages", "color")(tf)
    deep = _some(_old_columns, "age", "embedded")(tf)
    return _of_estimator(
        tf,
        lambda config: tf.contrib.learn.DNNLinearCombinedClassifier(
            linear_feature_columns=wide,
            dnn_feature_columns=deep,
            dnn_hidden_units=[4, 3],
            fix_global_step_increment_bug=True,
            config=config,
        ),
        BINARY[:, None],
        _old_columns,
    )


@golden(with_session=True, slow=True)
def dnn_linear_combined_regressor(tf, session):
    wide = _some(_new_columns, "age", "color")(tf)
    deep = _some(_new_columns, "size", "embedded")(tf)
    return _of_estimator(
        tf,
        lambda config: tf.contrib.learn.DNNLinearCombinedRegressor(
            linear_feature_columns=wide,
            linear_optimizer="SGD",
            dnn_feature_columns=deep,
            dnn_optimizer="Adam",
            dnn_hidden_units=[4],
            fix_global_step_increment_bug=True,
            config=config,
        ),
        NUMBERS[:, None],
        _new_columns,
    )


HEAT = np.sin(np.arange(6 * 4, dtype=np.float32)).reshape(6, 4, 1)
LENGTHS = np.array([4, 2, 1, 3, 4, 2], np.int32)
STEPS = (np.arange(24).reshape(6, 4) * 5 % 3).astype(np.int64)


def _of_sequences(tf, labels, kind, outputs, **given):
    """Variables after three steps, metrics and predictions then."""
    columns = tf.contrib.layers

    def input_fn():
        features = {"heat": HEAT, "sequence_length": LENGTHS, "age": AGE[:, None]}
        return {key: tf.constant(value) for key, value in features.items()}, tf.constant(labels)

    folder = tempfile.mkdtemp()
    try:
        config = tf.contrib.learn.RunConfig(model_dir=folder, tf_random_seed=1)
        estimator = tf.contrib.learn.DynamicRnnEstimator(
            kind, given.pop("each"), [columns.real_valued_column("heat")], config=config, **given
        )
        monitors = [_start(tf, tf.train.SessionRunHook)]
        estimator.fit(input_fn=input_fn, monitors=monitors, steps=3)
        results = {"names": sorted(estimator.get_variable_names())}
        for name in estimator.get_variable_names():
            results["variables/" + name] = estimator.get_variable_value(name)
        metrics = estimator.evaluate(input_fn=input_fn, steps=1)
        results.update({"metrics/" + key: value for key, value in metrics.items()})
        predicted = list(itertools.islice(estimator.predict(input_fn=input_fn), N))
        for key in outputs:
            results["predictions/" + key] = np.stack([p[key] for p in predicted])
        return results
    finally:
        tf.summary.FileWriterCache.clear()
        shutil.rmtree(folder)


@golden(with_session=True, slow=True)
def dynamic_rnn_classifier(tf, session):
    return _of_sequences(
        tf,
        CLASSES,
        tf.contrib.learn.ProblemType.CLASSIFICATION,
        ["classes", "probabilities", "rnn_cell_state_0", "rnn_cell_state_1"],
        each=1,
        num_classes=3,
        num_units=[3],
        cell_type="lstm",
        context_feature_columns=[tf.contrib.layers.real_valued_column("age")],
        predict_probabilities=True,
        optimizer="Adam",
        learning_rate=0.05,
    )


@golden(with_session=True, slow=True)
def dynamic_rnn_classifier_of_steps(tf, session):
    return _of_sequences(
        tf,
        STEPS % 2,
        tf.contrib.learn.ProblemType.CLASSIFICATION,
        ["classes", "probabilities", "rnn_cell_state_0", "rnn_cell_state_1"],
        each=2,
        num_classes=2,
        num_units=[3, 2],
        predict_probabilities=True,
        optimizer="Momentum",
        momentum=0.5,
    )


@golden(with_session=True, slow=True)
def dynamic_rnn_regressor(tf, session):
    return _of_sequences(
        tf,
        NUMBERS,
        tf.contrib.learn.ProblemType.LINEAR_REGRESSION,
        ["scores", "rnn_cell_state_0"],
        each=1,
        num_units=4,
        cell_type="gru",
    )


@golden(with_session=True, slow=True)
def dynamic_rnn_regressor_of_steps(tf, session):
    return _of_sequences(
        tf,
        STEPS.astype(np.float32),
        tf.contrib.learn.ProblemType.LINEAR_REGRESSION,
        ["scores", "rnn_cell_state_0"],
        each=2,
        num_units=4,
    )
