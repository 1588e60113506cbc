"""Where the modules of TensorFlow that programs import have their names from in Headrace.

A row gives the modules of Headrace in which a name is looked for, in order, and single names that
are called differently there. `row_of` finds the row of any module: paths without a row of
their own take that of their family.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from headrace.compat import estimator_table

__all__ = ["ROWS", "Row", "row_of"]

_INTERNALS = "headrace.compat.internals"
_INNER = "headrace.compat.inner_functions"
_GENERATED = "headrace.compat.gen_ops"
_TREES = "headrace.contrib.boosted_trees"


@dataclass(frozen=True)
class Row:
    """Sources of names, in order, and names that have a place of their own."""

    sources: tuple[str, ...] = ("headrace",)
    names: Mapping[str, str] = field(default_factory=dict)


def _row(*sources: str, **names: str) -> Row:
    return Row(sources or ("headrace",), names)


_TOP = {
    "dimension_at_index": "headrace.compat.dimension_at_index",
    "dimension_value": "headrace.compat.dimension_value",
    "__version__": "headrace.version.VERSION",
    "__git_version__": "headrace.version.GIT_VERSION",
    "__compiler_version__": "headrace.version.COMPILER_VERSION",
    "__cxx11_abi_flag__": "headrace.sysconfig.CXX11_ABI_FLAG",
    "__monolithic_build__": "headrace.sysconfig.MONOLITHIC_BUILD",
}

_SAMPLED = {"_compute_sampled_logits": "headrace.ops.nn.sampling_api.sampled_logits"}

#: Modules of their own, by path below ``tensorflow``.
ROWS: dict[str, Row] = {
    "": Row(("headrace",), _TOP),
    "compat": _row("headrace.compat"),
    "compat.v1": Row(("headrace",), _TOP),
    "python": _row("headrace", _INTERNALS),
    "python.pywrap_tensorflow": _row(
        _INTERNALS,
        NewCheckpointReader="headrace.train.NewCheckpointReader",
        EventsWriter=f"{_INNER}.EventsWriter",
    ),
    # -- tensorflow/python/framework
    "python.framework": Row(()),  # modules only, and so are the other folders
    "python.framework.ops": _row(
        "headrace.ops.state.scopes_api",
        "headrace",
        _INTERNALS,
        _INNER,
        internal_convert_to_tensor="headrace.convert_to_tensor",
        NotDifferentiable="headrace.NotDifferentiable",
        NoGradient="headrace.NoGradient",
        IndexedSlicesValue="headrace.ops.array.indexed_slices.IndexedSlicesValue",
        Dimension="headrace.Dimension",
    ),
    "python.framework.dtypes": _row(
        "headrace.graph.dtypes",
        "headrace",
        QUANTIZED_DTYPES="headrace.graph.dtypes.QUANTIZED_TYPES",
    ),
    "python.framework.tensor_shape": _row(
        "headrace.graph.shapes", dimension_at_index="headrace.compat.dimension_at_index"
    ),
    "python.framework.tensor_util": _row(
        "headrace.graph.tensor_proto",
        _INTERNALS,
        "headrace",
        constant_value="headrace.ops.core.static.static_value",
    ),
    "python.framework.constant_op": _row(),
    "python.framework.random_seed": _row(
        "headrace", DEFAULT_GRAPH_SEED="headrace.graph.random_seed.DEFAULT_GRAPH_SEED"
    ),
    "python.framework.graph_util": _row("headrace.graph_files.graph_util"),
    "python.framework.graph_util_impl": _row("headrace.graph_files.graph_util"),
    "python.framework.graph_io": _row("headrace.train", "headrace.graph_files.graph_util"),
    "python.framework.errors": _row("headrace.errors"),
    "python.framework.errors_impl": _row("headrace.errors"),
    "python.framework.importer": _row(),
    "python.framework.common_shapes": _row(_INTERNALS),
    "python.framework.function": _row(
        "headrace.compat.defun",
        _INNER,
        "headrace",
        _DefinedFunction="headrace.compat.defun.DefinedFunction",
        _OverloadedFunction="headrace.compat.defun.OverloadedFunction",
    ),
    "python.framework.meta_graph": _row("headrace.train.meta_graph", _INTERNALS),
    "python.framework.device": _row("headrace.graph.devices", "headrace"),
    "python.framework.sparse_tensor": _row("headrace.ops.sparse.sparse_tensor", "headrace"),
    "python.framework.indexed_slices": _row("headrace.ops.array.indexed_slices", "headrace"),
    "python.framework.smart_cond": _row(_INTERNALS),
    "python.framework.versions": _row("headrace.version"),
    "python.framework.test_util": _row("headrace.test.util", "headrace.test"),
    "python.framework.load_library": _row(),
    "python.framework.registry": _row(_INTERNALS),
    # -- tensorflow/python/ops
    "python.ops": Row(()),
    "python.ops.array_ops": _row("headrace", shape_internal=f"{_INNER}.shape_internal"),
    "python.ops.check_ops": _row("headrace", "headrace.debugging"),
    "python.ops.clip_ops": _row(),
    "python.ops.collective_ops": _row("headrace.collective"),
    "python.ops.constant_op": _row(),
    "python.ops.io_ops": _row("headrace", _INTERNALS),
    "python.ops.control_flow_ops": _row("headrace.compat.control_flow_ops", "headrace", _INTERNALS),
    "python.ops.control_flow_util": _row(_INTERNALS),
    "python.ops.data_flow_ops": _row(
        "headrace",
        "headrace.queue",
        Barrier="headrace.ops.io.barriers.Barrier",
        RecordInput="headrace.ops.io.record_input.RecordInput",
        BaseStagingArea="headrace.ops.io.staging_api.BaseStagingArea",
        MapStagingArea="headrace.ops.io.staging_api.MapStagingArea",
        StagingArea="headrace.ops.io.staging_api.StagingArea",
    ),
    "python.ops.distributions": _row("headrace.distributions"),
    "python.ops.embedding_ops": _row("headrace.nn", "headrace"),
    "python.ops.gradient_checker": _row("headrace.test"),
    "python.ops.gradients": _row("headrace", _INNER),
    "python.ops.gradients_impl": _row("headrace", _INNER),
    "python.ops.image_ops": _row("headrace.image"),
    "python.ops.image_ops_impl": _row("headrace.image"),
    "python.ops.init_ops": _row(
        "headrace", "headrace.initializers", "headrace.ops.state.initializers_orthogonal", _INNER
    ),
    "python.ops.linalg_ops": _row("headrace", "headrace.linalg"),
    "python.ops.logging_ops": _row("headrace", "headrace.summary"),
    "python.ops.lookup_ops": _row(
        "headrace.lookup.vocabulary", "headrace.lookup", "headrace", "headrace.contrib.lookup"
    ),
    "python.ops.losses": _row("headrace.losses"),
    "python.ops.math_ops": _row("headrace", "headrace.math"),
    "python.ops.confusion_matrix": _row("headrace", "headrace.ops.nn.weights"),
    "python.ops.metrics": _row("headrace.metrics"),
    "python.ops.metrics_impl": _row("headrace.metrics", "headrace.metrics.variables", _INNER),
    "python.ops.nn": _row("headrace.nn", "headrace", **_SAMPLED),
    "python.ops.nn_impl": _row("headrace.nn", "headrace", **_SAMPLED),
    "python.ops.nn_ops": _row("headrace.nn", "headrace"),
    "python.ops.numerics": _row("headrace", "headrace.debugging"),
    "python.ops.partitioned_variables": _row(),
    "python.ops.ragged": _row("headrace.ragged"),
    "python.ops.random_ops": _row("headrace", "headrace.random"),
    "python.ops.resources": _row("headrace.ops.state.resources"),
    "python.ops.resource_variable_ops": _row(
        "headrace", _INTERNALS, ResourceVariable="headrace.Variable"
    ),
    "python.ops.rnn": _row("headrace.nn", "headrace.rnn.dynamic"),
    "python.ops.rnn_cell": _row("headrace.nn.rnn_cell", "headrace.contrib.rnn"),
    "python.ops.rnn_cell_impl": _row("headrace.nn.rnn_cell", "headrace.contrib.rnn"),
    "python.ops.script_ops": _row(),
    "python.ops.seq2seq": _row("headrace.contrib.legacy_seq2seq"),
    "python.ops.sparse_ops": _row("headrace", "headrace.sparse"),
    "python.ops.special_math_ops": _row("headrace", "headrace.math"),
    "python.ops.spectral_ops": _row("headrace.spectral", "headrace.signal"),
    "python.ops.standard_ops": _row("headrace", "headrace.nn"),
    "python.ops.state_ops": _row(),
    "python.ops.string_ops": _row("headrace", "headrace.strings"),
    "python.ops.summary_ops": _row("headrace.summary"),
    "python.ops.template": _row("headrace.ops.state.template"),
    "python.ops.tensor_array_ops": _row(),
    "python.ops.variable_scope": _row("headrace.ops.state.variable_scope", "headrace", _INNER),
    "python.ops.variables": _row(
        "headrace",
        _INTERNALS,
        PartitionedVariable="headrace.ops.state.partitioned.PartitionedVariable",
        RefVariable="headrace.Variable",
    ),
    "python.ops.weights_broadcast_ops": _row("headrace.ops.nn.weights"),
    # -- tensorflow/python/{platform,client,lib,util,...}
    "python.platform": Row(()),
    "python.platform.app": _row("headrace.app"),
    "python.platform.benchmark": _row("headrace.test.benchmark", "headrace.test"),
    "python.platform.flags": _row("headrace.flags"),
    "python.platform.gfile": _row("headrace.gfile"),
    "python.platform.googletest": _row("headrace.compat.googletest"),
    "python.platform.resource_loader": _row("headrace.resource_loader"),
    "python.platform.sysconfig": _row("headrace.sysconfig"),
    "python.platform.test": _row("headrace.test"),
    "python.platform.tf_logging": _row("headrace.logging"),
    "python.platform.logging": _row("headrace.logging"),
    "python.client.session": _row(
        "headrace.session.session", "headrace.session.fetches", "headrace"
    ),
    "python.client.device_lib": _row(_INTERNALS),
    "python.client.timeline": _row("headrace.session.timeline"),
    "python.lib.io.file_io": _row("headrace.compat.file_io", "headrace.gfile"),
    "python.lib.io.python_io": _row("headrace.python_io"),
    "python.lib.io.tf_record": _row("headrace.python_io"),
    "python.eager.context": _row("headrace.compat.eager"),
    "python.eager.backprop": _row("headrace.compat.eager"),
    "python.summary": _row("headrace.summary"),
    "python.summary.summary": _row("headrace.summary"),
    "python.summary.summary_iterator": _row("headrace.train"),
    "python.summary.event_accumulator": _row(_INTERNALS),
    "python.util": Row(()),
    "python.util.compat": _row(
        "headrace.compat", collections_abc="headrace.compat.util.collections_abc"
    ),
    "python.util.nest": _row("headrace.nest"),
    "python.util.deprecation": _row("headrace.compat.util"),
    "python.util.tf_export": _row("headrace.compat.util"),
    "python.util.tf_inspect": _row("headrace.compat.util", "inspect"),
    "python.util.tf_decorator": _row("headrace.compat.util"),
    "python.util.tf_contextlib": _row("headrace.compat.util", "contextlib"),
    "python.util.tf_should_use": _row("headrace.compat.util"),
    "python.util.protobuf.compare": _row("headrace.test.protos"),
    "python.layers": _row("headrace.layers"),
    "python.layers.base": _row("headrace.layers.base", "headrace.layers"),
    "python.layers.layers": _row("headrace.layers"),
    "python.layers.utils": _row(_INNER, "headrace.layers", _INTERNALS),
    "python.saved_model": _row("headrace.saved_model"),
    "python.profiler": _row("headrace.profiler"),
    "python.training.evaluation": _row(
        "headrace.contrib.training",
        _StopAfterNEvalsHook="headrace.contrib.training.StopAfterNEvalsHook",
        _evaluate_once="headrace.contrib.training.evaluate_once",
        _get_or_create_eval_step="headrace.contrib.training.get_or_create_eval_step",
    ),
    "python.training.input": _row("headrace.train", "headrace.io"),
    "python.training.checkpoint_management": _row("headrace.train", _INTERNALS),
    "python.training.saver": _row("headrace.train", "headrace.train.saver", _INTERNALS),
    "python.training.saving": Row(()),
    "python.training.saving.saveable_object": _row("headrace.train.saveable"),
    "python.training.saving.saveable_object_util": _row(
        "headrace.train.saveable",
        saveable_objects_for_op="headrace.train.saveable.saveables_of",
        validate_and_slice_inputs="headrace.train.saveable.saveables_for",
    ),
    "python.training.checkpoint_state_pb2": _row("headrace.compat.messages"),
    "python.training.monitored_session": _row(
        "headrace.train.monitored_session",
        "headrace.train",
        "headrace",
        _CoordinatedSession="headrace.train.session_layers.CoordinatedSession",
        _HookedSession="headrace.train.session_layers.HookedSession",
        _RecoverableSession="headrace.train.session_layers.RecoverableSession",
        _WrappedSession="headrace.train.session_layers.WrappedSession",
    ),
    "python.training.training": _row("headrace.train"),
    "python.training.training_util": _row("headrace.train", _INTERNALS),
    "python.training.training_ops": _row("headrace.compat.training_ops"),
    "python.training.gen_training_ops": _row("headrace.compat.training_ops"),
    "python.training.queue_runner": _row("headrace.train"),
    "python.training.queue_runner_impl": _row("headrace.train"),
    "python.tools.freeze_graph": _row("headrace.compat.freeze_graph"),
    "python.tools.inspect_checkpoint": _row("headrace.compat.inspect_checkpoint"),
    # -- elsewhere
    "examples": _row("headrace.examples"),
    "examples.tutorials": _row("headrace.examples.tutorials"),
    "examples.tutorials.mnist": _row("headrace.examples.tutorials.mnist"),
    "examples.tutorials.mnist.input_data": _row("headrace.examples.tutorials.mnist.input_data"),
    "examples.tutorials.mnist.mnist": _row("headrace.examples.tutorials.mnist.mnist"),
    "contrib": _row("headrace.contrib"),
    "contrib.eager.python": _row("headrace.contrib.eager"),
    "contrib.eager.python.tfe": _row("headrace.contrib.eager"),
    "contrib.rnn.python.ops.core_rnn": _row("headrace.nn"),  # release 1.0
    "contrib.rnn.python.ops.core_rnn_cell_impl": _row("headrace.contrib.rnn"),
    # The function, which the package's own imports set over the module of its name.
    "contrib.framework.python.ops": _row(
        "headrace.contrib.framework", arg_scope="headrace.contrib.framework.arg_scope"
    ),
    "contrib.learn.python.learn.preprocessing": _row("headrace.contrib.learn.preprocessing"),
    "contrib.learn.python.learn.preprocessing.text": _row("headrace.contrib.learn.preprocessing"),
    "contrib.learn.python.learn.datasets": _row("headrace.contrib.learn.datasets"),
    "contrib.learn.python.learn.datasets.base": _row("headrace.contrib.learn.base"),
    "contrib.learn.python.learn.datasets.mnist": _row(
        "headrace.examples.tutorials.mnist.input_data", "headrace.contrib.learn.datasets"
    ),
    # One that the release's own listing leaves out.
    "contrib.tensor_forest": _row("headrace.contrib.tensor_forest"),
    "contrib.tensor_forest.python": _row("headrace.contrib.tensor_forest"),
    "contrib.tensor_forest.python.tensor_forest": _row("headrace.contrib.tensor_forest"),
    "contrib.tensor_forest.client": _row("headrace.contrib.tensor_forest.client"),
    **{
        f"contrib.tensor_forest.client.{name}": _row(
            f"headrace.contrib.tensor_forest.client.{name}"
        )
        for name in ("eval_metrics", "random_forest")
    },
    "contrib.boosted_trees": _row(_TREES),
    "contrib.boosted_trees.python": _row(_TREES),
    "contrib.boosted_trees.python.ops": _row(_TREES),
    "contrib.boosted_trees.python.ops.model_ops": _row(f"{_TREES}.model_ops"),
    "contrib.boosted_trees.python.ops.prediction_ops": _row(f"{_TREES}.prediction_ops"),
    "contrib.boosted_trees.python.ops.batch_ops_utils": _row(f"{_TREES}.batch_ops_utils"),
    "contrib.boosted_trees.python.ops.stats_accumulator_ops": _row(
        f"{_TREES}.stats_accumulator_ops"
    ),
    "contrib.boosted_trees.python.ops.gen_stats_accumulator_ops": _row(_GENERATED),
    "contrib.boosted_trees.python.ops.quantile_ops": _row(f"{_TREES}.quantile_ops"),
    "contrib.boosted_trees.python.ops.gen_quantile_ops": _row(_GENERATED),
    "contrib.boosted_trees.python.ops.split_handler_ops": _row(f"{_TREES}.split_handler_ops"),
    "contrib.boosted_trees.python.ops.gen_split_handler_ops": _row(_GENERATED),
    "contrib.boosted_trees.python.ops.training_ops": _row(f"{_TREES}.training_ops"),
    "contrib.boosted_trees.python.ops.gen_training_ops": _row(_GENERATED),
    "contrib.boosted_trees.python.ops.gen_model_ops": _row(_GENERATED),
    "contrib.boosted_trees.python.ops.gen_prediction_ops": _row(_GENERATED),
    "contrib.boosted_trees.python.utils": _row(_TREES),
    "contrib.boosted_trees.python.utils.losses": _row(f"{_TREES}.losses"),
    **{
        f"contrib.boosted_trees.{folder}": _row(_TREES)
        for folder in ("lib", "lib.learner", "lib.learner.batch")
    },
    **{
        f"contrib.boosted_trees.lib.learner.batch.{name}": _row(f"{_TREES}.{name}")
        for name in ("base_split_handler", "categorical_split_handler", "ordinal_split_handler")
    },
    "contrib.boosted_trees.proto": _row(f"{_TREES}.proto"),
    **{
        f"contrib.boosted_trees.proto.{name}_pb2": _row(
            f"headrace.graph.proto.boosted_trees.{name}_pb2"
        )
        for name in ("learner", "quantiles", "split_info", "tree_config")
    },
    "models": _row("headrace.contrib"),
    "models.rnn": Row(()),
    "models.rnn.rnn": _row("headrace.nn", "headrace.contrib.rnn"),
    "models.rnn.rnn_cell": _row("headrace.nn.rnn_cell", "headrace.contrib.rnn"),
    "models.rnn.seq2seq": _row("headrace.contrib.legacy_seq2seq"),
}

_MESSAGES = (
    "framework.allocation_description framework.attr_value framework.cost_graph "
    "framework.device_attributes framework.function framework.graph framework.node_def "
    "framework.op_def framework.resource_handle framework.step_stats framework.summary "
    "framework.tensor_description framework.tensor framework.tensor_shape framework.tensor_slice "
    "framework.types framework.variable framework.versions example.example example.feature "
    "protobuf.checkpointable_object_graph protobuf.cluster protobuf.config protobuf.control_flow "
    "protobuf.debug protobuf.meta_graph protobuf.queue_runner protobuf.rewriter_config "
    "protobuf.saved_model protobuf.saver protobuf.tensor_bundle protobuf.tensorflow_server "
    "protobuf.trackable_object_graph util.event"
)
ROWS.update(
    {
        path: _row(*sources, **estimator_table.NAMES.get(path, {}))
        for path, sources in estimator_table.SOURCES.items()
    }
)
ROWS.update(
    {f"core.{name}_pb2": _row("headrace.compat.messages") for name in _MESSAGES.split()}
    | {
        "core.util.test_log_pb2": _row(),
        "core.lib.core.error_codes_pb2": _row("headrace.errors", "headrace.compat.messages"),
    }
)

#: `contrib.gan` left TensorFlow with release 1.15; these are its files, and where their names are.
_GAN = {
    "": "",
    "python": "",
    "python.train": "",
    "python.namedtuples": ".namedtuples",
    **dict.fromkeys(("losses", "python.losses", "python.losses.python"), ".losses"),
    "python.losses.python.tuple_losses": ".losses",
    "python.losses.python.tuple_losses_impl": ".losses",
    "python.losses.python.losses_wargs": ".wargs",
    "python.losses.python.losses_impl": ".wargs",
    **dict.fromkeys(("eval", "python.eval", "python.eval.python"), ".evaluation"),
    **dict.fromkeys(("features", "python.features", "python.features.python"), ".features"),
    "python.features.python.virtual_batchnorm": ".virtual_batchnorm",
    "python.features.python.clip_weights": ".features",
    "python.features.python.conditioning_utils": ".features",
    "python.features.python.random_tensor_pool": ".features",
    "python.features.python.spectral_normalization": ".features",
}
ROWS.update(
    {
        f"contrib.gan.{path}".rstrip("."): _row(f"headrace.contrib.gan{source}")
        for path, source in _GAN.items()
    }
)

#: What programs import below `tensorflow.keras`, and from its sources.
_KERAS = (
    "activations applications backend callbacks constraints datasets datasets.boston_housing "
    "datasets.cifar10 datasets.cifar100 datasets.fashion_mnist datasets.imdb datasets.mnist "
    "datasets.reuters estimator experimental initializers layers losses metrics models optimizers "
    "preprocessing preprocessing.image preprocessing.sequence preprocessing.text regularizers "
    "utils wrappers wrappers.scikit_learn"
)
ROWS.update(
    {
        f"{root}{path}": _row(f"headrace.keras{path}")
        for root in ("keras", "python.keras", "contrib.keras", "contrib.keras.api.keras")
        for path in ("", *(f".{name}" for name in _KERAS.split()))
    }
)

#: Rows of modules that have none of their own, by how their path begins; the longest counts.
_FAMILIES = {
    "core.": _row("headrace.graph.proto"),
    "python.framework.": _row("headrace", _INTERNALS),
    "python.ops.gen_": _row(_GENERATED),
    "python.ops.distributions.": _row("headrace.distributions"),
    "python.ops.linalg.": _row("headrace.linalg", "headrace"),
    "python.ops.losses.": _row("headrace.losses"),
    "python.ops.ragged.": _row("headrace.ragged", "headrace"),
    "python.ops.signal.": _row("headrace.signal"),
    "python.ops.": _row("headrace", _INTERNALS),
    "python.training": Row(()),
    "python.platform.": _row(_INTERNALS),
    "python.layers.": _row("headrace.layers"),
    "python.saved_model.": _row("headrace.saved_model"),
    "python.profiler.": _row("headrace.profiler"),
    "python.summary.": _row("headrace.summary"),
    "python.util.": _row("headrace.compat.util"),
    "python.eager.": _row("headrace.compat.eager"),
    "python.": _row("headrace"),
}


def _is_ops(path: str) -> bool:
    return path.startswith("python.ops.") and path.endswith("_ops")


def row_of(path: str) -> Row:
    """The row of the module ``tensorflow.<path>``."""
    if path in ROWS:
        row = ROWS[path]
        # `array_ops` and its like have what their generated modules define, too.
        return replace(row, sources=(*row.sources, _GENERATED)) if _is_ops(path) else row
    parts = path.split(".")
    if parts[0] == "contrib":
        own = f"headrace.contrib.{parts[1]}"
        public = [part for part in parts[2:] if part != "python"]
        if public[:1] == [parts[1]]:  # contrib/slim/python/slim/learning
            public = public[1:]
        inner = (".".join([own, *public]), own, "headrace") if public else (own,)
        return Row(inner)
    if path.startswith("python.training."):
        return Row((f"headrace.train.{path.rpartition('.')[2]}", "headrace.train", "headrace"))
    fitting = [prefix for prefix in _FAMILIES if path.startswith(prefix)]
    if fitting:
        return _FAMILIES[max(fitting, key=len)]
    return Row((f"headrace.{path}",))
