# Written by tools/make_stubs.py from queue.py; do not edit.
__all__ = ['FIFOQueue', 'PaddingFIFOQueue', 'PriorityQueue', 'QueueBase', 'RandomShuffleQueue']
from headrace.ops.io.queues_api import FIFOQueue as FIFOQueue
from headrace.ops.io.queues_api import PaddingFIFOQueue as PaddingFIFOQueue
from headrace.ops.io.queues_api import PriorityQueue as PriorityQueue
from headrace.ops.io.queues_api import QueueBase as QueueBase
from headrace.ops.io.queues_api import RandomShuffleQueue as RandomShuffleQueue
