"""Several results computed in one pass; shared parts are computed once."""
import numpy as np

import nnabla as nn
import nnabla.functions as F

x = nn.Variable.from_numpy_array(np.linspace(-1, 1, 6).reshape(2, 3).astype(np.float32), need_grad=True)
h = F.tanh(x * 2)
a = F.sum(h ** 2)
b = F.mean(F.exp(h))
c = F.max(h, axis=1)
nn.forward_all([a, b, c])
print("values", "%.6f %.6f" % (a.d, b.d), np.round(c.d, 6).tolist())

count = []
nn.forward_all([a, b, c], function_pre_hook=lambda f: count.append(f.name))
print("functions", sorted(count))

x.d = 0.25
nn.forward_all([a, b], clear_no_need_grad=True)
print("again", "%.6f %.6f" % (a.d, b.d))
x.grad.zero()
a.backward(clear_buffer=True)
print("gradient", np.round(x.g, 6).tolist())
nn.forward_all([a, b, c], clear_buffer=True)
print("cleared", "%.6f %.6f" % (a.d, b.d), np.round(c.d, 6).tolist())
h.persistent = True
nn.forward_all([a, b, c], clear_buffer=True)
print("persistent", np.round(h.d, 6).tolist())
x.grad.zero()
loss = a + 3 * b
loss.forward()
loss.backward()
print("loss", "%.6f" % loss.d, np.round(x.g, 6).tolist())
total = F.add_n(a, b, a)
total.forward()
x.grad.zero()
total.backward(2.0)
print("total", "%.6f" % total.d, np.round(x.g, 6).tolist())
nn.forward_all((F.identity(x), F.identity(h)))
print("tuple")
