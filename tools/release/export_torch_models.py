"""Export small models from PyTorch, with inputs and PyTorch's own results: data for the tests of nn_ext_onnx.

    /path/to/venv/bin/python tools/release/export_torch_models.py extensions/nn_ext_onnx/tests/data/torch

It needs torch==2.13.0, onnx and onnxscript; the project depends on no PyTorch. Each model is a file, the arrays of all models
are in values.npz: ``<model>/<case>/<input>`` and ``<model>/<case>/result<n>``. Models with dynamic axes have cases of several
lengths.
"""

import contextlib
import io
import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import torch
from torch import Tensor, nn
from torch.nn import functional

Draw = Callable[..., Tensor]


@dataclass
class Sample:
    """A model, and how to call it.

    Attributes:
        make: the model in training mode; its running statistics are moved before it is exported.
        inputs: by name, what `shape` is for a length of the dynamic axes.
        lengths: of the dynamic axes, one for each case; the first one is exported. None: all axes are fixed.
        dynamic: by input, the axes that are dynamic and their names.
    """

    make: Callable[[], nn.Module]
    inputs: Callable[[int, torch.Generator], dict[str, Tensor]]
    lengths: tuple[int, ...] = (2,)
    dynamic: Mapping[str, Mapping[int, str]] = field(default_factory=dict)


def drawn(*shape: int) -> Callable[[int, torch.Generator], dict[str, Tensor]]:
    """Return an input x of float32; a length of -1 is that of the case."""
    return lambda n, rng: {"x": torch.randn([n if dim == -1 else dim for dim in shape], generator=rng)}


def tokens(count: int, steps: int = -1) -> Callable[[int, torch.Generator], dict[str, Tensor]]:
    """Two rows of whole numbers below `count`."""
    return lambda n, rng: {"x": torch.randint(count, (2, n if steps == -1 else steps), generator=rng)}


class Residual(nn.Module):
    """Two convolutions with batch normalization, and a way around them."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False), nn.BatchNorm2d(n_out), nn.ReLU(),
            nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False), nn.BatchNorm2d(n_out),
        )  # fmt: skip
        self.short = nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out))

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.body(x) + self.short(x))


class Inverted(nn.Module):
    """An inverted residual with squeeze and excitation."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.wide = nn.Sequential(nn.Conv2d(n, 3 * n, 1), nn.BatchNorm2d(3 * n), nn.Hardswish())
        self.deep = nn.Sequential(nn.Conv2d(3 * n, 3 * n, 3, 1, 1, groups=3 * n), nn.BatchNorm2d(3 * n), nn.ReLU6())
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(3 * n, n, 1), nn.SiLU(), nn.Conv2d(n, 3 * n, 1))
        self.narrow = nn.Sequential(nn.Conv2d(3 * n, n, 1), nn.BatchNorm2d(n))

    def forward(self, x: Tensor) -> Tensor:
        h = self.deep(self.wide(x))
        return x + self.narrow(h * functional.hardsigmoid(self.gate(h)))


class Recurrent(nn.Module):
    """A recurrent layer, and an affine one for its last step."""

    def __init__(self, layer: nn.Module, width: int) -> None:
        super().__init__()
        self.layer, self.out = layer, nn.Linear(width, 3)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        steps, _ = self.layer(x)
        return self.out(steps[:, -1]), steps


class Encoder(nn.Module):
    """Words, places, and a transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(20, 16), nn.Embedding(12, 16)
        layer = nn.TransformerEncoderLayer(16, 4, 32, activation="gelu", batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, nn.LayerNorm(16), enable_nested_tensor=False)
        self.out = nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        h = self.words(x) + self.places(torch.arange(x.shape[1], device=x.device))
        return self.out(self.layers(h).mean(1))


class Decoder(nn.Module):
    """One block with a causal mask, and scores of the next word."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.mixed, self.out = nn.Embedding(20, 16), nn.Linear(16, 48), nn.Linear(16, 16)
        self.norms = nn.ModuleList([nn.LayerNorm(16), nn.LayerNorm(16)])
        self.wide, self.narrow = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x: Tensor) -> Tensor:
        h = self.words(x)
        parts = self.mixed(self.norms[0](h)).chunk(3, dim=-1)
        q, k, v = (part.unflatten(-1, (2, 8)).transpose(1, 2) for part in parts)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = h + self.out(mixed.transpose(1, 2).flatten(2))
        h = h + self.narrow(functional.gelu(self.wide(self.norms[1](h)), approximate="tanh"))
        return h @ self.words.weight.T


class Hourglass(nn.Module):
    """Down and up again, with a way around."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.down = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 8, 3, stride=2, padding=1)
        self.up, self.last = nn.ConvTranspose2d(8, 4, 2, stride=2), nn.Conv2d(12, 2, 3, padding=1, padding_mode="reflect")

    def forward(self, x: Tensor) -> Tensor:
        near = functional.leaky_relu(self.first(x), 0.1)
        far = functional.elu(self.down(near))
        enlarged = functional.interpolate(far[:, :4], scale_factor=2.0, mode="bilinear", align_corners=False)
        return self.last(torch.cat([near, self.up(far), enlarged], 1))


class Patches(nn.Module):
    """A vision transformer with a token for the class."""

    def __init__(self) -> None:
        super().__init__()
        self.cut, self.token = nn.Conv2d(3, 16, 4, 4), nn.Parameter(torch.randn(1, 1, 16))
        self.places = nn.Parameter(torch.randn(1, 5, 16))
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, activation="gelu", batch_first=True)
        self.out = nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        h = self.cut(x).flatten(2).transpose(1, 2)
        h = torch.cat([self.token.expand(x.shape[0], -1, -1), h], 1) + self.places
        return self.out(self.layer(h)[:, 0])


class Arithmetic(nn.Module):
    """Functions that models use beside layers."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        spread = (x - x.mean(-1, keepdim=True)) / (x.var(-1, unbiased=False, keepdim=True) + 1e-3).sqrt()
        top, places = torch.topk(x, 2, dim=-1)
        chosen = torch.where(x > 0, x.exp(), x.abs().log1p()).clamp(0.1, 2.0).cumsum(1)
        rolled = torch.roll(spread, 1, 1) + torch.einsum("nij,nkj->nik", x, x).softmax(-1) @ x
        return chosen, rolled, top + torch.gather(x, -1, places).flip(-1)


def convolutions() -> nn.Module:
    """Group, instance and batch normalization between convolutions, and all kinds of pooling."""
    return nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1), nn.GroupNorm(3, 6), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
        nn.Conv2d(6, 8, 3, dilation=2, padding=2), nn.BatchNorm2d(8), nn.Sigmoid(), nn.AvgPool2d(2, ceil_mode=True),
        nn.Conv2d(8, 4, 1), nn.InstanceNorm2d(4, affine=True), nn.PReLU(4), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(4, 3), nn.Softmax(-1),
    )  # fmt: skip


def signals() -> nn.Module:
    """Convolutions over time, dilated, and a transposed one."""
    return nn.Sequential(
        nn.Conv1d(2, 4, 3, padding=1), nn.Tanh(), nn.Conv1d(4, 4, 3, dilation=2, padding=2, groups=2), nn.Softplus(),
        nn.ConvTranspose1d(4, 2, 4, 2, 1), nn.LogSoftmax(1),
    )  # fmt: skip


def dense() -> nn.Module:
    """Affine layers with normalization."""
    return nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Mish(), nn.Dropout(), nn.Linear(8, 3), nn.LayerNorm(3))


def residuals() -> nn.Module:
    """Return a residual network of width 4 and 8."""
    first = [nn.Conv2d(3, 4, 3, 1, 1, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*first, Residual(4, 4, 1), Residual(4, 8, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5))


def enlarged() -> nn.Module:
    """Pixels moved from channels into space."""
    first = nn.Conv2d(3, 8, 3, padding=1)
    return nn.Sequential(first, nn.GELU(), nn.PixelShuffle(2), nn.Upsample(scale_factor=2), nn.Conv2d(2, 1, 3))


BATCH = {"x": {0: "n"}}
STEPS = {"x": {1: "steps"}}
SAMPLES: dict[str, Sample] = {
    "dense": Sample(dense, drawn(-1, 5), (4, 1, 7), BATCH),
    "convolutions": Sample(convolutions, drawn(-1, 3, 9, 9), (2, 5), BATCH),
    "residuals": Sample(residuals, drawn(-1, 3, 12, 12), (2, 3), BATCH),
    "inverted_residual": Sample(lambda: Inverted(4), drawn(2, 4, 6, 6)),
    "lstm": Sample(lambda: Recurrent(nn.LSTM(4, 5, 2, batch_first=True, bidirectional=True), 10), drawn(2, 6, 4)),
    "gru": Sample(lambda: Recurrent(nn.GRU(4, 5, batch_first=True), 5), drawn(-1, 6, 4), (2, 3), BATCH),
    "rnn": Sample(lambda: Recurrent(nn.RNN(4, 5, batch_first=True, bidirectional=True), 10), drawn(3, 6, 4)),
    "encoder": Sample(Encoder, tokens(20), (7, 4, 11), STEPS),
    "decoder": Sample(Decoder, tokens(20), (6, 9), STEPS),
    "hourglass": Sample(Hourglass, drawn(2, 3, 8, 8)),
    "patches": Sample(Patches, drawn(-1, 3, 8, 8), (2, 3), BATCH),
    "signals": Sample(signals, drawn(2, 2, -1), (10, 15), {"x": {2: "steps"}}),
    "enlarged": Sample(enlarged, drawn(2, 3, 4, 5)),
    "arithmetic": Sample(Arithmetic, drawn(2, 4, 5)),
}


def moved(model: nn.Module, rng: torch.Generator) -> nn.Module:
    """Return the model in evaluation mode, with running statistics and scales that are not those of a new one."""
    with torch.no_grad():
        for name, values in [*model.named_parameters(), *model.named_buffers()]:
            if name.endswith("running_var"):
                values.copy_(torch.rand(values.shape, generator=rng) + 0.5)
            elif values.dim() == 1:
                values.add_(0.3 * torch.randn(values.shape, generator=rng))
    return model.eval()


def without_origin(path: Path) -> None:
    """Take out of a file where in the program each node comes from, which is most of it and names folders of this machine."""
    model = onnx.load(path)
    graphs = [model.graph, *model.functions]
    for part in [model, *graphs, *(value for graph in graphs for value in (*graph.node, *graph.value_info))]:
        del part.metadata_props[:]
        part.doc_string = ""
    for entry in [*model.graph.input, *model.graph.output, *model.graph.initializer]:
        del entry.metadata_props[:]
    onnx.save(model, path)


def main(folder: Path) -> None:
    """Write all models and values."""
    folder.mkdir(parents=True, exist_ok=True)
    logging.disable(logging.WARNING)
    kept: dict[str, np.ndarray] = {}
    for number, (name, sample) in enumerate(SAMPLES.items()):
        torch.manual_seed(number)
        rng = torch.Generator().manual_seed(number)
        model = moved(sample.make(), rng)
        first = sample.inputs(sample.lengths[0], rng)
        shapes = {key: {axis: torch.export.Dim(text) for axis, text in axes.items()} for key, axes in sample.dynamic.items()}
        arguments = tuple(first.values())
        with contextlib.redirect_stdout(io.StringIO()):
            torch.onnx.export(
                model, arguments, folder / f"{name}.onnx", dynamo=True, external_data=False, input_names=list(first),
                dynamic_shapes=tuple(shapes.get(key) for key in first) if shapes else None, verbose=False,
            )  # fmt: skip
        without_origin(folder / f"{name}.onnx")
        for case, length in enumerate(sample.lengths):
            given = first if case == 0 else sample.inputs(length, rng)
            with torch.no_grad():
                found = model(*given.values())
            for key, values in given.items():
                kept[f"{name}/{case}/{key}"] = values.numpy()
            for place, values in enumerate(found if isinstance(found, tuple) else (found,)):
                kept[f"{name}/{case}/result{place}"] = values.numpy()
        sys.stdout.write(f"{name}: {(folder / f'{name}.onnx').stat().st_size} bytes\n")
    np.savez_compressed(folder / "values.npz", **kept)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
