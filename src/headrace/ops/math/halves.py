"""The operations of this room in mixed precision (see `ops.core.halves`)."""

from headrace.ops.core.halves import ALLOW, CLEAR, DENY, INFER, treat

treat("BatchMatMul BatchMatMulV2 Einsum MatMul", ALLOW)
treat("Add AddN AddV2 Erf Erfc FloorDiv Inv Log Log1p Mul Prod RealDiv Reciprocal", INFER)
treat("Sigmoid SigmoidGrad Sqrt Sub Tanh TanhGrad", INFER)
# Range is what sums run out of first; bfloat16 has that of float32.
treat("Mean Sum SumLike", DENY, INFER)
treat("Rsqrt Square SquaredDifference", "", INFER)
treat("Exp Expm1 Pow", DENY)
treat("Abs ArgMax ArgMin Ceil ClipByValue Equal Floor Greater GreaterEqual IsFinite IsInf", CLEAR)
treat("IsNan Less LessEqual Max Maximum Min Minimum Neg NotEqual Round Sign TopK TopKV2", CLEAR)
