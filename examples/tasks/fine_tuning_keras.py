"""Load trained layers, freeze them, and train a new last layer."""

import keras
import numpy as np

x = np.random.default_rng(0).standard_normal((32, 4))
trained = keras.Sequential([keras.layers.Dense(16, activation="relu")])
trained(x)
trained.save_weights("trained.weights.h5")

features = keras.Sequential([keras.layers.Dense(16, activation="relu")])
features(x)
features.load_weights("trained.weights.h5")
features.trainable = False
model = keras.Sequential([features, keras.layers.Dense(1)])
model.compile(keras.optimizers.Adam(0.05), "mse")
frozen = features.get_weights()[0]
history = model.fit(x, x.sum(axis=1), epochs=50, verbose=0).history
assert history["loss"][-1] < 0.5 * history["loss"][0]
assert np.array_equal(features.get_weights()[0], frozen)
