"""Boosted trees of `tf.estimator`, and their ops. Python 3.7: TensorFlow 1.15 runs this.

Trees are small enough that no two splits gain the same: which is taken then depends on rounding.
Numeric columns have fewer values than buckets: with more, TensorFlow 1.15 writes beyond its sums.
"""

import glob
import tempfile

import numpy as np

from . import golden

RNG = np.random.RandomState(7)
N = 48
FEATURES = {
    "age": RNG.normal(size=N).astype(np.float32),
    "size": RNG.normal(size=[N, 2]).astype(np.float32),
    "color": RNG.choice([b"red", b"blue", b"green", b"grey"], N),
    "year": RNG.uniform(1900, 2000, N).astype(np.float32),
    "weight": RNG.uniform(0.5, 2, N).astype(np.float32),
}
SCORE = (
    FEATURES["age"] * FEATURES["size"][:, 0]
    + (FEATURES["color"] == b"red")
    + 0.02 * (FEATURES["year"] - 1950)
    + RNG.normal(size=N) * 0.2
)
BINARY = (SCORE > 0.6).astype(np.int64)
NUMBERS = SCORE.astype(np.float32)


def _columns(tf):
    column = tf.feature_column
    color = column.categorical_column_with_vocabulary_list("color", ["red", "green", "blue"])
    year = column.numeric_column("year")
    return [
        column.numeric_column("size", shape=[2]),
        column.indicator_column(color),
        column.bucketized_column(year, [1925.0, 1950.0, 1975.0]),
        column.bucketized_column(column.numeric_column("weight"), [1.0, 1.5]),
        column.numeric_column("age"),
    ]


def _buckets(tf):
    return [c for c in _columns(tf) if "bucketized" in c.name]


def _input(tf, labels, batch, epochs=None):
    def input_fn():
        data = tf.data.Dataset.from_tensor_slices((FEATURES, labels))
        return data.batch(batch, drop_remainder=True).repeat(epochs)

    return input_fn


def _trees(serialized):
    """What a serialized TreeEnsemble says, as arrays."""
    try:
        from tensorflow.core.kernels.boosted_trees.boosted_trees_pb2 import TreeEnsemble
    except ImportError:
        from headrace.graph.proto.boosted_trees.ensemble_pb2 import TreeEnsemble

    ensemble = TreeEnsemble.FromString(serialized)
    splits, values, pruned = [], [], []
    for number, tree in enumerate(ensemble.trees):
        for node in tree.nodes:
            split = node.bucketized_split
            kind = int(node.WhichOneof("node") == "leaf")
            ids = (split.feature_id, split.threshold, split.left_id, split.right_id)
            splits.append((number, kind, *ids))
            before = node.metadata.original_leaf.scalar
            values.append((node.leaf.scalar, node.metadata.gain, before))
        for change in ensemble.tree_metadata[number].post_pruned_nodes_meta:
            pruned.append((number, change.new_node_id, *change.logit_change))
    growing = ensemble.growing_metadata
    return {
        "splits": np.array(splits, np.int64),
        "values": np.array(values, np.float32),
        "pruned": np.array(pruned, np.float32).reshape([-1, 3]),
        "weights": np.array(ensemble.tree_weights, np.float32),
        "layers": np.array([m.num_layers_grown for m in ensemble.tree_metadata], np.int64),
        "finished": np.array([m.is_finalized for m in ensemble.tree_metadata]),
        "attempts": np.array(
            [
                growing.num_trees_attempted,
                growing.num_layers_attempted,
                growing.last_layer_node_start,
                growing.last_layer_node_end,
            ],
            np.int64,
        ),
    }


def _losses(tf, folder):
    """The losses of the steps, as the summaries have them."""
    found = []
    for path in sorted(glob.glob(folder + "/events*")):
        for event in tf.train.summary_iterator(path):
            for value in event.summary.value:
                if value.tag == "loss":
                    found.append((event.step, value.simple_value))
    return np.array(sorted(found), np.float32)


def _of_trees(tf, make, labels, batch=N, explained=False, trained=False):
    """Losses, trees, metrics, predictions and names of an estimator that is trained."""
    config = tf.estimator.RunConfig(tempfile.mkdtemp(), tf_random_seed=1, save_summary_steps=1)
    made, results = make(config), {}
    if not trained:
        made.train(_input(tf, labels, batch))
    results["losses"] = _losses(tf, made.model_dir)
    reader = tf.train.load_checkpoint(made.model_dir)
    results.update(_trees(reader.get_tensor("boosted_trees:0_serialized")))
    shapes = reader.get_variable_to_shape_map()
    results["variables"] = sorted(f"{name} {shapes[name]}" for name in shapes)
    for name in sorted(shapes):
        if "boundaries_" in name:
            results["checkpoint/" + name] = reader.get_tensor(name)
    found = made.evaluate(_input(tf, labels, batch, 1))
    results.update({"metrics/" + key: np.array(value) for key, value in found.items()})
    rows = list(made.predict(_input(tf, labels, batch, 1)))
    for key in rows[0]:
        results["predictions/" + key] = np.stack([row[key] for row in rows])
    results.update(_importances(made))
    if explained:
        results.update(_explained(made, _input(tf, labels, batch, 1)))
    return results


def _importances(made):
    results = {}
    for normalize in (False, True):
        found = made.experimental_feature_importances(normalize)
        name = "importances_" + str(normalize)
        results[name + "_names"] = list(found)
        results[name] = np.array(list(found.values()), np.float32)
    return results


def _explained(made, input_fn):
    rows = list(made.experimental_predict_with_explanations(input_fn))
    names = sorted(rows[0]["dfc"])
    return {
        "bias": np.array([row["bias"] for row in rows], np.float32),
        "dfc": np.array([[row["dfc"][name] for name in names] for row in rows], np.float32),
        "explained_keys": sorted(rows[0]),
    }


@golden(with_session=True, slow=True)
def classifier(tf, session):
    return _of_trees(
        tf,
        lambda config: tf.estimator.BoostedTreesClassifier(
            _columns(tf), 1, n_trees=3, max_depth=2, min_node_weight=0.08, config=config
        ),
        BINARY,
    )


@golden(with_session=True, slow=True)
def classifier_of_batches(tf, session):
    return _of_trees(
        tf,
        lambda config: tf.estimator.BoostedTreesClassifier(
            _columns(tf),
            3,
            weight_column="weight",
            n_trees=3,
            max_depth=2,
            center_bias=True,
            l1_regularization=0.001,
            l2_regularization=0.01,
            min_node_weight=0.02,
            quantile_sketch_epsilon=0.015,
            config=config,
        ),
        BINARY,
        batch=16,
        explained=True,
    )


@golden(with_session=True, slow=True)
def classifier_of_names(tf, session):
    return _of_trees(
        tf,
        lambda config: tf.estimator.BoostedTreesClassifier(
            _buckets(tf),
            1,
            label_vocabulary=["no", "yes"],
            n_trees=3,
            max_depth=3,
            tree_complexity=0.01,
            pruning_mode="pre",
            config=config,
        ),
        np.where(BINARY == 1, b"yes", b"no"),
    )


@golden(with_session=True, slow=True)
def regressor(tf, session):
    return _of_trees(
        tf,
        lambda config: tf.estimator.BoostedTreesRegressor(
            _columns(tf),
            1,
            n_trees=3,
            max_depth=4,
            tree_complexity=0.02,
            pruning_mode="post",
            center_bias=True,
            quantile_sketch_epsilon=0.02,
            config=config,
        ),
        NUMBERS,
        explained=True,
    )


@golden(with_session=True, slow=True)
def regressor_in_memory(tf, session):
    return _of_trees(
        tf,
        lambda config: tf.estimator.BoostedTreesRegressor(
            _columns(tf),
            1,
            n_trees=3,
            max_depth=3,
            tree_complexity=0.05,
            pruning_mode="post",
            train_in_memory=True,
            config=config,
        ),
        NUMBERS,
    )


@golden(with_session=True, slow=True)
def classifier_in_memory(tf, session):
    def make(config):
        return tf.contrib.estimator.boosted_trees_classifier_train_in_memory(
            _input(tf, BINARY, N, 1),
            _columns(tf),
            n_trees=4,
            max_depth=2,
            center_bias=True,
            config=config,
        )

    return _of_trees(tf, make, BINARY, explained=True, trained=True)


@golden(with_session=True, slow=True)
def estimator(tf, session):
    return _of_trees(
        tf,
        lambda config: tf.estimator.BoostedTreesEstimator(
            _columns(tf),
            1,
            tf.contrib.estimator.poisson_regression_head(),
            n_trees=3,
            max_depth=2,
            config=config,
        ),
        np.exp(NUMBERS),
    )


@golden(with_session=True, slow=True)
def exported(tf, session):
    folder = tempfile.mkdtemp()
    made = tf.estimator.BoostedTreesClassifier(_columns(tf), 1, folder, n_trees=1, max_depth=2)
    made.train(_input(tf, BINARY, N))
    spec = tf.feature_column.make_parse_example_spec(_columns(tf))
    receiver = tf.estimator.export.build_parsing_serving_input_receiver_fn(spec)
    path = made.export_saved_model(folder + "/export", receiver)
    with tf.Graph().as_default(), tf.Session() as inner:
        found = tf.saved_model.loader.load(inner, ["serve"], path)
    lines = []
    for key, signature in found.signature_def.items():
        for kind, tensors in (("in", signature.inputs), ("out", signature.outputs)):
            for name, info in tensors.items():
                sizes = [d.size for d in info.tensor_shape.dim]
                words = [key, signature.method_name, kind, name, str(info.dtype), str(sizes)]
                lines.append(" ".join(words))
    return {"signatures": sorted(lines)}


# -- ops ----------------------------------------------------------------------------------------


def _ensemble(tf, session):
    raw = tf.raw_ops
    handle = raw.BoostedTreesEnsembleResourceHandleOp(shared_name="trees")
    stamp = tf.constant(0, tf.int64)
    create = raw.BoostedTreesCreateEnsemble(
        tree_ensemble_handle=handle, stamp_token=stamp, tree_ensemble_serialized=""
    )
    session.run(create)
    return handle


def _state(tf, session, handle, features):
    """Trees, states and predictions."""
    raw = tf.raw_ops
    stamp, text = session.run(raw.BoostedTreesSerializeEnsemble(tree_ensemble_handle=handle))
    results = _trees(text)
    results["stamp"] = stamp
    results["bytes"] = np.frombuffer(text, np.uint8)
    states = raw.BoostedTreesGetEnsembleStates(tree_ensemble_handle=handle)
    results.update({f"state_{i}": v for i, v in enumerate(session.run(list(states)))})
    results["logits"] = session.run(
        raw.BoostedTreesPredict(
            tree_ensemble_handle=handle, bucketized_features=features, logits_dimension=1
        )
    )
    cached = np.arange(len(features[0]), dtype=np.int32) % 3 - 1
    onward = raw.BoostedTreesTrainingPredict(
        tree_ensemble_handle=handle,
        cached_tree_ids=np.zeros(len(features[0]), np.int32),
        cached_node_ids=np.minimum(cached, len(results["splits"]) - 1),
        bucketized_features=features,
        logits_dimension=1,
    )
    results.update({f"onward_{i}": v for i, v in enumerate(session.run(list(onward)))})
    if len(results["splits"]):
        ways = raw.BoostedTreesExampleDebugOutputs(
            tree_ensemble_handle=handle, bucketized_features=features, logits_dimension=1
        )
        results["ways"] = np.frombuffer(b"".join(session.run(ways)), np.uint8)
    return results


#: Feature ids, and candidates of each: node, gain, threshold, left, right; depth; pruning.
GROWTH = (
    ([2, 1], [[(0, 1.0, 1, 0.5, -1.0)], [(0, 1.0, 0, 0.25, 2.0)]], 2, 0),
    (
        [2, 1],
        [
            [(1, -1.0, 1, 0.5, -1.0), (2, 2.0, 1, 2.0, 3.0)],
            [(1, -3.0, 0, 0.25, 2.0), (2, 1.0, 0, 2.0, 9.0)],
        ],
        2,
        2,
    ),
    ([0], [[]], 2, 0),
    ([0], [[(0, -1.0, 1, 5.0, 6.0)]], 2, 1),
    ([0], [[(0, -1.0, 1, 5.0, 6.0)]], 2, 2),
    ([2], [[(1, -1.0, 0, 7.0, 8.0)]], 2, 2),
    ([2, 0], [[(0, 0.5, 0, -1.0, 1.0)], [(0, 0.5, 2, -3.0, 1.0)]], 1, 1),
)


@golden(with_session=True)
def growth(tf, session):
    raw, handle, results = tf.raw_ops, _ensemble(tf, session), {}
    features = [np.array(c, np.int32) for c in ([0, 1, 2, 3, 1], [0, 0, 1, 1, 2], [2, 1, 0, 3, 1])]

    def keep(name):
        found = _state(tf, session, handle, features)
        results.update({name + "/" + key: value for key, value in found.items()})

    keep("empty")
    for i, (gradient, hessian) in enumerate(((0.5, 0.25), (0.1, 0.2), (0.0001, 0.2))):
        goes_on = raw.BoostedTreesCenterBias(
            tree_ensemble_handle=handle,
            mean_gradients=[[gradient]],
            mean_hessians=[[hessian]],
            l1=0.0,
            l2=0.1,
        )
        results["centering_" + str(i)] = session.run(goes_on)
        keep("centered_" + str(i))
    for i, (ids, candidates, depth, pruning) in enumerate(GROWTH):
        columns = [np.array(c, np.float32).reshape([-1, 5]).T for c in candidates]
        session.run(
            raw.BoostedTreesUpdateEnsemble(
                tree_ensemble_handle=handle,
                feature_ids=ids,
                node_ids=[c[0].astype(np.int32) for c in columns],
                gains=[c[1] for c in columns],
                thresholds=[c[2].astype(np.int32) for c in columns],
                left_node_contribs=[c[3][:, None] for c in columns],
                right_node_contribs=[c[4][:, None] for c in columns],
                max_depth=depth,
                learning_rate=0.1,
                pruning_mode=pruning,
            )
        )
        keep("grown_" + str(i))
    return results


@golden(with_session=True)
def splits(tf, session):
    raw, rng, results = tf.raw_ops, np.random.RandomState(3), {}
    nodes, features = rng.randint(0, 3, 50), rng.randint(0, 5, [4, 50])
    gradients = rng.normal(size=[50, 1]).astype(np.float32)
    gradients[nodes == 2] = 1e-9  # gains that differ by less than nothing
    sums = session.run(
        raw.BoostedTreesMakeStatsSummary(
            node_ids=nodes.astype(np.int32),
            gradients=gradients,
            hessians=rng.uniform(size=[50, 1]).astype(np.float32),
            bucketized_features_list=list(features.astype(np.int32)),
            max_splits=3,
            num_buckets=5,
        )
    )
    results["sums"] = sums
    for name, l1, l2, complexity, least in (
        ("plain", 0.0, 0.0, 0.0, 0.0),
        ("regularized", 0.1, 0.2, 0.3, 0.0),
        ("least_weight", 0.0, 0.0, 0.0, float(sums[0, 0, :, 1].sum()) + 0.01),
        ("strong_l1", 5.0, 0.0, 0.0, 0.0),
    ):
        found = raw.BoostedTreesCalculateBestGainsPerFeature(
            node_id_range=[0, 3],
            stats_summary_list=list(sums),
            l1=l1,
            l2=l2,
            tree_complexity=complexity,
            min_node_weight=least,
            max_splits=3,
        )
        for i, values in enumerate(session.run(list(found))):
            results.update({f"{name}/{i}_{j}": value for j, value in enumerate(values)})
    return results


def _boundaries(tf, session, handle):
    return session.run(
        tf.raw_ops.BoostedTreesQuantileStreamResourceGetBucketBoundaries(
            quantile_stream_resource_handle=handle, num_features=2
        )
    )


def _flushed(tf, session, handle, values, weight, evenly):
    """Summaries and boundaries of values that are added twice, and the buckets of the values."""
    raw = tf.raw_ops
    summaries = raw.BoostedTreesMakeQuantileSummaries(
        float_values=list(values), example_weights=weight, epsilon=0.1
    )
    found = session.run(summaries)
    results = {f"summary_{i}": one for i, one in enumerate(found)}
    for _ in range(2):
        session.run(
            raw.BoostedTreesQuantileStreamResourceAddSummaries(
                quantile_stream_resource_handle=handle, summaries=found
            )
        )
    session.run(
        raw.BoostedTreesQuantileStreamResourceFlush(
            quantile_stream_resource_handle=handle,
            num_buckets=tf.constant(8, tf.int64),
            generate_quantiles=evenly,
        )
    )
    edges = _boundaries(tf, session, handle)
    results.update({f"boundaries_{i}": one for i, one in enumerate(edges)})
    found = raw.BoostedTreesBucketize(float_values=list(values), bucket_boundaries=edges)
    results.update({f"buckets_{i}": one for i, one in enumerate(session.run(found))})
    return results


@golden(with_session=True)
def quantiles(tf, session):
    raw, rng, results = tf.raw_ops, np.random.RandomState(5), {}
    handle = raw.BoostedTreesQuantileStreamResourceHandleOp(shared_name="quantiles")
    count = tf.constant(2, tf.int64)
    session.run(
        raw.BoostedTreesCreateQuantileStreamResource(
            quantile_stream_resource_handle=handle, epsilon=0.1, num_streams=count
        )
    )
    values = np.round(rng.normal(size=[2, 300]).astype(np.float32), 1)
    weights = rng.uniform(size=300).astype(np.float32)
    weights[::7] = 0
    kinds = (("one", [1.0], False), ("each", weights, False), ("even", weights, True))
    results["before"] = np.stack(_boundaries(tf, session, handle))
    for name, weight, evenly in kinds:
        found = _flushed(tf, session, handle, values, weight, evenly)
        results.update({name + "/" + key: value for key, value in found.items()})
    odd, empty = np.array([np.nan, np.inf, -np.inf, 0], np.float32), np.zeros(0, np.float32)
    results["odd"], results["none"] = session.run(
        raw.BoostedTreesBucketize(
            float_values=[odd, odd], bucket_boundaries=[results["even/boundaries_0"], empty]
        )
    )
    given = [tf.placeholder_with_default(np.float32(edges), None) for edges in ([1, 2], [3])]
    session.run(
        raw.BoostedTreesQuantileStreamResourceDeserialize(
            quantile_stream_resource_handle=handle, bucket_boundaries=given
        )
    )
    results["given_0"], results["given_1"] = _boundaries(tf, session, handle)
    return results
