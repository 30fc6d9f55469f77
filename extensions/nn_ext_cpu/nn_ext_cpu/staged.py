"""Functions made of several element-wise programs with sums in between, such as normalizations by a norm.

A row gives the programs as text (see `pointwise`), one after the other. What a program writes into an array of fewer
elements than it runs over is summed; the next program may read it. Results between programs have names and shapes of
their own and live in working memory.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner, Shape
from nn_ext_cpu import _native
from nn_ext_cpu.describe import (
    FLOAT,
    backward_arrays,
    forward_arrays,
    input_names,
    output_names,
    refuse_dtypes,
    reshaped,
    visible_outputs,
)
from nn_ext_cpu.pointwise import compile_program


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs of a row for one call.

    Args:
        forward: Programs that compute the outputs.
        backward: Programs that compute the gradients of all inputs that have one; lines that write an unwanted one are
            left out.
        shapes: Shapes under which arrays (by name) and their gradients are seen, and those of results in between.
        settings: Numbers that lines may name.
    """

    forward: Sequence[str]
    backward: Sequence[str]
    shapes: Mapping[str, Shape]
    settings: Mapping[str, float] = field(default_factory=dict)


class Staged:
    """The kernel of a row.

    Args:
        programs: The programs of the row for a call.
        gradients: Names of the inputs that have a gradient.
    """

    def __init__(self, programs: Callable[[Call], Programs], gradients: Sequence[str]) -> None:
        self._programs = programs
        self._gradients = gradients

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse other dtypes than float32, and arrays without elements."""
        for desc in forward_arrays(call):
            if desc is not None and desc.size == 0:
                return Refusal("takes arrays with at least one element")
            if desc is not None and desc.dtype != FLOAT:
                return Refusal(f"computes in {FLOAT}, got {desc.dtype}")
        return refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """Compile the programs of the outputs."""
        row, names = self._programs(call), [*input_names(call), *output_names(call)]
        return _chained(row, row.forward, names, forward_arrays(call))

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Compile those of the wanted gradients; None if the row lacks one of them."""
        row, inputs = self._programs(call), input_names(call)
        kept = [name for name, want in zip(inputs, wanted, strict=True) if want]
        if not row.backward or not set(kept) <= set(self._gradients):
            return None
        visible = output_names(call)[: len(visible_outputs(call))]
        names = [*inputs, *output_names(call), *[f"d{name}" for name in visible], *[f"d{name}" for name in inputs]]
        unwanted = {f"d{name}" for name in inputs if name not in kept}
        programs = [_without(program, unwanted) for program in row.backward]
        return _chained(row, [program for program in programs if program], names, backward_arrays(call, wanted))


def _without(program: str, unwanted: Collection[str]) -> str:
    """Return a program without the lines that compute what is not wanted."""
    return "\n".join(line for line in program.split("\n") if line.partition(" = ")[0] not in unwanted)


def _shape_in(row: Programs, name: str, desc: ArrayDesc) -> Shape:
    """Return the shape under which a program sees an array; a gradient has that of its array."""
    return row.shapes.get(name, row.shapes.get(name[1:], desc.shape))


def _working(row: Programs, names: Sequence[str]) -> list[str]:
    """Return the names that stand for intermediate values: neither arrays nor gradients of arrays."""
    return [name for name in row.shapes if name not in names and name.removeprefix("d") not in names]


def _words(lines: Sequence[str]) -> set[str]:
    """Return the words of a program before its numbers."""
    return {word for line in lines for word in line.partition(";")[0].replace("=", " ").split()}


def _chained(row: Programs, programs: Sequence[str], names: Sequence[str], given: Sequence[ArrayDesc | None]) -> _native.Op:
    """Return the programs as one operation on the arrays `given`, called `names`."""
    working = _working(row, names)
    arrays = [*given, *[ArrayDesc(row.shapes[name], FLOAT) for name in working]]
    descs = {name: desc for name, desc in zip([*names, *working], arrays, strict=True) if desc is not None}
    places = {name: [*names, *working].index(name) for name in descs}
    operations = []
    for program in programs:
        lines = program.split("\n")
        words = _words(lines)
        used = [name for name in descs if name in words]
        views = [reshaped(descs[name], _shape_in(row, name, descs[name])) for name in used]
        code = compile_program(lines, {name: k for k, name in enumerate(used)}, len(used), row.settings)
        settings: dict[str, Any] = {"views": views, "places": [places[name] for name in used], "program": code}
        operations.append(_native.prepare("pointwise", arrays, **settings))
    return _native.chain(operations, len(working))


def _on(shape: Shape, axes: Sequence[int]) -> Shape:
    """`shape` with length 1 on all axes but `axes`."""
    return tuple(length if axis in axes else 1 for axis, length in enumerate(shape))


def _shape(call: Call) -> Shape:
    """Return the shape of the first input."""
    x = call.inputs[0]
    assert x is not None
    return x.shape


def _number(call: Call, name: str) -> float:
    return float(call.args[name])  # type: ignore[arg-type]  # a number by the specification


def _weight_normalization(call: Call) -> Programs:
    """w g / |w| (Salimans and Kingma, 2016, eq. 2 and 3)."""
    kept = _on(_shape(call), [int(call.args["dim"])])  # type: ignore[arg-type]  # an int by the specification
    rate = "squares = add_scalar total ; eps\nlength = sqrt squares\nrate = reciprocal length"
    return Programs(
        forward=["total = mul w w", f"{rate}\nfactor = mul rate g", "w_wn = mul w factor"],
        backward=[
            "total = mul w w\nalong = mul dw_wn w",
            f"{rate}\ndg = mul along rate\nfactor = mul rate g\nshare = mul along rate\nshare = mul share rate",
            "part = mul w share\nrest = sub dw_wn part\ndw = mul rest factor",
        ],
        shapes={"g": kept, "total": kept, "along": kept, "factor": kept, "share": kept},
        settings={"eps": _number(call, "eps")},
    )


def _norm_normalization(call: Call) -> Programs:
    """x / n with n = (sum |x|^p + eps)^(1/p); dx = dy / n - sum(dy x) n^(-p-1) |x|^(p-1) sign(x)."""
    p, axes = _number(call, "p"), call.args["axes"]
    assert isinstance(axes, tuple)
    kept = tuple(1 if axis in axes else length for axis, length in enumerate(_shape(call)))
    square = p == 2
    power = "total = mul x x" if square else "magnitude = abs x\ntotal = pow_scalar magnitude ; p"
    factor = "sum = add_scalar total ; eps\nfactor = pow_scalar sum ; inverse"
    sign = "over = greater_scalar x ; 0\nunder = less_scalar x ; 0\nsign = sub over under"
    slope = (
        "slope = copy x"
        if square
        else f"magnitude = abs x\nraised = pow_scalar magnitude ; p_1\n{sign}\nslope = mul raised sign"
    )
    return Programs(
        forward=[power, factor, "y = mul x factor"],
        backward=[
            f"{power}\nalong = mul dy x",
            f"{factor}\nquotient = div factor sum\nshare = mul along quotient",
            f"{slope}\npart = mul slope share\nrest = mul dy factor\ndx = sub rest part",
        ],
        shapes={"total": kept, "factor": kept, "along": kept, "share": kept},
        settings={"p": p, "p_1": p - 1, "inverse": -1 / p, "eps": _number(call, "eps")},
    )


def _clip_grad_by_norm(call: Call) -> Programs:
    """Return the identity; the gradient becomes clip_norm dy / |dy|, 0 where the norm is 0."""
    axes = call.args["axes"]
    assert isinstance(axes, tuple)
    kept = tuple(1 if axis in axes else length for axis, length in enumerate(_shape(call)))
    return Programs(
        forward=["y = copy x"],
        backward=[
            "total = mul dy dy",
            "norm = sqrt total\nzero = equal_scalar norm ; 0\nnorm = add norm zero\nfactor = rdiv_scalar norm ; clip_norm",
            "dx = mul dy factor",
        ],
        shapes={"total": kept, "factor": kept},
        settings={"clip_norm": _number(call, "clip_norm")},
    )


def _spectral_norm(call: Call) -> Programs:
    """w over its largest singular value, by power iteration; its vectors count as constants (Miyato et al., 2018)."""
    shape, dim = _shape(call), int(call.args["dim"])  # type: ignore[arg-type]  # an int by the specification
    left = _on(shape, [dim])
    right = tuple(1 if axis == dim else length for axis, length in enumerate(shape))
    one: Shape = (1,) * len(shape)

    def unit(vector: str) -> list[str]:
        """Programs that divide the sums in `vector`_sum by their norm."""
        return [
            f"norm = mul {vector}_sum {vector}_sum",
            f"sum = add_scalar norm ; eps\nlength = sqrt sum\n{vector} = div {vector}_sum length",
        ]

    programs = ["before = copy u\nleft = copy u"]
    for _ in range(int(call.args["itr"])):  # type: ignore[arg-type]  # an int by the specification
        programs += ["right_sum = mul w left", *unit("right"), "left_sum = mul w right", *unit("left")]
    programs += ["t = mul w left\nlargest = mul t right", "w_sn = div w largest"]
    if not call.args["test"]:
        programs.append("u = copy left")
    shapes = {"u": left, "left": left, "right": right, "left_sum": left, "right_sum": right, "before": left}
    return Programs(
        forward=programs,
        backward=[
            "outer = mul left right\nlargest = mul w outer\ntotal = mul dw_sn w",
            "square = mul largest largest\nfactor = div total square",
            "outer = mul left right\npart = mul outer factor\nrest = div dw_sn largest\ndw = sub rest part",
        ],
        shapes={**shapes, "norm": one, "largest": one, "total": one, "factor": one},
        settings={"eps": _number(call, "eps")},
    )


def _kl_multinomial(call: Call) -> Programs:
    """Logarithms of at least 2^-126; gradients divide by 2^-24 instead of 0."""
    base_axis = call.args["base_axis"]
    assert isinstance(base_axis, int)
    shape = _shape(call)
    kept = (*shape[:base_axis], *(1,) * (len(shape) - base_axis))
    divisor = "{0}_zero = equal_scalar {0} ; 0\n{0}_least = mul_scalar {0}_zero ; least\n{0}_part = add {0} {0}_least"
    divisors = f"{divisor.format('p')}\n{divisor.format('q')}"
    gradients = "dp = mul dD t\nratio = div p q_part\ndq = neg_mul dD ratio"
    return Programs(
        forward=[
            "a = maximum_scalar p ; smallest\na = log a\nb = maximum_scalar q ; smallest\nb = log b\nt = sub a b\nD = mul p t"
        ],
        backward=[f"{divisors}\na = log p_part\nb = log q_part\nt = sub a b\nt = add_scalar t ; 1\n{gradients}"],
        shapes={"D": kept},
        settings={"smallest": 2.0**-126, "least": 2.0**-24},
    )


STAGED: Final[Mapping[str, Kernel]] = {
    "WeightNormalization": Staged(_weight_normalization, ["w", "g"]),
    "NormNormalization": Staged(_norm_normalization, ["x"]),
    "ClipGradByNorm": Staged(_clip_grad_by_norm, ["x"]),
    "SpectralNorm": Staged(_spectral_norm, ["w"]),
    "KLMultinomial": Staged(_kl_multinomial, ["p", "q"]),
}
