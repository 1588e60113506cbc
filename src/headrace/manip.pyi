# Written by tools/make_stubs.py from manip.py; do not edit.
__all__ = ['batch_to_space_nd', 'gather_nd', 'reshape', 'reverse', 'roll', 'scatter_nd', 'space_to_batch_nd', 'tile']
from headrace.ops.array.api import reshape as reshape
from headrace.ops.array.arranging_api import reverse as reverse
from headrace.ops.array.arranging_api import roll as roll
from headrace.ops.array.arranging_api import tile as tile
from headrace.ops.array.gather_api import gather_nd as gather_nd
from headrace.ops.array.gather_api import scatter_nd as scatter_nd
from headrace.ops.array.layout_api import batch_to_space_nd as batch_to_space_nd
from headrace.ops.array.layout_api import space_to_batch_nd as space_to_batch_nd
