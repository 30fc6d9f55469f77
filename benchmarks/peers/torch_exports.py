"""ResNet-18, MobileNetV2 and a small BERT with random weights, exported by PyTorch, with an input and PyTorch's result.

It runs in an interpreter that has torch, onnx and onnxscript: ``python torch_exports.py FOLDER``.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

WORDS, STEPS, WIDTH = 30522, 128, 256


def unit(n_in, n_out, kernel, stride=1, groups=1, activation=None):
    """Return a convolution without bias, a batch normalization and an activation, as a list."""
    convolution = nn.Conv2d(n_in, n_out, kernel, stride, kernel // 2, groups=groups, bias=False)
    return [convolution, nn.BatchNorm2d(n_out), *([] if activation is None else [activation])]


class Residual(nn.Module):
    """Layers, and a way around them."""

    def __init__(self, body, short=None, is_rectified=False):
        super().__init__()
        self.body, self.short, self.is_rectified = body, short, is_rectified

    def forward(self, x):
        y = self.body(x) + (x if self.short is None else self.short(x))
        return functional.relu(y) if self.is_rectified else y


def classes(layers, n):
    """Return the layers, a mean over the image and 1000 scores."""
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(n, 1000))


def resnet18():
    """Eight residuals of two convolutions."""
    layers, n = [*unit(3, 64, 7, 2, activation=nn.ReLU()), nn.MaxPool2d(3, 2, 1)], 64
    for n_out, first in ((64, 1), (128, 2), (256, 2), (512, 2)):
        for stride in (first, 1):
            body = nn.Sequential(*unit(n, n_out, 3, stride, activation=nn.ReLU()), *unit(n_out, n_out, 3))
            short = None if n == n_out else nn.Sequential(*unit(n, n_out, 1, stride))
            layers.append(Residual(body, short, is_rectified=True))
            n = n_out
    return classes(layers, n)


def mobilenet_v2():
    """Inverted residuals with depthwise convolutions."""
    layers, n = unit(3, 32, 3, 2, activation=nn.ReLU6()), 32
    for wider, n_out, count, first in (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
    ):  # fmt: skip
        for stride in (first, *([1] * (count - 1))):
            wide = n * wider
            parts = unit(n, wide, 1, activation=nn.ReLU6()) if wider > 1 else []
            parts += [*unit(wide, wide, 3, stride, wide, nn.ReLU6()), *unit(wide, n_out, 1)]
            body = nn.Sequential(*parts)
            layers.append(Residual(body) if n == n_out and stride == 1 else body)
            n = n_out
    return classes([*layers, *unit(n, 1280, 1, activation=nn.ReLU6())], 1280)


class Bert(nn.Module):
    """Four layers of width 256."""

    def __init__(self):
        super().__init__()
        self.words, self.places, self.norm = nn.Embedding(WORDS, WIDTH), nn.Embedding(STEPS, WIDTH), nn.LayerNorm(WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, activation="gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)

    def forward(self, x):
        return self.layers(self.norm(self.words(x) + self.places(torch.arange(STEPS))))


def main(folder):
    """Write `<name>.onnx` and `<name>.npz` of each model."""
    torch.manual_seed(0)
    image = torch.randn(1, 3, 224, 224)
    for make, x in ((resnet18, image), (mobilenet_v2, image), (Bert, torch.randint(WORDS, (1, STEPS)))):
        model, name = make().eval(), make.__name__.lower()
        torch.onnx.export(
            model, (x,), folder / f"{name}.onnx", dynamo=True, external_data=False, input_names=["x"], verbose=False
        )
        with torch.no_grad():
            np.savez(folder / f"{name}.npz", x=x.numpy(), y=model(x).numpy())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
