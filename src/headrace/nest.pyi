# Written by tools/make_stubs.py from dir(headrace.nest); do not edit.
from headrace.api.nest import assert_same_structure as assert_same_structure
from headrace.api.nest import assert_shallow_structure as assert_shallow_structure
from headrace.api.nest import flatten as flatten
from headrace.api.nest import flatten_dict_items as flatten_dict_items
from headrace.api.nest import flatten_up_to as flatten_up_to
from headrace.api.nest import flatten_with_joined_string_paths as flatten_with_joined_string_paths
from headrace.api.nest import flatten_with_tuple_paths as flatten_with_tuple_paths
from headrace.api.nest import is_nested as is_nested
from headrace.api.nest import is_sequence as is_sequence
from headrace.api.nest import is_sequence_or_composite as is_sequence_or_composite
from headrace.api.nest import map_structure as map_structure
from headrace.api.nest import map_structure_up_to as map_structure_up_to
from headrace.api.nest import map_structure_with_paths as map_structure_with_paths
from headrace.api.nest import map_structure_with_tuple_paths as map_structure_with_tuple_paths
from headrace.api.nest import pack_sequence_as as pack_sequence_as
from headrace.api.nest import yield_flat_paths as yield_flat_paths
