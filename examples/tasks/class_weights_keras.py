"""Train on rare and frequent classes as if there were as many samples of each."""

import keras
import numpy as np

x = np.random.default_rng(0).standard_normal((1000, 4))
t = x[:, 0] > 1.5
model = keras.Sequential([keras.layers.Dense(1, activation="sigmoid")])
model.compile(keras.optimizers.Adam(0.02), "binary_crossentropy", metrics=["recall"])
weights = dict(enumerate(500 / np.bincount(t)))
model.fit(x, t, batch_size=64, epochs=20, class_weight=weights, verbose=0)
assert model.evaluate(x, t, verbose=0)[1] > 0.9
