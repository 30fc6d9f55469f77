"""Nets of Caffe that tests build as messages."""

import zlib

import numpy as np
from google.protobuf import text_format

from nn_ext_caffe.schema import message


def drawn(*shape):
    """Return numbers around 0 that depend on the shape only."""
    return np.random.default_rng(zlib.crc32(repr(shape).encode())).normal(size=shape).astype(np.float32)


def blob(array):
    """Return the message of an array."""
    made = message("BlobProto", data=[np.asarray(array, "<f4").tobytes()])
    made.shape.dim.extend(array.shape)
    return made


def net(text, weights=None):
    """Return the network of a text, with weights by the names of layers."""
    made = message("NetParameter")
    text_format.Merge(text, made)
    for layer in (*made.layer, *made.layers):
        layer.blobs.extend(map(blob, (weights or {}).get(layer.name, ())))
    return made


def written(folder, text, weights=None):
    """Return the paths of a .prototxt and of a .caffemodel file of a network."""
    (folder / "net.prototxt").write_text(text)
    (folder / "net.caffemodel").write_bytes(net(text, weights).SerializeToString())
    return folder / "net.prototxt", folder / "net.caffemodel"


def text_of(layers, shape, name="x"):
    """Return the text of a network with one input."""
    lengths = " ".join(f"dim: {n}" for n in shape)
    return f'name: "net" layer {{ name: "in" type: "Input" top: "{name}" input_param {{ shape {{ {lengths} }} }} }} {layers}'


def layer(kind, settings="", bottoms=("x",), tops=("y",), name="one"):
    """Return the text of a layer."""
    lines = [f'name: "{name}" type: "{kind}"', *(f'bottom: "{b}"' for b in bottoms), *(f'top: "{t}"' for t in tops), settings]
    return "layer { " + " ".join(lines) + " }"


#: Layers with one input that OpenCV reads, too: kind, settings, shape of the input, weights.
LAYERS = {
    "convolution": (
        "Convolution", "convolution_param { num_output: 4 kernel_size: 3 pad: 1 stride: 2 group: 2 }", (2, 4, 7, 6),
        [drawn(4, 2, 3, 3), drawn(4)],
    ),
    "convolution_sides": (
        "Convolution",
        "convolution_param { num_output: 3 kernel_h: 3 kernel_w: 1 pad_h: 2 pad_w: 0 dilation: 2 bias_term: false }",
        (1, 2, 7, 6), [drawn(3, 2, 3, 1)],
    ),
    "deconvolution": (
        "Deconvolution", "convolution_param { num_output: 4 kernel_size: 4 pad: 1 stride: 2 group: 2 }", (1, 6, 3, 5),
        [drawn(6, 2, 4, 4), drawn(4)],
    ),
    "inner_product": ("InnerProduct", "inner_product_param { num_output: 5 }", (2, 3, 2, 2), [drawn(5, 12), drawn(5)]),
    "max_pooling": ("Pooling", "pooling_param { kernel_size: 3 stride: 2 pad: 1 }", (1, 2, 6, 7), []),
    "max_pooling_beyond": ("Pooling", "pooling_param { kernel_size: 3 stride: 2 }", (1, 2, 6, 8), []),
    "average_pooling": ("Pooling", "pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 }", (1, 2, 6, 7), []),
    "global_pooling": ("Pooling", "pooling_param { pool: AVE global_pooling: true }", (1, 2, 6, 7), []),
    "lrn": ("LRN", "lrn_param { local_size: 3 alpha: 0.5 beta: 0.75 }", (2, 5, 3, 2), []),
    "lrn_within": ("LRN", "lrn_param { local_size: 3 alpha: 0.5 norm_region: WITHIN_CHANNEL }", (2, 3, 5, 4), []),
    "batch_norm": (
        "BatchNorm", "batch_norm_param { eps: 0.001 }", (2, 3, 4, 5), [drawn(3), abs(drawn(3)) + 1, np.float32([2.0])],
    ),
    "scale": ("Scale", "scale_param { bias_term: true }", (2, 3, 4, 5), [drawn(3), drawn(3)]),
    "prelu": ("PReLU", "", (2, 3, 4, 5), [drawn(3)]),
    "leaky_relu": ("ReLU", "relu_param { negative_slope: 0.2 }", (2, 3, 4, 5), []),
    "elu": ("ELU", "", (2, 3, 4, 5), []),
    "bnll": ("BNLL", "", (2, 3, 4, 5), []),
    "power": ("Power", "power_param { power: 2 scale: 0.5 shift: 0.3 }", (2, 3, 4, 5), []),
    "sigmoid": ("Sigmoid", "", (2, 3), []),
    "tanh": ("TanH", "", (2, 3), []),
    "absolute": ("AbsVal", "", (2, 3), []),
    "softmax": ("Softmax", "", (2, 3, 4, 5), []),
    "reshape": ("Reshape", "reshape_param { shape { dim: 0 dim: -1 dim: 5 } }", (2, 3, 4, 5), []),
    "flatten": ("Flatten", "", (2, 3, 4, 5), []),
    "dropout": ("Dropout", "dropout_param { dropout_ratio: 0.3 }", (2, 3), []),
}  # fmt: skip
