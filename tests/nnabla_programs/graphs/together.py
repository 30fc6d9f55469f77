"""nn.forward_all, sinks, persistent variables and what clear flags leave."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF

w = lambda shape: 0.5 * np.cos(np.arange(np.prod(shape))).reshape(shape)
x = nn.Variable.from_numpy_array(np.linspace(-2, 2, 8).reshape(2, 4).astype(np.float32))
h = F.tanh(PF.affine(x, 3, w_init=w, name="h"))
a, b = F.mean(h), F.sum(F.exp(h))
nn.forward_all([a, b])
print("%.5f %.5f" % (a.d, b.d))
nn.forward_all([a, b], clear_no_need_grad=True)
print("%.5f %.5f" % (a.d, b.d))
nn.forward_all((a, b), clear_buffer=True)
print("%.5f %.5f" % (a.d, b.d))
calls = []
nn.forward_all([a, b], function_pre_hook=lambda f: calls.append(f.info.type_name), function_post_hook=lambda f: calls.append("/" + f.name))
print(calls)
h.persistent = True
nn.forward_all([a, b], clear_buffer=True)
print("persistent", np.round(h.d, 4).tolist())
s = F.sink(a, b, one_input_grad=False)
a.grad.fill(2)
b.grad.fill(3)
for p in nn.get_parameters().values():
    p.grad.zero()
s.forward()
s.backward()
print("sink", {k: np.round(p.g, 4).tolist() for k, p in nn.get_parameters().items()})
s = F.sink(a, b)
for p in nn.get_parameters().values():
    p.grad.zero()
s.forward(clear_no_need_grad=True)
s.backward(clear_buffer=True)
print("ones", {k: np.round(p.g, 4).tolist() for k, p in nn.get_parameters().items()}, s.shape)
for p in nn.get_parameters().values():
    p.grad.zero()
a.forward()
a.backward(grad=np.array(2.0))
a.backward(grad=0.5)
g = nn.NdArray(())
g.fill(4)
a.backward(grad=g)
print("grads", {k: np.round(p.g, 4).tolist() for k, p in nn.get_parameters().items()})
print(a.parent.name, h.parent.info.type_name, sorted(f.name for f in h.function_references), x.parent, a.ndim, h.size)
