"""Train a network with two outputs, each with a loss of its own."""

import keras
import numpy as np

x = np.random.default_rng(0).standard_normal((3200, 4))
inputs = keras.Input((4,))
h = keras.layers.Dense(32, activation="relu")(inputs)
model = keras.Model(inputs, [keras.layers.Dense(2)(h), keras.layers.Dense(1)(h)])
losses = [keras.losses.SparseCategoricalCrossentropy(from_logits=True), "mse"]
model.compile(keras.optimizers.Adam(0.03), losses, loss_weights=[1, 0.5])
targets = [x[:, 0] > 0, x[:, 1]]
model.fit(x, targets, batch_size=32, epochs=1, verbose=0)
_, kind_loss, size_loss = model.evaluate(x, targets, verbose=0)
assert kind_loss < 0.4 and size_loss < 0.2
