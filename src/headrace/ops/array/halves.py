"""The operations of this room in mixed precision (see `ops.core.halves`)."""

from headrace.ops.core.halves import CLEAR, treat

treat("BatchToSpace BatchToSpaceND BroadcastTo Concat ConcatV2 DepthToSpace", CLEAR)
treat("DynamicPartition DynamicStitch EnsureShape ExpandDims Fill Gather GatherNd GatherV2", CLEAR)
treat("Identity IdentityN MirrorPad MirrorPadGrad OnesLike Pack Pad PadV2", CLEAR)
treat("PreventGradient Rank Reshape Reverse ReverseSequence ReverseV2 Select SelectV2", CLEAR)
treat("Shape ShapeN Slice Snapshot SpaceToBatch SpaceToBatchND SpaceToDepth Split", CLEAR)
treat("SplitV Squeeze StopGradient StridedSlice StridedSliceGrad Tile Transpose Unpack", CLEAR)
treat("Where ZerosLike", CLEAR)
treat("OneHot Size", CLEAR, "")
treat("ScatterNd", "", CLEAR)
