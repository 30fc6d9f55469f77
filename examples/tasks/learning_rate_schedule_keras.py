"""Warm the learning rate up, then let it fall along a cosine."""

import keras
import numpy as np

x = np.random.default_rng(0).standard_normal((800, 3))
schedule = keras.optimizers.schedules.CosineDecay(0.0, decay_steps=90, warmup_target=0.1, warmup_steps=10)
model = keras.Sequential([keras.layers.Dense(1)])
model.compile(keras.optimizers.SGD(schedule), "mse")
history = model.fit(x, x.sum(axis=1), batch_size=8, epochs=1, verbose=0).history
assert model.evaluate(x, x.sum(axis=1), verbose=0) < 0.1
