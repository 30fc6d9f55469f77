"""Print the layers of a network with their shapes, parameters and multiply-adds."""

import nn_core as nn
from nn_core import PF, F

h = F.max_pooling(F.relu(PF.convolution(nn.Variable((1, 3, 32, 32)), 16, 3, pad=1)), 2)
table = nn.summary(PF.affine(h, 10))
print(table)
assert table.n_parameters == 3 * 16 * 9 + 16 + 16 * 16 * 16 * 10 + 10
