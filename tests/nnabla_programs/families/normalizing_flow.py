"""A flow of affine couplings with activation normalization: exact likelihood and inversion."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S
from nnabla.parameter import get_parameter_or_create

DIM, LAYERS = 4, 3
rng = np.random.RandomState(8)


def coupling_net(a):
    h = F.relu(PF.affine(a, 12, name="fc1"))
    h = PF.affine(h, DIM, name="fc2")
    log_scale, shift = F.split(F.reshape(h, (h.shape[0], 2, DIM // 2)), axis=1)
    return F.tanh(log_scale), shift


def forward(x):
    log_det = 0
    for i in range(LAYERS):
        with nn.parameter_scope("layer%d" % i):
            scale = get_parameter_or_create("log_scale", (1, DIM))
            offset = get_parameter_or_create("offset", (1, DIM))
            x = (x + offset) * F.exp(scale)
            a, b = x[:, :DIM // 2], x[:, DIM // 2:]
            s, t = coupling_net(a)
            x = F.concatenate(b * F.exp(s) + t, a, axis=1)
            log_det = log_det + F.sum(s, axis=1) + F.sum(scale, axis=1)
    return x, log_det


def inverse(z):
    for i in reversed(range(LAYERS)):
        with nn.parameter_scope("layer%d" % i):
            b, a = z[:, :DIM // 2], z[:, DIM // 2:]
            s, t = coupling_net(a)
            z = F.concatenate(a, (b - t) * F.exp(-s), axis=1)
            z = z * F.exp(-get_parameter_or_create("log_scale", (1, DIM))) - get_parameter_or_create("offset", (1, DIM))
    return z


x = nn.Variable((16, DIM))
z, log_det = forward(x)
log_p = -0.5 * F.sum(z ** 2, axis=1) - 0.5 * DIM * np.log(2 * np.pi)
loss = -F.mean(log_p + log_det)
for name, p in sorted(nn.get_parameters().items()):
    p.d = rng.randn(*p.shape) * 0.2
solver = S.AdamW(1e-2, wd=1e-3)
solver.set_parameters(nn.get_parameters())
mix = rng.randn(DIM, DIM)
for step in range(8):
    x.d = np.tanh(rng.randn(16, DIM) @ mix)
    loss.forward(clear_no_need_grad=True)
    solver.zero_grad()
    loss.backward(clear_buffer=True)
    solver.update()
    print("step", step, "%.5f" % loss.d)
with nn.auto_forward():
    there, log_det = forward(x)
    back = inverse(there)
    print("inverse", bool(np.abs(back.d - x.d).max() < 1e-4), "log det %.5f" % log_det.d.mean())
    print("sample", np.round(inverse(nn.Variable.from_numpy_array(np.ones((1, DIM), np.float32))).d, 4).tolist())
for name, p in sorted(nn.get_parameters().items()):
    print(name, p.shape, "%.5f %.5f" % (np.linalg.norm(p.d), np.linalg.norm(p.g)))
