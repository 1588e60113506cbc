"""The operations of this room in mixed precision (see `ops.core.halves`)."""

from headrace.ops.core.halves import ALLOW, CLEAR, DENY, INFER, treat

treat("Conv2D Conv2DBackpropFilter Conv2DBackpropInput", ALLOW)
treat("Conv3D Conv3DBackpropFilterV2 Conv3DBackpropInputV2", ALLOW)
treat("DepthwiseConv2dNative DepthwiseConv2dNativeBackpropFilter", ALLOW)
treat("DepthwiseConv2dNativeBackpropInput", ALLOW)
treat("AvgPool AvgPool3D AvgPool3DGrad AvgPoolGrad BiasAdd BiasAddGrad BiasAddV1", INFER)
treat("Elu EluGrad LeakyRelu LeakyReluGrad Selu SeluGrad Softplus SoftplusGrad", INFER)
treat("Softsign SoftsignGrad LogSoftmax Softmax", INFER)
treat("FusedBatchNormV2 FusedBatchNormGradV2 FusedBatchNormV3 FusedBatchNormGradV3", INFER)
treat("L2Loss SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits", DENY)
treat("MaxPool MaxPool3D MaxPool3DGrad MaxPoolGrad MaxPoolGradGrad MaxPoolGradV2", CLEAR)
treat("MaxPoolV2 Relu Relu6 Relu6Grad ReluGrad", CLEAR)
treat("MaxPool3DGradGrad", CLEAR, "")
