"""``tf.layers``: layers that make their variables in variable scopes."""

from headrace.layers.base import InputSpec, Layer
from headrace.layers.conv_transpose import (
    Conv2DTranspose,
    Conv3DTranspose,
    conv2d_transpose,
    conv3d_transpose,
)
from headrace.layers.convolutional import Conv1D, Conv2D, Conv3D, conv1d, conv2d, conv3d
from headrace.layers.core import Dense, Dropout, Flatten, dense, dropout, flatten
from headrace.layers.normalization import BatchNormalization, batch_normalization
from headrace.layers.pooling import (
    AveragePooling1D,
    AveragePooling2D,
    AveragePooling3D,
    MaxPooling1D,
    MaxPooling2D,
    MaxPooling3D,
    average_pooling1d,
    average_pooling2d,
    average_pooling3d,
    max_pooling1d,
    max_pooling2d,
    max_pooling3d,
)
from headrace.layers.separable import (
    SeparableConv1D,
    SeparableConv2D,
    separable_conv1d,
    separable_conv2d,
)

__all__ = [
    "AveragePooling1D",
    "AveragePooling2D",
    "AveragePooling3D",
    "BatchNormalization",
    "Conv1D",
    "Conv2D",
    "Conv2DTranspose",
    "Conv3D",
    "Conv3DTranspose",
    "Dense",
    "Dropout",
    "Flatten",
    "InputSpec",
    "Layer",
    "MaxPooling1D",
    "MaxPooling2D",
    "MaxPooling3D",
    "SeparableConv1D",
    "SeparableConv2D",
    "average_pooling1d",
    "average_pooling2d",
    "average_pooling3d",
    "batch_normalization",
    "conv1d",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "dense",
    "dropout",
    "flatten",
    "max_pooling1d",
    "max_pooling2d",
    "max_pooling3d",
    "separable_conv1d",
    "separable_conv2d",
]

#: Other names that TensorFlow's modules have for the same.
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
