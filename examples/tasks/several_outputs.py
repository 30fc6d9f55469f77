"""Train a network with two outputs, each with a loss of its own."""

import nn_core as nn
from nn_core import PF, F, S


def network(x):
    h = F.relu(PF.affine(x, 32, name="shared"))
    return PF.affine(h, 2, name="kind"), PF.affine(h, 1, name="size")


x = F.randn(shape=(32, 4))
scores, predicted = network(x)
kind_loss = F.mean(F.softmax_cross_entropy(scores, x[:, :1] > 0))
size_loss = F.mean(F.squared_error(predicted, x[:, 1:2]))
solver = S.Adam(0.03)
for _ in range(100):
    solver.minimize(kind_loss + 0.5 * size_loss)
nn.forward_all([kind_loss, size_loss])
assert kind_loss.item() < 0.4 and size_loss.item() < 0.2
