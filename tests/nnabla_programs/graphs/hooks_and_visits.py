"""Hooks of passes and of solvers, visits and check of a graph."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S

w = lambda shape: 0.5 * np.cos(np.arange(np.prod(shape))).reshape(shape)
x = nn.Variable.from_numpy_array(np.linspace(-2, 2, 6).reshape(2, 3).astype(np.float32))
y = F.mean(F.relu(PF.affine(x, 4, w_init=w)) ** 2)
log = []
y.forward(function_pre_hook=lambda f: log.append(("pre", f.name)), function_post_hook=lambda f: log.append(("post", f.name, f.outputs[0].shape)))
y.backward(function_pre_hook=lambda f: log.append(("bpre", f.name)), function_post_hook=lambda f: log.append(("bpost", f.name)))
for entry in log:
    print(*entry)
solver = S.Sgd(0.1)
solver.set_parameters(nn.get_parameters())
keys = []
solver.update(update_pre_hook=lambda *a: keys.append("pre"), update_post_hook=lambda *a: keys.append("post"))
print(keys)
found = []
y.visit(lambda f: found.append((f.name, f.info.type_name, len(f.inputs), [v.shape for v in f.outputs], dict(f.info.args))))
for row in found:
    print(row)
y.visit_check(lambda f: print("check", f.name) or f.name == "ReLU")
with nn.auto_forward():
    z = F.sigmoid(x) * 2
    print(z.parent.name, np.round(z.d, 4).tolist())
