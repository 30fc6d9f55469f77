"""Export a network to ONNX for batches of any length, and check the model with ONNX Runtime."""

import nn_core as nn
from nn_core import PF, F
from nn_ext_onnx import export

x = nn.Variable((8, 3, 16, 16))
y = F.softmax(PF.affine(F.relu(PF.convolution(x, 8, 3)), 10))
export("net.onnx", {"y": y}, {"x": x}, dynamic_batch=True, verify=True)
