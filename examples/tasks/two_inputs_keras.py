"""Train a network with two inputs, images and numbers."""

import keras
import numpy as np
from keras import layers

random = np.random.default_rng(0)
images, numbers = random.random((200, 8, 8, 1)), random.random((200, 3))
t = (images.mean(axis=(1, 2, 3)) + numbers[:, 0] > 1).astype(int)
image, number = keras.Input((8, 8, 1)), keras.Input((3,))
h = layers.Flatten()(layers.Conv2D(4, 3, activation="relu")(image))
model = keras.Model([image, number], layers.Dense(2)(layers.Concatenate()([h, number])))
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.Adam(0.01), loss, metrics=["accuracy"])
model.fit([images, numbers], t, batch_size=64, epochs=60, verbose=0)
assert model.evaluate([images, numbers], t, verbose=0)[1] > 0.9
