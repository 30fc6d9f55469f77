"""Print the layers of a network with their shapes and parameters."""

import keras

layers = keras.layers
model = keras.Sequential(
    [
        keras.Input((32, 32, 3)),
        layers.Conv2D(16, 3, padding="same", activation="relu"),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dense(10),
    ]
)
model.summary()
assert model.count_params() == 3 * 16 * 9 + 16 + 16 * 16 * 16 * 10 + 10
