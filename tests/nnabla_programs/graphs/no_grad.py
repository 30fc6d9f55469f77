"""Parts without gradients: no_grad, need_grad False, unlinked variables, parameters left alone."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF

x = nn.Variable.from_numpy_array(np.arange(6).reshape(2, 3).astype(np.float32) / 5, need_grad=True)


def const(shape):
    return np.sin(np.arange(int(np.prod(shape)))).reshape(shape)


with nn.no_grad():
    h = F.exp(x)
    f = PF.affine(x, 4, w_init=const, b_init=const, name="frozen")
print("layer", nn.get_parameters(grad_only=False)["frozen/affine/W"].need_grad)
print("flags", h.need_grad, f.need_grad, [v.need_grad for v in f.parent.inputs])
g = F.sum(h * 2) + F.sum(f)
g.forward()
x.grad.zero()
g.backward()
print("passed", np.round(x.g, 4).tolist())
with nn.no_grad(), nn.auto_forward():
    print("dynamic", F.exp(x).need_grad)
w = nn.get_parameters(grad_only=False)["frozen/affine/W"]
w.need_grad = False
print("set", sorted(nn.get_parameters()))
again = PF.affine(x, 4, w_init=const, b_init=const, name="frozen")
print("called again", w.need_grad, again.parent.inputs[1].need_grad, sorted(nn.get_parameters()))
out = F.sum(PF.affine(f, 2, w_init=const, b_init=const, name="head"))
out.forward()
for p in nn.get_parameters(grad_only=False).values():
    p.grad.zero()
out.backward()
for name, p in sorted(nn.get_parameters(grad_only=False).items()):
    print(name, "%.5f" % np.abs(p.g).sum())

a = nn.Variable.from_numpy_array(np.array([1.0, 2.0], np.float32), need_grad=True)
b = nn.Variable.from_numpy_array(np.array([3.0, 4.0], np.float32), need_grad=False)
c = F.sum(a * b)
c.forward()
a.grad.zero()
b.grad.fill(9)
c.backward()
print("constant input", a.g.tolist(), b.g.tolist())
b.need_grad = True
b.grad.zero()
a.grad.zero()
c.forward()
c.backward()
print("now both", a.g.tolist(), b.g.tolist())

d = (a * b).get_unlinked_variable(need_grad=False)
print("unlinked", d.need_grad, d.parent)
fixed = PF.affine(x, 2, w_init=const, b_init=const, fix_parameters=True, name="fixed")
print("trainable", sorted(nn.get_parameters()), len(nn.get_parameters(grad_only=False)))
w = nn.get_parameters(grad_only=False)["fixed/affine/W"]
w.grad.fill(5)
s = F.sum(fixed)
s.forward()
x.grad.zero()
s.backward()
print("fixed", float(w.g.sum()), np.round(x.g, 5).tolist())
