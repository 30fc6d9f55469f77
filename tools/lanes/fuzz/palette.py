"""The calls that random programs are made of: each entry draws one on values that exist already."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

import nn_core.testing.samples  # noqa: F401  # fills the tables
from nn_core.operators.spec.builtin import SPECS
from nn_core.operators.spec.model import WHOLE_DTYPES, FunctionSpec
from nn_core.testing.samples.registry import Sample, numbers_of, samples_of

from .program import Step

if TYPE_CHECKING:
    from .generate import Maker

#: Adds steps to a program by way of a maker; raises `Refused` when it finds nothing to work on.
Draw: TypeAlias = Callable[["Maker"], None]

#: Most elements of an input.
LARGEST: Final = 200
#: Fewest numbers of which a normalization takes a mean: with two, the gradient is next to nothing, and rounding decides.
FEWEST: Final = 3
#: Inputs of these must be matrices of a certain kind.
STRUCTURED: Final = {"BatchInv", "BatchDet", "BatchLogdet", "BatchCholesky"}
#: Left out: they change what others read.
LEFT_OUT: Final = {"Sink", "Assign"}


class Refused(Exception):  # noqa: N818
    """There is nothing that the call could be made on."""


def _plain(spec: FunctionSpec) -> bool:
    if spec.has("seeded") and all(arg.name != "seed" for arg in spec.args):
        return False  # what it draws follows from all the functions before it
    return not any(spec.has(tag) for tag in ("dynamic_shape", "composite", "keeps_gradient")) and spec.name not in LEFT_OUT


UNARY: Final = [
    spec
    for spec in SPECS
    if spec.has("pointwise")
    and len(spec.inputs) == 1
    and not spec.variadic
    and spec.inputs[0].dtype == "float"
    and not any(arg.required for arg in spec.args)
    and _plain(spec)
]
BINARY: Final = ["maximum2", "minimum2", "atan2", "add2", "sub2", "mul2", "squared_error", "absolute_error", "huber_loss"]


def _samples() -> list[tuple[FunctionSpec, list[Sample]]]:
    found = []
    for spec in SPECS:
        if _plain(spec):
            chosen = [entry for entry in samples_of(spec) if _usable(spec, entry)]
            if chosen:
                found.append((spec, chosen))
    return found


def _usable(spec: FunctionSpec, entry: Sample) -> bool:
    arrays = [array for array in numbers_of(spec, entry) if array is not None]
    return sum(a.size for a in arrays) <= LARGEST and all(np.isfinite(a).all() for a in arrays if a.dtype.kind == "f")


SAMPLES: Final = _samples()


def unary(m: "Maker") -> None:
    """Draw an element-wise function."""
    spec = UNARY[m.rng.integers(len(UNARY))]
    x = m.pick()
    if spec.domain is not None:
        x = m.squashed(x, *spec.domain)
    inplace = ", inplace=True" if any(arg.name == "inplace" for arg in spec.args) and m.chance(0.3) else ""
    m.step(f"F.{spec.api}({{0}}{inplace})", x)


def arithmetic(m: "Maker") -> None:
    """Draw a number and an operator."""
    number = round(float(m.rng.uniform(-2, 2)), 2) or 1.0
    texts = (
        f"{{0}} * {number}", f"{{0}} + {number}", f"{number} - {{0}}", f"{{0}} - {number}", f"{number} * {{0}}", "-{0}",
        f"{{0}} / {number}", "{0} ** 2", "F.pow_scalar({0}, 3.0)", f"F.add_scalar({{0}}, {number}, inplace=True)",
        f"F.mul_scalar({{0}}, {number}, inplace=True)", f"F.maximum_scalar({{0}}, {number})",
        f"F.minimum_scalar({{0}}, {number})", f"F.clip_by_value({{0}}, {-abs(number)}, {abs(number)})",
        "F.leaky_relu({0}, 0.2, inplace=True)", "F.relu({0}, inplace=True)", f"{number} / ({{0}} * {{0}} + 1)",
    )  # fmt: skip
    m.step(texts[m.rng.integers(len(texts))], m.pick())


def binary(m: "Maker") -> None:
    """Two values whose shapes broadcast."""
    x, y = m.pair()
    texts = (
        "{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / ({1} * {1} + 1)", "F.maximum2({0}, {1})", "F.minimum2({0}, {1})",
        "F.add2({0}, {1}, inplace=True)", "F.mul2({0}, {1}, inplace=True)", "F.sub2({0}, {1}, inplace=True)",
        "F.atan2({0}, {1})", "F.where(F.greater({0}, {1}), {0}, {1})", "F.squared_error({0}, {1})",
        "F.huber_loss({0}, {1})", "F.add_n({0}, {1}, {0})", "F.mul_n({0}, {1})", "F.div2({0}, F.exp({1}))",
        "F.greater({0}, {1}) * {0}", "F.bc_add2({0}, {1}, inplace=True)", "{0} ** 2 + {1} ** 2",
        "{0} * F.sigmoid({1})", "{0} + {0} * {1}", "F.pow2(F.sigmoid({0}) + 0.5, {1})",
    )  # fmt: skip
    m.step(texts[m.rng.integers(len(texts))], x, y)


def reduction(m: "Maker") -> None:
    """Draw a sum, a mean, an extremum or a norm over some axes."""
    x = m.pick(min_ndim=1)
    ndim = len(m.shape(x))
    count = int(m.rng.integers(1, ndim + 1))
    axes = tuple(int(n) for n in sorted(m.rng.choice(ndim, count, replace=False)))
    axis = m.choose([f"axis={axes}", f"axis={axes[0]}", f"axis={axes[0] - ndim}"])
    keep = m.choose(["", ", keepdims=True"])
    name = m.choose(["sum", "mean", "max", "min", "prod", "sum", "mean", "norm", "argmax", "var", "two"])
    if name == "two":
        m.step(f"F.max({{0}}, {axis}{keep}, with_index=True)", x, count=2)
    elif name == "argmax":
        m.step(f"F.max({{0}}, {axis}{keep}, only_index=True)", x)
    elif name == "var":
        m.step(f"F.mean(({{0}} - F.mean({{0}}, axis={axes}, keepdims=True)) ** 2, {axis}{keep})", x)
    elif name == "norm":
        m.step(f"F.norm({{0}}, p=2, {axis}{keep})", x)
    else:
        m.step(f"F.{name}({{0}}, {axis}{keep})", x)


def views(m: "Maker") -> None:
    """Another shape or another order."""
    x = m.pick()
    shape = m.shape(x)
    ndim = len(shape)
    texts = [f"F.reshape({{0}}, {(-1,)}, inplace={m.chance(0.7)})", f"F.reshape({{0}}, {(*shape, 1)})", "{0}[None]"]
    if ndim:
        axis = int(m.rng.integers(ndim))
        order = tuple(int(n) for n in m.rng.permutation(ndim))
        low = int(m.rng.integers(0, shape[axis])) if shape[axis] else 0
        before = ":, " * axis
        texts += [
            f"F.transpose({{0}}, {order})", f"F.reshape({{0}}, ({shape[0]}, -1), inplace={m.chance(0.7)})" if shape[0]
            and math.prod(shape) else "{0}[...]", f"F.flip({{0}}, axes=({axis},))", f"{{0}}[{before}{low}:]",
            f"{{0}}[{before}::-1]", f"{{0}}[{before}::2]", f"{{0}}[{before}{low}]" if shape[axis] else "{0}[...]",
            f"F.concatenate({{0}}, {{0}}, axis={axis})", f"F.stack({{0}}, {{0}} * 2, axis={axis})",
            f"F.tile({{0}}, {tuple(int(n) for n in m.rng.integers(1, 3, ndim))})",
            f"F.pad({{0}}, {(1, 1)}, mode='{m.choose(['constant', 'constant', 'reflect', 'repeat'])}')",
            f"F.cumsum({{0}}, axis={axis})", f"F.sort({{0}}, axis={axis})", "{0}[-1]",
            f"F.broadcast({{0}}, {tuple(3 if n == 1 else n for n in shape)})",
            f"F.shift({{0}}, {tuple([1] * ndim)})",
        ]  # fmt: skip
    m.step(m.choose(texts), x)


def split(m: "Maker") -> None:
    """Several outputs."""
    x = m.pick(min_ndim=1)
    axis = int(m.rng.integers(len(m.shape(x))))
    length = m.shape(x)[axis]
    if not 2 <= length <= 4:
        raise Refused
    m.step(f"F.split({{0}}, axis={axis})", x, count=length)


def softmax(m: "Maker") -> None:
    """Functions along one axis."""
    x = m.pick(min_ndim=1)
    axis = int(m.rng.integers(len(m.shape(x))))
    m.step(f"F.{m.choose(['softmax', 'log_softmax', 'crelu'])}({{0}}, axis={axis})", x)


def matmul(m: "Maker") -> None:
    """Matrix products."""
    x = m.pick(min_ndim=2)
    shape = m.shape(x)
    kind = m.rng.integers(4)
    if kind == 0:
        m.step(f"{{0}} @ F.transpose({{0}}, {(*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)})", x)
    elif kind == 1:
        w = m.leaf((shape[-1], 3))
        m.step("{0} @ {1}", x, w)
    elif kind == 2:
        base = int(m.rng.integers(1, len(shape)))
        w, b = m.leaf((math.prod(shape[base:]), 2)), m.leaf((2,))
        m.step(f"F.affine({{0}}, {{1}}, {{2}}, base_axis={base})", x, w, b)
    else:
        m.step("F.batch_matmul({0}, {0}, transpose_b=True)", x)


def layer(m: "Maker") -> None:
    """Draw a parametric function, sometimes with parameters that were used before."""
    x = m.pick(min_ndim=2)
    shape = m.shape(x)
    kind = m.choose(["affine", "affine", "conv", "conv", "bn", "bn_test", "ln", "prelu", "gn", "in", "wn", "deconv", "attn",
                     "bn_fused", "dw", "conv_bn", "residual"])  # fmt: skip
    name = f"{kind}{m.rng.integers(2)}"
    image = len(shape) >= 4
    if kind in ("conv", "deconv", "gn", "in", "dw", "bn_fused", "conv_bn", "residual") and not image:
        if kind in ("conv", "conv_bn") and len(shape) == 3:
            m.step(f"PF.convolution({{0}}, 2, (3,), pad=(1,), name='one{name}')", x)
            return
        if math.prod(shape) < 4 or math.prod(shape) % 2:
            raise Refused
        x = m.step(f"F.reshape({{0}}, (1, 2, 1, {math.prod(shape) // 2}))", x)[0]
        shape = m.shape(x)
    if _numbers_of_a_statistic(kind, shape) < FEWEST:
        raise Refused
    pad = f"pad={(1,) * (len(shape) - 2)}"
    kernel = (3,) * (len(shape) - 2)
    texts = {
        "affine": f"PF.affine({{0}}, {m.rng.integers(1, 4)}, name='{name}')",
        "wn": f"PF.affine({{0}}, 2, apply_w=PF.weight_normalization, name='{name}')",
        "conv": f"PF.convolution({{0}}, 2, {kernel}, {pad}, with_bias={m.chance(0.5)}, name='{name}')",
        "conv_bn": f"F.relu(PF.batch_normalization(PF.convolution({{0}}, 2, {kernel}, {pad}, name='{name}'),"
        f" batch_stat={m.chance(0.5)}, name='{name}'))",
        # both normalizations have the same statistics
        "residual": f"F.relu(PF.batch_normalization(PF.convolution({{0}}, {shape[1]}, {kernel}, {pad}, name='{name}'),"
        f" batch_stat={m.chance(0.5)}, name='{name}')"
        f" + PF.batch_normalization({{0}}, batch_stat={m.chance(0.5)}, name='{name}'))",
        "deconv": f"PF.deconvolution({{0}}, 2, {kernel}, {pad}, name='{name}')",
        "dw": f"PF.depthwise_convolution({{0}}, {kernel}, {pad}, name='{name}')",
        "bn": f"PF.batch_normalization({{0}}, name='{name}')",
        "bn_fused": f"PF.fused_batch_normalization({{0}}, {{0}} * 2, name='{name}')",
        "bn_test": f"PF.batch_normalization({{0}}, batch_stat=False, name='{name}')",
        "ln": f"PF.layer_normalization({{0}}, name='{name}')",
        "gn": f"PF.group_normalization({{0}}, 1, name='{name}')",
        "in": f"PF.instance_normalization({{0}}, name='{name}')",
        "prelu": f"PF.prelu({{0}}, shared={m.chance(0.5)}, name='{name}')",
        "attn": "F.batch_matmul(F.softmax(F.batch_matmul({0}, {0}, transpose_b=True)), {0})",
    }
    m.step(texts[kind], x)


def _numbers_of_a_statistic(kind: str, shape: tuple[int, ...]) -> int:
    """From how many numbers a normalization takes each mean; `FEWEST` for other layers."""
    if kind in ("bn", "bn_fused", "conv_bn", "residual"):
        return math.prod(shape) // max(shape[1], 1)
    if kind in ("ln", "gn"):
        return math.prod(shape[1:])
    return math.prod(shape[2:]) if kind == "in" else FEWEST


def embed(m: "Maker") -> None:
    """Integer inputs."""
    indices = m.leaf((int(m.rng.integers(1, 4)),), low=0, high=3, integer=True)
    kind = m.rng.integers(5)
    if kind == 0:
        m.step("PF.embed({0}, 3, 2, name='embed')", indices)
    elif kind == 1:
        m.step("F.one_hot({0}, (3,))", m.leaf((2, 1), low=0, high=3, integer=True))
    elif kind == 2:
        x = m.pick(min_ndim=1)
        if m.shape(x)[0] < 3:
            raise Refused
        m.step("F.gather({0}, {1}, axis=0)", x, indices)
    elif kind == 3:
        x = m.pick(min_ndim=2)
        labels = m.leaf((m.shape(x)[0], 1), low=0, high=m.shape(x)[1], integer=True)
        x = m.step("F.reshape({0}, (0, -1))".replace("0,", f"{m.shape(x)[0]},"), x)[0] if len(m.shape(x)) > 2 else x
        m.step("F.softmax_cross_entropy({0}, {1})", x, labels)
    else:
        m.step("F.tanh({0}) * 0.5", indices)


def seeded(m: "Maker") -> None:
    """Random numbers from a seed, which every way of running must draw alike."""
    if any(isinstance(item, Step) and "unlink" in item.flags for item in m.items):
        raise Refused  # the unlinked value may be memory that the next pass fills with other numbers
    seed, x = m.rng.integers(100), m.pick()
    size = m.shape(x)
    kind = m.rng.integers(5)
    if kind < 3:
        m.step(f"F.dropout({{0}}, 0.4, seed={seed})", x)
    else:
        drawn = f"F.rand(0.5, 1.5, {size}, seed={seed})" if kind == 3 else f"F.randn(0, 0.3, {size}, seed={seed})"
        m.step("{0} * {1}", x, m.step(drawn)[0])


def unlink(m: "Maker") -> None:
    """Draw a value without its history."""
    x = m.pick()
    if m.is_leaf(x) or any(isinstance(item, Step) and "seed=" in item.text for item in m.items):
        raise Refused
    m.step("{0}.get_unlinked_variable(need_grad=False)", x, flags={"unlink"})


def sample(m: "Maker") -> None:
    """Draw a call of the conformance samples, on values of the program where they fit."""
    spec, entries = SAMPLES[m.rng.integers(len(SAMPLES))]
    entry = entries[m.rng.integers(len(entries))]
    arrays = numbers_of(spec, entry)
    numbers: list[int] = []
    places: list[str] = []
    for position, array in enumerate(arrays):
        if array is None:
            places.append("None")
            continue
        declared = spec.inputs[min(position, len(spec.inputs) - 1)]
        fixed = declared.name in (*spec.updates, "boxes") or spec.name in STRUCTURED
        fixed = fixed or declared.dtype in (*WHOLE_DTYPES, "same")
        places.append(f"{{{len(numbers)}}}")
        numbers.append(_sample_input(m, spec, entry, position, array, fixed))
    while places and places[-1] == "None":
        places.pop()
    args = {**entry.args, "seed": int(m.rng.integers(100))} if spec.has("seeded") else entry.args
    settings = [f"{key}={value!r}" for key, value in args.items()]
    positional = "" if spec.variadic and not numbers else ", ".join(places)
    text = f"operator({spec.api!r})({', '.join([positional, *settings] if positional else settings)})"
    m.step(text, *numbers, count=None)


def _sample_input(m: "Maker", spec: FunctionSpec, entry: Sample, position: int, array: np.ndarray, fixed: bool) -> int:
    whole = array.dtype.kind != "f" or not array.size or bool(np.all(array == np.round(array)))
    source = (spec.name, entry.name, position)
    if fixed or whole or m.chance(0.35):
        updated = spec.inputs[min(position, len(spec.inputs) - 1)].name in spec.updates
        return m.leaf(array.shape, source=source, need_grad=array.dtype.kind == "f" and not updated and m.chance(0.8))
    x = m.fitted(m.pick(), array.shape)
    low, high = float(array.min()), float(array.max())
    return x if low < -0.8 and high > 0.8 else m.squashed(x, low, high)


#: The draws, with their frequencies.
PALETTE: Final[tuple[tuple[float, Draw], ...]] = (
    (3, unary),
    (3, arithmetic),
    (4, binary),
    (2, reduction),
    (3, views),
    (1, split),
    (1, softmax),
    (1, matmul),
    (2.5, layer),
    (1, embed),
    (0.6, seeded),
    (0.4, unlink),
    (4, sample),
)
