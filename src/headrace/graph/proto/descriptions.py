"""The docstrings of public messages: protoc writes none, and `help` is to say something.

>>> import headrace as tf
>>> tf.train.Feature.__doc__.splitlines()[0]
'One list of values: `bytes_list`, `float_list` or `int64_list`.'
"""

from __future__ import annotations

from typing import Any, Final

__all__ = ["DESCRIPTIONS", "describe"]

DESCRIPTIONS: Final = {
    "ConfigProto": """Options of a session or server: devices, threads, memory, rewriting of graphs.

>>> config = tf.ConfigProto(allow_soft_placement=True, device_count={"GPU": 0})
>>> config.gpu_options.allow_growth = True
>>> with tf.Session(config=config) as sess:
...     int(sess.run(tf.constant(3)))
3
""",
    "GPUOptions": """How much of an accelerator's memory a session takes.

>>> options = tf.GPUOptions(per_process_gpu_memory_fraction=0.5)
>>> tf.ConfigProto(gpu_options=options).gpu_options.per_process_gpu_memory_fraction
0.5
""",
    "GraphOptions": """How a session rewrites graphs before it runs them.

>>> off = tf.OptimizerOptions(opt_level=tf.OptimizerOptions.L0)
>>> config = tf.ConfigProto(graph_options=tf.GraphOptions(optimizer_options=off))
>>> config.graph_options.optimizer_options.opt_level
-1
""",
    "OptimizerOptions": """Which rewrites of graphs are on.

>>> tf.OptimizerOptions(opt_level=tf.OptimizerOptions.L0, do_constant_folding=False).opt_level
-1
""",
    "RunOptions": """Options of one step: its time limit, and how much of it is recorded.

>>> options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, timeout_in_ms=5000)
>>> options.timeout_in_ms
5000
""",
    "RunMetadata": """What was recorded of one step: times of its ops on each device, costs, graphs.

>>> metadata = tf.RunMetadata()
>>> x = tf.placeholder(tf.float32)
>>> full = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
>>> total = tf.Session().run(tf.reduce_sum(x), {x: [1, 2]}, full, metadata)
>>> len(metadata.step_stats.dev_stats) > 0
True
""",
    "ClusterDef": """The jobs of a cluster and the addresses of their tasks.

>>> cluster = tf.train.ClusterSpec({"ps": ["ps0:2222"]}).as_cluster_def()
>>> cluster.job[0].name, dict(cluster.job[0].tasks)
('ps', {0: 'ps0:2222'})
""",
    "JobDef": """One job of a cluster: its name and the addresses of its tasks by number.

>>> job = tf.train.JobDef(name="worker", tasks={0: "host0:2222", 1: "host1:2222"})
>>> tf.train.ClusterSpec(tf.train.ClusterDef(job=[job])).num_tasks("worker")
2
""",
    "ServerDef": """Which task of which cluster a server is.

>>> cluster = tf.train.ClusterSpec({"worker": ["localhost:0"]}).as_cluster_def()
>>> server_def = tf.train.ServerDef(cluster=cluster, job_name="worker", protocol="grpc")
>>> server_def.job_name, server_def.task_index
('worker', 0)
""",
    "Event": """One record of an event file: a time, a step, and a summary, graph or message.

>>> with tf.summary.FileWriter("events") as writer:
...     value = tf.Summary.Value(tag="loss", simple_value=0.5)
...     writer.add_event(tf.Event(step=7, summary=tf.Summary(value=[value])))
>>> [file] = tf.gfile.Glob("events/*")
>>> [e.step for e in tf.train.summary_iterator(file) if e.HasField("summary")]
[7]
""",
    "HistogramProto": """Counts of values in buckets; `bucket_limit` has the upper end of each.

>>> histogram = tf.HistogramProto(min=1, max=3, num=2, bucket_limit=[2, 4], bucket=[1, 1])
>>> tf.Summary.Value(tag="weights", histo=histogram).histo.num
2.0
""",
    "LogMessage": """A line of a log in an event file.

>>> event = tf.Event(log_message=tf.LogMessage(level=tf.LogMessage.WARN, message="slow"))
>>> event.log_message.message, event.log_message.level == tf.LogMessage.WARN
('slow', True)
""",
    "SessionLog": """A mark in an event file: a session started, stopped or saved.

>>> log = tf.SessionLog(status=tf.SessionLog.CHECKPOINT, checkpoint_path="model-7")
>>> tf.SessionLog.SessionStatus.Name(log.status)
'CHECKPOINT'
""",
    "Summary": """Values under tags, for event files: numbers, histograms, pictures, sound, tensors.

>>> summary = tf.Summary()
>>> value = summary.value.add(tag="loss", simple_value=0.5)
>>> made = tf.Session().run(tf.summary.scalar("loss", 0.5))
>>> tf.Summary.FromString(made).value[0].simple_value
0.5
""",
    "SummaryMetadata": """Which dashboard shows a summary, and under which name.

>>> plugin = tf.SummaryMetadata.PluginData(plugin_name="scalars")
>>> tf.SummaryMetadata(display_name="loss", plugin_data=plugin).plugin_data.plugin_name
'scalars'
""",
    "SummaryDescription": """The type of a summary, as text.

>>> description = tf.summary.SummaryDescription(type_hint="scalar")
>>> description.type_hint
'scalar'
""",
    "TaggedRunMetadata": """A RunMetadata under a tag, in an event file.

>>> with tf.summary.FileWriter("traces") as writer:
...     writer.add_run_metadata(tf.RunMetadata(), "step 7", global_step=7)
>>> [file] = tf.gfile.Glob("traces/*")
>>> [e.tagged_run_metadata.tag for e in tf.train.summary_iterator(file) if e.step == 7]
['step 7']
""",
    "BytesList": """The values of a feature that is byte strings.

>>> list(tf.train.BytesList(value=[b"cat", "dog".encode()]).value)
[b'cat', b'dog']
""",
    "FloatList": """The values of a feature that is 32-bit floats.

>>> list(tf.train.FloatList(value=[0.5, 2]).value)
[0.5, 2.0]
""",
    "Int64List": """The values of a feature that is 64-bit integers.

>>> list(tf.train.Int64List(value=range(3)).value)
[0, 1, 2]
""",
    "Feature": """One list of values: `bytes_list`, `float_list` or `int64_list`.

>>> feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[7]))
>>> feature.WhichOneof("kind"), list(feature.int64_list.value)
('int64_list', [7])
""",
    "Features": """Features by name.

>>> label = tf.train.Feature(int64_list=tf.train.Int64List(value=[7]))
>>> features = tf.train.Features(feature={"label": label})
>>> list(features.feature["label"].int64_list.value)
[7]
""",
    "FeatureList": """A sequence of features, one for each step of time.

>>> word = tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"cat"]))
>>> len(tf.train.FeatureList(feature=[word, word]).feature)
2
""",
    "FeatureLists": """Sequences of features by name.

>>> words = tf.train.FeatureList(feature=[tf.train.Feature()])
>>> sorted(tf.train.FeatureLists(feature_list={"words": words}).feature_list)
['words']
""",
    "Example": """A training example: named features, as `tf.parse_example` reads them from files.

>>> label = tf.train.Feature(int64_list=tf.train.Int64List(value=[7]))
>>> example = tf.train.Example(features=tf.train.Features(feature={"label": label}))
>>> kinds = {"label": tf.FixedLenFeature([], tf.int64)}
>>> parsed = tf.parse_single_example(example.SerializeToString(), kinds)
>>> int(tf.Session().run(parsed["label"]))
7
""",
    "SequenceExample": """An example with features of the whole (`context`) and of each time step.

>>> word = tf.train.Feature(int64_list=tf.train.Int64List(value=[7]))
>>> words = tf.train.FeatureList(feature=[word, word])
>>> lists = tf.train.FeatureLists(feature_list={"words": words})
>>> example = tf.train.SequenceExample(feature_lists=lists)
>>> kinds = {"words": tf.FixedLenSequenceFeature([], tf.int64)}
>>> _, parsed = tf.parse_single_sequence_example(
...     example.SerializeToString(), sequence_features=kinds
... )
>>> tf.Session().run(parsed["words"]).tolist()
[7, 7]
""",
    "AttrValue": """The value of a node's attribute: type, shape, number, string, list or function.

>>> tf.AttrValue(f=0.5).WhichOneof("value")
'f'
>>> tf.constant(1).op.node_def.attr["dtype"].type == tf.int32.as_datatype_enum
True
""",
    "GraphDef": """A graph as it is stored: its nodes and functions.

>>> total = tf.add(1, 2, name="total")
>>> graph_def = tf.get_default_graph().as_graph_def()
>>> [node.name for node in graph_def.node]
['total/x', 'total/y', 'total']
>>> with tf.Graph().as_default() as copy:
...     tf.import_graph_def(graph_def, name="")
...     int(tf.Session().run("total:0"))
3
""",
    "NameAttrList": """The name of a function with attributes, as an attribute has it.

>>> tf.NameAttrList(name="square").name
'square'
""",
    "NodeDef": """A node of a stored graph: its name, op, inputs, device and attributes.

>>> node = tf.add(1, 2, name="total").op.node_def
>>> node.name, node.op, list(node.input)
('total', 'Add', ['total/x', 'total/y'])
""",
    "MetaGraphDef": """A graph with its collections, savers and signatures, as checkpoints keep it.

>>> v = tf.Variable(1.0, name="v")
>>> meta = tf.train.export_meta_graph()
>>> len(meta.graph_def.node) > 0, "trainable_variables" in meta.collection_def
(True, True)
""",
    "TensorInfo": """A tensor of a signature: its name in the graph, type and shape.

>>> info = tf.saved_model.build_tensor_info(tf.placeholder(tf.float32, [None], name="x"))
>>> info.name, info.dtype == tf.float32.as_datatype_enum
('x:0', True)
""",
    "SaverDef": """What a saver added to the graph, so that another process can use it.

>>> v = tf.Variable(1.0, name="v")
>>> tf.train.Saver().as_saver_def().restore_op_name
'save/restore_all'
""",
}

#: doctest runs the examples.
__test__ = DESCRIPTIONS


def describe(name: str, message: Any) -> Any:
    """The class of a message, with its docstring if it is a public one."""
    if name in DESCRIPTIONS:
        message.__doc__ = DESCRIPTIONS[name]
    return message
