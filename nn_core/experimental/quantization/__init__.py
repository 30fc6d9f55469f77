"""Quantization-aware training, whose names are in `nn_core.utils.qnn`: record ranges, then train with rounded values."""
