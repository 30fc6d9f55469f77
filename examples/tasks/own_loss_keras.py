"""Train with a loss of your own: the 0.9 quantile of a target by the pinball loss."""

import keras
import numpy as np

random = np.random.default_rng(0)
x = random.random((500, 1))
t = x[:, 0] + random.random(500)


def pinball(t, y):
    return keras.ops.maximum(0.9 * (t - y), 0.1 * (y - t))


model = keras.Sequential([keras.layers.Dense(1)])
model.compile(keras.optimizers.Adam(0.02), pinball)
model.fit(x, t, batch_size=64, epochs=30, verbose=0)
assert 0.8 < (model.predict(x, verbose=0)[:, 0] > t).mean() < 0.97
