"""Predict for NumPy arrays in batches of one size, and of any size."""

import keras
import numpy as np

model = keras.Sequential([keras.layers.Dense(16, activation="relu"), keras.layers.Dense(3, activation="softmax")])
samples = np.random.default_rng(0).standard_normal((24, 4))
fixed = model.predict(samples, batch_size=8, verbose=0)
assert np.allclose(fixed, model.predict(samples, batch_size=24, verbose=0), atol=1e-6)
