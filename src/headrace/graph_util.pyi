# Written by tools/make_stubs.py from dir(headrace.graph_util); do not edit.
from headrace.api.graph_util import convert_variables_to_constants as convert_variables_to_constants
from headrace.api.graph_util import extract_sub_graph as extract_sub_graph
from headrace.api.graph_util import must_run_on_cpu as must_run_on_cpu
from headrace.api.graph_util import remove_training_nodes as remove_training_nodes
from headrace.api.graph_util import tensor_shape_from_node_def_name as tensor_shape_from_node_def_name
from headrace.api.graph_util import write_graph as write_graph
