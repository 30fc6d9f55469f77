"""Train a classifier on arrays and evaluate it."""

import keras
import numpy as np

x = np.random.default_rng(0).standard_normal((500, 2)).astype(np.float32)
t = (x[:, 0] * x[:, 1] > 0).astype(int)
model = keras.Sequential([keras.layers.Dense(32, activation="relu"), keras.layers.Dense(2)])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.Adam(0.02), loss, metrics=["accuracy"])
model.fit(x[:400], t[:400], batch_size=64, epochs=25, verbose=0)
_, accuracy = model.evaluate(x[400:], t[400:], verbose=0)
assert accuracy > 0.85
