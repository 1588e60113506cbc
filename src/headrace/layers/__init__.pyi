# Written by tools/make_stubs.py from __init__.py; do not edit.
from headrace.layers.base import InputSpec as InputSpec
from headrace.layers.base import Layer as Layer
from headrace.layers.conv_transpose import Conv2DTranspose as Conv2DTranspose
from headrace.layers.conv_transpose import Conv3DTranspose as Conv3DTranspose
from typing import Any as _Any
from builtins import str as _str
from builtins import bool as _bool
from headrace.graph.tensor import Tensor as _Tensor
def conv2d_transpose(
    inputs: _Any,
    filters: _Any,
    kernel_size: _Any,
    strides: _Any = 1,
    padding: _str = 'valid',
    data_format: _str | None = 'channels_last',
    activation: _Any = None,
    use_bias: _bool = True,
    kernel_initializer: _Any = None,
    bias_initializer: _Any = ...,
    kernel_regularizer: _Any = None,
    bias_regularizer: _Any = None,
    activity_regularizer: _Any = None,
    kernel_constraint: _Any = None,
    bias_constraint: _Any = None,
    trainable: _bool = True,
    name: _str | None = None,
    reuse: _Any = None,
) -> _Tensor: ...
def conv3d_transpose(
    inputs: _Any,
    filters: _Any,
    kernel_size: _Any,
    strides: _Any = 1,
    padding: _str = 'valid',
    data_format: _str | None = 'channels_last',
    activation: _Any = None,
    use_bias: _bool = True,
    kernel_initializer: _Any = None,
    bias_initializer: _Any = ...,
    kernel_regularizer: _Any = None,
    bias_regularizer: _Any = None,
    activity_regularizer: _Any = None,
    kernel_constraint: _Any = None,
    bias_constraint: _Any = None,
    trainable: _bool = True,
    name: _str | None = None,
    reuse: _Any = None,
) -> _Tensor: ...
from headrace.layers.convolutional import Conv1D as Conv1D
from headrace.layers.convolutional import Conv2D as Conv2D
from headrace.layers.convolutional import Conv3D as Conv3D
def conv1d(
    inputs: _Any,
    filters: _Any,
    kernel_size: _Any,
    strides: _Any = 1,
    padding: _str = 'valid',
    data_format: _str | None = 'channels_last',
    dilation_rate: _Any = 1,
    activation: _Any = None,
    use_bias: _bool = True,
    kernel_initializer: _Any = None,
    bias_initializer: _Any = ...,
    kernel_regularizer: _Any = None,
    bias_regularizer: _Any = None,
    activity_regularizer: _Any = None,
    kernel_constraint: _Any = None,
    bias_constraint: _Any = None,
    trainable: _bool = True,
    name: _str | None = None,
    reuse: _Any = None,
) -> _Tensor: ...
def conv2d(
    inputs: _Any,
    filters: _Any,
    kernel_size: _Any,
    strides: _Any = 1,
    padding: _str = 'valid',
    data_format: _str | None = 'channels_last',
    dilation_rate: _Any = 1,
    activation: _Any = None,
    use_bias: _bool = True,
    kernel_initializer: _Any = None,
    bias_initializer: _Any = ...,
    kernel_regularizer: _Any = None,
    bias_regularizer: _Any = None,
    activity_regularizer: _Any = None,
    kernel_constraint: _Any = None,
    bias_constraint: _Any = None,
    trainable: _bool = True,
    name: _str | None = None,
    reuse: _Any = None,
) -> _Tensor: ...
def conv3d(
    inputs: _Any,
    filters: _Any,
    kernel_size: _Any,
    strides: _Any = 1,
    padding: _str = 'valid',
    data_format: _str | None = 'channels_last',
    dilation_rate: _Any = 1,
    activation: _Any = None,
    use_bias: _bool = True,
    kernel_initializer: _Any = None,
    bias_initializer: _Any = ...,
    kernel_regularizer: _Any = None,
    bias_regularizer: _Any = None,
    activity_regularizer: _Any = None,
    kernel_constraint: _Any = None,
    bias_constraint: _Any = None,
    trainable: _bool = True,
    name: _str | None = None,
    reuse: _Any = None,
) -> _Tensor: ...
from headrace.layers.core import Dense as Dense
from headrace.layers.core import Dropout as Dropout
from headrace.layers.core import Flatten as Flatten
def dense(
    inputs: _Any,
    units: _Any,
    activation: _Any = None,
    use_bias: _bool = True,
    kernel_initializer: _Any = None,
    bias_initializer: _Any = ...,
    kernel_regularizer: _Any = None,
    bias_regularizer: _Any = None,
    activity_regularizer: _Any = None,
    kernel_constraint: _Any = None,
    bias_constraint: _Any = None,
    trainable: _bool = True,
    name: _str | None = None,
    reuse: _Any = None,
) -> _Tensor: ...
from headrace.layers.core import dropout as dropout
from headrace.layers.core import flatten as flatten
from headrace.layers.normalization import BatchNormalization as BatchNormalization
from headrace.layers.normalization import batch_normalization as batch_normalization
from headrace.layers.pooling import AveragePooling1D as AveragePooling1D
from headrace.layers.pooling import AveragePooling2D as AveragePooling2D
from headrace.layers.pooling import AveragePooling3D as AveragePooling3D
from headrace.layers.pooling import MaxPooling1D as MaxPooling1D
from headrace.layers.pooling import MaxPooling2D as MaxPooling2D
from headrace.layers.pooling import MaxPooling3D as MaxPooling3D
def average_pooling1d(
    inputs: _Any,
    pool_size: _Any,
    strides: _Any,
    padding: _str = 'valid',
    data_format: _str | None = 'channels_last',
    name: _str | None = None,
) -> _Tensor: ...
def average_pooling2d(
    inputs: _Any,
    pool_size: _Any,
    strides: _Any,
    padding: _str = 'valid',
    data_format: _str | None = 'channels_last',
    name: _str | None = None,
) -> _Tensor: ...
def average_pooling3d(
    inputs: _Any,
    pool_size: _Any,
    strides: _Any,
    padding: _str = 'valid',
    data_format: _str | None = 'channels_last',
    name: _str | None = None,
) -> _Tensor: ...
def max_pooling1d(
    inputs: _Any,
    pool_size: _Any,
    strides: _Any,
    padding: _str = 'valid',
    data_format: _str | None = 'channels_last',
    name: _str | None = None,
) -> _Tensor: ...
def max_pooling2d(
    inputs: _Any,
    pool_size: _Any,
    strides: _Any,
    padding: _str = 'valid',
    data_format: _str | None = 'channels_last',
    name: _str | None = None,
) -> _Tensor: ...
def max_pooling3d(
    inputs: _Any,
    pool_size: _Any,
    strides: _Any,
    padding: _str = 'valid',
    data_format: _str | None = 'channels_last',
    name: _str | None = None,
) -> _Tensor: ...
from headrace.layers.separable import SeparableConv1D as SeparableConv1D
from headrace.layers.separable import SeparableConv2D as SeparableConv2D
from builtins import int as _int
def separable_conv1d(
    inputs: _Any,
    filters: _Any,
    kernel_size: _Any,
    strides: _Any = 1,
    padding: _str = 'valid',
    data_format: _str | None = 'channels_last',
    dilation_rate: _Any = 1,
    depth_multiplier: _int = 1,
    activation: _Any = None,
    use_bias: _bool = True,
    depthwise_initializer: _Any = None,
    pointwise_initializer: _Any = None,
    bias_initializer: _Any = ...,
    depthwise_regularizer: _Any = None,
    pointwise_regularizer: _Any = None,
    bias_regularizer: _Any = None,
    activity_regularizer: _Any = None,
    depthwise_constraint: _Any = None,
    pointwise_constraint: _Any = None,
    bias_constraint: _Any = None,
    trainable: _bool = True,
    name: _str | None = None,
    reuse: _Any = None,
) -> _Tensor: ...
def separable_conv2d(
    inputs: _Any,
    filters: _Any,
    kernel_size: _Any,
    strides: _Any = 1,
    padding: _str = 'valid',
    data_format: _str | None = 'channels_last',
    dilation_rate: _Any = 1,
    depth_multiplier: _int = 1,
    activation: _Any = None,
    use_bias: _bool = True,
    depthwise_initializer: _Any = None,
    pointwise_initializer: _Any = None,
    bias_initializer: _Any = ...,
    depthwise_regularizer: _Any = None,
    pointwise_regularizer: _Any = None,
    bias_regularizer: _Any = None,
    activity_regularizer: _Any = None,
    depthwise_constraint: _Any = None,
    pointwise_constraint: _Any = None,
    bias_constraint: _Any = None,
    trainable: _bool = True,
    name: _str | None = None,
    reuse: _Any = None,
) -> _Tensor: ...
__all__ = ['AveragePooling1D', 'AveragePooling2D', 'AveragePooling3D', 'BatchNormalization', 'Conv1D', 'Conv2D', 'Conv2DTranspose', 'Conv3D', 'Conv3DTranspose', 'Dense', 'Dropout', 'Flatten', 'InputSpec', 'Layer', 'MaxPooling1D', 'MaxPooling2D', 'MaxPooling3D', 'SeparableConv1D', 'SeparableConv2D', 'average_pooling1d', 'average_pooling2d', 'average_pooling3d', 'batch_normalization', 'conv1d', 'conv2d', 'conv2d_transpose', 'conv3d', 'conv3d_transpose', 'dense', 'dropout', 'flatten', 'max_pooling1d', 'max_pooling2d', 'max_pooling3d', 'separable_conv1d', 'separable_conv2d']
AveragePool1D = AveragePooling1D
AveragePool2D = AveragePooling2D
AveragePool3D = AveragePooling3D
BatchNorm = BatchNormalization
Convolution1D = Conv1D
Convolution2D = Conv2D
Convolution2DTranspose = Conv2DTranspose
Convolution3D = Conv3D
Convolution3DTranspose = Conv3DTranspose
Deconv2D = Conv2DTranspose
Deconv3D = Conv3DTranspose
Deconvolution2D = Conv2DTranspose
Deconvolution3D = Conv3DTranspose
FullyConnected = Dense
MaxPool1D = MaxPooling1D
MaxPool2D = MaxPooling2D
MaxPool3D = MaxPooling3D
SeparableConvolution1D = SeparableConv1D
SeparableConvolution2D = SeparableConv2D
average_pool2d = average_pooling2d
batch_norm = batch_normalization
convolution1d = conv1d
convolution2d = conv2d
convolution2d_transpose = conv2d_transpose
convolution3d = conv3d
convolution3d_transpose = conv3d_transpose
deconv2d = conv2d_transpose
deconv3d = conv3d_transpose
deconvolution2d = conv2d_transpose
deconvolution3d = conv3d_transpose
fully_connected = dense
max_pool2d = max_pooling2d
separable_convolution2d = separable_conv2d
