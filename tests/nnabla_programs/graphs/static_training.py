"""A static graph trained by gradient descent; gradients and clear flags."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S

rng = np.random.RandomState(0)
data = rng.randn(64, 4).astype(np.float32)
target = (np.sin(data[:, :1]) + data[:, 1:2] * data[:, 2:3]).astype(np.float32)

x = nn.Variable((16, 4))
t = nn.Variable((16, 1))
with nn.parameter_scope("net"):
    h = F.tanh(PF.affine(x, 16, name="first"))
    h = F.relu(PF.affine(h, 8, name="second"), inplace=True)
    y = PF.affine(h, 1, name="last")
loss = F.mean(F.squared_error(y, t))

for name, parameter in sorted(nn.get_parameters().items()):
    parameter.d = rng.randn(*parameter.shape) * 0.3
    print(name, parameter.shape, parameter.need_grad)

solver = S.Sgd(lr=0.1)
solver.set_parameters(nn.get_parameters())
for epoch in range(6):
    total = 0.0
    for start in range(0, 64, 16):
        x.d, t.d = data[start:start + 16], target[start:start + 16]
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.update()
        total += float(loss.d)
    print("epoch", epoch, "loss %.6f" % (total / 4))

loss.forward()
print("plain forward %.6f" % loss.d)
solver.zero_grad()
loss.backward()
for name, parameter in sorted(nn.get_parameters().items()):
    print(name, "%.6f %.6f" % (np.abs(parameter.d).sum(), np.abs(parameter.g).sum()))
loss.forward(clear_buffer=True)
print("cleared forward %.6f" % loss.d)
solver.zero_grad()
loss.forward(clear_no_need_grad=True)
loss.backward(clear_buffer=True)
print("gradient %.6f" % sum(np.abs(p.g).sum() for p in nn.get_parameters().values()))
