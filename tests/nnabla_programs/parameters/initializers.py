"""Initializers: constants exactly, random ones by their statistics and bounds."""
import numpy as np

import nnabla as nn
import nnabla.initializer as I
import nnabla.parametric_functions as PF

print("constant", I.ConstantInitializer(3)((2, 2)).tolist(), I.ConstantInitializer()((2,)).tolist())
print("limits", np.round(I.calc_uniform_lim_glorot(16, 32), 6).tolist(), np.round(I.calc_uniform_lim_glorot(3, 8, kernel=(3, 3)), 6).tolist())
print("normal glorot %.6f" % I.calc_normal_std_glorot(16, 32, kernel=(5, 5)))
print("he forward %.6f" % I.calc_normal_std_he_forward(16, 32, kernel=(3, 3)))
print("he backward %.6f" % I.calc_normal_std_he_backward(16, 32))

rng = np.random.RandomState(313)
u = I.UniformInitializer((-0.5, 1.5), rng=rng)((200, 200))
print("uniform", u.shape, abs(u.mean() - 0.5) < 0.02, u.min() >= -0.5, u.max() < 1.5, abs(u.std() - 2 / 12 ** 0.5) < 0.01)
n = I.NormalInitializer(0.3, rng=rng)((200, 200))
print("normal", abs(n.mean()) < 0.01, abs(n.std() - 0.3) < 0.01)
first = I.UniformInitializer((-1, 1), rng=np.random.RandomState(0))((4,))
second = I.UniformInitializer((-1, 1), rng=np.random.RandomState(0))((4,))
print("repeatable", np.array_equal(first, second), np.round(first, 6).tolist())
o = I.OrthogonalInitializer(gain=2.0, rng=np.random.RandomState(1))((6, 4))
print("orthogonal", np.allclose(o.T @ o, 4 * np.eye(4), atol=1e-4))
r = I.RangeInitializer(start=1, step=2)((2, 4))
print("range", r.tolist())

x = nn.Variable((2, 3, 5, 5))
PF.convolution(x, 4, (3, 3), w_init=I.ConstantInitializer(0.5), b_init=I.ConstantInitializer(-1), name="c")
for name, p in sorted(nn.get_parameters().items()):
    print(name, p.shape, float(p.d.sum()))
PF.affine(x, 8, name="d")
w = nn.get_parameters()["d/affine/W"].d
limit = I.calc_uniform_lim_glorot(75, 8)[1]
print("default", w.shape, np.abs(w).max() <= limit, np.abs(w).max() > 0.9 * limit)
print("bias", np.abs(nn.get_parameters()["d/affine/b"].d).sum())
PF.affine(x, 2, w_init=np.full((75, 2), 0.25), with_bias=False, name="e")
print("array", float(nn.get_parameters()["e/affine/W"].d.sum()), sorted(nn.get_parameters()))
