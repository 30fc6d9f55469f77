"""Find the pixels that the score of a class depends on most."""

import nn_core as nn
from nn_core import PF, F

x = nn.Variable((1, 1, 8, 8), need_grad=True)
x.d = 1
score = F.max(PF.affine(F.relu(PF.convolution(x, 4, 3)), 3))
score.forward()
score.backward()
assert abs(x.g).max() > 0
