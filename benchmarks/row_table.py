"""The table of `benchmarks.rows`: functions on the shapes, axes and dtypes with which networks call them.

A row has an expression for us and one for PyTorch. They are texts over the arrays `x`, `y`, `z`, so that a process without
PyTorch can read the table too.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Shape = tuple[int, ...]

#: Feature maps (batch, channels, height, width) of ResNet, MobileNet, EfficientNet, U-Net and small networks.
IMAGES: tuple[Shape, ...] = (
    *((1, 3, 224, 224), (1, 64, 112, 112), (1, 64, 56, 56), (1, 256, 56, 56), (1, 512, 28, 28), (1, 2048, 7, 7)),
    *((8, 64, 56, 56), (8, 128, 28, 28), (8, 256, 14, 14), (8, 512, 7, 7), (4, 32, 112, 112), (4, 144, 56, 56)),
    *((16, 192, 28, 28), (32, 16, 32, 32), (32, 64, 16, 16), (64, 1, 28, 28), (64, 8, 14, 14), (128, 32, 8, 8)),
)
#: Rows of features (samples, features) of dense networks, classifiers, recommenders and agents.
MATRICES: tuple[Shape, ...] = (
    *((1, 10), (1, 1000), (4, 64), (16, 10), (32, 100), (32, 784), (64, 256), (64, 4096), (128, 10), (128, 512)),
    *((256, 64), (256, 1000), (512, 2048), (1024, 128), (2048, 26), (4096, 13), (4096, 256), (10000, 8)),
)
#: Sequences (batch, length, features) of transformers, recurrent networks and speech.
SEQUENCES: tuple[Shape, ...] = (
    *((1, 1, 768), (1, 16, 512), (1, 128, 768), (1, 512, 768), (2, 1024, 256), (8, 128, 512), (8, 64, 768)),
    *((16, 50, 300), (16, 128, 128), (32, 20, 64), (32, 256, 32), (64, 35, 200), (4, 400, 80), (2, 1000, 40)),
)
#: Scores of attention (batch, heads, queries, keys).
SCORES: tuple[Shape, ...] = (
    (1, 12, 1, 128),
    (1, 12, 128, 128),
    (8, 8, 64, 64),
    (2, 12, 256, 256),
    (4, 4, 100, 20),
    (16, 2, 32, 32),
)
#: Signals (batch, channels, length) and volumes (batch, channels, depth, height, width).
SIGNALS: tuple[Shape, ...] = ((1, 1, 16000), (4, 64, 1000), (8, 32, 512), (16, 128, 100), (2, 256, 400))
VOLUMES: tuple[Shape, ...] = ((1, 1, 32, 32, 32), (1, 16, 16, 32, 32), (2, 32, 8, 16, 16))
ALL = (*IMAGES, *MATRICES, *SEQUENCES, *SCORES, *SIGNALS, *VOLUMES)


@dataclass(frozen=True, slots=True)
class Row:
    """A function on arrays.

    Attributes:
        name: The function, with its settings.
        ours: An expression over `F` and `x`, `y`, `z`.
        peer: The same over `torch`, `T` (``torch.nn.functional``).
        shapes: Of `x`, `y`, `z`.
        dtype: float32 or float64.
        kind: Rows of one kind do similar work for an element, or a product of elements.
        work: Elements, or products of elements.
        high: Where `x` holds whole numbers, the number that they are below.
        backward: Whether gradients are computed too.
    """

    name: str
    ours: str
    peer: str
    shapes: tuple[Shape, ...]
    dtype: str
    kind: str
    work: int
    high: int | None = None
    backward: bool = True

    def __str__(self) -> str:
        shapes = " ".join("x".join(map(str, shape)) or "()" for shape in self.shapes)
        return f"{self.name} {shapes} {self.dtype}{'' if self.backward else ' forward'}"


#: Element-wise functions of one array: ours, and PyTorch's.
UNARY = {
    **{name: f"torch.{name}(x)" for name in ("tanh", "sigmoid", "exp", "abs", "sin", "cos", "floor", "round", "sign", "atan")},
    **{name: f"T.{name}(x)" for name in ("relu", "elu", "selu", "mish", "softplus", "softsign", "relu6")},
    "gelu": "T.gelu(x, approximate='tanh')",
    "swish": "T.silu(x)",
    "leaky_relu": "T.leaky_relu(x, 0.1)",
    "log_sigmoid": "T.logsigmoid(x)",
    "hard_tanh": "T.hardtanh(x)",
}
#: Those that only compare and multiply.
CHEAP = frozenset({"abs", "floor", "round", "sign", "relu", "relu6", "leaky_relu", "hard_tanh"})
#: Expressions that read the same for both.
EXPRESSIONS = ("x * 2", "x + 1", "1 - x", "x / 3", "-x", "x ** 2", "x * x + x", "(x * 2 + 1) * x", "1 / (x * x + 1)")
PAIRS = ("x + y", "x - y", "x * y", "x / (y * y + 1)", "x * y + x", "(x - y) ** 2")
REDUCTIONS = {"sum": "sum", "mean": "mean", "max": "amax", "min": "amin"}


def rows() -> list[Row]:
    """Return every row of the table, each once."""
    parts = (
        _elementwise,
        _broadcast,
        _reductions,
        _along,
        _moves,
        _products,
        _convolutions,
        _pooling,
        _norms,
        _losses,
        _others,
    )
    return list({str(row): row for part in parts for row in part()}.values())


def _row(
    name: str, ours: str, peer: str, shapes: Sequence[Shape], kind: str, dtype: str = "float32", work: int = 0, **more: object
) -> Row:
    return Row(name, ours, peer, tuple(shapes), dtype, kind, work or max(map(math.prod, shapes)), **more)  # type: ignore[arg-type]


def _elementwise() -> Iterator[Row]:
    for shape, dtype in [*((shape, "float32") for shape in ALL[::3]), *((shape, "float64") for shape in ALL[1::8])]:
        for name, peer in UNARY.items():
            yield _row(name, f"F.{name}(x)", peer, [shape], "element-wise" if name in CHEAP else "transcendental", dtype)
        for text in EXPRESSIONS:
            yield _row(text, text, text, [shape], "element-wise", dtype)
        for text in PAIRS:
            yield _row(text, text, text, [shape, shape], "element-wise", dtype)


def _broadcast() -> Iterator[Row]:
    """Yield arrays of one place along some axes: biases, masks, scales of channels and samples."""
    for shape in (*IMAGES[::2], *MATRICES[::2], *SEQUENCES[::2], *SCORES):
        last = len(shape) - 1
        for kept in {(last,), (0,), (1,), (0, 1)}:
            small = tuple(length if axis in kept else 1 for axis, length in enumerate(shape))
            for text in ("x + y", "x * y + x"):
                yield _row(text, text, text, [shape, small], "broadcast")


def _reductions() -> Iterator[Row]:
    for shape in (*IMAGES[::2], *MATRICES, *SEQUENCES, *SCORES[::2]):
        axes: list[Shape] = [(axis,) for axis in range(len(shape))]
        axes += [tuple(range(len(shape))), *([(2, 3), (0, 2, 3)] if len(shape) == 4 else [])]
        for (name, peer), over in itertools.product(REDUCTIONS.items(), axes):
            dtype = "float64" if name == "sum" and len(over) == 1 else "float32"
            kind = "extreme" if name in ("max", "min") else "reduction"  # the gradient of an extreme is a search
            yield _row(f"{name} over {over}", f"F.{name}(x, axis={over})", f"x.{peer}({over})", [shape], kind, dtype)


def _along() -> Iterator[Row]:
    """Functions along one axis."""
    for shape in (*MATRICES, *SEQUENCES, *SCORES):
        last = len(shape) - 1
        for axis in {last, max(last - 1, 0)}:
            for dtype in ("float32", "float64"):
                yield _row(f"softmax {axis}", f"F.softmax(x, axis={axis})", f"x.softmax({axis})", [shape], "softmax", dtype)
            yield _row(f"log_softmax {axis}", f"F.log_softmax(x, axis={axis})", f"x.log_softmax({axis})", [shape], "softmax")
            yield _row(f"cumsum {axis}", f"F.cumsum(x, axis={axis})", f"x.cumsum({axis})", [shape], "along")
            yield _row(f"logsumexp {axis}", f"F.logsumexp(x, axis={axis})", f"x.logsumexp({axis})", [shape], "softmax")
        yield _row(f"sort {last}", f"F.sort(x, axis={last})", f"x.sort({last})[0]", [shape], "sort")


def _moves() -> Iterator[Row]:
    """Functions that only move elements; times two, as results that nobody changes may be views."""
    for shape in (*IMAGES[::3], *SEQUENCES, *SCORES):
        order = (0, *range(2, len(shape)), 1)
        yield _row(f"transpose {order}", f"F.transpose(x, {order}) * 2", f"x.permute({order}) * 2", [shape], "move")
        for axis in (1, len(shape) - 1):
            half, end = shape[axis] // 2, shape[axis]
            cut = ", ".join([":"] * axis)
            text = f"x[{cut}, {half}:{end}] * 2"
            yield _row(f"slice {axis}", text, text, [shape], "move")
            yield _row(
                f"concatenate {axis}",
                f"F.concatenate(x, y, axis={axis})",
                f"torch.cat([x, y], {axis})",
                [shape, shape],
                "move",
            )
        yield _row("reshape", "F.reshape(x, (-1,)) * 2", "x.reshape(-1) * 2", [shape], "move")
    for shape in IMAGES[::2]:
        for mode in ("constant", "reflect"):
            yield _row(
                f"pad {mode}",
                f"F.pad(x, (2, 2, 2, 2), mode={mode!r})",
                f"T.pad(x, (2, 2, 2, 2), mode={mode!r})",
                [shape],
                "move",
            )


def _products() -> Iterator[Row]:
    sizes = [(1, 768, 768), (1, 768, 3072), (1, 2048, 1000), (16, 64, 64), (32, 784, 256), (64, 256, 10), (64, 1024, 1024)]
    sizes += [
        (128, 512, 512),
        (256, 13, 64),
        (256, 768, 2304),
        (512, 768, 768),
        (1024, 64, 1),
        (2048, 128, 128),
        (4096, 32, 16),
    ]
    for (m, k, n), dtype in itertools.product(sizes, ("float32", "float64")):
        work = m * k * n
        yield _row("affine", "F.affine(x, y, z)", "torch.addmm(z, x, y)", [(m, k), (k, n), (n,)], "product", dtype, work)
    for batch, m, k, n in [
        (12, 128, 64, 128),
        (12, 128, 128, 64),
        (96, 64, 32, 64),
        (8, 256, 64, 256),
        (64, 16, 16, 16),
        (12, 1, 64, 128),
    ]:
        shapes, work = [(batch, m, k), (batch, k, n)], batch * m * k * n
        yield _row("batch_matmul", "F.batch_matmul(x, y)", "x @ y", shapes, "product", work=work)
        shapes = [(batch, m, k), (batch, n, k)]
        yield _row("batch_matmul t", "F.batch_matmul(x, y, transpose_b=True)", "x @ y.mT", shapes, "product", work=work)


def _convolutions() -> Iterator[Row]:
    for channels, size, filters, kernel, stride, dilation, group in [
        *((3, 224, 64, 7, 2, 1, 1), (3, 224, 32, 3, 2, 1, 1), (64, 56, 64, 3, 1, 1, 1), (64, 56, 256, 1, 1, 1, 1)),
        *((256, 14, 256, 3, 1, 1, 1), (512, 7, 512, 3, 1, 1, 1), (1, 28, 16, 5, 1, 1, 1), (16, 14, 16, 5, 1, 1, 1)),
        *((64, 40, 64, 3, 1, 6, 1), (64, 40, 64, 3, 1, 12, 1), (64, 40, 64, 3, 1, 18, 1), (64, 40, 64, 3, 2, 2, 1)),
        *((3, 224, 192, 16, 16, 1, 1), (3, 32, 64, 4, 4, 1, 1), (144, 56, 144, 3, 1, 1, 144), (192, 28, 192, 3, 2, 1, 192)),
        *((32, 28, 32, 31, 1, 1, 32), (96, 14, 96, 7, 1, 1, 96), (128, 28, 128, 3, 1, 1, 32), (64, 28, 64, 3, 1, 1, 4)),
        *((4, 84, 32, 8, 4, 1, 1), (32, 20, 64, 4, 2, 1, 1), (64, 9, 64, 3, 1, 1, 1), (8, 12, 16, 3, 1, 1, 1)),
    ]:
        pad = dilation * (kernel - 1) // 2 if stride != kernel else 0
        out = (size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
        shapes = [(2, channels, size, size), (filters, channels // group, kernel, kernel)]
        work = 2 * filters * channels // group * kernel**2 * out**2
        pairs = f"pad=({pad}, {pad}), stride=({stride}, {stride}), dilation=({dilation}, {dilation})"
        ours = f"F.convolution(x, y, {pairs}, group={group})"
        peer = f"T.conv2d(x, y, padding={pad}, stride={stride}, dilation={dilation}, groups={group})"
        name = f"convolution s{stride} d{dilation} g{group}"
        for before in ("", "tanh "):  # of an array as given, and of a result
            with_before = (ours.replace("(x", "(F.tanh(x)"), peer.replace("(x", "(torch.tanh(x)")) if before else (ours, peer)
            yield _row(before + name, *with_before, shapes, "depthwise" if group > 4 else "convolution", work=work)
        if work < 1 << 27:
            yield _row(name, ours, peer, shapes, "depthwise" if group > 4 else "convolution", "float64", work)
    for channels, length, kernel, dilation in [
        (64, 1024, 2, 1),
        (64, 1024, 2, 32),
        (32, 512, 15, 1),
        (256, 200, 3, 1),
        (1, 4000, 401, 1),
    ]:
        pad = dilation * (kernel - 1) // 2
        signals, work = [(2, channels, length), (64, channels, kernel)], 2 * 64 * channels * kernel * length
        ours = f"F.convolution(x, y, pad=({pad},), dilation=({dilation},))"
        yield _row(
            f"convolution d{dilation}",
            ours,
            f"T.conv1d(x, y, padding={pad}, dilation={dilation})",
            signals,
            "convolution",
            work=work,
        )
    for channels, size, filters in [(64, 4, 128), (128, 8, 64), (64, 16, 32), (32, 32, 3)]:
        shapes, work = [(4, channels, size, size), (channels, filters, 4, 4)], 4 * channels * filters * 16 * size * size
        ours, peer = "F.deconvolution(x, y, pad=(1, 1), stride=(2, 2))", "T.conv_transpose2d(x, y, padding=1, stride=2)"
        yield _row("deconvolution", ours, peer, shapes, "convolution", work=work)


def _pooling() -> Iterator[Row]:
    for shape, kernel in itertools.product(IMAGES[1:], (2, 3)):
        for name, peer in (("max_pooling", "max_pool2d"), ("average_pooling", "avg_pool2d")):
            ours = f"F.{name}(x, ({kernel}, {kernel}), stride=(2, 2))"
            yield _row(f"{name} {kernel}", ours, f"T.{peer}(x, {kernel}, 2)", [shape], "pooling")
    for shape in IMAGES[1:]:
        yield _row(
            "global_average_pooling", "F.global_average_pooling(x)", "x.mean((2, 3), keepdim=True)", [shape], "reduction"
        )


def _norms() -> Iterator[Row]:
    for shape in (*MATRICES, *SEQUENCES):
        n = shape[-1]
        parameters = [(1,) * (len(shape) - 1) + (n,)] * 2
        batch = tuple(range(len(shape) - 1))
        for dtype in ("float32", "float64"):
            peer = f"T.layer_norm(x, ({n},), z.reshape(-1), y.reshape(-1))"
            yield _row(
                "layer_normalization",
                f"F.layer_normalization(x, y, z, batch_axis={batch})",
                peer,
                [shape, *parameters],
                "norm",
                dtype,
            )
    for shape in IMAGES[1:]:
        c = shape[1]
        parameters = [(1, c, 1, 1)] * 2
        if c % 8 == 0:
            peer = "T.group_norm(x, 8, z.reshape(-1), y.reshape(-1))"
            yield _row("group_normalization", "F.group_normalization(x, y, z, 8)", peer, [shape, *parameters], "norm")
        peer = "T.instance_norm(x, weight=z.reshape(-1), bias=y.reshape(-1))"
        yield _row("instance_normalization", "F.instance_normalization(x, y, z)", peer, [shape, *parameters], "norm")
        peer = "T.batch_norm(x, None, None, z.reshape(-1), y.reshape(-1), training=True)"
        ours = "F.batch_normalization(x, y, z, None, None)"
        for dtype in ("float32", "float64"):
            yield _row("batch_normalization", ours, peer, [shape, *parameters], "norm", dtype)


def _losses() -> Iterator[Row]:
    for shape in (*MATRICES, *SEQUENCES[:6]):
        pairs = [shape, shape]
        for dtype in ("float32", "float64"):
            yield _row("squared_error", "F.mean(F.squared_error(x, y))", "T.mse_loss(x, y)", pairs, "loss", dtype)
        yield _row("huber_loss", "F.mean(F.huber_loss(x, y))", "2 * T.huber_loss(x, y)", pairs, "loss")
        ours, peer = "F.mean(F.sigmoid_cross_entropy(x, F.sigmoid(y)))", "T.binary_cross_entropy_with_logits(x, y.sigmoid())"
        yield _row("sigmoid_cross_entropy", ours, peer, pairs, "loss")
    for rows_, classes in MATRICES:
        for dtype in ("float32", "float64"):
            ours, peer = "F.mean(F.softmax_cross_entropy(y, x))", "T.cross_entropy(y, x[:, 0])"
            yield _row("softmax_cross_entropy", ours, peer, [(rows_, 1), (rows_, classes)], "loss", dtype, high=classes)


def _others() -> Iterator[Row]:
    for table, count in itertools.product([(1000, 16), (2000, 32), (30000, 128), (50000, 64)], [(128,), (8, 64), (32, 128)]):
        n = math.prod(count) * table[1]
        yield _row(
            "embed", "F.embed(x, y)", "T.embedding(x, y)", [count, table], "embed", high=table[0], work=n + math.prod(table)
        )
    for n in (1000, 10000, 100000):
        for high in (10, 1000, 100000):
            yield _row("unique", "F.unique(x)", "torch.unique(x)", [(n,)], "sort", high=high, backward=False)
    for shape in MATRICES:
        yield _row("dropout", "F.dropout(x, 0.5)", "T.dropout(x, 0.5)", [shape], "element-wise")
        k = min(5, shape[1])
        yield _row("top_k", f"F.top_k_data(x, {k})", f"x.topk({k})[0]", [shape], "sort", backward=False)
