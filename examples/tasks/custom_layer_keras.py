"""Write a layer with a trained parameter of its own, and use it twice."""

import keras
import numpy as np


class ChannelScale(keras.layers.Layer):
    def __init__(self, initial=0.1):
        super().__init__()
        self.initial = initial

    def build(self, shape):
        self.scale = self.add_weight((1, shape[1]), keras.initializers.Constant(self.initial), name="scale")

    def call(self, x):
        return x * self.scale


model = keras.Sequential([ChannelScale(), keras.layers.Dense(3), ChannelScale(0.5)])
assert model(np.ones((2, 4))).shape == (2, 3)
assert model.layers[2].scale.numpy().tolist() == [[0.5, 0.5, 0.5]]
