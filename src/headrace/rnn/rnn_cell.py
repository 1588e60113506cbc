"""``tf.nn.rnn_cell``: recurrent cells and wrappers of cells.

Names with an underscore are those that programs with cells of their own take from TensorFlow.
"""

from headrace.rnn.basic_cells import (
    BasicLSTMCell,
    BasicRNNCell,
    GRUCell,
    LSTMCell,
    LSTMStateTuple,
)
from headrace.rnn.cell import BIAS as _BIAS_VARIABLE_NAME  # noqa: F401
from headrace.rnn.cell import KERNEL as _WEIGHTS_VARIABLE_NAME  # noqa: F401
from headrace.rnn.cell import LayerRNNCell, RNNCell
from headrace.rnn.cell import require_cell as assert_like_rnncell
from headrace.rnn.linear import Linear as _Linear  # noqa: F401
from headrace.rnn.linear import linear as _linear
from headrace.rnn.structure import joined as _concat  # noqa: F401
from headrace.rnn.structure import zero_states as _zero_state_tensors  # noqa: F401
from headrace.rnn.wrappers import (
    DeviceWrapper,
    DropoutWrapper,
    EmbeddingWrapper,
    InputProjectionWrapper,
    MultiRNNCell,
    OutputProjectionWrapper,
    ResidualWrapper,
)

#: Known under this name to programs that make cells of their own.
linear = _linear

__all__ = [
    "BasicLSTMCell",
    "BasicRNNCell",
    "DeviceWrapper",
    "DropoutWrapper",
    "EmbeddingWrapper",
    "GRUCell",
    "InputProjectionWrapper",
    "LSTMCell",
    "LSTMStateTuple",
    "LayerRNNCell",
    "MultiRNNCell",
    "OutputProjectionWrapper",
    "RNNCell",
    "ResidualWrapper",
    "assert_like_rnncell",
]
