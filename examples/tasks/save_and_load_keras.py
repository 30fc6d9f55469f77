"""Save the parameters of a network, and load them into a new one."""

import keras
import numpy as np

x = np.ones((2, 3))
model = keras.Sequential([keras.layers.Dense(4)])
before = model.predict(x, verbose=0)
model.save_weights("net.weights.h5")
again = keras.Sequential([keras.layers.Dense(4)])
again.build((2, 3))
again.load_weights("net.weights.h5")
assert np.array_equal(again.predict(x, verbose=0), before)
