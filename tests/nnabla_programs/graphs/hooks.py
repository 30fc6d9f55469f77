"""Hooks of functions and communicator-free callbacks: order, names, and what they see."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S

x = nn.Variable.from_numpy_array(np.ones((2, 3), np.float32))
y = PF.affine(x, 2, w_init=lambda shape: np.ones(shape) * 0.1, b_init=lambda shape: np.zeros(shape), name="fc")
z = F.relu(y)
loss = F.sum(z)

seen = []
loss.forward(function_pre_hook=lambda f: seen.append("pre " + f.name), function_post_hook=lambda f: seen.append("post " + f.name))
print("forward", seen)
seen.clear()
for p in nn.get_parameters().values():
    p.grad.zero()
loss.backward(function_pre_hook=lambda f: seen.append("pre " + f.name), function_post_hook=lambda f: seen.append("post " + f.name))
print("backward", seen)


def inspect(f):
    print("  inspect", f.name, [i.shape for i in f.inputs], [o.shape for o in f.outputs], "%.4f" % f.outputs[0].d.sum())


loss.forward(function_post_hook=inspect)

names = []
nn.set_function_pre_hook("collect", lambda f: names.append(f.name))
nn.set_function_post_hook("done", lambda f: names.append("done"))
loss.forward()
nn.unset_function_post_hook("done")
loss.forward()
nn.unset_function_pre_hook("collect")
loss.forward()
print("global", names)

steps = []
nn.set_solver_pre_hook("pre", lambda: steps.append("pre"))
nn.set_solver_post_hook("post", lambda: steps.append("post"))
solver = S.Sgd(0.5)
solver.set_parameters(nn.get_parameters())
solver.update()
nn.unset_solver_pre_hook("pre")
nn.unset_solver_post_hook("post")
print("solver", sorted(set(steps)), "%.5f" % nn.get_parameters()["fc/affine/W"].d.sum())
order = []
loss.visit(lambda f: order.append(f.name))
print("visit", order)
