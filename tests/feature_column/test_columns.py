"""Feature columns: what is refused and what is said then. Values are in the goldens."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.feature_column import DenseFeatures, LinearModel, SequenceFeatures

fc = tf.feature_column


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def ids(key="id", size=3):
    return fc.categorical_column_with_identity(key, size)


@pytest.mark.parametrize(
    "model",
    [
        lambda features, columns: fc.input_layer(features, columns),
        lambda features, columns: fc.linear_model(features, columns),
        lambda features, columns: DenseFeatures(columns)(features),
        lambda features, columns: LinearModel(columns)(features),
    ],
    ids=["input_layer", "linear_model", "DenseFeatures", "LinearModel"],
)
class TestEveryModel:
    def test_a_missing_feature_is_told_with_the_nearest(self, model):
        price = fc.bucketized_column(fc.numeric_column("price"), [1.0])
        with pytest.raises(ValueError, match="is not in features") as caught:
            model({"prices": [1.0], "city": ["Rome"]}, [price])
        assert str(caught.value) == (
            "Feature price is not in features dictionary. Column price_bucketized needs it. Did "
            "you mean 'prices'? The features are: 'city', 'prices'."
        )

    def test_features_are_a_dictionary(self, model):
        with pytest.raises(ValueError, match=r"We expected a dictionary here\. Instead we got: "):
            model(tf.zeros([2, 3]), [fc.numeric_column("x")])

    def test_strings_are_no_numbers(self, model):
        with pytest.raises(ValueError, match="The feature of numeric column x holds strings"):
            model({"x": tf.constant(["1.0"])}, [fc.numeric_column("x")])

    def test_a_feature_of_another_size(self, model):
        with pytest.raises(ValueError, match=r"Column x takes 3 numbers for each example .*has 2"):
            model({"x": tf.placeholder(tf.float32, [None, 2])}, [fc.numeric_column("x", 3)])

    def test_batches_of_other_sizes(self, model):
        features = {"x": [1.0, 2.0], "y": [1.0, 2.0, 3.0]}
        with pytest.raises(ValueError, match=r"Batch size of columns \(x, y\): \(2, 3\)"):
            model(features, [fc.numeric_column("x"), fc.numeric_column("y")])

    def test_what_is_no_column(self, model):
        with pytest.raises(ValueError, match=r"must be a FeatureColumn.*: x.*tf\.feature_column"):
            model({"x": [1.0]}, ["x"])

    def test_a_column_twice(self, model):
        with pytest.raises(ValueError, match="Duplicate feature column name found"):
            model({"x": [1.0]}, [fc.numeric_column("x"), fc.numeric_column("x", shape=2)])

    def test_sequences_are_for_other_layers(self, model):
        column = fc.embedding_column(fc.sequence_categorical_column_with_identity("id", 3), 2)
        with pytest.raises(ValueError, match="use SequenceFeatures instead of DenseFeatures"):
            model({"id": [[1]]}, [column])


@pytest.mark.parametrize("model", [fc.input_layer, lambda f, c: DenseFeatures(c)(f)])
def test_a_categorical_column_needs_a_wrapper(model):
    with pytest.raises(
        ValueError, match="wrap a categorical column with an embedding_column or in"
    ):
        model({"id": [1]}, [ids()])


@pytest.mark.parametrize(
    "model", [tf.contrib.feature_column.sequence_input_layer, lambda f, c: SequenceFeatures(c)(f)]
)
def test_sequence_layers_take_sequences(model):
    with pytest.raises(ValueError, match="must be a SequenceDenseColumn"):
        model({"x": [1.0]}, [fc.numeric_column("x")])
    with pytest.raises(ValueError, match=r"Use one of sequence_categorical_column_with_\*"):
        model({"id": [[1]]}, [fc.embedding_column(ids(), 2)])
    with pytest.raises(ValueError, match="sequence column x must be a SparseTensor"):
        model({"x": [[1.0]]}, [fc.sequence_numeric_column("x")])


@pytest.mark.parametrize("wrap", [fc.indicator_column, lambda c: fc.embedding_column(c, 2)])
def test_wrappers_take_categories(wrap):
    with pytest.raises(ValueError, match="takes a categorical column"):
        wrap(fc.numeric_column("x"))


def test_a_bad_combiner_is_refused_when_the_column_is_made():
    with pytest.raises(ValueError, match="one of 'mean', 'sqrtn' or 'sum', not 'max'"):
        fc.embedding_column(ids(), 2, combiner="max")


@pytest.mark.parametrize(("value", "text"), [(5, "exceeds number of"), (-7, "Negative bucket")])
def test_ids_outside_fail_in_the_step_or_before(value, text):
    feature = tf.placeholder(tf.int64, [None, 1])
    layer = fc.input_layer({"id": feature}, [fc.indicator_column(ids())])
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=text):
        session.run(layer, {feature: [[value]]})
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        fc.input_layer({"id": tf.constant([[value]])}, [fc.indicator_column(ids())])


def test_columns_of_two_kinds_are_never_equal():
    """As tuples, what TensorFlow's columns are, these were: the one was taken for the other."""
    column = ids()
    sequence = fc.sequence_categorical_column_with_identity("id", 3)
    assert fc.indicator_column(column) != sequence
    assert fc.indicator_column(column) == fc.indicator_column(ids())
    assert len({fc.indicator_column(column), fc.indicator_column(ids())}) == 1


def test_a_transformation_is_made_once():
    price = fc.numeric_column("price")
    buckets = fc.bucketized_column(price, [1.0])
    features = {"price": tf.placeholder(tf.float32, [None])}
    fc.input_layer(features, [price, buckets, fc.indicator_column(buckets)])
    operations = [op.type for op in tf.get_default_graph().get_operations()]
    assert operations.count("Bucketize") == 1


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_linear_models_take_batches_without_examples(rows):
    feature = tf.placeholder(tf.int64, [None, None])
    model = fc.linear_model({"id": feature}, [ids()])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        value = session.run(model, {feature: np.zeros([rows, 0], np.int64)})
    assert value.tolist() == [[0.0]] * rows


@pytest.mark.parametrize("parts", [1, 2])
def test_an_embedding_begins_with_a_checkpoint(tmp_path, parts):
    table = np.arange(8, dtype=np.float32).reshape(4, 2)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("old/table", initializer=table)
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, str(tmp_path / "model"))
    column = fc.embedding_column(
        ids(size=4), 2, ckpt_to_load_from=path, tensor_name_in_ckpt="old/table"
    )
    with tf.variable_scope("net", partitioner=tf.fixed_size_partitioner(parts)):
        layer = fc.input_layer({"id": [[3], [0]]}, [column])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(layer).tolist() == [[6.0, 7.0], [0.0, 1.0]]


def test_shared_embeddings_stand_beside_their_models():
    columns = fc.shared_embeddings([ids("a"), ids("b")], 2)
    with tf.variable_scope("outer"):
        first = DenseFeatures(columns)({"a": [0], "b": [1]})
    second = DenseFeatures([columns[0]])({"a": [2]})
    assert [v.name for v in tf.global_variables()] == ["outer/a_b_shared_embedding:0"]
    assert first.shape.as_list() == [1, 4]
    assert second.shape.as_list() == [1, 2]


def test_columns_parse_examples():
    spec = fc.make_parse_example_spec(
        [fc.numeric_column("x", default_value=7.0), fc.indicator_column(ids())]
    )
    example = tf.train.Example()
    example.features.feature["id"].int64_list.value.append(2)
    features = tf.parse_example([example.SerializeToString()], spec)
    layer = fc.input_layer(features, [fc.numeric_column("x"), fc.indicator_column(ids())])
    with tf.Session() as session:
        assert session.run(layer).tolist() == [[0.0, 0.0, 1.0, 7.0]]


def test_two_ways_to_parse_one_feature():
    columns = [fc.numeric_column("x"), fc.indicator_column(ids("x"))]
    with pytest.raises(ValueError, match="different parse_spec for key x"):
        fc.make_parse_example_spec(columns)


def test_layers_take_columns_of_a_collected_table():
    columns = fc.shared_embedding_columns([ids("a"), ids("b")], 2)
    layer = DenseFeatures(columns)
    assert layer({"a": [0], "b": [1]}).shape.as_list() == [1, 4]
    layer({"a": [1], "b": [2]})
    names = ["dense_features/a_b_shared_embedding/embedding_weights:0"]
    assert [v.name for v in tf.global_variables()] == names
    assert layer.variables == tf.global_variables()


@pytest.mark.parametrize("model", [fc.input_layer, lambda f, c: DenseFeatures(c)(f)])
@pytest.mark.parametrize(
    "optimizer", [tf.train.GradientDescentOptimizer, tf.train.AdagradOptimizer]
)
def test_a_step_updates_rows_of_a_table_alone(model, optimizer):
    """The gradient is of rows; what the batch does not name stays as it is."""
    size = 100_000
    feature = tf.placeholder(tf.int64, [8, 1])
    column = fc.embedding_column(ids(size=size), 4, initializer=tf.zeros_initializer())
    loss = tf.reduce_sum(model({"id": feature}, [column]) - 1.0)
    (table,) = tf.trainable_variables()
    assert isinstance(tf.gradients(loss, table)[0], tf.IndexedSlices)
    train = optimizer(0.5).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        before = session.run(tf.gather(table, [7, 8]))
        session.run(train, {feature: [[7]] * 8})
        after = session.run(tf.gather(table, [7, 8]))
    assert (after[0] != before[0]).all()
    assert after[1].tolist() == before[1].tolist()


def test_first_columns_are_told_apart_from_what_they_are_not():
    layers = tf.contrib.layers
    word = layers.sparse_column_with_hash_bucket("word", 5)
    features = {"word": tf.constant([["a"]])}
    with pytest.raises(ValueError, match="Please use embedding_column or one_hot_column"):
        layers.input_from_feature_columns(features, [word])
    with pytest.raises(ValueError, match=r"Feature word is not in features.*Did you mean 'words'"):
        layers.weighted_sum_from_feature_columns({"words": features["word"]}, [word], 1)
    with pytest.raises(ValueError, match="takes a dense tensor of numbers"):
        layers.input_from_feature_columns(features, [layers.real_valued_column("word")])
    age = layers.real_valued_column("age")
    with pytest.raises(NotImplementedError, match="Real-valued columns are not supported"):
        layers.joint_weighted_sum_from_feature_columns({"age": tf.zeros([1, 1])}, [age], 1)
    with pytest.raises(TypeError, match="The column has no ids"):
        layers.embedding_column(age, 2)


def test_scattered_embeddings_that_cannot_be():
    make = tf.contrib.layers.scattered_embedding_column
    with pytest.raises(ValueError, match=r"needs a hash_key, given: 0.*DEFAULT_HASH_KEY is one"):
        make("word", 5, 2, 0)
    with pytest.raises(ValueError, match="initializer must be callable"):
        make("word", 5, 2, 1, initializer=3)
    column = make("word", 5, 2, 1)
    with pytest.raises(ValueError, match="FeatureColumn type _ScatteredEmbeddingColumn is not"):
        tf.contrib.layers.sequence_input_from_feature_columns({"word": tf.zeros([1])}, [column])


def test_sequence_examples_are_parsed_one_by_one():
    age = tf.contrib.layers.real_valued_column("age")
    parse = tf.contrib.layers.parse_feature_columns_from_sequence_examples
    with pytest.raises(ValueError, match="Batching must be done after parsing"):
        parse(tf.constant(["", ""]), [age], None)
