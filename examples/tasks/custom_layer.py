"""Write a layer with a trained parameter of its own, and use it twice."""

import nn_core as nn
from nn_core import PF
from nn_core.initializer import ConstantInitializer
from nn_core.parameter import get_parameter_or_create


@PF.parametric_function_api("scale")
def channel_scale(x, initial=0.1):
    return x * get_parameter_or_create("scale", (1, x.shape[1]), ConstantInitializer(initial))


x = nn.Variable((2, 4))
y = channel_scale(PF.affine(channel_scale(x, name="first"), 3), initial=0.5, name="second")
assert y.shape == (2, 3)
assert nn.get_parameters()["second/scale/scale"].d.tolist() == [[0.5, 0.5, 0.5]]
