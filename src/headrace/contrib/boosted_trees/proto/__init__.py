"""``tf.contrib.boosted_trees.proto``: the messages; the bytes are TensorFlow's."""

from headrace.graph.proto.boosted_trees import learner_pb2 as learner_pb2
from headrace.graph.proto.boosted_trees import quantiles_pb2 as quantiles_pb2
from headrace.graph.proto.boosted_trees import split_info_pb2 as split_info_pb2
from headrace.graph.proto.boosted_trees import tree_config_pb2 as tree_config_pb2

__all__ = ["learner_pb2", "quantiles_pb2", "split_info_pb2", "tree_config_pb2"]
