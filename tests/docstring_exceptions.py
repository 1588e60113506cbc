"""The public functions for which a shape, or an error, has no meaning; by what they are about.

Each group says why. A name that ends in a point stands for its whole namespace. Nothing that takes
or returns a tensor may hide here: `handles_tensors` decides that by its signature, and
tests/test_docstrings.py fails on one that does.
"""

from __future__ import annotations

import inspect
import re

NO_SHAPE = {
    "which strategy is in force, and who makes variables": """
        distribute.experimental_set_strategy distribute.get_loss_reduction
        distribute.get_replica_context distribute.get_strategy distribute.has_strategy
        distribute.in_cross_replica_context contrib.distribute.get_cross_replica_context
        contrib.distribute.initialize_tpu_system
        contrib.distribute.require_replica_context
        contrib.distribute.run_standard_tensorflow_server variable_creator_scope""",
    "the process: its switches, devices, flags, log and files; none of them has a shape": """
        train.experimental.disable_mixed_precision_graph_rewrite
        train.experimental.enable_mixed_precision_graph_rewrite
        app. config. flags. logging. resource_loader. sysconfig. get_logger gfile. io.gfile.
        io.tf_record_iterator
        control_flow_v2_enabled enable_control_flow_v2 disable_control_flow_v2
        enable_eager_execution disable_eager_execution executing_eagerly
        enable_tensor_equality disable_tensor_equality enable_v2_behavior disable_v2_behavior
        enable_v2_tensorshape enable_resource_variables disable_resource_variables
        resource_variables_enabled load_library load_file_system_library
        test.benchmark_config test.create_local_cluster test.gpu_device_name
        test.is_built_with_cuda test.is_built_with_gpu_support test.is_built_with_rocm
        test.is_gpu_available test.main test.test_src_dir_path
        contrib.eager.enable_eager_execution contrib.eager.executing_eagerly
        contrib.eager.in_eager_mode contrib.eager.in_graph_mode contrib.eager.list_devices
        contrib.eager.num_gpus""",
    "Python objects: texts, classes, decorators, plain values": """
        compat.as_bytes compat.as_str compat.as_str_any compat.dimension_value
        compat.forward_compatibility_horizon compat.forward_compatible compat.path_to_str errors.
        nest.is_nested nest.flatten_dict_items nest.is_sequence_or_composite
        contrib.framework.add_arg_scope contrib.framework.arg_scope
        contrib.framework.arg_scope_func_key contrib.framework.arg_scoped_arguments
        contrib.framework.current_arg_scope contrib.framework.has_arg_scope
        contrib.framework.deprecated contrib.framework.deprecated_arg_values
        contrib.framework.deprecated_args contrib.training.parse_values
        contrib.learn.preprocessing.tokenizer contrib.learn.base.maybe_download
        contrib.learn.base.shrink_csv contrib.compiler.jit.experimental_jit_scope""",
    "a graph's books: collections, scopes, devices, seeds, and ops that have no output": """
        NoGradient add_to_collection add_to_collections get_collection get_collection_ref
        colocate_with container device get_default_graph reset_default_graph get_default_session
        get_seed set_random_seed get_variable_scope init_scope no_op
        make_template tables_initializer wire_precision parallel.segment
        contrib.framework.get_name_scope contrib.framework.prepend_name_scope
        contrib.framework.strip_name_scope""",
    "variables as a list, or an op over all of them: each keeps the shape it has": """
        global_variables_initializer local_variables_initializer
        initialize_all_variables initialize_local_variables initialize_variables
        assert_variables_initialized
        contrib.framework.filter_variables contrib.framework.get_local_variables
        contrib.framework.get_model_variables contrib.framework.get_trainable_variables
        contrib.framework.get_variables contrib.framework.get_variables_by_name
        contrib.framework.get_variables_by_suffix contrib.framework.get_variables_to_restore
        contrib.framework.get_variable_full_name""",
    "graphs, signatures and checkpoints as files or messages": """
        graph_util.convert_variables_to_constants graph_util.extract_sub_graph
        graph_util.must_run_on_cpu graph_util.remove_training_nodes graph_util.write_graph
        saved_model.contains_saved_model saved_model.is_valid_signature saved_model.load
        saved_model.loader.parse_saved_model saved_model.main_op.main_op
        saved_model.main_op_with_restore test.assert_equal_graph_def
        summary.get_summary_description train.NewCheckpointReader train.checkpoint_exists
        train.checkpoints_iterator train.export_meta_graph train.import_meta_graph
        train.generate_checkpoint_state_proto train.get_checkpoint_mtimes
        train.get_checkpoint_state train.latest_checkpoint train.load_checkpoint
        train.remove_checkpoint train.summary_iterator train.update_checkpoint_state
        contrib.util.ops_used_by_graph_def contrib.util.stripped_op_list_for_graph
        contrib.testing.assert_summary contrib.testing.latest_event_file
        contrib.testing.latest_events contrib.testing.latest_summaries
        contrib.testing.simple_values_from_events contrib.testing.to_summary_proto
        contrib.summary.eval_dir contrib.training.wait_for_new_checkpoint
        contrib.gan.eval.get_graph_def_from_disk
        contrib.learn.utils.input_fn_utils.garbage_collect_exports
        contrib.learn.utils.input_fn_utils.get_most_recent_export
        contrib.tensorboard.plugins.projector.visualize_embeddings""",
    "the loop around the steps: sessions, threads, placement of variables, reports": """
        profiler.advise profiler.profile train.MonitoredTrainingSession train.add_queue_runner
        train.basic_train_loop train.replica_device_setter train.start_queue_runners
        contrib.predictor.from_saved_model contrib.gan.get_joint_train_hooks
        contrib.gan.get_sequential_train_hooks contrib.slim.queues.QueueRunners
        contrib.tfprof.model_analyzer.advise contrib.learn.monitors.replace_monitors_with_hooks
        contrib.tfprof.model_analyzer.print_model_analysis contrib.summary.all_summary_ops
        contrib.summary.always_record_summaries contrib.summary.flush contrib.summary.initialize
        contrib.summary.never_record_summaries contrib.summary.summary_writer_initializer_op""",
}

NO_ERROR = {
    "looking at which strategy is in force: there is always an answer": """
        distribute.get_loss_reduction
        distribute.get_replica_context distribute.get_strategy distribute.has_strategy
        distribute.in_cross_replica_context contrib.distribute.get_cross_replica_context
        contrib.distribute.initialize_tpu_system
        variable_creator_scope""",
    "they answer from what is there, for any argument": """
        config.tensor_float_32_execution_enabled models.images.lenet.drawings
        train.experimental.disable_mixed_precision_graph_rewrite
        config.get_visible_devices config.list_logical_devices config.list_physical_devices
        control_flow_v2_enabled executing_eagerly resource_variables_enabled
        get_default_graph get_default_session get_logger get_variable_scope
        compat.as_str_any compat.dimension_value compat.path_to_str errors.suggest
        flags.defined_by_absl is_numeric_tensor is_tensor nest.is_nested
        nest.is_sequence_or_composite logging.get_verbosity
        resource_loader.get_data_files_path resource_loader.get_path_to_datafile
        resource_loader.get_root_dir_with_all_resources resource_loader.readahead_file_path
        saved_model.is_valid_signature test.benchmark_config test.gpu_device_name
        test.is_built_with_cuda test.is_built_with_gpu_support test.is_built_with_rocm
        test.is_gpu_available graph_util.must_run_on_cpu
        contrib.eager.executing_eagerly contrib.eager.in_eager_mode contrib.eager.in_graph_mode
        contrib.eager.list_devices contrib.eager.num_gpus contrib.framework.arg_scope_func_key
        contrib.framework.current_arg_scope contrib.framework.get_name_scope
        contrib.framework.has_arg_scope contrib.framework.is_tensor
        contrib.summary.all_summary_ops contrib.summary.always_record_summaries
        contrib.summary.never_record_summaries contrib.summary.summary_writer_initializer_op
        contrib.compiler.jit.experimental_jit_scope
        contrib.learn.utils.input_fn_utils.garbage_collect_exports
        contrib.learn.utils.input_fn_utils.get_most_recent_export""",
    "applied to any dataset": """
        contrib.data.ignore_errors""",
    "switches to what already holds, and empty functions": """
        disable_control_flow_v2 disable_eager_execution disable_resource_variables
        disable_tensor_equality disable_v2_behavior disable_v2_tensorshape
        enable_control_flow_v2 enable_resource_variables init_scope no_op no_regularizer
        logging.flush""",
    "logging, which takes any message": """
        logging.TaskLevelStatusMessage logging.debug logging.error logging.fatal logging.info
        logging.warn logging.warning""",
    "ops over whatever the graph's collections hold": """
        all_variables global_variables_initializer initialize_all_variables
        initialize_local_variables local_variables_initializer tables_initializer
        saved_model.main_op.main_op""",
    "names made from names": """
        contrib.framework.prepend_name_scope contrib.framework.strip_name_scope""",
    "initializers whose only argument is a seed: they meet the shape when they are called": """
        initializers.he_normal initializers.he_uniform initializers.lecun_normal
        initializers.lecun_uniform""",
}

#: What implements a published algorithm, and says whose: `"title" (year`.
PUBLISHED = """
    clip_by_global_norm depth_to_space distributions.Beta distributions.Dirichlet
    distributions.Exponential distributions.Gamma distributions.Laplace edit_distance
    fake_quant_with_min_max_args fake_quant_with_min_max_vars
    fake_quant_with_min_max_vars_per_channel glorot_normal_initializer glorot_uniform_initializer
    gradients image.extract_glimpse image.non_max_suppression image.non_max_suppression_with_scores
    image.resize_bicubic image.sample_distorted_bounding_box image.ssim image.ssim_multiscale
    image.total_variation initializers.he_normal initializers.he_uniform initializers.lecun_normal
    initializers.lecun_uniform layers.BatchNormalization layers.Conv2DTranspose layers.Dense
    layers.Dropout layers.SeparableConv1D layers.SeparableConv2D layers.batch_normalization
    layers.dense layers.dropout linalg.expm losses.hinge_loss losses.huber_loss
    losses.softmax_cross_entropy math.softplus metrics.auc metrics.average_precision_at_k
    metrics.mean_iou metrics.precision metrics.recall multinomial nn.atrous_conv2d
    nn.atrous_conv2d_transpose nn.batch_norm_with_global_normalization nn.batch_normalization
    nn.bidirectional_dynamic_rnn nn.compute_accidental_hits nn.conv2d_transpose nn.crelu
    nn.ctc_beam_search_decoder nn.ctc_beam_search_decoder_v2 nn.ctc_greedy_decoder nn.ctc_loss
    nn.ctc_loss_v2 nn.depthwise_conv2d nn.dilation2d nn.dropout nn.elu nn.erosion2d
    nn.fixed_unigram_candidate_sampler nn.fused_batch_norm nn.leaky_relu
    nn.local_response_normalization nn.log_uniform_candidate_sampler nn.nce_loss nn.relu nn.relu6
    nn.sampled_softmax_loss nn.selu nn.separable_conv2d nn.static_bidirectional_rnn nn.swish
    orthogonal_initializer random.stateless_uniform random_gamma random_normal random_poisson
    random_uniform signal.dct string_to_hash_bucket_strong train.AdadeltaOptimizer
    train.AdagradDAOptimizer train.AdagradOptimizer train.AdamOptimizer
    train.ExponentialMovingAverage train.FtrlOptimizer train.MomentumOptimizer
    train.ProximalAdagradOptimizer train.ProximalGradientDescentOptimizer train.RMSPropOptimizer
    train.cosine_decay train.cosine_decay_restarts train.linear_cosine_decay
    train.noisy_linear_cosine_decay uniform_unit_scaling_initializer variance_scaling_initializer
"""

_TENSOR_TYPES = re.compile(r"\b(Tensor|SparseTensor\w*|RaggedTensor\w*|IndexedSlices|Variable)\b")
_TENSOR_NAMES = """
    a alpha audio b bias biases boxes cond contents data elems features filter grad
    gradients image images img1 img2 indices input input_ input_tensor inputs labels logits loss
    matrix mean params pred predictions ref rhs scores segment_ids sp_input splits targets tensor
    tensor_list tensors tensors_list updates values weights x y
"""

_PLAIN = ("str", "int", "float", "bool")


def listed(table, name):
    """The group of ``table`` that ``name`` or its namespace is in, or None."""
    namespaces = {name[: at + 1] for at, letter in enumerate(name) if letter == "."}
    for reason, names in table.items():
        if {name, *namespaces} & set(names.split()):
            return reason
    return None


def handles_tensors(function):
    """Whether the signature takes or returns a tensor, by its annotations and usual names."""
    signature = inspect.signature(function)
    annotations = [signature.return_annotation]
    for parameter in signature.parameters.values():
        if parameter.name in _TENSOR_NAMES.split() and parameter.annotation not in _PLAIN:
            return True
        annotations.append(parameter.annotation)
    return any(_TENSOR_TYPES.search(str(each)) for each in annotations)
