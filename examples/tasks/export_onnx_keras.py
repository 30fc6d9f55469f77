"""Export a network to ONNX for batches of any length, and check the model with ONNX Runtime."""

import keras
import numpy as np
import onnxruntime

layers = keras.layers
model = keras.Sequential(
    [
        keras.Input((16, 16, 3)),
        layers.Conv2D(8, 3, activation="relu"),
        layers.Flatten(),
        layers.Dense(10, activation="softmax"),
    ]
)
model(np.zeros((1, 16, 16, 3)))
model.export("net.onnx", format="onnx", verbose=False)
session = onnxruntime.InferenceSession("net.onnx")
x = np.random.default_rng(0).random((8, 16, 16, 3)).astype(np.float32)
(y,) = session.run(None, {session.get_inputs()[0].name: x})
assert np.allclose(y, model.predict(x, verbose=0), atol=1e-5)
