"""Losses."""

import nn_core as nn
import nn_core.functions as F

x, t = nn.Variable((8, 10)), nn.Variable((8, 1))
losses: list[nn.Variable] = [
    F.softmax_cross_entropy(x, t),
    F.mean(F.sigmoid_cross_entropy(x, x)),
    F.huber_loss(x, x, delta=2.0),
    F.absolute_error(x, x),
    F.binary_cross_entropy(F.sigmoid(x), F.sigmoid(x)),
]
errors: nn.Variable = F.top_n_error(x, t, n=2)
