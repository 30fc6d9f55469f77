"""Recurrent."""

import nn_core as nn
import nn_core.parametric_functions as PF

x, h = nn.Variable((5, 2, 4)), nn.Variable((1, 1, 2, 3))
ys, last = PF.gru(x, h, num_layers=1)
cell = PF.LSTMCell(2, 3)
shape: tuple[int, ...] = ys.shape
