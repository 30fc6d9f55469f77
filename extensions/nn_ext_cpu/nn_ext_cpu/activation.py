"""Activation functions."""

from typing import Final

from nn_core.ext import Kernel
from nn_ext_cpu.pointwise import Pointwise

ACTIVATION: Final[dict[str, Kernel]] = {
    "Sigmoid": Pointwise("y = sigmoid x", {"x": "dx = sigmoid_grad dy y"}),
    "Swish": Pointwise("y = swish x", {"x": "dx = swish_grad dy x"}),
    "Tanh": Pointwise("y = tanh x", {"x": "dx = tanh_grad dy y"}),
    "ReLU": Pointwise("y = relu x", {"x": "dx = relu_grad dy y"}),
    "LeakyReLU": Pointwise("y = leaky_relu x ; alpha", {"x": "dx = leaky_relu_grad dy y ; alpha"}),
    "ELU": Pointwise("y = elu x ; alpha", {"x": "dx = elu_grad dy x ; alpha"}),
    "SELU": Pointwise("y = selu x ; scale alpha", {"x": "dx = selu_grad dy x ; scale alpha"}),
    "GELU": Pointwise("y = gelu x", {"x": "dx = gelu_grad dy x"}),
    "Mish": Pointwise("y = mish x", {"x": "dx = mish_grad dy x"}),
    "ReLU6": Pointwise("y = relu6 x", {"x": "dx = relu6_grad dy y"}),
    "HardSigmoid": Pointwise("y = hard_sigmoid x", {"x": "dx = hard_sigmoid_grad dy x"}),
    "HardTanh": Pointwise("y = hard_tanh x", {"x": "dx = hard_tanh_grad dy x"}),
    "LogSigmoid": Pointwise("y = log_sigmoid x", {"x": "dx = log_sigmoid_grad dy x"}),
    "SoftPlus": Pointwise("y = softplus x ; beta", {"x": "dx = softplus_grad dy x ; beta"}),
    "SoftSign": Pointwise("y = softsign x", {"x": "dx = softsign_grad dy x"}),
    "TanhShrink": Pointwise("y = tanh_shrink x", {"x": "dx = tanh_shrink_grad dy x"}),
}
