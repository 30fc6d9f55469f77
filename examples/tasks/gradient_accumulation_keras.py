"""Add up the gradients of four batches for one update."""

import keras
import numpy as np

x = np.random.default_rng(0).standard_normal((320, 4)).astype(np.float32)
t = x.sum(axis=1, keepdims=True)
model = keras.Sequential([keras.layers.Dense(1)])
model.compile(keras.optimizers.Adam(0.1, gradient_accumulation_steps=4), "mse")
history = model.fit(x, t, batch_size=8, epochs=10, verbose=0).history
assert history["loss"][-1] < 0.5
