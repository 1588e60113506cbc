"""Functions of ``tf.contrib`` say what is wrong with an argument, and where."""

from __future__ import annotations

import inspect

import pytest

import headrace as tf

layers, framework = tf.contrib.layers, tf.contrib.framework


def _given(*sizes, dtype=tf.float32):
    return tf.placeholder(dtype, sizes, name="given")


@pytest.mark.parametrize(
    ("sizes", "units", "axis", "told"),
    [
        ([2, 6], 0, -1, r"features\(6\) is not a multiple of num_units\(0\)"),
        ([2, None], 3, -1, r"along axis -1 must be known, but given:0 has shape \(2, \?\)"),
        ([2, 6], 3, 5, r"along axis 5 must be known, but given:0 has shape \(2, 6\)"),
        (None, 3, -1, r"given:0 has shape <unknown>. Choose one of its axes"),
    ],
)
def test_maxout_of_groups_that_do_not_exist(sizes, units, axis, told):
    inputs = tf.placeholder(tf.float32, sizes, name="given")
    with pytest.raises(ValueError, match=told):
        layers.maxout(inputs, units, axis)


@pytest.mark.parametrize(
    "make", [lambda x: layers.repeat(x, 2, 3), lambda x: layers.stack(x, 3, [4])]
)
def test_a_layer_to_repeat_is_a_function(make):
    with pytest.raises(TypeError, match=r"`layer` must be a function that makes a layer.*got 3"):
        make(_given(2, 3))


def test_pooling_refuses_an_unknown_layout():
    with pytest.raises(ValueError, match=r"data_format has to be .*NHWC.*, not 'CHWN'"):
        layers.pool(_given(2, 8, 8, 3), 2, "MAX", data_format="CHWN")


def test_initializers_need_all_sizes():
    with pytest.raises(ValueError, match=r"fully defined shape, got \(3, \?\). Give all sizes"):
        layers.xavier_initializer()([3, None])


@pytest.mark.parametrize("function", [layers.summarize_tensor, layers.summarize_activation])
def test_summaries_are_of_tensors(function):
    with pytest.raises(TypeError, match="A summary is of a tensor or a variable, got 3"):
        function(3)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: framework.add_model_variable(3), "Only a variable can join.*got 3"),
        (lambda: framework.get_variable_full_name(3), "Expected a variable, got 3"),
        (lambda: framework.get_placeholders(3), "graph must be a tf.Graph, got 3"),
        (lambda: framework.add_arg_scope(3), "decorates a function, got 3"),
        (lambda: framework.assert_same_float_dtype([_given(2), 3]), "Expected tensors, got 3"),
    ],
)
def test_framework_functions_tell_what_is_no_variable_graph_or_tensor(call, told):
    with pytest.raises(TypeError, match=told):
        call()


def test_values_for_variables_fit_them():
    tf.get_variable("v", [2])
    with pytest.raises(
        ValueError, match=r"Variable v has shape \(2,\), got a value of shape \(3,\)"
    ):
        framework.assign_from_values({"v": [1.0, 2.0, 3.0]})


# -- summaries, training, metrics, sequences, GANs ----------------------------------------------


@pytest.mark.parametrize(
    ("n", "error", "told"),
    [(0, ValueError, "n must be at least 1, got 0"), ("x", TypeError, "n must be an integer.*'x'")],
)
def test_summaries_are_recorded_every_so_many_steps(n, error, told):
    with pytest.raises(error, match=told):
        tf.contrib.summary.record_summaries_every_n_global_steps(n)


def test_flush_and_initialize_take_writers_and_graphs(tmp_path):
    with pytest.raises(TypeError, match="writer must be what create_file_writer gives, got 3"):
        tf.contrib.summary.flush(3)
    with (
        tf.contrib.summary.create_file_writer(tmp_path).as_default(),
        tf.Session() as sess,
        pytest.raises(TypeError, match=r"graph must be a tf.Graph or a GraphDef, got 3"),
    ):
        tf.contrib.summary.initialize(3, session=sess)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            lambda: tf.contrib.tensorboard.plugins.projector.visualize_embeddings(3, None),
            r"one such as tf.summary.FileWriter, got 3",
        ),
        (lambda: tf.contrib.tfprof.model_analyzer.advise(3), r"must be a tf.Graph, or None.*got 3"),
        (
            lambda: tf.contrib.tfprof.model_analyzer.print_model_analysis(3),
            r"must be a tf.Graph, or None.*got 3",
        ),
        (lambda: tf.contrib.slim.model_analyzer.analyze_ops(3), r"must be a tf.Graph, got 3"),
        (lambda: tf.contrib.slim.model_analyzer.analyze_vars([3]), "a tensor or a variable, got 3"),
        (lambda: tf.contrib.util.constant_value(3), "Expected a tensor or a TensorShape, got 3"),
        (
            lambda: tf.contrib.util.ops_used_by_graph_def(3),
            r"Expected a GraphDef, got 3.*as_graph_",
        ),
        (lambda: tf.contrib.metrics.aggregate_metrics((1, 2, 3)), r"a pair \(value, update_op\)"),
        (lambda: tf.contrib.metrics.aggregate_metric_map({"a": 3}), r"\(value, update_op\), got 3"),
        (lambda: tf.contrib.metrics.aggregate_metric_map(3), "a dictionary of metrics by name"),
        (lambda: tf.contrib.training.create_train_op(_given(), 3), r"optimizer must be one.*got 3"),
        (lambda: tf.contrib.seq2seq.safe_cumprod([1, 2]), "takes a floating type, got int32"),
        (
            lambda: tf.contrib.distributions.softplus_inverse([1]),
            "takes a floating type, got int32",
        ),
        (lambda: tf.contrib.gan.get_joint_train_hooks(3), "GANTrainSteps of two integers, got 3"),
        (lambda: tf.contrib.gan.get_sequential_train_hooks((1, 2.5)), r"integers, got \(1, 2.5\)"),
        (
            lambda: tf.contrib.gan.gan_train_ops(3, 3, None, None),
            r"`model` must be what tf.contrib.gan.gan_model gives, got 3",
        ),
        (
            lambda: tf.contrib.legacy_seq2seq.rnn_decoder([_given(2, 3)], _given(2, 5), 3),
            r"argument 'cell' \(3\) is not an RNNCell",
        ),
    ],
)
def test_arguments_of_another_kind_are_told(call, told):
    with pytest.raises(TypeError, match=told):
        call()


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: tf.contrib.seq2seq.hardmax(_given()), r"a known rank of at least 1.*shape \(\)"),
        (lambda: tf.contrib.gan.get_sequential_train_steps((-1, 2)), "must not be negative"),
        (lambda: tf.contrib.gan.eval.add_gan_model_summaries(3), "Expected a model.*got 3"),
        (
            lambda: tf.contrib.gan.eval.add_regularization_loss_summaries(3),
            "Expected a model.*got 3",
        ),
        (lambda: tf.contrib.gan.gan_loss(3), "`model` must be a `GANModel`.*was <class 'int'>"),
        (lambda: tf.contrib.gan.stargan_loss(3), "must be a `StarGANModel`.*was <class 'int'>"),
        (
            lambda: tf.contrib.slim.prefetch_queue.prefetch_queue([_given(2)], capacity=0),
            "capacity must be at least 1, how many may wait; got 0",
        ),
        (lambda: tf.contrib.slim.prefetch_queue.prefetch_queue([]), "at least one tensor"),
        (lambda: tf.contrib.data.prefetch_to_device("near"), "Malformed device name 'near'"),
        (lambda: tf.contrib.data.copy_to_device("near"), "Malformed device name 'near'"),
        (
            lambda: tf.contrib.legacy_seq2seq.attention_decoder(
                [_given(2, 3)], _given(2, 5), _given(2, 5), tf.nn.rnn_cell.GRUCell(5)
            ),
            r"Shape \(2, 5\) must have rank 3",
        ),
        (
            lambda: tf.contrib.legacy_seq2seq.one2many_rnn_seq2seq(
                [],
                {"a": []},
                *[tf.nn.rnn_cell.GRUCell(5), {"a": tf.nn.rnn_cell.GRUCell(5)}],
                9,
                {},
                4,
            ),
            r"num_decoder_symbols_dict must have the keys .*\['a'\], but has \[\]",
        ),
    ],
)
def test_values_that_do_not_fit_are_told(call, told):
    with pytest.raises(ValueError, match=told):
        call()


@pytest.mark.parametrize(
    ("shape", "rounds", "told"),
    [
        ([3, 4], 0, "power_iteration_rounds must be at least 1, got 0"),
        ([], 1, r"rank 1 or more .* got given:0 of shape \(\)"),
        ([None, 4], 1, r"fully known, got given:0 of shape \(\?, 4\)"),
    ],
)
def test_spectral_norms_need_a_known_matrix_and_a_round(shape, rounds, told):
    with pytest.raises(ValueError, match=told):
        tf.contrib.gan.features.compute_spectral_norm(_given(*shape), rounds)


def test_weights_are_clipped_of_models_with_a_discriminator():
    with pytest.raises(TypeError, match=r"one with a discriminator.*got 3"):
        tf.contrib.gan.features.clip_discriminator_weights(None, 3, 0.1)


@pytest.mark.parametrize("kind", ["mean_only_frechet", "diagonal_only_frechet", "frechet"])
def test_frechet_distances_are_of_activations_alike(kind):
    name = f"{kind}_classifier_distance_from_activations"
    distance = getattr(tf.contrib.gan.eval, name)
    with pytest.raises(ValueError, match=r"Shape \(4,\) must have rank 2"):
        distance(_given(4), _given(6, 4))
    with pytest.raises(ValueError, match=r"Shapes \(5,\) and \(4,\) are incompatible"):
        distance(_given(6, 5), _given(6, 4))


# -- functions that a call makes ----------------------------------------------------------------


def test_functions_know_their_home_and_their_arguments():
    losses = tf.contrib.gan.losses
    star = losses.stargan_generator_loss_wrapper(losses.wargs.wasserstein_generator_loss)
    for function, first in (
        (losses.minimax_discriminator_loss, "gan_model"),
        (star, "stargan_model"),
    ):
        assert function.__module__ == "headrace.contrib.gan.losses"
        names = list(inspect.signature(function).parameters)
        assert names[0] == first
        assert "add_summaries" in names
        assert "discriminator_gen_outputs" not in names
    nets = tf.contrib.slim.nets
    assert nets.resnet_v1.resnet_v1_50.__module__ == "headrace.contrib.slim.resnet_v1"
    assert nets.resnet_v2.resnet_v2_50.__module__ == "headrace.contrib.slim.resnet_v2"
    metrics = tf.contrib.metrics
    for name in dir(metrics):
        if name.startswith("streaming_"):
            returned = inspect.signature(getattr(metrics, name)).return_annotation
            assert returned is not inspect.Signature.empty, name
