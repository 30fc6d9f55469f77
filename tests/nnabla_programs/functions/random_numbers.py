"""Random functions: shapes, bounds, statistics, seeds."""
import numpy as np

import nnabla as nn
import nnabla.functions as F


def value(v):
    v.forward()
    return v.d


u = value(F.rand(-1, 3, (100, 100)))
print("rand", u.shape, abs(u.mean() - 1) < 0.05, u.min() >= -1, u.max() < 3, abs(u.var() - 16 / 12) < 0.05)
n = value(F.randn(2, 0.5, (100, 100)))
print("randn", n.shape, abs(n.mean() - 2) < 0.03, abs(n.std() - 0.5) < 0.03)
i = value(F.randint(3, 7, (100, 100)))
print("randint", sorted(set(i.astype(int).ravel().tolist())), abs(i.mean() - 4.5) < 0.1)
b = value(F.rand_binomial(4, 0.25, (100, 100)))
print("binomial", sorted(set(b.astype(int).ravel().tolist())), abs(b.mean() - 1) < 0.05)
t = value(F.rand_beta(2, 3, (100, 100)))
print("beta", abs(t.mean() - 0.4) < 0.02, t.min() >= 0, t.max() <= 1)
g = value(F.rand_gamma(2, 1.5, (100, 100)))
print("gamma", abs(g.mean() - 3) < 0.15, g.min() >= 0)

first, second = F.rand(0, 1, (5,), seed=3), F.rand(0, 1, (5,), seed=3)
print("equal seeds", np.array_equal(value(first), value(second)))
other = F.rand(0, 1, (5,), seed=4)
print("other seed", np.array_equal(value(first), value(other)))
nn.seed(17)
a = value(F.randn(shape=(4,)))
nn.seed(17)
c = value(F.randn(shape=(4,)))
print("nn.seed", np.array_equal(a, c))
v = F.rand(0, 1, (3,))
v.forward()
before = v.d.copy()
v.forward()
print("drawn anew", np.array_equal(before, v.d))

x = nn.Variable.from_numpy_array(np.arange(2 * 3 * 8 * 8).reshape(2, 3, 8, 8).astype(np.float32), need_grad=True)
crop = F.random_crop(x, (5, 5))
print("crop", crop.shape, len(set(value(crop).ravel().tolist())) == crop.size)
flip = F.random_flip(x, axes=(3,))
print("flip", flip.shape, float(value(flip).sum()))
shift = F.random_shift(x, (0, 0), border_mode="nearest")
print("shift by none", np.array_equal(value(shift), x.d))
choice = F.random_choice(nn.Variable.from_numpy_array(np.float32([1, 2, 3])), nn.Variable.from_numpy_array(np.float32([0, 1, 0])), shape=(6,))
print("choice", value(choice).tolist())
noise = F.mean((x / 100 + F.randn(0, 0.001, x.shape)) ** 2)
noise.forward()
x.grad.zero()
noise.backward()
print("through noise", abs(float(noise.d) / float((x.d ** 2).mean() / 1e4) - 1) < 0.01, x.g.shape)
print("erased", F.random_erase(x, prob=0.0).shape, np.array_equal(value(F.random_erase(x, prob=0.0)), x.d))
from nnabla.random import prng
print("generator", type(prng).__name__)
