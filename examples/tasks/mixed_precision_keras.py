"""Train in float16 with a loss scale that adapts."""

import keras
import numpy as np

keras.mixed_precision.set_global_policy("mixed_float16")
x = np.random.default_rng(0).standard_normal((64, 2))
model = keras.Sequential([keras.layers.Dense(16, activation="tanh"), keras.layers.Dense(1)])
model.compile(keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(0.02)), "mse")
losses = model.fit(x, x[:, :1], batch_size=64, epochs=100, verbose=0).history["loss"]
assert losses[-1] < 0.2
