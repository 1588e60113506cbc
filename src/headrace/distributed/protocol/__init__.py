"""The messages of the distributed runtime: what tasks and clients say to each other.

The ``.proto`` files tell what each message is for; the modules beside them are generated.

    >>> from headrace.distributed.protocol import step_pb2
    >>> part = step_pb2.PartDef(task="/job:ps/replica:0/task:0")
    >>> step_pb2.PartDef.FromString(part.SerializeToString()).task
    '/job:ps/replica:0/task:0'
"""
