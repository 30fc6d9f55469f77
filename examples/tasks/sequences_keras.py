"""Run an LSTM over sequences of different lengths, and train on its last states."""

import keras
import numpy as np

random = np.random.default_rng(0)
sequences = [random.uniform(-1, 1, (length, 2)) for length in (3, 1, 4, 2)]
t = np.array([sequence[:, 0].sum() for sequence in sequences])
x = np.stack([np.pad(sequence, ((0, 4 - len(sequence)), (0, 0))) for sequence in sequences])
model = keras.Sequential([keras.layers.Masking(), keras.layers.LSTM(8), keras.layers.Dense(1)])
model.compile(keras.optimizers.Adam(0.05), "mse")
history = model.fit(x, t, epochs=60, verbose=0).history
assert history["loss"][-1] < 0.1
