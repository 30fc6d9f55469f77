"""Save the parameters of a network, and load them into a new one."""

import numpy as np

import nn_core as nn
from nn_core import PF

x = nn.NdArray((2, 3))
x.fill(1)
before = PF.affine(x, 4)
nn.save_parameters("net.h5")
nn.clear_parameters()
nn.load_parameters("net.h5")
assert np.array_equal(PF.affine(x, 4), before)
