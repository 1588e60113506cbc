"""Heads and premade estimators of `tf.estimator`. Python 3.7: TensorFlow 1.15 runs this."""

import itertools
import shutil
import tempfile

import numpy as np

from . import golden

N = 6
AGE = np.array([0.5, -1.0, 2.0, 0.25, 1.5, -0.5], np.float32)
SIZE = np.array([[1, 2], [0, -1], [0.5, 0.5], [2, 0], [-1, 1], [0.25, 3]], np.float32)
COLOR = np.array([b"red", b"blue", b"blue", b"green", b"red", b"grey"])
WEIGHT = np.array([1, 2, 0.5, 1, 3, 1], np.float32)
BINARY = np.array([0, 1, 1, 0, 1, 0], np.int64)
CLASSES = np.array([0, 2, 1, 1, 2, 0], np.int64)
NUMBERS = np.array([1.5, 0.5, 2.0, 3.0, 0.0, 1.0], np.float32)
PAIRS = np.stack([NUMBERS, NUMBERS[::-1] * 2], 1)
INDICATORS = np.array([[1, 0, 1], [0, 1, 0], [1, 1, 1], [0, 0, 0], [0, 1, 1], [1, 0, 0]], np.int64)
LOGITS = np.array(
    [
        [0.3, -1.2, 0.7],
        [-0.4, 0.9, 0.1],
        [1.1, 0.2, -0.6],
        [-2.0, 0.4, 1.3],
        [0.6, -0.3, 2.2],
        [1.7, 0.8, -0.9],
    ],
    np.float32,
)
NAMES = ["cat", "dog", "emu"]


def _of_head(tf, make, logits, labels, features=None, sets=None):
    """Loss, metrics of two batches, predictions and signatures of a head."""
    results = {}
    features = features or {}
    for mode in ("eval", "infer", "train"):
        with tf.Graph().as_default(), tf.Session() as session:
            step = tf.train.get_or_create_global_step()
            head = make()
            placed = {key: tf.constant(value) for key, value in features.items()}
            given = {"labels": labels(tf) if callable(labels) else tf.constant(labels)}
            if mode == "infer":
                given = {}
            if mode == "train":
                given["train_op_fn"] = lambda loss, step=step: tf.assign_add(step, 1).op
            spec = head.create_estimator_spec(
                features=placed, mode=mode, logits=tf.constant(logits), **given
            )
            session.run(
                [
                    tf.global_variables_initializer(),
                    tf.local_variables_initializer(),
                    tf.tables_initializer(),
                ]
            )
            if mode == "infer":
                results.update(_outputs(session, spec))
                continue
            results["loss_" + mode] = session.run(spec.loss)
            if mode == "eval":
                updates = {k: v[1] for k, v in spec.eval_metric_ops.items()}
                for _ in range(2):
                    session.run(updates)
                values = session.run({k: v[0] for k, v in spec.eval_metric_ops.items()})
                results.update({"metrics/" + k: v for k, v in values.items()})
    return results


def _outputs(session, spec):
    results = {}
    for key, value in session.run(spec.predictions).items():
        results["predictions/" + ("/".join(key) if isinstance(key, tuple) else key)] = value
    results["signatures"] = sorted(
        key + ": " + type(output).__name__ for key, output in spec.export_outputs.items()
    )
    return results


@golden(with_session=True)
def binary_class_head(tf, session):
    return _of_head(
        tf,
        lambda: tf.contrib.estimator.binary_classification_head(
            weight_column="weight", thresholds=[0.25, 0.5, 0.6], name="own"
        ),
        LOGITS[:, :1],
        BINARY,
        {"weight": WEIGHT},
    )


@golden(with_session=True)
def binary_class_head_of_names(tf, session):
    return _of_head(
        tf,
        lambda: tf.contrib.estimator.binary_classification_head(
            label_vocabulary=["no", "yes"], loss_reduction=tf.losses.Reduction.SUM
        ),
        LOGITS[:, :1],
        np.where(BINARY == 1, b"yes", b"no"),
    )


@golden(with_session=True)
def multi_class_head(tf, session):
    return _of_head(
        tf,
        lambda: tf.contrib.estimator.multi_class_head(3, weight_column="weight"),
        LOGITS,
        CLASSES[:, None],
        {"weight": WEIGHT},
    )


@golden(with_session=True)
def multi_class_head_of_names(tf, session):
    return _of_head(
        tf,
        lambda: tf.contrib.estimator.multi_class_head(
            3,
            label_vocabulary=NAMES,
            loss_reduction=tf.losses.Reduction.SUM_BY_NONZERO_WEIGHTS,
            name="animal",
        ),
        LOGITS,
        np.array(NAMES)[CLASSES].astype("S"),
    )


@golden(with_session=True)
def multi_class_head_with_loss_fn(tf, session):
    def loss_fn(labels, logits, features):
        return tf.cast(labels, tf.float32) + features["weight"][:, None] - logits[:, :1]

    return _of_head(
        tf,
        lambda: tf.contrib.estimator.multi_class_head(3, loss_fn=loss_fn),
        LOGITS,
        CLASSES,
        {"weight": WEIGHT},
    )


@golden(with_session=True)
def multi_label_head(tf, session):
    return _of_head(
        tf,
        lambda: tf.contrib.estimator.multi_label_head(
            3,
            weight_column="weight",
            thresholds=[0.3, 0.7],
            classes_for_class_based_metrics=[0, 2],
        ),
        LOGITS,
        INDICATORS,
        {"weight": WEIGHT},
    )


@golden(with_session=True)
def multi_label_head_of_names(tf, session):
    def labels(tf):
        at = np.argwhere(INDICATORS)
        return tf.SparseTensor(at, np.array(NAMES)[at[:, 1]].astype("S"), [N, 3])

    return _of_head(
        tf,
        lambda: tf.contrib.estimator.multi_label_head(
            3, label_vocabulary=NAMES, classes_for_class_based_metrics=["dog"], name="own"
        ),
        LOGITS,
        labels,
    )


@golden(with_session=True)
def regression_head(tf, session):
    return _of_head(
        tf,
        lambda: tf.contrib.estimator.regression_head("weight", label_dimension=2),
        LOGITS[:, :2],
        PAIRS,
        {"weight": WEIGHT},
    )


@golden(with_session=True)
def regression_head_with_weights_of_numbers(tf, session):
    return _of_head(
        tf,
        lambda: tf.contrib.estimator.regression_head(
            "weight", label_dimension=2, inverse_link_fn=tf.square, name="own"
        ),
        LOGITS[:, :2],
        PAIRS,
        {"weight": SIZE + 1},
    )


@golden(with_session=True)
def poisson_regression_head(tf, session):
    return _of_head(
        tf, lambda: tf.contrib.estimator.poisson_regression_head(), LOGITS[:, :1], NUMBERS
    )


@golden(with_session=True)
def logistic_regression_head(tf, session):
    return _of_head(
        tf,
        lambda: tf.contrib.estimator.logistic_regression_head(),
        LOGITS[:, :1],
        NUMBERS[:, None] / 3,
    )


@golden(with_session=True)
def multi_head(tf, session):
    def make():
        e = tf.contrib.estimator
        return e.multi_head(
            [e.regression_head(name="price"), e.binary_classification_head(name="sold")],
            head_weights=[0.5, 2.0],
        )

    return _of_head(
        tf,
        make,
        LOGITS[:, :2],
        lambda tf: {"price": tf.constant(NUMBERS), "sold": tf.constant(BINARY)},
    )


@golden(with_session=True)
def second_generation(tf, session):
    """Heads that are classes: the same numbers, but for areas under precision and recall."""
    results = {}
    e = tf.estimator
    for name, make, logits, labels in (
        ("binary", lambda: e.BinaryClassHead("weight", [0.3]), LOGITS[:, :1], BINARY),
        ("classes", lambda: e.MultiClassHead(3, "weight"), LOGITS, CLASSES),
        ("labels", lambda: e.MultiLabelHead(3, "weight"), LOGITS, INDICATORS),
        ("numbers", lambda: e.RegressionHead(2, "weight"), LOGITS[:, :2], PAIRS),
        ("poisson", lambda: e.PoissonRegressionHead(1, "weight"), LOGITS[:, :1], NUMBERS),
        ("logistic", lambda: e.LogisticRegressionHead("weight"), LOGITS[:, :1], NUMBERS / 3),
    ):
        with tf.Graph().as_default(), tf.Session() as session:
            head = make()
            features = {"weight": tf.constant(WEIGHT)}
            loss = head.loss(tf.constant(labels), tf.constant(logits), features, mode="eval")
            predictions = head.predictions(tf.constant(logits))
            results[name + "/loss"] = session.run(loss)
            for key, value in session.run(predictions).items():
                results[name + "/" + key] = value
    return results


# Premade estimators: three steps from values that are the same everywhere.


def _columns(tf):
    c = tf.feature_column
    color = c.categorical_column_with_vocabulary_list("color", ["red", "green", "blue"])
    return {
        "age": c.numeric_column("age"),
        "size": c.numeric_column("size", shape=[2]),
        "color": color,
        "shown": c.indicator_column(color),
        "embedded": c.embedding_column(color, 2),
    }


def _fixed(shape, number):
    """Values for a variable: none is zero, no two are equal."""
    count = int(np.prod(shape))
    return np.sin(np.arange(count) + number + 0.5).astype(np.float32).reshape(shape) * 0.5


def _start(tf, base):
    class Start(base):
        def begin(self):
            variables = sorted(tf.trainable_variables(), key=lambda v: v.op.name)
            self.assign = [
                tf.assign(v, tf.constant(_fixed(v.shape.as_list(), i)))
                for i, v in enumerate(variables)
            ]

        def after_create_session(self, session, coord):
            session.run(self.assign)

    return Start()


def _input(tf, labels):
    def input_fn():
        features = {"age": AGE, "size": SIZE, "color": COLOR, "weight": WEIGHT}
        features = {key: tf.constant(value) for key, value in features.items()}
        return features, tf.constant(labels)

    return input_fn


def _of_estimator(tf, make, labels):
    """Variables after three steps, metrics and predictions then, and the signatures."""
    folder = tempfile.mkdtemp()
    try:
        config = tf.estimator.RunConfig(folder, tf_random_seed=1)
        estimator = make(config)
        input_fn = _input(tf, labels)
        estimator.train(input_fn, hooks=[_start(tf, tf.train.SessionRunHook)], steps=3)
        results = {"names": sorted(estimator.get_variable_names())}
        for name in estimator.get_variable_names():
            results["variables/" + name] = estimator.get_variable_value(name)
        metrics = estimator.evaluate(input_fn, steps=1)
        results.update({"metrics/" + key: value for key, value in metrics.items()})
        predicted = []
        for example in itertools.islice(estimator.predict(input_fn), N):
            predicted.append(example)
        for key in predicted[0]:
            results["predictions/" + key] = np.stack([p[key] for p in predicted])
        results.update(_exported(tf, estimator, folder))
        return results
    finally:
        tf.summary.FileWriterCache.clear()
        shutil.rmtree(folder)


def _exported(tf, estimator, folder):
    spec = tf.feature_column.make_parse_example_spec(
        [c for k, c in _columns(tf).items() if k != "color"]
    )
    receiver = tf.estimator.export.build_parsing_serving_input_receiver_fn(spec)
    path = estimator.export_saved_model(folder + "/export", receiver)
    with tf.Graph().as_default(), tf.Session() as session:
        found = tf.saved_model.loader.load(session, ["serve"], path)
    lines = []
    for key, signature in found.signature_def.items():
        for kind, tensors in (("in", signature.inputs), ("out", signature.outputs)):
            for name, info in tensors.items():
                sizes = [d.size for d in info.tensor_shape.dim]
                words = [key, signature.method_name, kind, name, str(info.dtype), str(sizes)]
                lines.append(" ".join(words))
    return {"signatures": sorted(lines)}


def _dense(tf):
    c = _columns(tf)
    return [c["age"], c["size"], c["embedded"]]


def _any(tf):
    c = _columns(tf)
    return [c["age"], c["size"], c["color"]]


@golden(with_session=True, slow=True)
def dnn_classifier(tf, session):
    return _of_estimator(
        tf,
        lambda config: tf.estimator.DNNClassifier(
            [4, 3], _dense(tf), n_classes=3, weight_column="weight", config=config
        ),
        CLASSES,
    )


@golden(with_session=True, slow=True)
def dnn_classifier_with_batch_norm(tf, session):
    return _of_estimator(
        tf,
        lambda config: tf.estimator.DNNClassifier(
            [4, 3],
            _dense(tf),
            optimizer="Adam",
            activation_fn=tf.nn.tanh,
            batch_norm=True,
            config=config,
        ),
        BINARY,
    )


@golden(with_session=True, slow=True)
def dnn_regressor(tf, session):
    return _of_estimator(
        tf,
        lambda config: tf.estimator.DNNRegressor(
            [4],
            _dense(tf),
            label_dimension=2,
            optimizer=lambda: tf.train.RMSPropOptimizer(0.1),
            loss_reduction=tf.losses.Reduction.MEAN,
            config=config,
        ),
        PAIRS,
    )


@golden(with_session=True, slow=True)
def dnn_estimator(tf, session):
    return _of_estimator(
        tf,
        lambda config: tf.estimator.DNNEstimator(
            tf.contrib.estimator.multi_label_head(3), [4], _dense(tf), config=config
        ),
        INDICATORS,
    )


@golden(with_session=True, slow=True)
def linear_classifier(tf, session):
    return _of_estimator(
        tf,
        lambda config: tf.estimator.LinearClassifier(
            _any(tf), n_classes=3, weight_column="weight", config=config
        ),
        CLASSES,
    )


@golden(with_session=True, slow=True)
def linear_classifier_of_two(tf, session):
    return _of_estimator(
        tf,
        lambda config: tf.estimator.LinearClassifier(
            _any(tf), label_vocabulary=["no", "yes"], optimizer=None, config=config
        ),
        np.where(BINARY == 1, b"yes", b"no"),
    )


@golden(with_session=True, slow=True)
def linear_regressor(tf, session):
    return _of_estimator(
        tf, lambda config: tf.estimator.LinearRegressor(_any(tf), config=config), NUMBERS
    )


@golden(with_session=True, slow=True)
def linear_estimator(tf, session):
    return _of_estimator(
        tf,
        lambda config: tf.estimator.LinearEstimator(
            tf.contrib.estimator.poisson_regression_head(), _any(tf), config=config
        ),
        NUMBERS,
    )


@golden(with_session=True, slow=True)
def dnn_linear_combined_classifier(tf, session):
    return _of_estimator(
        tf,
        lambda config: tf.estimator.DNNLinearCombinedClassifier(
            linear_feature_columns=_any(tf),
            dnn_feature_columns=_dense(tf),
            dnn_hidden_units=[4, 3],
            config=config,
        ),
        BINARY,
    )


@golden(with_session=True, slow=True)
def dnn_linear_combined_regressor(tf, session):
    return _of_estimator(
        tf,
        lambda config: tf.estimator.DNNLinearCombinedRegressor(
            linear_feature_columns=_any(tf),
            linear_optimizer="SGD",
            dnn_feature_columns=_dense(tf),
            dnn_optimizer="Adam",
            dnn_hidden_units=[4],
            config=config,
        ),
        NUMBERS,
    )


@golden(with_session=True, slow=True)
def baseline_classifier(tf, session):
    return _of_estimator(
        tf,
        lambda config: tf.estimator.BaselineClassifier(n_classes=3, config=config),
        CLASSES,
    )


@golden(with_session=True, slow=True)
def baseline_regressor(tf, session):
    return _of_estimator(
        tf,
        lambda config: tf.estimator.BaselineRegressor(weight_column="weight", config=config),
        NUMBERS,
    )
