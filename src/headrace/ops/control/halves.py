"""The operations of this room in mixed precision (see `ops.core.halves`).

Lists of tensors, loops and branches are on TensorFlow's lists, too; here they stay in float32.
"""

from headrace.ops.core.halves import CLEAR, treat

treat("CheckNumerics", CLEAR)
