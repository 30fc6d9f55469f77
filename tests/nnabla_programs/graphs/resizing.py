"""One static graph fed with batches of other sizes."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF

rng = np.random.RandomState(9)
x = nn.Variable((4, 3), need_grad=True)
h = F.relu(PF.affine(x, 5, name="a"))
y = F.softmax(PF.affine(h, 2, name="b"))
loss = F.mean(F.sum(y * y, axis=1))
for i, (_, p) in enumerate(sorted(nn.get_parameters().items())):
    p.d = np.sin(np.arange(p.size) * 0.7 + i).reshape(p.shape)
    p.grad.zero()

for batch in (4, 2, 7, 4):
    x.reset_shape((batch, 3), True)
    x.d = np.cos(np.arange(batch * 3)).reshape(batch, 3)
    x.grad.zero()
    loss.forward(clear_no_need_grad=True)
    loss.backward(clear_buffer=True)
    print(batch, "loss %.6f" % loss.d, x.g.shape, "%.6f" % np.abs(x.g).sum())
    y.forward()
    print(batch, y.shape, "%.6f" % (y.d[:, 0] * np.arange(batch)).sum())
for name, p in sorted(nn.get_parameters().items()):
    print(name, "%.6f" % np.abs(p.g).sum())
image = nn.Variable((1, 2, 6, 6))
feature = F.max_pooling(F.tanh(image), (2, 2))
total = F.sum(feature)
for size in (6, 8, 4):
    image.reset_shape((1, 2, size, size), True)
    image.d = np.sin(np.arange(2 * size * size)).reshape(image.shape)
    total.forward()
    print(size, feature.shape, "%.6f" % total.d)
