"""Load weights that PyTorch wrote as safetensors into a network whose layers have other names."""

import numpy as np

import nn_core as nn
from nn_core import PF, F
from nn_core.io import load_pytorch_parameters

shapes = {"body.0.weight": (8, 3, 3, 3), "body.0.bias": (8,), "head.weight": (5, 8), "head.bias": (5,)}
tensors = {name: nn.Variable.from_numpy_array(np.full(shape, 0.5)) for name, shape in shapes.items()}
nn.save_parameters("model.safetensors", tensors)

h = F.relu(PF.convolution(F.constant(1, (2, 3, 8, 8)), 8, 3, name="conv"))
y = PF.affine(F.mean(h, axis=(2, 3)), 5, name="fc")
report = load_pytorch_parameters("model.safetensors", {"body.0": "conv", "head": "fc"})
y.forward()
assert report.is_exact
assert np.allclose(y.d, 8 * 0.5 * (27 * 0.5 + 0.5) + 0.5)
