"""Train with a loss of your own: the 0.9 quantile of a target by the pinball loss."""

import numpy as np

from nn_core import PF, F, S, fit

random = np.random.default_rng(0)
x = random.random((500, 1))
t = x[:, 0] + random.random(500)


def pinball(y, t):
    return F.maximum2(0.9 * (t - y), 0.1 * (y - t))


result = fit(
    lambda x: PF.affine(x, 1), (x, t), task="regression", loss=pinball, epochs=30, solver=S.Adam(0.02), progress=False
)
assert 0.8 < (result.predict(x)[:, 0] > t).mean() < 0.97
