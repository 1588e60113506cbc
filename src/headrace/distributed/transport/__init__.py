"""What carries frames between two tasks: pipes of several kinds, and the link above them.

In: frames, which are a head and buffers. Out: the same frames at the other end, in their order.
Invariant: what arrives is what was sent, or the pipe is broken for both ends. `base` says what a
pipe is; `connect` takes the best that two tasks have in common: `inproc` in one process, `shm` on
one host, `rdma`, `stream` over TCP and TLS, `grpc_pipe` where nothing else gets through.

    >>> from headrace.distributed.transport.framing import frame_bytes, DATA
    >>> frame = frame_bytes(DATA, 0, head=b"run 7", table=b"", inline=0)
    >>> len(frame), frame[-5:]  # a header of 28 bytes, with checksums, and the head
    (33, b'run 7')
"""
