"""Train an autoencoder of images with convolutions, and reconstruct one."""

import keras
import numpy as np
from keras import layers

images = np.random.default_rng(0).random((100, 1, 8, 1)).repeat(8, axis=1)
encoder = layers.Conv2D(8, 3, strides=2, padding="same", activation="relu")
model = keras.Sequential([encoder, layers.Conv2DTranspose(1, 2, strides=2)])
model.compile(keras.optimizers.Adam(0.02), "mse")
model.fit(images, images, validation_split=0.2, epochs=60, verbose=0)
assert np.square(model.predict(images[:1], verbose=0) - images[:1]).mean() < 0.05
