"""Ragged tensors: rows of different lengths."""

#: Programs of plain tensors never load these: `ragged_tensor` brings them with the first one.
LATE = frozenset(
    {"array", "convert", "dispatch", "elementwise", "factory", "getitem", "map", "math"}
)
