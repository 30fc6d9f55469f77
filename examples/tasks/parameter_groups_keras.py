"""Train with a decay of the weights, but not of the biases."""

import keras
import numpy as np

x = np.random.default_rng(0).standard_normal((6400, 2))
model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(16, activation="tanh"), keras.layers.Dense(1)])
optimizer = keras.optimizers.AdamW(0.02, weight_decay=0.01)
optimizer.exclude_from_weight_decay(var_names=["bias"])
model.compile(optimizer, "mse")
model.fit(x, x[:, :1], batch_size=64, epochs=1, verbose=0)
assert model.evaluate(x, x[:, :1], verbose=0) < 0.2
