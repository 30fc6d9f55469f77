"""Element-wise functions: values and gradients on one grid of numbers."""
# tolerance: 2e-4
import numpy as np

import nnabla as nn
import nnabla.functions as F

x = nn.Variable.from_numpy_array(np.linspace(-2.3, 2.7, 12).reshape(3, 4).astype(np.float32), need_grad=True)
u = nn.Variable.from_numpy_array(np.linspace(0.1, 0.9, 12).reshape(3, 4).astype(np.float32), need_grad=True)


def show(name, v, y):
    v.grad.zero()
    y.forward()
    y.backward()
    print(name, "%.5f %.5f %.5f %.5f" % (y.d.sum(), np.abs(y.d).sum(), v.g.sum(), np.abs(v.g).sum()))


for name in ("relu tanh sigmoid softplus softsign swish gelu mish selu elu celu crelu relu6 hard_sigmoid hard_tanh log_sigmoid tanh_shrink "
             "sin cos sinh cosh exp abs identity atan asinh erf sinc").split():
    show(name, x, getattr(F, name)(x))
for name in "log asin acos atanh tan pow2".split():
    show(name, u, F.pow2(u, u) if name == "pow2" else getattr(F, name)(u))
show("acosh", u, F.acosh(u + 1))
for name in "round ceil floor sign isnan isinf logical_not".split():
    y = getattr(F, name)(x)
    y.forward()
    print(name, y.d.astype(float).tolist())
show("leaky", x, F.leaky_relu(x, 0.2))
show("prelu", x, F.prelu(x, nn.Variable.from_numpy_array(np.float32([0.1, 0.2, 0.3, 0.4]))))
show("softplus beta", x, F.softplus(x, beta=2.0))
show("threshold", x, F.maximum_scalar(F.minimum_scalar(x, 1.5), -1.0))
show("clip", x, F.clip_by_value(x, -1.25, 0.75))
show("pow", u, F.pow_scalar(u, 1.7))
show("rpow", x, F.r_pow_scalar(x, 1.7))
show("rdiv", u, F.r_div_scalar(u, 3.0))
show("rsub", x, F.r_sub_scalar(x, 3.0))
show("atan2", x, F.atan2(x, u))
show("max", x, F.maximum2(x, u))
show("min", x, F.minimum2(x, u))
show("where", x, F.where(nn.Variable.from_numpy_array(x.d > 0.3), x * 2, u))
show("reset nan", x, F.reset_nan(x, 1))
y = F.logical_and(F.greater_scalar(x, 0), F.less_equal_scalar(x, 1.5))
y.forward()
print("and", y.d.astype(int).tolist())
show("mixed", x, F.tanh(x * 2) * F.sigmoid(-x) + F.exp(-(x ** 2)) / (1 + F.abs(x)))
