"""Bound the norm of all gradients together before each update."""

import keras
import numpy as np

x = 100 + 100 * np.random.default_rng(0).standard_normal((40, 4))
model = keras.Sequential([keras.layers.Dense(1)])
optimizer = keras.optimizers.SGD(0.01, momentum=0.9, global_clipnorm=1.0)
model.compile(optimizer, "mse")
model.fit(x, x.sum(axis=1), batch_size=8, epochs=1, verbose=0)
norms = [float(np.linalg.norm(velocity.numpy())) for velocity in optimizer.momentums]
assert 0 < np.hypot(*norms) < 0.01 * 5
