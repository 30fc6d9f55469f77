"""Losses of classification and regression with their gradients, ignored labels and reductions."""
import numpy as np

import nnabla as nn
import nnabla.functions as F

rng = np.random.RandomState(2)
x = nn.Variable((4, 5), need_grad=True)
x.d = rng.randn(4, 5)
p = nn.Variable((4, 5), need_grad=True)
p.d = rng.rand(4, 5) * 0.8 + 0.1
t = nn.Variable.from_numpy_array(np.array([[0], [4], [-1], [2]]))
b = nn.Variable.from_numpy_array((rng.rand(4, 5) > 0.5).astype(np.float32))
r = nn.Variable.from_numpy_array(rng.randn(4, 5).astype(np.float32))
for name, y, leaf in (
    ("softmax_ce", F.softmax_cross_entropy(x, t), x), ("categorical", F.categorical_cross_entropy(F.softmax(x), t), x),
    ("sigmoid_ce", F.sigmoid_cross_entropy(x, b), x), ("binary_ce", F.binary_cross_entropy(p, b), p), ("squared", F.squared_error(x, r), x),
    ("absolute", F.absolute_error(x, r), x), ("huber", F.huber_loss(x, r, 0.5), x), ("epsilon", F.epsilon_insensitive_loss(x, r, 0.2), x),
    ("kl", F.kl_multinomial(F.softmax(x), F.softmax(r)), x), ("top1", F.top_n_error(x, F.constant(2, (4, 1))), None), ("top2", F.top_n_error(x, F.constant(1, (4, 1)), n=2), None),
    ("binary_error", F.binary_error(p, b), None), ("smooth", F.softmax_cross_entropy(x, F.constant(1, (4, 1))), x), ("distance", F.norm(x, p=1, axis=1), x),
    ("mean_abs", F.mean(F.abs(x), axis=(0,), keepdims=True), x), ("logsumexp", F.log(F.sum(F.exp(x), axis=1)), x), ("where", F.where(b, x, r), x),
):
    y.forward()
    text = [y.shape, np.round(np.asarray(y.d, np.float64).ravel()[:4], 5).tolist()]
    if leaf is not None:
        leaf.grad.zero()
        y.backward()
        text.append(np.round(leaf.g.ravel()[:5], 5).tolist())
    print(name, *text)
