"""``tf.contrib.cudnn_rnn``: whole networks whose parameters are one vector, on any device.

The vector has cuDNN's layout for plain matrices: all weights, layer by layer and gate by gate, then
all biases. The computation is that of the ordinary cells, compiled for the device at hand.
"""

from typing import Any as _Any

from headrace.contrib.cudnn_rnn.cells import CudnnCompatibleGRUCell, CudnnCompatibleLSTMCell
from headrace.contrib.cudnn_rnn.layers import CudnnGRU, CudnnLSTM, CudnnRNNRelu, CudnnRNNTanh
from headrace.contrib.cudnn_rnn.saveables import (
    CudnnGRUSaveable,
    CudnnLSTMSaveable,
    CudnnRNNReluSaveable,
    CudnnRNNTanhSaveable,
    RNNParamsSaveable,
)
from headrace.namespaces.missing import attribute_error as _attribute_error

__all__ = [
    "CudnnCompatibleGRUCell",
    "CudnnCompatibleLSTMCell",
    "CudnnGRU",
    "CudnnGRUSaveable",
    "CudnnLSTM",
    "CudnnLSTMSaveable",
    "CudnnRNNRelu",
    "CudnnRNNReluSaveable",
    "CudnnRNNTanh",
    "CudnnRNNTanhSaveable",
    "RNNParamsSaveable",
]


def __getattr__(name: str) -> _Any:
    raise _attribute_error(__name__, name, __all__)
