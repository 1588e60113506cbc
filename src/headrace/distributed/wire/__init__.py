"""What crosses the network, as bytes: messages, values, shortened values and errors.

In: a value of an edge. Out: its description and buffers, which may be its own memory. Invariant:
decoding gives the value back, or an OpError for bytes that no encoder makes; nothing in them is
ever code.

    >>> import numpy as np
    >>> from headrace.distributed.wire import codec
    >>> meta, buffers = codec.encode(np.arange(3, dtype=np.int64))
    >>> codec.decode(meta, buffers).tolist()
    [0, 1, 2]
"""
