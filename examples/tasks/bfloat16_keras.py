"""Train with activations in bfloat16 and parameters in float32."""

import keras
import numpy as np

keras.mixed_precision.set_global_policy("mixed_bfloat16")
x = np.random.default_rng(0).standard_normal((64, 2))
model = keras.Sequential([keras.layers.Dense(16, activation="tanh"), keras.layers.Dense(1)])
model.compile(keras.optimizers.Adam(0.02), "mse")
losses = model.fit(x, x[:, :1], batch_size=64, epochs=80, verbose=0).history["loss"]
assert losses[-1] < 0.5 * losses[0]
