"""Layers."""

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF

x = nn.Variable((8, 3, 16, 16))
h: nn.Variable = F.relu(PF.convolution(x, 16, 3, pad=1, with_bias=False, name="conv1"))
h = PF.batch_normalization(h, batch_stat=True, name="bn1")
h = F.max_pooling(h, 2)
h = PF.convolution(h, 32, (3, 3), stride=(2, 2), name="conv2")
h = F.average_pooling(h, h.shape[2:])
y: nn.Variable = PF.affine(h, 10, name="out")
parameters: dict[str, nn.Variable] = nn.get_parameters()
