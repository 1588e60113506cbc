"""The operations of this room in mixed precision (see `ops.core.halves`)."""

from headrace.ops.core.halves import CLEAR, treat

treat("ResizeNearestNeighbor ResizeNearestNeighborGrad", CLEAR)
treat("ResizeBilinear", "", CLEAR)
