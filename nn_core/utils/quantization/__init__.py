"""Post-training quantization: networks of floating-point numbers as networks of 8-bit integers."""

from nn_core.utils.quantization.post_training import QuantizedNetwork as QuantizedNetwork
from nn_core.utils.quantization.post_training import quantize as quantize
