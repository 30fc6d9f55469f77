"""Parameter scopes: nesting, sharing, listing, removing, making parameters by hand."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
from nnabla.parameter import get_parameter, get_parameter_or_create, set_parameter, pop_parameter


def ones(shape):
    return np.ones(shape)


x = nn.Variable((2, 3))
x.d = np.arange(6).reshape(2, 3)
with nn.parameter_scope("outer"):
    y = PF.affine(x, 4, w_init=ones, b_init=ones, name="fc")
    with nn.parameter_scope("inner"):
        z = PF.affine(y, 2, w_init=ones, b_init=ones)
        print("scope", sorted(nn.get_parameters()))
    print("scope", sorted(nn.get_parameters()))
print("all", sorted(nn.get_parameters()))

with nn.parameter_scope("outer"):
    again = PF.affine(x, 4, name="fc")
again.forward()
y.forward()
print("shared", np.array_equal(again.d, y.d), again.d.tolist())

with nn.parameter_scope("outer/inner"):
    print("path", sorted(nn.get_parameters()), get_parameter("affine/W").shape, get_parameter("missing"))
p = get_parameter_or_create("made", (2, 2), initializer=ones, need_grad=False)
print("made", p.d.tolist(), p.need_grad, sorted(nn.get_parameters(grad_only=False))[0])
p2 = get_parameter_or_create("made", (2, 2), need_grad=True)
print("same data", p2 == p, p2.need_grad, float(p2.d.sum()))
set_parameter("by_hand", nn.Variable.from_numpy_array(np.full(3, 2.0, np.float32), need_grad=True))
print("set", sorted(nn.get_parameters()), nn.get_parameters()["by_hand"].d.tolist())
popped = pop_parameter("by_hand")
print("popped", popped.shape, sorted(nn.get_parameters()))

array = np.arange(6).reshape(3, 2).astype(np.float32)
q = get_parameter_or_create("from_array", (3, 2), initializer=array)
print("from array", q.d.tolist())
try:
    get_parameter_or_create("from_array", (4, 4))
    print("no error")
except Exception:
    print("another shape is refused")

scope = {}
with nn.parameter_scope("", scope):
    PF.affine(x, 1, w_init=ones, name="own")
print("own scope", sorted(scope), sorted(nn.get_parameters(scope)) if scope else None)
current = nn.get_current_parameter_scope()
print("current", sorted(current))
nn.clear_parameters()
print("cleared", len(nn.get_parameters(grad_only=False)))
with nn.parameter_scope("outer"):
    PF.affine(x, 4, w_init=ones, name="fc")
print("new", sorted(nn.get_parameters()))
