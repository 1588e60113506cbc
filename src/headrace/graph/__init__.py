"""The graph as plain data: operations, tensors, types, shapes, devices and their files."""
