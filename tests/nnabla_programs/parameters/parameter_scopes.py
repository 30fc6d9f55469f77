"""Scopes, parameters by hand, modules' files, need_grad and removal."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.initializer as I
import nnabla.parametric_functions as PF
from nnabla.parameter import get_parameter, get_parameter_or_create, pop_parameter, set_parameter

x = nn.Variable((2, 4))
with nn.parameter_scope("a"):
    with nn.parameter_scope("b/c"):
        y = PF.affine(x, 3, w_init=I.ConstantInitializer(0.5), fix_parameters=True)
    z = PF.affine(y, 2, apply_w=lambda w: w * 2, w_init=I.RangeInitializer(), name="fc")
    s = get_parameter_or_create("scale", (1, 2), I.ConstantInitializer(3), need_grad=True)
    print(nn.parameter.get_current_parameter_scope() is not None, sorted(nn.get_parameters()))
print(sorted((k, v.shape, v.need_grad) for k, v in nn.get_parameters(grad_only=False).items()))
print(sorted(nn.get_parameters(path="a/b", grad_only=False)), get_parameter("nothing"), get_parameter("a/scale").d.tolist())
set_parameter("new/one", nn.Variable.from_numpy_array(np.ones((2,))))
print(sorted(nn.get_parameters(grad_only=False)))
print(pop_parameter("new/one").shape, pop_parameter("new/one"))
copied = {k: v.d.copy() for k, v in nn.get_parameters().items()}
print(sorted(copied))
scope = {}
with nn.parameter_scope("", scope):
    PF.convolution(nn.Variable((1, 2, 4, 4)), 3, (2, 2), name="conv")
print(sorted(scope), sorted(nn.get_parameters())[:2])
with nn.parameter_scope("a"):
    again = PF.affine(y, 2, name="fc")
    print(again.parent.inputs[1].data == z.parent.inputs[1].parent.inputs[0].data if z.parent.inputs[1].parent else "direct")
try:
    with nn.parameter_scope("a"):
        PF.affine(y, 5, name="fc")
except Exception as error:
    print(isinstance(error, (RuntimeError, ValueError, AssertionError)))
nn.save_parameters("p.h5", params={"only": nn.get_parameters()["a/scale"]})
nn.clear_parameters()
nn.load_parameters("p.h5")
print({k: v.d.tolist() for k, v in nn.get_parameters().items()})
nn.parameter.set_parameter("b", nn.Variable((1,)))
nn.clear_parameters()
print(len(nn.get_parameters()))
