# Written by tools/make_stubs.py from collective.py; do not edit.
__all__ = ['all_gather', 'all_reduce', 'broadcast_recv', 'broadcast_send', 'reduce_scatter']
from headrace.ops.collective.api import all_gather as all_gather
from headrace.ops.collective.api import all_reduce as all_reduce
from headrace.ops.collective.api import broadcast_recv as broadcast_recv
from headrace.ops.collective.api import broadcast_send as broadcast_send
from headrace.ops.collective.api import reduce_scatter as reduce_scatter
