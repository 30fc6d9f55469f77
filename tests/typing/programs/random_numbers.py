"""Random numbers."""

import nn_core as nn
import nn_core.functions as F

nn.seed(3)
noise: nn.Variable = F.randn(shape=(2, 3)) + F.rand(low=0, high=1, shape=(2, 3))
dropped: nn.Variable = F.dropout(noise, p=0.5)
dropped.forward()
