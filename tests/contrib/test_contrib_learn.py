"""tf.contrib.learn: vocabularies, small data sets; tf.contrib.util, eager, xla, projector."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as tf

preprocessing = tf.contrib.learn.preprocessing
datasets = tf.contrib.learn.datasets


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def _rows(found: Any) -> list[list[int]]:
    return [row.tolist() for row in found]


def test_words_are_numbered_as_they_come() -> None:
    processor = preprocessing.VocabularyProcessor(4)
    texts = ["the cat's hat, the cat", "ABC and CamelCase"]
    assert _rows(processor.fit_transform(texts)) == [[1, 2, 3, 1], [5, 6, 7, 8]]
    assert _rows(processor.transform(["hat dog"])) == [[3, 0, 0, 0]]
    assert len(processor.vocabulary_) == 9
    assert list(processor.reverse([np.array([1, 0])])) == ["the <UNK>"]


def test_rare_words_are_left_out_and_the_others_ordered() -> None:
    processor = preprocessing.VocabularyProcessor(3, min_frequency=1)
    processor.fit(["b b a a a c", "d d"])
    assert _rows(processor.transform(["a b d", "c"])) == [[1, 2, 3], [0, 0, 0]]


def test_vocabularies_are_saved_as_text(tmp_path: Path) -> None:
    path = str(tmp_path / "vocabulary")
    processor = preprocessing.VocabularyProcessor(3)
    processor.fit(["one two three"])
    processor.save(path)
    again = preprocessing.VocabularyProcessor.restore(path)
    assert _rows(again.transform(["three one new"])) == [[3, 1, 0]]


def test_pickles_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "vocabulary"
    path.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(ValueError, match="pickles, which Headrace does not read"):
        preprocessing.VocabularyProcessor.restore(str(path))


def test_bytes_and_categories() -> None:
    processor = preprocessing.ByteProcessor(5)
    rows = list(processor.fit_transform(["abc", "ééé"]))
    assert _rows(rows) == [[97, 98, 99, 0, 0], [195, 169, 195, 169, 195]]
    assert list(processor.reverse(rows)) == ["abc", ""]
    categories = preprocessing.CategoricalProcessor()
    assert _rows(categories.fit_transform([["0"], [1], [float("nan")], ["C"]])) == [
        [1],
        [2],
        [0],
        [3],
    ]


def test_iris_comes_with_headrace() -> None:
    iris = datasets.load_dataset("iris")
    assert iris.data.shape == (150, 4)
    assert np.bincount(iris.target).tolist() == [50, 50, 50]
    np.testing.assert_allclose(iris.data.mean(0), [5.8433, 3.054, 3.7587, 1.1987], atol=1e-3)


def test_absent_data_says_where_to_put_it(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="data_path"):
        datasets.load_boston()
    with pytest.raises(FileNotFoundError, match="downloads nothing"):
        datasets.base.maybe_download("x.csv", str(tmp_path), "https://example.org/x.csv")
    with pytest.raises(ValueError, match="Name of dataset is not found: x"):
        datasets.load_dataset("x")


def test_tables_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("2,2,a,b\n1,2,0\n3,4,1\n")
    found = datasets.base.load_csv_with_header(str(path), int, np.float32)
    assert found.data.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert found.target.tolist() == [0, 1]
    path.write_text("1,2,3\n4,5,6\n")
    plain = datasets.base.load_csv_without_header(str(path), int, float, target_column=0)
    assert plain.target.tolist() == [1, 4]
    for text, message in (("a,b\n", "first line"), ("3,1\n1,2\n", "tells of 3 rows")):
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            datasets.base.load_csv_with_header(str(path), int, float)


def test_the_operations_of_a_graph_are_listed() -> None:
    x = tf.placeholder(tf.float32, [])
    tf.while_loop(lambda i: i < 3.0, lambda i: tf.sin(i) + 1.0, [x])
    graph_def = tf.get_default_graph().as_graph_def()
    names = [op.name for op in tf.contrib.util.stripped_op_list_for_graph(graph_def).op]
    assert {"Placeholder", "Sin", "Less"} <= set(names)
    assert names == sorted(names)
    assert tf.contrib.util.constant_value(tf.constant(3) + 0) == 3
    assert tf.contrib.util.constant_value(x) is None


def test_the_operations_in_the_branches_of_a_case_are_listed() -> None:
    x = tf.placeholder(tf.float32, [])
    tf.switch_case(tf.placeholder(tf.int32, []), [lambda: tf.erf(x), lambda: tf.lgamma(x)])
    graph_def = tf.get_default_graph().as_graph_def()
    assert {"Erf", "Lgamma"} <= tf.contrib.util.ops_used_by_graph_def(graph_def)


def test_there_is_no_eager_mode() -> None:
    with pytest.raises(RuntimeError, match="no eager mode"):
        tf.contrib.eager.enable_eager_execution()
    assert any("CPU" in name for name in tf.contrib.eager.list_devices())
    assert tf.contrib.eager.num_gpus() >= 0


def test_compile_gives_what_the_function_gives() -> None:
    compile_ = tf.contrib.compiler.xla.compile
    with tf.contrib.compiler.jit.experimental_jit_scope(), tf.Session() as session:
        assert session.run(compile_(lambda x, y: x * y, [3.0, 4.0])) == (12.0,)
        assert session.run(compile_(lambda: [tf.constant(1), tf.constant(2)])) == [1, 2]
        v = tf.get_variable("v", initializer=1.0)
        session.run(v.initializer)
        session.run(compile_(lambda: v.assign_add(1.0, read_value=False)))
        assert session.run(v) == 2.0
    with pytest.raises(TypeError, match="must be a list"):
        compile_(lambda x: x, 3.0)


def test_the_projector_is_told_of_embeddings(tmp_path: Path) -> None:
    projector = tf.contrib.tensorboard.plugins.projector
    config = projector.ProjectorConfig()
    embedding = config.embeddings.add()
    embedding.tensor_name = "words"
    embedding.metadata_path = "words.tsv"
    embedding.sprite.image_path = "sprite.png"
    embedding.sprite.single_image_dim.extend([28, 28])
    writer = tf.summary.FileWriter(str(tmp_path))
    projector.visualize_embeddings(writer, config)
    writer.close()
    text = (tmp_path / "projector_config.pbtxt").read_text()
    assert text.split()[:3] == ["embeddings", "{", "tensor_name:"]
    assert 'metadata_path: "words.tsv"' in text
    assert text.count("single_image_dim: 28") == 2


def test_summaries_under_their_old_names() -> None:
    old = tf.contrib.deprecated
    old.scalar_summary("loss", tf.constant(1.0))
    with tf.Session() as session:
        summary = tf.Summary.FromString(session.run(old.merge_all_summaries()))
    assert [v.tag for v in summary.value] == ["loss"]


def test_events_are_read_back(tmp_path: Path) -> None:
    testing = tf.contrib.testing
    assert testing.latest_summaries(str(tmp_path)) == []
    tf.summary.scalar("loss", tf.constant(2.5))
    writer = tf.summary.FileWriter(str(tmp_path))
    with tf.Session() as session:
        writer.add_summary(session.run(tf.summary.merge_all()), 7)
    writer.close()
    [event] = testing.latest_summaries(str(tmp_path))
    assert event.step == 7
    assert testing.simple_values_from_events([event], ["loss"]) == {"loss": 2.5}


def test_a_fake_writer_keeps_summaries() -> None:
    fake = tf.contrib.testing.FakeSummaryWriter
    with pytest.raises(ValueError, match="not installed"):
        fake.uninstall()
    fake.install()
    try:
        writer = tf.summary.FileWriterCache.get("/nowhere")
        value = tf.Summary.Value(tag="loss", simple_value=2.0)
        writer.add_summary(tf.Summary(value=[value]), 3)
    finally:
        fake.uninstall()
    writer.assert_summaries(
        tf.test.TestCase(),
        expected_logdir="/nowhere",
        expected_graph=tf.get_default_graph(),
        expected_summaries={3: {"loss": 2.0}},
    )
    with pytest.raises(AssertionError, match="missing step 4"):
        writer.assert_summaries(tf.test.TestCase(), expected_summaries={4: {"loss": 2.0}})
