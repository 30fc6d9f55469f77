"""End training when the loss of held-out samples has not fallen for five epochs."""

import keras
import numpy as np

random = np.random.default_rng(0)
x = random.standard_normal((80, 10))
t = x[:, 0] + random.standard_normal(80)
model = keras.Sequential([keras.layers.Dense(64, activation="relu"), keras.layers.Dense(1)])
model.compile(keras.optimizers.Adam(0.01), "mse")
stop = keras.callbacks.EarlyStopping(patience=5)
history = model.fit(x, t, validation_split=0.5, epochs=500, callbacks=[stop], verbose=0).history
assert len(history["loss"]) < 500
