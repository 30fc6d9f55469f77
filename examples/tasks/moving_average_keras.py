"""Keep a moving average of the weights and evaluate with it."""

import keras
import numpy as np

random = np.random.default_rng(0)
x = random.standard_normal((800, 3))
t = x.sum(axis=1) + random.standard_normal(800)
model = keras.Sequential([keras.layers.Dense(1)])
model.compile(keras.optimizers.SGD(0.2, use_ema=True, ema_momentum=0.95), "mse")
model.fit(x, t, batch_size=4, epochs=1, verbose=0)
assert np.abs(model.layers[0].kernel.numpy() - 1).max() < 0.5
