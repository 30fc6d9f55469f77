"""Loss functions: values, gradients, classification errors."""
import numpy as np

import nnabla as nn
import nnabla.functions as F

rng = np.random.RandomState(8)
x = nn.Variable.from_numpy_array(rng.randn(4, 5).astype(np.float32), need_grad=True)
p = nn.Variable.from_numpy_array((rng.rand(4, 5) * 0.8 + 0.1).astype(np.float32), need_grad=True)
t = nn.Variable.from_numpy_array(rng.randn(4, 5).astype(np.float32))
label = nn.Variable.from_numpy_array(np.array([[0], [3], [4], [1]]))
binary = nn.Variable.from_numpy_array((rng.rand(4, 5) > 0.5).astype(np.float32))


def show(name, v, y):
    v.grad.zero()
    loss = F.mean(y)
    loss.forward()
    loss.backward()
    y.forward()
    print(name, y.shape, "%.6f %.6f" % (loss.d, np.abs(v.g).sum()), np.round(y.d.ravel()[:4], 5).tolist())


show("softmax cross entropy", x, F.softmax_cross_entropy(x, label))
show("sigmoid cross entropy", x, F.sigmoid_cross_entropy(x, binary))
show("binary cross entropy", p, F.binary_cross_entropy(p, binary))
show("categorical cross entropy", p, F.categorical_cross_entropy(p, label))
show("squared error", x, F.squared_error(x, t))
show("absolute error", x, F.absolute_error(x, t))
show("huber loss", x, F.huber_loss(x, t, delta=0.7))
show("epsilon insensitive", x, F.epsilon_insensitive_loss(x, t, epsilon=0.4))
show("kl multinomial", p, F.kl_multinomial(p / F.sum(p, axis=1, keepdims=True), F.softmax(t)))
show("smooth l1", x, F.where(nn.Variable.from_numpy_array(np.abs(x.d - t.d) < 1), 0.5 * (x - t) ** 2, F.abs(x - t) - 0.5))
for name, y in [
    ("top 1", F.top_n_error(x, label)),
    ("top 3", F.top_n_error(x, label, n=3)),
    ("binary", F.binary_error(p, binary)),
]:
    y.forward()
    print(name, y.shape, y.d.tolist())
c = F.confusion_matrix(F.softmax(x), label)
c.forward()
print("confusion", c.d.astype(int).tolist())
image = nn.Variable.from_numpy_array(rng.randn(2, 3, 2, 2).astype(np.float32), need_grad=True)
pixel = nn.Variable.from_numpy_array(rng.randint(0, 3, (2, 1, 2, 2)))
show("per pixel", image, F.softmax_cross_entropy(image, pixel, axis=1))
masked = F.softmax_cross_entropy(x, label) * nn.Variable.from_numpy_array(np.array([[1.0], [0.0], [1.0], [0.0]]))
show("masked", x, masked)
show("triplet", x, F.relu(F.sum((x - t) ** 2, axis=1) - F.sum((x + t) ** 2, axis=1) + 0.5))
